"""Policies as selections among three passes and their rows, on tasks that can be counted by hand (Sections 3 and 4)."""

import math

import numpy as np
import pandas as pd
import pytest

from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.policies import (
    added_tokens,
    adjusted,
    both,
    break_even_rows,
    class_rows,
    compared_rows,
    outcome,
    policy_rows,
    precision_rows,
    sampled_hits,
    side_by_side,
    spent,
    triggered,
    valid_rates,
)
from lookuplab.errors import UserError

# task: class, valid without documents, with a hit, with a miss, the name exists, confidence
ROWS = [
    ("h1", "high", 1, 1, 0, True, 0.95),
    ("h2", "high", 1, 1, 1, True, 0.60),
    ("l1", "low", 0, 1, 0, False, 0.90),
    ("l2", "low", 0, 0, 0, True, 0.10),
]


def frame(valid):
    table = pd.DataFrame(
        ROWS, columns=["task", "frequency", "first", "hit", "miss", "exists", "minimum"]
    )
    tokens = {"prompt_tokens": {"first": 10, "hit": 40, "miss": 30}[valid], "new_tokens": 5}
    valid = table[valid].astype(bool)
    return table.assign(
        model="m", api=table.task, valid=valid, exists_anywhere=True, prompt_dropped=0, **tokens
    )


@pytest.fixture
def passes():
    return Passes(
        1, frame("first"), frame("hit"), frame("miss"), np.array([True, True, False, False])
    )


def values(rows):
    found = {(row["condition"], row["metric"]): row["value"] for row in rows}
    assert len(found) == len(rows), "two numbers under one name"
    return found


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("base", [0, 0, 0, 0]),
        ("dag", [1, 1, 1, 1]),
        ("dag_index_lookup", [0, 0, 1, 0]),
        ("dag_confidence", [0, 1, 0, 1]),
        ("dag_plus_plus", [0, 1, 1, 1]),
    ],
)
def test_a_policy_retrieves_where_the_paper_says(passes, policy, expected):
    assert triggered(passes.first, policy).tolist() == expected


def test_a_name_that_exists_anywhere_is_enough_where_that_is_asked(passes):
    assert not triggered(passes.first, "dag_index_lookup", exists="exists_anywhere").any()


@pytest.mark.parametrize("wrong", [("dag+", 0.5), ("dag_confidence", 1.5)])
def test_an_unknown_policy_or_threshold_is_one_clear_line(passes, wrong):
    with pytest.raises(UserError, match="choose one of base, dag"):
        triggered(passes.first, *wrong)


def test_without_log_probabilities_the_threshold_is_one_clear_line(passes):
    silent = passes.first.assign(minimum=math.nan)
    with pytest.raises(UserError, match="no log-probabilities"):
        triggered(silent, "dag_plus_plus")
    assert triggered(silent, "dag_index_lookup").sum() == 1, "index lookup needs none"


@pytest.mark.parametrize(
    ("hits", "expected"),
    [
        (0, [0, 1, 0, 0]),
        (50, [0.5, 1, 0.5, 0]),
        (100, [1, 1, 1, 0]),
        (np.array([True, True, False, False]), [1, 1, 0, 0]),
    ],
)
def test_the_outcome_is_the_exact_expectation_or_the_draw_that_is_given(passes, hits, expected):
    assert outcome(passes, triggered(passes.first, "dag"), hits).tolist() == expected
    assert outcome(passes, triggered(passes.first, "base"), hits).tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("precision", [-1, 101, math.nan])
def test_a_precision_outside_0_to_100_is_one_clear_line(passes, precision):
    with pytest.raises(UserError, match="precision"):
        outcome(passes, triggered(passes.first, "dag"), precision)


def test_rows_are_by_class_and_a_metrics_end_is_its_unit(passes):
    numbers = {"a_percent": [1, 0, 1, 1], "b_points": [0, -0.5, 1, 1], "tokens": [10, 20, 30, 40]}
    found = class_rows(passes.first, "way", numbers)
    assert [row["condition"] for row in found[::3]] == [
        "way/high",
        "way/low",
        "way/all",
    ]  # none of a class without tasks
    assert [row["value"] for row in found] == [50, -25, 15, 100, 100, 35, 75, 37.5, 25]
    assert (found[1]["ci_low"], found[1]["ci_high"], found[1]["n"]) == (-50, 0, 2)


def test_tasks_without_a_value_do_not_count(passes):
    values = np.array([[1, 0], [math.nan, 0], [math.nan, 0], [math.nan, 0]])
    found = class_rows(passes.first, ["a", "b"], {"x_percent": values})
    assert [(row["condition"], row["n"]) for row in found] == [
        (f"{name}/{label}", 1) for label in ("high", "all") for name in "ab"
    ]


