"""Tests claims: how a verdict is reached, what the file may contain, what is printed, and that the
papers' own numbers agree with their claims.
"""

import math
from dataclasses import replace
from io import StringIO

import pandas as pd
import pytest
import yaml
from doors import refused

from lookuplab import paths
from lookuplab.results.artifact import ARTIFACT_COLUMNS
from lookuplab.results.claims import (
    COVERS,
    FAILS,
    HOLDS,
    IMPRECISE,
    LARGER,
    NOT_RUN,
    OPEN,
    REFUSED,
    SMALLER,
    UNSIZED,
    UNTESTABLE,
    Claim,
    inequalities,
    judge,
    judge_run,
    load,
    rows_in,
    weak_models,
)
from lookuplab.run import report
from lookuplab.run.notebooks import load_profile

METRIC = "valid_percent"
AT_LEAST = {"ranges": {"low": [50, None]}}
AT_MOST = {"ranges": {"low": [None, 50]}}
ABOUT = {"ranges": {"low": [40, 60]}}
EXACTLY = {"ranges": {"low": [50, 50]}}
HIGH_LOW = {"descending": ["high", "low"]}
SIZES = {"sizes": "all", "direction": "increasing"}
ACROSS = SIZES | {"across_families": True}
ENTRY = {
    "id": "a-claim",
    "paper": "cloudapibench",
    "place": "Table 1",
    "statement": "words",
    "artifact": "an_artifact",
    "test": HIGH_LOW | {"metric": METRIC},
}


def claim(test, models="all"):
    return Claim(**ENTRY | {"test": {"metric": METRIC} | test, "models": models})


def frame(*rows, metric=METRIC):
    """Return a table from rows "model, condition, value[, ci_low, ci_high]". Every n is 100, and
    every value of the paper is 50.
    """
    table = pd.read_csv(
        StringIO("\n".join(rows)),
        names=["model", "condition", "value", "ci_low", "ci_high"],
        skipinitialspace=True,
    )
    return table.assign(metric=metric, n=100, paper_value=50.0)


def write(place, table):
    """Write a table as the CSV of the artifact at ``place``."""
    table = table.reindex(columns=[*ARTIFACT_COLUMNS])
    table.to_csv(paths.make_folder(place.parent) / f"{place.name}.csv", index=False)


def judged(test, *rows, models="all", changes=(), **more):
    tables = frame(*rows), frame(*changes, metric="valid_change_points")
    return judge(claim(test, models), pd.concat(tables).assign(**more))


def verdict(test, *rows, **more):
    return judged(test, *rows, **more).direction


# The papers' own numbers


def test_a_claim_that_the_papers_own_numbers_contradict_says_so():
    found = [one for one in judge_run(load(), paths.RUNS / "nowhere") if one.reported]
    assert len(found) >= 35
    contradicted = [one.claim for one in found if {c.direction for c in one.reported} != {HOLDS}]
    assert {one.id for one in contradicted} == {
        "capi-name-and-description-do-not-help",
        "capi-high-rarely-retrieved",
        "capi-dag-size-helps",
        "capi-dagpp-size-helps",
    }
    said = "The paper's own numbers do not bear this out"
    assert all(said in one.why for one in contradicted)


# Verdicts


@pytest.mark.parametrize(
    ("test", "value", "interval", "expected"),
    [
        (AT_LEAST, 55, "51, 60", HOLDS),
        (AT_LEAST, 40, "30, 49", FAILS),
        (AT_MOST, 50, "40, 60", OPEN),
        (AT_LEAST, 55, "50, 60", OPEN),  # an end of the interval at the bound decides nothing
        (AT_LEAST, 50, "", HOLDS),  # a number without an interval is exact
        (ABOUT, 37.5, "30, 45", OPEN),
        (ABOUT, 29, "20, 38", FAILS),
        (EXACTLY, 50, "40, 60", HOLDS),  # only the value counts, not the interval
    ],
)
def test_a_bound_is_decided_by_the_whole_interval(test, value, interval, expected):
    assert verdict(test, f"m, low, {value}, {interval}") == expected


