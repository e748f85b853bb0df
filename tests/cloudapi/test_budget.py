"""Which tasks get documentation when only a share of them may: orders, costs and thresholds chosen on other tasks."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookuplab.cloudapi.budget import (
    against,
    held_out_rows,
    lowest,
    orders,
    risk_rows,
    share_rows,
    trade_off_rows,
)
from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.thresholds import grid

COUNTS = np.array([200, 150, 20, 30, 2, 1])


def frame(valid, spent=15):
    """Two tasks a class, each of its own API."""
    sure = np.array([0.95, 0.9, 0.6, 0.4, 0.3, 0.1])
    return pd.DataFrame({
        "model": "toy", "task": [f"t{n}" for n in range(6)], "api": [f"a{n}" for n in range(6)],
        "frequency": ["high", "high", "medium", "medium", "low", "low"], "valid": np.array(valid, dtype=bool),
        "minimum": sure, "mean": sure, "product": sure, "last": sure, "prompt_tokens": spent - 5, "new_tokens": 5,
        "exists": [True, True, True, False, True, False], "exists_anywhere": True,
    })


@pytest.fixture
def passes():
    hit, miss = frame([1, 1, 1, 1, 1, 0], 45), frame([0, 0, 0, 0, 0, 0], 35)
    return Passes(1, frame([1, 1, 1, 0, 0, 0]), hit, miss, np.array([True, True, False, True, True, False]))


def found(rows):
    return {(row["condition"], row["metric"]): row for row in rows}


def test_the_lowest_share_is_whole_tasks_and_a_part_of_one():
    assert lowest([3, 1, 2, 4], [0, 0.5, 0.625, 1]).T.tolist() == [
        [0, 0, 0, 0], [0, 1, 1, 0], [0.5, 1, 1, 0], [1, 1, 1, 1]]


def test_equal_scores_share_what_is_left():
    assert lowest([0, 7, 7, 7], [0.5])[:, 0] == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3])
    assert lowest([1, 1], [0.3]).T.tolist() == [[0.3, 0.3]], "no order at all: everybody has the same chance"


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_the_chances_add_up_to_the_share(scores, share):
    chance = lowest(scores, [share])
    assert chance.sum() == pytest.approx(share * len(scores)) and chance.min() >= 0 and chance.max() <= 1


def test_every_order_begins_at_the_base_model_and_ends_at_dag(passes):
    rows = found(share_rows(passes, COUNTS, [0, 0.5, 1]))
    for name in ("confidence", "frequency", "random", "oracle"):
        assert rows[f"share_0/{name}", "valid_percent"]["value"] == pytest.approx(50)
        assert rows[f"share_100/{name}", "valid_percent"]["value"] == pytest.approx(100 * 2.5 / 6)
    assert rows["share_50/confidence", "valid_percent"]["value"] == pytest.approx(100 * 4 / 6), "t3, t4, t5 looked up"
    assert rows["share_50/frequency", "valid_percent"]["value"] == pytest.approx(100 * 3 / 6), "t2, t4, t5 looked up"
    mean = np.mean([0, (4 - 2.75) / 6, 0])
    assert rows["confidence", "valid_above_random_points"]["value"] == pytest.approx(100 * mean)


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans()), min_size=6, max_size=6))
@settings(max_examples=15, deadline=None)
def test_no_order_does_better_than_the_oracle(tasks):
    first, hit, miss, retrieved = (np.array(column) for column in zip(*tasks, strict=True))
    drawn = Passes(1, frame(first), frame(hit), frame(miss), retrieved)
    for hits in (50.0, retrieved):
        gain = np.where(retrieved, hit, miss) * 1.0 if hits is retrieved else (hit * 1.0 + miss) / 2
        reached = {name: ((gain - first) @ lowest(score, [0.2, 0.5, 0.8]))
                   for name, score in orders(drawn, COUNTS, hits).items()}
        assert all((reached["oracle"] >= other - 1e-9).all() for other in reached.values())


def test_a_policy_costs_what_it_triggers(passes):
    rows = found(trade_off_rows(passes, [0.5]))
    assert rows["base/all", "tokens_per_task"]["value"] == pytest.approx(15)
    assert rows["dag/all", "tokens_per_task"]["value"] == pytest.approx(55)
    half = rows["threshold_0.50/all", "tokens_per_task"]
    assert half["value"] == pytest.approx(35) and half["ci_low"] <= 35 <= half["ci_high"]
    assert rows["threshold_0.50/all", "triggered_percent"]["value"] == 50
    assert rows["dag/all", "valid_bm25_percent"]["value"] == pytest.approx(100 * 4 / 6)
    assert rows["dag_plus_plus/all", "triggered_percent"]["value"] == pytest.approx(100 * 4 / 6)


def test_choosing_on_the_tasks_reported_never_looks_worse(passes):
    rows = found(held_out_rows(passes, grid(), 0.8, count=3))
    optimism = rows["best_in_sample/all - held_out/all", "valid_change_points"]
    best, other = (rows[f"{way}/all", "valid_percent"]["value"] for way in ("best_in_sample", "held_out"))
    assert optimism["value"] == pytest.approx(best - other) and optimism["value"] >= 0
    assert rows["fixed", "threshold"]["value"] == 0.8
    assert rows["best_in_sample", "threshold"]["value"] == pytest.approx(0.41)
    assert {name for name, metric in rows if metric == "threshold"} == {
        "fixed", "best_in_sample", "held_out/fold_1", "held_out/fold_2", "held_out/fold_3"}


def test_one_api_leaves_nothing_to_hold_out(passes):
    one = Passes(1, passes.first[:1], passes.hit[:1], passes.miss[:1], passes.retrieved[:1])
    assert not any("held_out" in condition for condition, _ in found(held_out_rows(one, grid(3))))


def test_risk_is_the_share_of_wrong_answers_among_the_surest(passes):
    rows = found(risk_rows(passes.first, COUNTS, [0.5, 2 / 3, 1]))
    assert rows["coverage_50/confidence", "risk_percent"]["value"] == 0
    assert rows["coverage_50/frequency", "risk_percent"]["value"] == pytest.approx(100 / 3), "t3 is seen more than t2"
    assert rows["coverage_50/random", "risk_percent"]["value"] == pytest.approx(50)
    assert rows["coverage_50/confidence", "risk_percent"]["n"] == 3
    assert rows["coverage_50/confidence", "risk_percent"]["ci_high"] > 30, "three right answers are no certainty"
    for name in ("confidence", "frequency", "random", "ideal"):
        assert rows[f"coverage_100/{name}", "risk_percent"]["value"] == 50
    assert rows["random", "aurc"]["value"] == 0.5
    assert rows["ideal", "aurc"]["value"] <= rows["confidence", "aurc"]["value"] < rows["frequency", "aurc"]["value"]


def test_rows_are_placed_by_another_metric_of_the_same_condition(passes):
    table = pd.DataFrame(trade_off_rows(passes, [0.5, 0.55]))
    lines = {"dag/all": "DAG", "threshold_0.50/all": "sure"}
    placed = against(table, "triggered_percent", "valid_percent", "share", lines)
    assert placed.condition.tolist() == ["share_100.0/DAG", "share_50.0/sure"]
    assert placed.value.tolist() == [pytest.approx(250 / 6), pytest.approx(400 / 6)]
    equal = {"threshold_0.50/all": "all", "threshold_0.55/all": "all"}
    placed = against(table, "tokens_per_task", "valid_percent", "tokens", equal)
    assert len(placed) == 1, "one point of a line for a place"
