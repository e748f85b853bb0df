"""Claims about two numbers: the paired change where the artifact states it, lists of conditions, models by size."""

import pandas as pd
import pytest

from lookuplab.claims import FAILS, HOLDS, UNDECIDED, Claim, judge

VALID, CHANGE = "valid_percent", "valid_change_points"


def judged(test, *rows, metric=VALID):
    """Rows are (model, condition, metric, value, ci_low, ci_high); n is 100, the paper's value 50."""
    frame = pd.DataFrame(rows, columns=["model", "condition", "metric", "value", "ci_low", "ci_high"])
    claim = Claim("a-claim", "cloudapibench", "Table 3", "words", "an_artifact", {"metric": metric} | test)
    return judge(claim, frame.assign(n=100, paper_value=50.0))


BASE, DAG = ("m", "base/low", VALID, 40.0, 30.0, 50.0), ("m", "dag/low", VALID, 46.0, 36.0, 56.0)
GAIN = ("m", "dag/low", CHANGE, 6.0, 2.0, 9.0)
BETTER = {"kind": "greater", "left": "dag/low", "right": "base/low"}
WORSE = {"kind": "greater", "left": "base/low", "right": "dag/low"}


def test_a_change_from_the_base_is_judged_on_its_paired_interval():
    assert judged(BETTER, BASE, DAG).verdict == UNDECIDED  # the two intervals overlap widely
    [comparison] = judged(BETTER, BASE, DAG, GAIN).comparisons
    assert (comparison.value, comparison.low, comparison.high) == (6, 2, 9)
    assert (comparison.verdict, comparison.n, comparison.paper_value) == (HOLDS, "100 pairs", 0)


def test_the_paired_interval_turns_round_with_the_claim():
    [comparison] = judged(WORSE | {"by": -5}, BASE, DAG, GAIN).comparisons
    assert (comparison.value, comparison.low, comparison.high, comparison.verdict) == (-6, -9, -2, UNDECIDED)
    assert judged(WORSE, BASE, DAG, GAIN).verdict == FAILS


@pytest.mark.parametrize(("condition", "value"), [("plus/low - dag/low", 6), ("dag/low - plus/low", -6)])
def test_a_change_between_two_policies_is_named_by_both(condition, value):
    change = ("m", condition, CHANGE, 6.0, 2.0, 9.0)
    [comparison] = judged(BETTER | {"left": "plus/low", "right": "dag/low"}, DAG, ("m", "plus/low", *DAG[2:]), change,
                          ("m", "dag/low", CHANGE, 1.0, 0.0, 2.0)).comparisons
    assert (comparison.value, comparison.n) == (value, "100 pairs")


def test_a_metric_that_is_no_percentage_has_its_paired_change_too():
    rows = [("m", "base", "bleu4", 0.4, 0.3, 0.5), ("m", "tool", "bleu4", 0.46, 0.36, 0.56)]
    test = {"kind": "greater", "left": "tool", "right": "base"}
    assert judged(test, *rows, metric="bleu4").verdict == UNDECIDED
    change = ("m", "tool - base", "bleu4_change", 0.06, 0.02, 0.09)
    assert judged(test, *rows, change, metric="bleu4").verdict == HOLDS


def test_a_condition_without_class_has_the_base_without_class():
    rows = [("m", "base", VALID, 40, 30, 50), ("m", "name", VALID, 46, 36, 56), ("m", "name", CHANGE, 6, 2, 9)]
    assert judged({"kind": "greater", "left": "name", "right": "base"}, *rows).verdict == HOLDS


def test_a_change_says_nothing_about_another_pair():
    other = ("m", "base/high", VALID, 40.0, 30.0, 50.0)
    test = {"kind": "greater", "left": "dag/low", "right": "base/high"}
    assert judged(test, other, DAG, GAIN).comparisons[0].n == "100+100"


def test_every_left_is_compared_with_every_right():
    rows = [("m", name, VALID, value, value, value) for name, value in zip("abcd", (9, 8, 2, 1), strict=True)]
    judgement = judged({"kind": "greater", "left": ["a", "b"], "right": ["c", "d"]}, *rows)
    assert [c.quantity for c in judgement.comparisons] == ["a - c > 0", "a - d > 0", "b - c > 0", "b - d > 0"]
    assert judgement.verdict == HOLDS


@pytest.mark.parametrize(("interval", "verdict"), [((-4, 2), HOLDS), ((-9, 2), UNDECIDED), ((-9, -6), FAILS)])
def test_a_negative_margin_means_not_lower_by_as_much(interval, verdict):
    change = ("m", "dag/low", CHANGE, sum(interval) / 2, *interval)
    assert judged(BETTER | {"by": -5}, BASE, DAG, change).verdict == verdict


def sizes(**of_models):
    return [(name.replace("_", "-"), "all", VALID, value, value, value) for name, value in of_models.items()]


def test_sizes_are_compared_across_families_only_when_asked():
    rows = sizes(a_7B=50, b_15B=40, c_20B=60, nameless=1)
    rising = {"kind": "monotone", "direction": "increasing", "over": {"size": "all"}}
    assert judged(rising, *rows).verdict == UNDECIDED  # families of one: nothing to compare
    across = judged(rising | {"over": {"size": "all", "across_families": True}}, *rows)
    assert [c.quantity for c in across.comparisons] == ["b-15B - a-7B > 0", "c-20B - b-15B > 0"]
    assert across.verdict == FAILS


def test_models_of_equal_size_are_not_compared():
    over = {"size": "all", "across_families": True}
    rows = sizes(a_7B=50, b_7B=40, c_20B=60)
    [comparison] = judged({"kind": "monotone", "direction": "increasing", "over": over}, *rows).comparisons
    assert comparison.quantity == "c-20B - b-7B > 0"
