"""Claims: how a verdict comes about, what a file may contain, what is printed, and that the papers' own numbers agree."""

import csv
import io
import math

import pandas as pd
import pytest
import yaml
from click.testing import CliRunner

from lookuplab import claims, paths
from lookuplab.claims import (
    FAILS,
    HOLDS,
    UNDECIDED,
    Claim,
    Comparison,
    Judgement,
    by_family,
    judge,
    judge_run,
    load,
)
from lookuplab.cli import cli
from lookuplab.errors import UserError

NAN, METRIC, CHANGE = float("nan"), "valid_percent", "valid_change_points"
ENTRY = {
    "id": "a-claim",
    "paper": "cloudapibench",
    "place": "Table 1",
    "statement": "High is easier than low",
    "artifact": "table1_base_models",
    "test": {"kind": "greater", "metric": METRIC, "left": "high", "right": "low"},
}
AT_LEAST = {"kind": "at_least", "conditions": ["low"], "bound": 50}
AT_MOST = {"kind": "at_most", "conditions": ["low"], "bound": 50}
HIGH_LOW = {"kind": "greater", "left": "high", "right": "low"}
RISING = {"kind": "monotone", "direction": "increasing"}
SIZES = RISING | {"over": {"size": "all"}}
BETTER = {"kind": "greater", "left": "dag/low", "right": "base/low"}
BASE, DAG = ("m", "base/low", 40, 30, 50), ("m", "dag/low", 46, 36, 56)


def claim(test, models="all"):
    return Claim(
        "a-claim",
        "cloudapibench",
        "Table 1",
        "words",
        "an_artifact",
        {"metric": METRIC} | test,
        models,
    )


def judged(test, *rows, models="all", changes=(), metric=METRIC, change=CHANGE):
    """Rows and changes are (model, condition, value[, ci_low, ci_high]); n is 100, the paper's value 50."""
    lines = [(metric, *row) for row in rows] + [(change, *row) for row in changes]
    lines = [(*line, NAN, NAN)[:6] for line in lines]
    frame = pd.DataFrame(
        lines, columns=["metric", "model", "condition", "value", "ci_low", "ci_high"]
    )
    return judge(claim({"metric": metric} | test, models), frame.assign(n=100, paper_value=50.0))


def verdict(test, *rows, **more):
    return judged(test, *rows, **more).verdict


# What the papers say of themselves


def test_a_claim_that_the_papers_own_numbers_contradict_says_so():
    found = [
        judgement for judgement in judge_run(load(), paths.RUNS / "nowhere") if judgement.reported
    ]
    assert len(found) >= 40
    contradicted = {
        one.claim.id: one.claim for one in found if {c.verdict for c in one.reported} != {HOLDS}
    }
    names = {
        "capi-name-and-description-do-not-help",
        "capi-dag-size-helps",
        "capi-dagpp-size-helps",
    }
    assert set(contradicted) == names
    assert all(
        "The paper's own numbers do not bear this out" in one.why for one in contradicted.values()
    )


def test_every_table_and_figure_of_cloudapibench_and_toolgen_has_a_claim():
    about = {(one.paper, one.artifact) for one in load()}
    for paper, without in {
        "cloudapibench": {
            "stated_values",
            "fig8_confidence_example",
        },  # parameters, and one invocation
        "toolgen": {
            "stated_values",
            "augmentation",
            "finetuning",
            "fig4_augmented_function",
            "fig1_example",
        },
    }.items():
        reported = {file.stem for file in (paths.PAPER / paper).glob("*.csv")}
        assert reported - without <= {artifact for of, artifact in about if of == paper}


# Verdicts


@pytest.mark.parametrize(
    ("interval", "at_least", "at_most"),
    [((51, 60), HOLDS, FAILS), ((30, 49), FAILS, HOLDS), ((40, 60), UNDECIDED, UNDECIDED)],
)
def test_a_bound_is_decided_by_the_whole_interval(interval, at_least, at_most):
    row = ("m", "low", sum(interval) / 2, *interval)
    assert verdict(AT_LEAST, row) == at_least and verdict(AT_MOST, row) == at_most


def test_a_number_without_interval_is_exact():
    assert (
        verdict(AT_LEAST, ("m", "low", 50)) == HOLDS
        and verdict(AT_LEAST, ("m", "low", 49.9)) == FAILS
    )


