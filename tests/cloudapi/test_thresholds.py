"""Confidence as a measure and as a trigger, on six tasks that can be counted by hand."""

import numpy as np
import pandas as pd
import pytest

from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.thresholds import (
    best,
    calibration_rows,
    curve,
    folds,
    held_out_rows,
    lowest,
    optimum_rows,
    risk_rows,
    share_rows,
)

COUNTS, GRID = np.array([200, 150, 20, 30, 2, 1]), np.linspace(0, 1, 101).round(2)
SURE = np.array([0.95, 0.9, 0.6, 0.4, 0.3, 0.1])
# Two tasks a class, each of its own API; the aggregates differ so that a mix-up shows.
TABLE = pd.DataFrame({"minimum": SURE, "mean": 1 - SURE, "product": SURE, "api": list("abcdef")})
TABLE = TABLE.assign(model="toy", task=TABLE.api, exists=True, last=0.5)
TABLE["frequency"] = np.repeat(["high", "medium", "low"], 2)
FIRST, HIT, MISS = (TABLE.assign(valid=SURE > least) for least in (0.5, 0.2, 1))
RETRIEVED = np.array([True, True, False, True, True, False])
PASSES = Passes(1, FIRST, HIT, MISS, RETRIEVED)


def found(rows):
    """(condition, metric) -> its number, approximately."""
    table = {(row["condition"], row["metric"]): row for row in rows}
    assert len(table) == len(rows)
    return lambda condition, metric: pytest.approx(table[condition, metric]["value"])


def test_below_the_threshold_the_retriever_answers_above_it_the_model():
    values, masks = curve(PASSES, [0.0, 0.35, 1.0])
    assert values[:, 0].tolist() == [1, 1, 1, 0, 0, 0], "nothing lies below 0: the base model"
    assert values[:, 1].tolist() == [1, 1, 1, 0, 0.5, 0] and masks[:, 1].sum() == 2
    assert values[:, 2].tolist() == [0.5, 0.5, 0.5, 0.5, 0.5, 0], "everything lies below 1: DAG"
    assert curve(PASSES, [1.0], RETRIEVED)[0][:, 0].tolist() == [1, 1, 0, 1, 1, 0]


def test_among_equal_thresholds_the_smallest_looks_up_least():
    # .1 + .2 is .3 but for rounding
    assert best(np.array([[0.0, 1.0, 0.5], [0.1 + 0.2, 0.3, 0.1]])).tolist() == [1, 0]
    assert best(np.array([0.3, 0.1 + 0.2])) == 0


def test_the_optimum_has_a_range_that_loses_at_most_a_point():
    rows = optimum_rows(PASSES, GRID)
    # From 0.41 on t3 and t4 are looked up, t2 not; 0.60 is not below 0.60.
    assert [row["value"] for row in rows] == [0.41, 0.41, 0.6]
    assert [row["condition"][8:] for row in rows] == ["", "range_low", "range_high"]
    assert rows[0]["ci_low"] <= 0.41 <= rows[0]["ci_high"]


def test_calibration_is_reported_by_class_by_aggregate_and_by_number_of_bins():
    rows = calibration_rows(FIRST, COUNTS, bins=(2, 3))
    value = found(rows)
    assert value("all", "auroc") == 1 and value("minimum", "auroc") == 1
    assert value("mean", "auroc") == 0 and value("last", "auroc") == 0.5
    assert value("minimum - mean", "auroc_change_points") == 1
    assert value("frequency", "auroc") == 8 / 9, "one pair is in the wrong order"
    brier = np.mean([0.05**2, 0.1**2, 0.4**2, 0.4**2, 0.3**2, 0.1**2])
    assert value("all", "brier") == brier
    assert value("bins_2", "ece") == (0.55 + 0.8) / 6, "by thirds of one half each"
    rests = [row["value"] for row in rows if row["metric"] == "auroc_rests_on_tasks"]
    assert rests == [0, 1, 0, 3]
    known = [row["condition"] for row in rows if row["metric"] == "auroc"]
    assert "high" not in known and "medium" in known


