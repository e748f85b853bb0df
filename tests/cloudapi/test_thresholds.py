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
APIS = [f"api-{number}" for number in range(40) for _ in range(3)]
CLASSES = [("high", "medium", "low", "low")[number % 4] for number in range(40) for _ in range(3)]


def frame(valid):
    """Two tasks a class, each of its own API; the aggregates differ so that a mix-up shows."""
    sure = np.array([0.95, 0.9, 0.6, 0.4, 0.3, 0.1])
    table = pd.DataFrame(
        {"minimum": sure, "mean": 1 - sure, "product": sure, "last": 0.5, "exists": True}
    )
    apis, classes = list("abcdef"), ["high", "high", "medium", "medium", "low", "low"]
    return table.assign(
        model="toy", task=apis, api=apis, frequency=classes, valid=np.array(valid, dtype=bool)
    )


@pytest.fixture
def passes():
    hit, miss = frame([1, 1, 1, 1, 1, 0]), frame([0, 0, 0, 0, 0, 0])
    return Passes(
        1, frame([1, 1, 1, 0, 0, 0]), hit, miss, np.array([True, True, False, True, True, False])
    )


def found(rows):
    return {(row["condition"], row["metric"]): row for row in rows}


def test_below_the_threshold_the_retriever_answers_above_it_the_model(passes):
    values, masks = curve(passes, [0.0, 0.35, 1.0])
    assert values[:, 0].tolist() == [1, 1, 1, 0, 0, 0], "nothing lies below 0: the base model"
    assert values[:, 1].tolist() == [1, 1, 1, 0, 0.5, 0] and masks[:, 1].sum() == 2
    assert values[:, 2].tolist() == [0.5, 0.5, 0.5, 0.5, 0.5, 0], "everything lies below 1: DAG"
    assert curve(passes, [1.0], passes.retrieved)[0][:, 0].tolist() == [1, 1, 0, 1, 1, 0]


def test_among_equal_thresholds_the_smallest_looks_up_least():
    assert best(np.array([[0.0, 1.0, 0.5], [0.1 + 0.2, 0.3, 0.1]])).tolist() == [
        1,
        0,
    ]  # .1 + .2 is .3 but for rounding
    assert best(np.array([0.3, 0.1 + 0.2])) == 0


def test_the_optimum_has_a_range_that_loses_at_most_a_point(passes):
    rows = found(optimum_rows(passes, GRID))
    optimal = rows["optimal", "threshold"]
    assert optimal["value"] == pytest.approx(0.41), "from here on t3 and t4 are looked up, t2 not"
    assert optimal["ci_low"] <= optimal["value"] <= optimal["ci_high"]
    assert rows["optimal_range_low", "threshold"]["value"] == pytest.approx(0.41)
    assert rows["optimal_range_high", "threshold"]["value"] == pytest.approx(0.6), (
        "0.60 is not below 0.60"
    )


def test_calibration_is_reported_by_class_by_aggregate_and_by_number_of_bins(passes):
    rows = found(calibration_rows(passes.first, COUNTS, bins=(2, 3)))
    assert rows["all", "auroc"]["value"] == rows["minimum", "auroc"]["value"] == 1
    assert rows["mean", "auroc"]["value"] == 0 and rows["last", "auroc"]["value"] == 0.5
    assert rows["minimum - mean", "auroc_change_points"]["value"] == 1
    assert rows["frequency", "auroc"]["value"] == pytest.approx(8 / 9), (
        "one pair is in the wrong order"
    )
    brier = np.mean([0.05**2, 0.1**2, 0.4**2, 0.4**2, 0.3**2, 0.1**2])
    assert rows["all", "brier"]["value"] == pytest.approx(brier)
    assert rows["bins_2", "ece"]["value"] == pytest.approx((0.55 + 0.8) / 6), (
        "by thirds of one half each"
    )
    assert (
        rows["high", "auroc_rests_on_tasks"]["value"] == 0
        and rows["medium", "auroc_rests_on_tasks"]["value"] == 1
    )
    assert (
        ("high", "auroc") not in rows
        and ("medium", "auroc") in rows
        and ("high", "mean_confidence") in rows
    )


