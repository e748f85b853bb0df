"""Confidence as a measure and as a trigger, on six tasks that can be counted by hand."""

import numpy as np
import pandas as pd
import pytest

from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.thresholds import (
    calibration_rows,
    grid,
    label,
    near_optimum,
    optimum_rows,
    outcomes,
    shown_tokens,
    step_rows,
    threshold_rows,
    typical_failure,
)
from lookuplab.errors import UserError
from lookuplab.models.types import Completion


def frame(valid, confidence=(0.95, 0.9, 0.6, 0.4, 0.3, 0.1)):
    """Two tasks a class, each of its own API; the aggregates differ so that a mix-up shows."""
    sure = np.array(confidence)
    return pd.DataFrame({
        "model": "toy", "task": [f"t{n}" for n in range(6)], "api": [f"a{n}" for n in range(6)],
        "frequency": ["high", "high", "medium", "medium", "low", "low"], "valid": np.array(valid, dtype=bool),
        "minimum": sure, "mean": 1 - sure, "product": sure, "last": 0.5, "prompt_tokens": 10, "new_tokens": 5,
        "exists": [True, True, True, False, True, False], "exists_anywhere": True,
    })


@pytest.fixture
def passes():
    hit, miss = frame([1, 1, 1, 1, 1, 0]), frame([0, 0, 0, 0, 0, 0])
    return Passes(1, frame([1, 1, 1, 0, 0, 0]), hit, miss, np.array([True, True, False, True, True, False]))


def found(rows):
    return {(row["condition"], row["metric"]): row for row in rows}


def test_the_grid_has_whole_hundredths_and_both_ends():
    assert grid(5).tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert len({label(threshold) for threshold in grid()}) == 101
    assert 0.7 in grid() and 0.8 in grid()  # as written, without a rounding error


@pytest.mark.parametrize("count", [0, 1, 4, 102])
def test_thresholds_that_are_no_whole_hundredths_are_refused(count):
    with pytest.raises(UserError, match="hundredths"):
        grid(count)


def test_below_the_threshold_the_retriever_answers_above_it_the_model(passes):
    values = outcomes(passes, [0.0, 0.35, 1.0])
    assert values[:, 0].tolist() == [1, 1, 1, 0, 0, 0], "nothing lies below 0: the base model"
    assert values[:, 1].tolist() == [1, 1, 1, 0, 0.5, 0]
    assert values[:, 2].tolist() == [0.5, 0.5, 0.5, 0.5, 0.5, 0], "everything lies below 1: DAG"
    assert outcomes(passes, [1.0], passes.retrieved)[:, 0].tolist() == [1, 1, 0, 1, 1, 0]


def test_the_rows_of_a_curve_are_the_base_model_at_0_and_always_retrieve_at_1(passes):
    rows = found(threshold_rows(passes, grid(3)))
    assert rows["threshold_0.00/all", "valid_percent"]["value"] == rows["base/all", "valid_percent"]["value"] == 50
    assert rows["threshold_0.00/all", "triggered_percent"]["value"] == 0
    assert rows["threshold_1.00/all", "triggered_percent"]["value"] == 100
    assert rows["threshold_0.50/high", "triggered_percent"]["value"] == 0
    assert rows["threshold_1.00/all", "valid_percent"]["value"] == pytest.approx(100 * 2.5 / 6)
    assert rows["threshold_1.00/high", "valid_percent"]["n"] == 2


def test_a_class_without_tasks_has_no_rows(passes):
    some = Passes(1, passes.first[:4], passes.hit[:4], passes.miss[:4], passes.retrieved[:4])
    assert not any(condition.endswith("/low") for condition, _ in found(threshold_rows(some, grid(3))))


def test_a_step_is_the_paired_change_between_two_thresholds(passes):
    steps = found(step_rows(passes, [(0.0, 0.5), (0.5, 1.0)]))
    up, down = (steps[f"threshold_{new}/all - threshold_{old}/all", "valid_change_points"]
                for old, new in (("0.00", "0.50"), ("0.50", "1.00")))
    assert up["value"] == pytest.approx(100 / 6) and down["value"] == pytest.approx(-150 / 6)
    assert steps["threshold_0.50/high - threshold_0.00/high", "valid_change_points"]["ci_high"] == 0