def test_one_of_many_comparisons_must_be_surer_to_decide_alone():
    # 45 [40, 49.9] is 2.0 standard errors below 50. The one-sided probability is 2.3%, and 11.5%
    # for the smallest of five numbers.
    rows = ["m, low, 45, 40, 49.9", *(f"{name}, low, 60, 55, 65" for name in "abcd")]
    assert verdict(AT_LEAST, rows[0]) == FAILS
    assert verdict(AT_LEAST, *rows) == OPEN
    assert verdict(AT_LEAST, "m, low, 45, 43, 47", *rows[1:]) == FAILS


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ("45, 55", COVERS),
        ("51, 55", LARGER),
        ("0.1, 100", COVERS),
        ("0, 100", IMPRECISE),  # half of the interval is as long as the paper's value
        ("", COVERS),
    ],
)
def test_the_size_is_whether_the_interval_covers_the_papers_value(interval, expected):
    [one] = judged(AT_LEAST, f"m, low, 50, {interval}").comparisons  # the paper's value is 50
    [other] = judged(AT_LEAST | {"printed": 101}, f"m, low, 50, {interval}").comparisons
    assert (one.size, other.size, other.paper_value) == (expected, SMALLER, 101)


def test_a_difference_is_decided_by_its_own_interval():
    # the intervals [50, 70] and [44, 52] overlap, yet the difference, 12 [1.2, 22.8], is above 0
    rows = ["m, high, 60, 50, 70", "m, low, 48, 44, 52"]
    [one] = judged(HIGH_LOW, *rows).comparisons
    half = math.hypot(10, 4)
    assert (one.value, one.low, one.high) == pytest.approx((12, 12 - half, 12 + half))
    assert (one.direction, one.n, one.paper_value) == (HOLDS, "100 + 100", 0)
    assert [verdict(HIGH_LOW | {"by": by}, *rows) for by in (-1, 5, 25)] == [HOLDS, OPEN, FAILS]
    # the rate that may fall is 48 [44, 52], so a loss of 44 points could be a fall to 0
    assert [verdict(HIGH_LOW | {"by": by}, *rows) for by in (-43, -44)] == [HOLDS, REFUSED]
    others = ["n, high, 50, 49, 51", "n, low, 90, 88, 92"]
    assert verdict(HIGH_LOW | {"by": -44}, *rows, *others) == HOLDS, "the other model decides"
    assert verdict(HIGH_LOW, "m, high, 5", "m, low, 5") == FAILS, "equal is not greater"


@pytest.mark.parametrize(
    ("test", "models", "pairs"),
    [
        ({"descending": ["a", ["b", "c"], "d"]}, "m", "a - b, a - c, b - d, c - d"),
        (SIZES, "b-7B b-3B o-1B o-2B single", "b-7B - b-3B, o-2B - o-1B"),
        (SIZES, "g-20b-base-8k GPT-4o g-3b-base-2k", "g-20b-base-8k - g-3b-base-2k"),
        (SIZES | {"direction": "decreasing"}, "a-3B a-7B", "a-3B - a-7B"),
        # models of different families are compared, too, but never two models of one size
        (ACROSS, "a-7B b-7B c-15B d-20B none", "c-15B - b-7B, d-20B - c-15B"),
    ],
)
def test_conditions_are_compared_with_the_next_and_sizes_inside_a_family(test, models, pairs):
    assert [one.quantity for one in inequalities(claim(test), models.split())] == [
        f"{pair} > 0" for pair in pairs.split(", ")
    ]