def test_a_difference_is_decided_by_its_own_interval():
    # the intervals [50, 70] and [44, 52] overlap, yet the difference, 12 [1.2, 22.8], is above 0
    rows = [("m", "high", 60, 50, 70), ("m", "low", 48, 44, 52)]
    [one] = judged(HIGH_LOW, *rows).comparisons
    half = math.hypot(10, 4)
    assert (one.value, one.low, one.high) == pytest.approx((12, 12 - half, 12 + half))
    assert (one.verdict, one.n, one.paper_value) == (HOLDS, "100+100", 0)
    assert (
        verdict(HIGH_LOW | {"by": 5}, *rows) == UNDECIDED
        and verdict(HIGH_LOW | {"by": 25}, *rows) == FAILS
    )


def test_equal_numbers_are_not_greater():
    assert verdict(HIGH_LOW, ("m", "high", 5), ("m", "low", 5)) == FAILS


def test_monotone_compares_neighbours():
    falling = {"kind": "monotone", "over": ["high", "medium", "low"], "direction": "decreasing"}
    rows = [("m", "high", 9), ("m", "medium", 5), ("m", "low", 1)]
    assert verdict(falling, *rows) == HOLDS and verdict(falling | RISING, *rows) == FAILS
    assert verdict(falling, ("m", "high", 9), ("m", "medium", 1), ("m", "low", 5)) == FAILS


def test_sizes_are_compared_inside_a_family_and_across_families_only_when_asked():
    rows = [
        ("b-7B", "all", 5),
        ("b-3B", "all", 2),
        ("o-1B", "all", 9),
        ("o-2B", "all", 10),
        ("single", "all", 1),
    ]
    found = judged(SIZES, *rows)
    assert [c.quantity for c in found.comparisons] == ["b-7B - b-3B > 0", "o-2B - o-1B > 0"]
    assert found.verdict == HOLDS
    rows = [
        ("a-7B", "all", 50),
        ("b-7B", "all", 45),
        ("c-15B", "all", 40),
        ("d-20B", "all", 60),
        ("none", "all", 1),
    ]
    across = judged(RISING | {"over": {"size": "all", "across_families": True}}, *rows)
    assert [c.quantity for c in across.comparisons] == ["c-15B - b-7B > 0", "d-20B - c-15B > 0"]
    assert across.verdict == FAILS and verdict(SIZES, *rows) == UNDECIDED


def test_equal_is_exact_for_counts_and_inside_the_interval_otherwise():
    equal = {"kind": "equal", "expected": {"all": 622}}
    assert verdict(equal, ("", "all", 622)) == HOLDS and verdict(equal, ("", "all", 621)) == FAILS
    assert (
        verdict(equal, ("", "all", 600, 580, 630)) == HOLDS
        and verdict(equal, ("", "all", 600, 580, 620)) == FAILS
    )


def test_claims_about_all_any_and_the_largest_models():
    good, bad, unclear = (
        ("a-large", "low", 60, 55, 65),
        ("a-small", "low", 20, 15, 25),
        ("b", "low", 50, 40, 60),
    )
    found = [verdict(AT_LEAST, good, bad, models=models) for models in ("all", "any", "largest")]
    assert found == [FAILS, HOLDS, HOLDS]
    assert [verdict(AT_LEAST, good, unclear, models=models) for models in ("all", "any")] == [
        UNDECIDED,
        HOLDS,
    ]
    assert [verdict(AT_LEAST, bad, unclear, models=models) for models in ("all", "any")] == [
        FAILS,
        UNDECIDED,
    ]
    both = AT_LEAST | {"conditions": ["high", "low"]}
    rows = [("a", "high", 60), ("a", "low", 40), ("b", "high", 40), ("b", "low", 60)]
    assert verdict(both, *rows, models="any") == FAILS  # no single model has both


def test_what_is_missing_is_not_decided(tmp_path):
    row = judged(HIGH_LOW, ("m", "high", 5))
    assert row.verdict == UNDECIDED and math.isnan(row.comparisons[0].value)
    nothing = judged(AT_LEAST, changes=[("m", "low", 5)])
    assert (nothing.verdict, nothing.note) == (UNDECIDED, "no valid_percent to compare")
    [file] = judge_run([claim(AT_LEAST)], tmp_path)
    assert file.verdict == UNDECIDED
    assert (
        file.note
        == f"no {tmp_path}/cloudapibench/an_artifact.csv: make it with lookuplab run an_artifact"
    )