def test_a_difference_names_the_class_on_both_sides_and_other_classes_may_be_given(passes):
    found = class_rows(
        passes.first, "new - old", {"x_points": [1, 1, 0, 0]}, {"all": True, "": True}
    )
    assert [row["condition"] for row in found] == ["new/all - old/all", "new - old"]


def test_intervals_draw_whole_apis():
    """Two APIs: a resample has the first twice, both, or the second twice: 2/4, 2/3, 2/2."""
    table = pd.DataFrame(
        {"model": "m", "frequency": "high", "api": list("aab"), "valid": [True, False, True]}
    )
    (found, *_) = valid_rates(table.assign(valid_closed=False))
    assert (found["condition"], found["metric"], found["n"]) == ("high", "valid_percent", 3)
    assert (found["ci_low"], found["value"], found["ci_high"]) == (50, pytest.approx(200 / 3), 100)


def test_policy_rows_are_those_of_tables_2_and_3(passes):
    rows = values(policy_rows(passes, "dag++", triggered(passes.first, "dag_plus_plus"), 50))
    assert (
        rows["dag++/high", "valid_percent"] == 100 and rows["dag++/high", "triggered_percent"] == 50
    )
    assert (
        rows["dag++/low", "valid_percent"] == 25 and rows["dag++/low", "valid_change_points"] == 25
    )
    assert (
        rows["dag++/all", "valid_percent"] == 62.5 and rows["dag++/all", "triggered_percent"] == 75
    )


@pytest.mark.parametrize(("precision", "found"), [(100, [50, 1, 0, 1]), (0, [-25, 0, 1, 1])])
def test_gained_and_lost_tasks_are_those_of_one_draw_and_the_change_is_expected(
    passes, precision, found
):
    ways = {
        name: both(passes, triggered(passes.first, name), precision) for name in ("base", "dag")
    }
    rows = values(compared_rows(passes.first, ways, [("dag", "base")]))
    metrics = ("valid_change_points", "gained_tasks", "lost_tasks", "p")
    found[0] = found[0] / 2 if precision else found[0]  # one of four tasks
    assert [rows["dag/all - base/all", metric] for metric in metrics] == found


def test_all_comparisons_of_a_figure_are_adjusted_together():
    rows = adjusted(
        {"metric": metric, "value": value} for metric, value in (("p", 0.01), ("x", 3), ("p", 0.04))
    )
    assert [row["metric"] for row in rows] == ["p_holm", "x", "p_holm"]
    assert [row["value"] for row in rows] == [pytest.approx(0.02), 3, pytest.approx(0.04)]


def test_the_expectation_is_a_straight_line_from_miss_to_hit(passes):
    rows = values(precision_rows(passes, [0, 50, 100]))
    assert [rows[f"precision_{x}/high", "valid_percent"] for x in (0, 50, 100)] == [50, 75, 100]
    assert [rows[f"precision_{x}/all", "sampled_valid_percent"] for x in (0, 100)] == [25, 75]
    assert rows["precision_50/low", "valid_change_points"] == 25


def test_break_even_is_where_the_line_meets_the_base_model(passes):
    found = {row["condition"]: row for row in break_even_rows(passes)}
    assert found["break_even/all"]["value"] == pytest.approx(100 * (2 - 1) / (3 - 1))
    assert found["break_even/all"]["ci_low"] <= 50 <= found["break_even/all"]["ci_high"]
    assert not break_even_rows(Passes(1, passes.first, passes.miss, passes.hit, None)), (
        "a falling line"
    )


def test_every_class_has_its_share_of_hits(passes):
    draws = [sampled_hits(passes.first, 50, seed) for seed in range(20)]
    assert (
        all(hits[:2].sum() == hits[2:].sum() == 1 for hits in draws)
        and len(set(map(tuple, draws))) == 4
    )


def test_tokens_are_those_of_the_first_pass_and_where_it_retrieves_of_the_second(passes):
    some = np.array([True, False, False, True])
    assert spent(passes, some, "prompt_tokens").tolist() == [10 + 35, 10, 10, 10 + 35]
    assert spent(passes, some, "prompt_tokens", passes.retrieved).tolist() == [
        10 + 40,
        10,
        10,
        10 + 30,
    ]
    assert added_tokens(passes.first, passes.hit.assign(prompt_dropped=2)).tolist() == [32] * 4


def test_numbers_stand_side_by_side_and_counts_without_an_interval(passes):
    numbers = class_rows(passes.first, "way", {"x_percent": [1, 0, 1, 1]}) + [
        {"model": "m", "condition": "way/all", "metric": "p", "value": 0.012}
    ]
    wide = side_by_side(numbers, ["p", "x_percent"])
    assert list(wide.index) == [("m", f"way/{name}") for name in ("high", "low", "all")]
    assert (
        wide.iloc[0, 0] == ""
        and wide.iloc[2, 0] == "0.012"
        and wide.iloc[2, 1].startswith("75.0 [")
    )
