"""Claims: what a file may contain, how a verdict comes about, and that the papers' own numbers bear them out."""

import math

import pandas as pd
import pytest
import yaml

from lookuplab import claims, paths
from lookuplab.claims import FAILS, HOLDS, UNDECIDED, Claim, by_family, judge, judge_run, load
from lookuplab.errors import UserError

VALID = {
    "id": "a-claim",
    "paper": "cloudapibench",
    "place": "Table 1",
    "statement": "High is easier than low",
    "artifact": "table1_base_models",
    "test": {"kind": "greater", "metric": "valid_percent", "left": "high", "right": "low"},
}


def claim(test, models="all", artifact="an_artifact"):
    return Claim("a-claim", "cloudapibench", "Table 1", "words", artifact, {"metric": "valid_percent"} | test, models)


def frame(*rows, metric="valid_percent"):
    """Rows are (model, condition, value[, ci_low, ci_high]); n is 100, the paper's value 50."""
    return pd.DataFrame(
        [
            {"model": model, "condition": condition, "metric": metric, "value": value, "n": 100, "paper_value": 50.0}
            | dict(zip(("ci_low", "ci_high"), interval or (float("nan"),) * 2, strict=True))
            for model, condition, value, *interval in rows
        ]
    )


def written(tmp_path, *entries):
    file = tmp_path / "claims.yaml"
    file.write_text(yaml.safe_dump(list(entries)))
    return file


# What the papers say of themselves


def test_a_claim_that_the_papers_own_numbers_contradict_says_so():
    judged = [judgement for judgement in judge_run(load(), paths.RUNS / "nowhere") if judgement.reported]
    assert len(judged) >= 40
    contradicted = {one.claim.id: one.claim for one in judged if {c.verdict for c in one.reported} != {HOLDS}}
    assert set(contradicted) == {
        "capi-name-and-description-do-not-help", "capi-dag-size-helps", "capi-dagpp-size-helps"
    }
    for one in contradicted.values():
        assert "The paper's own numbers do not bear this out" in one.why, one.id


def test_every_artifact_of_cloudapibench_has_a_claim():
    reported = {file.stem for file in (paths.PAPER / "cloudapibench").glob("*.csv")}
    examples = {"stated_values", "fig8_confidence_example"}  # parameters, and one invocation: nothing to judge
    judged = {one.artifact for one in load() if one.paper == "cloudapibench"}
    assert judged == reported - examples | {"fig1_perplexity"}


def test_both_result_tables_of_toolgen_have_claims():
    assert {one.artifact for one in load() if one.paper == "toolgen"} == {
        "table2_similarity", "table3_repository_metrics"}


# Verdicts


def verdict(test, *rows, models="all"):
    return judge(claim(test, models), frame(*rows)).verdict


AT_LEAST = {"kind": "at_least", "conditions": ["low"], "bound": 50}
AT_MOST = {"kind": "at_most", "conditions": ["low"], "bound": 50}


@pytest.mark.parametrize(
    ("interval", "at_least", "at_most"),
    [((51, 60), HOLDS, FAILS), ((30, 49), FAILS, HOLDS), ((40, 60), UNDECIDED, UNDECIDED)],
)
def test_a_bound_is_decided_by_the_whole_interval(interval, at_least, at_most):
    row = ("m", "low", sum(interval) / 2, *interval)
    assert verdict(AT_LEAST, row) == at_least and verdict(AT_MOST, row) == at_most


def test_a_number_without_interval_is_exact():
    assert verdict(AT_LEAST, ("m", "low", 50)) == HOLDS
    assert verdict(AT_LEAST, ("m", "low", 49.9)) == FAILS


def test_a_difference_is_decided_by_its_own_interval():
    # the intervals [50, 70] and [44, 52] overlap, yet the difference, 12 [1.2, 22.8], is above 0
    rows = [("m", "high", 60, 50, 70), ("m", "low", 48, 44, 52)]
    greater = {"kind": "greater", "left": "high", "right": "low"}
    [comparison] = judge(claim(greater), frame(*rows)).comparisons
    assert (comparison.value, comparison.low, comparison.high) == pytest.approx(
        (12, 12 - math.hypot(10, 4), 12 + math.hypot(10, 4))
    )
    assert (comparison.verdict, comparison.n, comparison.paper_value) == (HOLDS, "100+100", 0)
    assert verdict(greater | {"by": 5}, *rows) == UNDECIDED
    assert verdict(greater | {"by": 25}, *rows) == FAILS


def test_equal_numbers_are_not_greater():
    assert verdict({"kind": "greater", "left": "high", "right": "low"}, ("m", "high", 5), ("m", "low", 5)) == FAILS


def test_monotone_compares_neighbours():
    decreasing = {"kind": "monotone", "over": ["high", "medium", "low"], "direction": "decreasing"}
    assert verdict(decreasing, ("m", "high", 9), ("m", "medium", 5), ("m", "low", 1)) == HOLDS
    assert verdict(decreasing, ("m", "high", 9), ("m", "medium", 1), ("m", "low", 5)) == FAILS
    assert (
        verdict(decreasing | {"direction": "increasing"}, ("m", "high", 1), ("m", "medium", 5), ("m", "low", 9))
        == HOLDS
    )


def test_monotone_over_size_stays_inside_a_family():
    growing = {"kind": "monotone", "over": {"size": "all"}, "direction": "increasing"}
    rows = [
        ("big-7B", "all", 5),
        ("big-3B", "all", 2),
        ("other-1B", "all", 9),
        ("other-2B", "all", 10),
        ("single", "all", 1),
    ]
    judgement = judge(claim(growing), frame(*rows))
    assert [c.quantity for c in judgement.comparisons] == ["big-7B - big-3B > 0", "other-2B - other-1B > 0"]
    assert judgement.verdict == HOLDS