def test_the_optimum_is_the_smallest_of_the_best_thresholds(passes):
    rows = found(optimum_rows(passes, grid()))
    optimal = rows["optimal", "threshold"]
    assert optimal["value"] == pytest.approx(0.41), "from here on t3 and t4 are looked up, t2 not"
    assert optimal["ci_low"] <= optimal["value"] <= optimal["ci_high"]
    assert rows["optimal_range_low", "threshold"]["value"] == pytest.approx(0.41)
    assert rows["optimal_range_high", "threshold"]["value"] == pytest.approx(0.6), "0.60 is not below 0.60"


def test_the_range_of_good_thresholds_ends_where_a_point_is_lost():
    means, thresholds = np.array([0.50, 0.495, 0.52, 0.511, 0.51, 0.509, 0.52]), np.arange(7) / 10
    assert near_optimum(means, thresholds, 0.2) == (0.2, 0.4), "the other peak beyond the dip is not part of it"
    assert near_optimum(np.ones(7), thresholds, 0.3) == (0.0, 0.6)


def test_calibration_is_reported_by_class_by_aggregate_and_by_number_of_bins(passes):
    rows = found(calibration_rows(passes.first, np.array([200, 150, 20, 30, 2, 1]), bins=(2, 3)))
    assert rows["all", "auroc"]["value"] == rows["minimum", "auroc"]["value"] == 1
    assert rows["mean", "auroc"]["value"] == 0 and rows["last", "auroc"]["value"] == 0.5
    assert rows["minimum - mean", "auroc_change_points"]["value"] == 1
    assert rows["frequency", "auroc"]["value"] == pytest.approx(8 / 9), "one pair is in the wrong order"
    brier = np.mean([0.05**2, 0.1**2, 0.4**2, 0.4**2, 0.3**2, 0.1**2])
    assert rows["all", "brier"]["value"] == pytest.approx(brier)
    assert rows["bins_2", "ece"]["value"] == pytest.approx((0.55 + 0.8) / 6), "by thirds of one half each"
    assert {condition for condition, metric in rows if metric == "ece"} == {"all", "bins_2", "bins_3"}


def test_a_class_where_all_is_right_has_no_auroc(passes):
    rows = found(calibration_rows(passes.first))
    assert rows["high", "auroc_rests_on_tasks"]["value"] == 0 and rows["medium", "auroc_rests_on_tasks"]["value"] == 1
    assert ("high", "auroc") not in rows and ("medium", "auroc") in rows and ("high", "mean_confidence") in rows
    assert ("frequency", "auroc") not in rows, "no counts were given"


def test_the_typical_failure_is_the_invalid_call_of_median_confidence(passes):
    assert typical_failure(passes.first) == "t4", "of t5, t4, t3"
    assert typical_failure(frame([1, 1, 1, 1, 0, 0], (1, 1, 1, 1, 0.2, 0))) == "t4", "t5 names no API"
    assert typical_failure(frame([1] * 6)) == "t3", "without a failure the lower median of all"
    assert typical_failure(frame([0] * 6, [0] * 6)) is None


def test_the_tokens_shown_are_the_name_and_what_follows_it():
    pieces = ("put", "_it", "(", "Name", "=", "1", ")", "")
    done = Completion("t", 0, "put_it(Name=1)", pieces, tuple(range(8)), tuple(-float(n) for n in range(8)), "eos", 3)
    strip = shown_tokens(done, after=3)
    assert [(piece, counts) for piece, _, counts in strip] == [
        ("put", True), ("_it", True), ("(", False), ("Name", False), ("=", False)]
    assert strip[1][1] == pytest.approx(np.exp(-1)) and len(shown_tokens(done)) == 7
    assert shown_tokens(Completion("t", 0, "(", ("(",), (0,), (0.0,), "stop", 3)) == []