def test_families_are_ordered_by_size():
    assert by_family(["mini-large", "mini-small"]) == {"mini": ["mini-small", "mini-large"]}
    names = [
        "ibm-granite/granite-20b-code-base-8k",
        "GPT-4o",
        "ibm-granite/granite-3b-code-base-2k",
        "x-1.3B",
        "x-350M",
    ]
    assert list(by_family(names).values()) == [
        [names[2], names[0]],
        ["GPT-4o"],
        ["x-350M", "x-1.3B"],
    ]


# Paired changes


def test_a_change_from_the_base_is_judged_on_its_paired_interval_in_both_directions():
    gain = [("m", "dag/low", 6, 2, 9)]
    assert verdict(BETTER, BASE, DAG) == UNDECIDED  # the two intervals overlap widely
    [one] = judged(BETTER, BASE, DAG, changes=gain).comparisons
    assert (one.value, one.low, one.high, one.verdict, one.n) == (6, 2, 9, HOLDS, "100 pairs")
    worse = {"kind": "greater", "left": "base/low", "right": "dag/low"}
    [one] = judged(worse | {"by": -5}, BASE, DAG, changes=gain).comparisons
    assert (one.value, one.low, one.high, one.verdict) == (-6, -9, -2, UNDECIDED)
    assert verdict(worse, BASE, DAG, changes=gain) == FAILS


@pytest.mark.parametrize(
    ("condition", "value"), [("plus/low - dag/low", 6), ("dag/low - plus/low", -6)]
)
def test_a_change_between_two_policies_is_named_by_both(condition, value):
    test = BETTER | {"left": "plus/low", "right": "dag/low"}
    changes = [("m", condition, 6, 2, 9), ("m", "dag/low", 1, 0, 2)]
    [one] = judged(test, DAG, ("m", "plus/low", *DAG[2:]), changes=changes).comparisons
    assert (one.value, one.n) == (value, "100 pairs")


def test_a_metric_that_is_not_a_percentage_has_its_paired_change_too():
    rows, test = (
        [("m", "base", 0.4, 0.3, 0.5), ("m", "tool", 0.46, 0.36, 0.56)],
        HIGH_LOW | {"left": "tool", "right": "base"},
    )
    names = {"metric": "bleu4", "change": "bleu4_change"}
    assert verdict(test, *rows, **names) == UNDECIDED
    assert verdict(test, *rows, changes=[("m", "tool", 0.06, 0.02, 0.09)], **names) == HOLDS


def test_a_change_says_nothing_about_another_pair():
    test = BETTER | {"right": "base/high"}
    found = judged(test, ("m", "base/high", 40, 30, 50), DAG, changes=[("m", "dag/low", 6, 2, 9)])
    assert found.comparisons[0].n == "100+100"


def test_every_left_is_compared_with_every_right():
    rows = [("m", name, value) for name, value in zip("abcd", (9, 8, 2, 1), strict=True)]
    found = judged({"kind": "greater", "left": ["a", "b"], "right": ["c", "d"]}, *rows)
    assert [c.quantity for c in found.comparisons] == [
        "a - c > 0",
        "a - d > 0",
        "b - c > 0",
        "b - d > 0",
    ]


@pytest.mark.parametrize(
    ("interval", "expected"), [((-4, 2), HOLDS), ((-9, 2), UNDECIDED), ((-9, -6), FAILS)]
)
def test_a_negative_margin_means_not_lower_by_as_much(interval, expected):
    change = ("m", "dag/low", sum(interval) / 2, *interval)
    assert verdict(BETTER | {"by": -5}, BASE, DAG, changes=[change]) == expected