def test_equal_is_exact_for_counts_and_inside_the_interval_otherwise():
    equal = {"kind": "equal", "expected": {"all": 622}}
    assert verdict(equal, ("", "all", 622)) == HOLDS and verdict(equal, ("", "all", 621)) == FAILS
    assert verdict(equal, ("", "all", 600, 580, 630)) == HOLDS and verdict(equal, ("", "all", 600, 580, 620)) == FAILS


def test_quantifiers_over_models():
    good, bad, unclear = ("a-large", "low", 60, 55, 65), ("a-small", "low", 20, 15, 25), ("b", "low", 50, 40, 60)
    assert [verdict(AT_LEAST, good, bad, models=models) for models in ("all", "any", "largest")] == [
        FAILS,
        HOLDS,
        HOLDS,
    ]
    assert [verdict(AT_LEAST, good, unclear, models=models) for models in ("all", "any")] == [UNDECIDED, HOLDS]
    assert [verdict(AT_LEAST, bad, unclear, models=models) for models in ("all", "any")] == [FAILS, UNDECIDED]


def test_any_asks_one_model_for_everything():
    both = {"kind": "at_least", "conditions": ["high", "low"], "bound": 50}
    rows = [("a", "high", 60), ("a", "low", 40), ("b", "high", 40), ("b", "low", 60)]
    assert verdict(both, *rows, models="any") == FAILS


def test_a_missing_row_is_not_decided():
    judgement = judge(claim({"kind": "greater", "left": "high", "right": "low"}), frame(("m", "high", 5)))
    assert judgement.verdict == UNDECIDED and math.isnan(judgement.comparisons[0].value)


def test_a_metric_nobody_measured_is_not_decided():
    judgement = judge(claim(AT_LEAST), frame(("m", "low", 5), metric="another"))
    assert (judgement.verdict, judgement.note) == (UNDECIDED, "no valid_percent to compare")


def test_a_missing_artifact_names_the_file_and_the_command(tmp_path):
    [judgement] = judge_run([claim(AT_LEAST)], tmp_path)
    assert judgement.verdict == UNDECIDED
    assert judgement.note == f"no {tmp_path}/cloudapibench/an_artifact.csv: make it with lookuplab run an_artifact"


def test_families_are_ordered_by_size():
    assert by_family(["mini-large", "mini-small", "mini-medium"]) == {
        "mini": ["mini-small", "mini-medium", "mini-large"]
    }
    names = [
        "ibm-granite/granite-20b-code-base-8k",
        "GPT-4o",
        "ibm-granite/granite-3b-code-base-2k",
        "x-1.3B",
        "x-350M",
    ]
    assert list(by_family(names).values()) == [[names[2], names[0]], ["GPT-4o"], ["x-350M", "x-1.3B"]]


# The file


def test_a_valid_file_is_read(tmp_path):
    [one] = load(written(tmp_path, VALID))
    assert (one.id, one.models, one.test["left"]) == ("a-claim", "all", "high")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"artifact": None}, "artifact must be string"),
        ({"models": "most"}, "models must be one of \\['all', 'any', 'largest'\\]"),
        ({"place": ""}, "place must be longer"),
        ({"paper": "other"}, "paper must be one of"),
        ({"colour": "red"}, "must not contain {'colour'} properties"),
        ({"test": {"kind": "bigger", "metric": "m"}}, "test.kind must be one of"),
        ({"test": {"kind": "greater", "metric": "m", "left": "high"}}, "test must contain \\['right'\\] properties"),
        (
            {"test": {"kind": "at_least", "metric": "m", "conditions": ["low"], "bound": "half"}},
            "test.bound must be number",
        ),
        ({"test": {"kind": "at_most", "metric": "m", "conditions": [], "bound": 1}}, "test.conditions must contain"),
        ({"test": {"kind": "equal", "metric": "m", "expected": {"all": 1}, "by": 2}}, "test must not contain {.by.}"),
    ],
)
def test_a_broken_claim_is_named_with_its_file(tmp_path, change, message):
    file = written(tmp_path, VALID | {"id": "first"}, VALID | change)
    with pytest.raises(UserError, match=f"claims.yaml, claim 'a-claim': {message}"):
        load(file)


def test_a_claim_without_id_is_named_by_its_number(tmp_path):
    with pytest.raises(UserError, match=r"claim number 2: must contain \['id'\] properties"):
        load(written(tmp_path, VALID, {key: value for key, value in VALID.items() if key != "id"}))


def test_an_id_is_used_once(tmp_path):
    with pytest.raises(UserError, match="claim 'a-claim': this id is taken"):
        load(written(tmp_path, VALID, VALID))


@pytest.mark.parametrize(
    ("text", "message"), [("- id: [", "is not YAML: .*line"), ("id: x", "expected a list"), ("", "expected a list")]
)
def test_a_file_that_is_no_list_of_claims_is_refused(tmp_path, text, message):
    file = tmp_path / "claims.yaml"
    file.write_text(text)
    with pytest.raises(UserError, match=message):
        load(file)


def test_the_table_has_a_row_for_every_comparison_and_every_undecided_claim():
    held = judge(claim(AT_LEAST), frame(("a", "low", 60), ("b", "low", 70)))
    missing = judge(claim(AT_LEAST), frame(("m", "low", 5), metric="another"))
    table = claims.table([held, missing])
    assert table.model.tolist() == ["a", "b", ""] and table.comparison.tolist() == [HOLDS, HOLDS, UNDECIDED]