def test_the_lowest_share_is_whole_tasks_and_equal_scores_share_what_is_left():
    chances = [[0, 0, 0, 0], [0, 1, 1, 0], [0.5, 1, 1, 0], [1, 1, 1, 1]]
    assert lowest([3, 1, 2, 4], [0, 0.5, 0.625, 1]).T.tolist() == chances
    assert lowest([0, 7, 7, 7], [0.5])[:, 0] == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3])
    assert lowest([1, 1], [0.3]).T.tolist() == [[0.3, 0.3]], (
        "no order at all: everybody has the same chance"
    )


def test_every_order_begins_at_the_base_model_and_ends_at_dag(passes):
    rows = found(share_rows(passes, COUNTS, [0, 0.5, 1]))
    for name in ("confidence", "frequency", "random", "oracle"):
        assert rows[f"share_0/{name}", "valid_percent"]["value"] == pytest.approx(50)
        assert rows[f"share_100/{name}", "valid_percent"]["value"] == pytest.approx(100 * 2.5 / 6)
    assert rows["share_50/confidence", "valid_percent"]["value"] == pytest.approx(100 * 4 / 6), (
        "t3, t4, t5 looked up"
    )
    assert rows["share_50/frequency", "valid_percent"]["value"] == pytest.approx(100 * 3 / 6), (
        "t2, t4, t5 looked up"
    )
    mean = np.mean([0, (4 - 2.75) / 6, 0])
    assert rows["confidence", "valid_above_random_points"]["value"] == pytest.approx(100 * mean)


def test_folds_keep_apis_whole_share_out_every_class_and_ignore_the_order():
    dealt, order = folds(APIS, CLASSES, 5, 0), np.random.default_rng(0).permutation(120)
    assert all(len(set(dealt[3 * number : 3 * number + 3])) == 1 for number in range(40))
    classes = np.array(CLASSES)
    assert all(
        (np.bincount(dealt[classes == name]) == 3 * count).all()
        for name, count in (("high", 2), ("low", 4))
    )
    assert (folds([APIS[at] for at in order], classes[order], 5, 0) == dealt[order]).all()
    assert (folds(APIS, CLASSES, 5, 1) != dealt).any()


def test_choosing_on_the_tasks_reported_never_looks_worse(passes):
    rows = found(held_out_rows(passes, GRID, 0.8, count=3))
    optimism = rows["best_in_sample/all - held_out/all", "valid_change_points"]
    best, other = (
        rows[f"{way}/all", "valid_percent"]["value"] for way in ("best_in_sample", "held_out")
    )
    assert optimism["value"] == pytest.approx(best - other) and optimism["value"] >= 0
    chosen = {name: row["value"] for (name, metric), row in rows.items() if metric == "threshold"}
    assert chosen["fixed"] == 0.8 and chosen["best_in_sample"] == pytest.approx(0.41)
    assert list(chosen)[2:] == ["held_out/fold_1", "held_out/fold_2", "held_out/fold_3"]


def test_risk_is_the_share_of_wrong_answers_among_the_surest(passes):
    rows = found(risk_rows(passes.first, COUNTS, [0.5, 2 / 3, 1]))
    assert rows["coverage_50/confidence", "risk_percent"]["value"] == 0
    assert rows["coverage_50/frequency", "risk_percent"]["value"] == pytest.approx(100 / 3), (
        "t3 is seen more than t2"
    )
    assert rows["coverage_50/random", "risk_percent"]["value"] == pytest.approx(50)
    assert rows["coverage_50/confidence", "risk_percent"]["n"] == 3
    assert rows["coverage_50/confidence", "risk_percent"]["ci_high"] > 30, (
        "three right answers are no certainty"
    )
    assert (
        rows["coverage_100/ideal", "risk_percent"]["value"]
        == rows["coverage_100/random", "risk_percent"]["value"]
        == 50
    )
    assert rows["random", "aurc"]["value"] == 0.5
    # three of six wrong, last: risks 0, 0, 0, 1/4, 2/5, 3/6
    assert rows["ideal", "aurc"]["value"] == pytest.approx((1 / 4 + 2 / 5 + 3 / 6) / 6)
    assert (
        rows["ideal", "aurc"]["value"]
        <= rows["confidence", "aurc"]["value"]
        < rows["frequency", "aurc"]["value"]
    )