# The file


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": "most"}, "claim a-claim: .* models is not all, any or largest"),
        ({"colour": "red"}, "unexpected keyword argument 'colour'"),
        ({"test": {"kind": "bigger", "metric": "m"}}, "KeyError 'bigger'"),
        ({"test": {"kind": "greater", "metric": "m", "left": "high"}}, "KeyError 'right'"),
        (
            {"test": AT_LEAST | {"metric": "m", "bound": "half"}},
            "could not convert string to float: 'half'",
        ),
        ({"id": "first"}, "claim first: .* the id is taken"),
        (None, "claim number 2: TypeError"),
    ],
)
def test_a_broken_claim_is_named_with_its_file(tmp_path, change, message):
    file = tmp_path / "claims.yaml"
    file.write_text(yaml.safe_dump([ENTRY | {"id": "first"}, change and ENTRY | change]))
    with pytest.raises(UserError, match=f"claims.yaml, .*{message}"):
        load(file)


def test_a_file_that_is_not_yaml_is_refused(tmp_path):
    (tmp_path / "claims.yaml").write_text("- id: [")
    with pytest.raises(UserError, match="line 1"):
        load(tmp_path / "claims.yaml")


# What is printed


def comparison(model, verdict, value=60.0):
    return Comparison(model, "low >= 50", value, value - 5, value + 5, "267", 44.5, verdict)


def test_the_comparison_that_decides_is_shown_and_all_of_them_with_details():
    failed = Judgement(
        claim(AT_LEAST), FAILS, (comparison("good", HOLDS), comparison("bad", FAILS, 30.0))
    )
    printed = claims.text([failed], width=120)
    assert "bad low >= 50: 30 [25, 35], n 267, paper 44.50; fails in 1 of 2 comparisons" in printed
    assert "good" not in printed
    assert "- good low >= 50: 60 [55, 65], n 267, paper 44.50: holds" in claims.text(
        [failed], True, 120
    )


def test_numbers_of_the_paper_that_contradict_it_are_counted():
    reported = (comparison("x", HOLDS, 1.0), comparison("y", FAILS, 2.0))
    printed = claims.text([Judgement(claim(AT_LEAST), HOLDS, (), reported)], width=100)
    assert "paper: 1 to 2 in 2 comparisons, 1 of them against the claim" in printed


# The command


@pytest.fixture
def figures(tmp_path):
    """A run with one artifact: the right number of tasks, a wrong number of low ones, most providers missing."""
    folder = tmp_path / "mini" / "cloudapibench"
    folder.mkdir(parents=True)
    tasks = {"all": 622, "high": 205, "medium": 150, "low": 200, "aws/high": 1}
    lines = ["paper,artifact,model,condition,metric,value,ci_low,ci_high,n,paper_value"]
    lines += [
        f"cloudapibench,fig2_fig10_composition,,{name},tasks,{n},,,{n},"
        for name, n in tasks.items()
    ]
    (folder / "fig2_fig10_composition.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli, ["claims", *map(str, arguments)])


def test_verdicts_are_printed_and_a_failing_claim_is_not_an_error(figures):
    result = run("cloudapibench", "--figures", figures)
    number = sum(claim.paper == "cloudapibench" for claim in load())
    assert result.exit_code == 0 and "HOLDS        capi-622-tasks (Section 2.2)" in result.output
    assert result.output.endswith(f"{number} claims: 1 holds, 1 fails, {number - 2} not decided\n")


def test_verdicts_and_artifacts_can_be_chosen_and_come_as_csv(figures):
    def shown(*arguments):
        rows = csv.DictReader(io.StringIO(run("--csv", "--figures", figures, *arguments).output))
        return list(dict.fromkeys(row["id"] for row in rows))

    assert shown("--verdict", "holds", "--verdict", "fails") == [
        "capi-622-tasks",
        "capi-class-sizes",
    ]
    assert shown("--artifact", "fig2_fig10_composition", "--verdict", "undecided") == [
        "capi-two-providers"
    ]
    rows = list(csv.DictReader(io.StringIO(run("--csv", "--figures", figures).output)))
    assert [row["value"] for row in rows if row["id"] == "capi-class-sizes"] == [
        "205.0",
        "150.0",
        "200.0",
    ]
    assert [row["model"] for row in rows if row["id"] == "capi-low-is-hard"] == [
        ""
    ]  # a row without comparisons


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nopaper"], "error: no claim about nopaper"),
        (["--profile", "nope"], "error: no profile 'nope'"),
        (["--figures", "nowhere"], "error: no folder nowhere/mini"),
        (["--artifact", "table9"], "error: no claim about table9"),
    ],
)
def test_bad_input_exits_with_2(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2 and message in result.output