@pytest.mark.parametrize("best", ["6, 4.9, 14", "6, 5, 14"])
def test_a_floor_makes_every_claim_about_validity_untestable_and_no_other(tmp_path, best):
    write(
        tmp_path / "cloudapibench/table1_base_models",
        frame(f"m, high, {best}", "m, medium, 0, 0, 3", "m, all, 9, 8, 10"),
    )
    stated = [one for one in load() if one.paper == "cloudapibench"]
    free = {one.test["metric"] for one in stated if not weak_models(one, rows_in(tmp_path))}
    assert {"perplexity", "triggered_percent"} < free
    verdicts = {one.claim.id: one.direction for one in judge_run(stated, tmp_path)}
    assert [METRIC in free, verdicts["capi-low-is-hard"] != UNTESTABLE] == [", 5," in best] * 2


def test_weak_models_and_pairs_of_them_decide_nothing():
    rows = frame("m, low, 4.9, 3, 6", "n, low, 60, 55, 65")
    assert [judge(claim(AT_LEAST), each, ["m"]).direction for each in (rows[:1], rows)] == [
        UNTESTABLE,
        HOLDS,
    ]
    pair = rows.tail(1).assign(model="n - m", metric="valid_change_points")
    assert judge(claim(AT_LEAST), pd.concat([rows, pair]), ["m", "n"]).direction == UNTESTABLE


def test_a_claim_with_a_missing_row_is_open():
    row = judged(HIGH_LOW, "m, high, 5")
    assert row.direction == OPEN and math.isnan(row.comparisons[0].value)
    nothing = judged(AT_LEAST, changes=["m, low, 5"])
    assert nothing.direction == OPEN and verdict(SIZES, "a-7B, all, 5") == UNSIZED
    assert "ours: no valid_percent to compare" in report.claims_text([nothing])


def test_what_was_not_run_is_a_state_of_its_own_on_one_line(tmp_path):
    others = [replace(claim(AT_LEAST), artifact=name, id=name) for name in ("other", "an_artifact")]
    missing = judge_run([claim(AT_LEAST), *others], tmp_path)
    assert {one.direction for one in missing} == {NOT_RUN}
    text = report.claims_text([judged(AT_LEAST, "m, low, 55, 51, 60"), *missing])
    assert "\n3 claims not run: an_artifact, other\n" in text and text.count("a-claim") == 1
    assert "4 claims: holds: 1, not run: 3\n" in text
    page = report.claims_page(missing, load_profile("mini"))
    assert "- 3 claims not run: an_artifact, other\n" in page and "`a-claim`" not in page


@pytest.mark.filterwarnings("error")
def test_an_estimate_without_an_interval_decides_nothing():
    assert judged(AT_LEAST, "m, low, 60", clusters=5).direction == OPEN
    rows = "m, high, 60", "m, low, 5, 4, 6"
    assert judged(HIGH_LOW, *rows, clusters=5).direction == OPEN


# The file of claims


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": "most"}, "its models, role or source are unknown"),
        ({"colour": "red"}, "unexpected keyword argument 'colour'"),
        ({"follows_from": ["second"]}, "its models, role or source are unknown"),
        ({"test": {"metric": "m", "descending": ["high"]}}, "its test needs a metric"),
        ({"test": HIGH_LOW}, "its test needs a metric"),
        ({"test": ENTRY["test"] | {"tolerance": 5}}, "only by, across_families and printed"),
        ({"test": ENTRY["test"] | {"printed": "5%"}}, "must be real number"),
        ({"test": {"metric": "m", "ranges": {"low": [50, 5]}}}, "no number is in the range"),
        ({"instrument": {"artifact": "near_misses"}}, "missing 3 required"),
        ({"floor": {"conditions": "low"}}, "conditions cannot be 'low'"),
    ],
)
def test_a_broken_claim_is_named_with_its_file(tmp_path, change, message):
    file = tmp_path / "claims.yaml"
    file.write_text(yaml.safe_dump([ENTRY | {"id": "first"}, ENTRY | change]))
    with refused(f"claims.yaml, claim 2 .*{message}"):
        load(file)


# What is printed