def test_the_lowest_share_is_whole_tasks_and_equal_scores_share_what_is_left():
    chances = [[0, 0, 0, 0], [0, 1, 1, 0], [0.5, 1, 1, 0], [1, 1, 1, 1]]
    assert lowest([3, 1, 2, 4], [0, 0.5, 0.625, 1]).T.tolist() == chances
    assert lowest([0, 7, 7, 7], [0.5])[:, 0] == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3])
    assert lowest([1, 1], [0.3]).tolist() == [[0.3], [0.3]], "no order: the same chance for all"


def test_every_order_begins_at_the_base_model_and_ends_at_dag():
    value = found(share_rows(PASSES, COUNTS, [0, 0.5, 1]))
    for name in ("confidence", "frequency", "random", "oracle"):
        assert value(f"share_0/{name}", "valid_percent") == 50
        assert value(f"share_100/{name}", "valid_percent") == 100 * 2.5 / 6
    # t3, t4 and t5 are looked up; by frequency t2, t4 and t5.
    assert value("share_50/confidence", "valid_percent") == 100 * 4 / 6
    assert value("share_50/frequency", "valid_percent") == 100 * 3 / 6
    assert value("confidence", "valid_above_random_points") == 100 * (4 - 2.75) / 6 / 3


def test_folds_keep_apis_whole_share_out_every_class_and_ignore_the_order():
    apis = np.repeat([f"api-{number}" for number in range(40)], 3)
    classes = np.tile(np.repeat(["high", "medium", "low", "low"], 3), 10)
    dealt, order = folds(apis, classes, 5, 0), np.random.default_rng(0).permutation(120)
    assert (dealt[::3] == dealt[1::3]).all() and (dealt[::3] == dealt[2::3]).all()
    for name, count in (("high", 2), ("low", 4)):
        assert np.bincount(dealt[classes == name]).tolist() == [3 * count] * 5
    assert (folds(apis[order], classes[order], 5, 0) == dealt[order]).all()
    assert (folds(apis, classes, 5, 1) != dealt).any()


def test_choosing_on_the_tasks_reported_never_looks_worse():
    rows = held_out_rows(PASSES, GRID, 0.8, count=3)
    value = {(row["condition"], row["metric"]): row["value"] for row in rows}
    optimism = value["best_in_sample/all - held_out/all", "valid_change_points"]
    best, other = (value[f"{way}/all", "valid_percent"] for way in ("best_in_sample", "held_out"))
    assert optimism == pytest.approx(best - other) and optimism >= 0
    chosen = [condition for condition, metric in value if metric == "threshold"]
    assert chosen[2:] == ["held_out/fold_1", "held_out/fold_2", "held_out/fold_3"]
    assert [value[name, "threshold"] for name in chosen[:2]] == [0.8, 0.41]


def test_risk_is_the_share_of_wrong_answers_among_the_surest():
    rows = risk_rows(FIRST, COUNTS, [0.5, 2 / 3, 1])
    value = found(rows)
    assert value("coverage_50/confidence", "risk_percent") == 0
    assert (rows[0]["n"], rows[0]["ci_high"] > 30) == (3, True), "three right are no certainty"
    assert value("coverage_50/frequency", "risk_percent") == 100 / 3, "t3 is seen more than t2"
    for place in ("coverage_50/random", "coverage_100/ideal", "coverage_100/random"):
        assert value(place, "risk_percent") == 50
    assert value("random", "aurc") == 0.5
    # three of six wrong, last: risks 0, 0, 0, 1/4, 2/5, 3/6
    least = (1 / 4 + 2 / 5 + 3 / 6) / 6
    assert value("ideal", "aurc") == least and value("confidence", "aurc") == least
    assert [row["value"] for row in rows if row["metric"] == "aurc"][1] > least
