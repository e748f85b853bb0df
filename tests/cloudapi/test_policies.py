"""Policies as selections among three passes and their rows, on tasks that can be counted by hand (Sections 3 and 4)."""

import math

import numpy as np
import pandas as pd
import pytest

from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.policies import (
    POLICIES,
    added_tokens,
    adjusted,
    both,
    break_even_rows,
    class_rows,
    compared_rows,
    outcome,
    policy_rows,
    precision_rows,
    side_by_side,
    spent,
    triggered,
    valid_rates,
)
from lookuplab.errors import UserError

# Classes, whether the name exists, confidence; then what is valid without documents, with a hit, with a miss.
TABLE = pd.DataFrame(
    {
        "task": ["h1", "h2", "l1", "l2"],
        "api": ["h1", "h2", "l1", "l2"],
        "frequency": ["high", "high", "low", "low"],
        "exists": [True, True, False, True],
        "minimum": [0.95, 0.60, 0.90, 0.10],
    }
).assign(model="m", exists_anywhere=True, prompt_dropped=0, new_tokens=5)
FIRST, HIT, MISS = (
    TABLE.assign(valid=[one == "1" for one in valid], prompt_tokens=tokens)
    for valid, tokens in (("1100", 10), ("1110", 40), ("0100", 30))
)
RETRIEVED = np.array([True, True, False, False])
PASSES = Passes(1, FIRST, HIT, MISS, RETRIEVED)


def values(rows):
    found = {(row["condition"], row["metric"]): row["value"] for row in rows}
    assert len(found) == len(rows), "two numbers under one name"
    return found


def test_a_policy_retrieves_where_the_paper_says():
    found = ["".join(map(str, triggered(FIRST, policy).astype(int))) for policy in POLICIES]
    assert found == ["0000", "1111", "0010", "0101", "0111"]
    assert not triggered(FIRST, "dag_index_lookup", exists="exists_anywhere").any()


def test_an_unknown_policy_a_bad_threshold_and_no_confidence_are_one_clear_line():
    for wrong in (("dag+", 0.5), ("dag_confidence", 1.5)):
        with pytest.raises(UserError, match="choose one of base, dag"):
            triggered(FIRST, *wrong)
    silent = FIRST.assign(minimum=math.nan)
    with pytest.raises(UserError, match="no log-probabilities"):
        triggered(silent, "dag_plus_plus")
    assert triggered(silent, "dag_index_lookup").sum() == 1, "index lookup needs none"


@pytest.mark.parametrize(
    ("hits", "expected"),
    [
        (0, [0, 1, 0, 0]),
        (50, [0.5, 1, 0.5, 0]),
        (100, [1, 1, 1, 0]),
        (RETRIEVED, [1, 1, 0, 0]),
    ],
)
def test_the_outcome_is_the_exact_expectation_or_the_draw_that_is_given(hits, expected):
    assert outcome(PASSES, triggered(FIRST, "dag"), hits).tolist() == expected
    assert outcome(PASSES, triggered(FIRST, "base"), hits).tolist() == [1, 1, 0, 0]


def test_rows_are_by_class_and_a_metrics_end_is_its_unit():
    numbers = {"a_percent": [1, 0, 1, 1], "b_points": [0, -0.5, 1, 1], "tokens": [10, 20, 30, 40]}
    found = class_rows(FIRST, "way", numbers)
    # None of a class without tasks.
    assert [row["condition"] for row in found[::3]] == ["way/high", "way/low", "way/all"]
    assert [row["value"] for row in found] == [50, -25, 15, 100, 100, 35, 75, 37.5, 25]
    assert (found[1]["ci_low"], found[1]["ci_high"], found[1]["n"]) == (-50, 0, 2)


def test_tasks_without_a_value_do_not_count():
    numbers = {"x_percent": np.array([[1, 0], *[[math.nan, 0]] * 3])}
    found = class_rows(FIRST, ["a", "b"], numbers)
    assert " ".join(row["condition"] for row in found) == "a/high b/high a/all b/all"
    assert {row["n"] for row in found} == {1}


def test_a_difference_names_the_class_on_both_sides_and_other_classes_may_be_given():
    found = class_rows(FIRST, "new - old", {"x_points": [1, 1, 0, 0]}, {"all": True, "": True})
    assert [row["condition"] for row in found] == ["new/all - old/all", "new - old"]


def test_intervals_draw_whole_apis():
    """Two APIs: a resample has the first twice, both, or the second twice: 2/4, 2/3, 2/2."""
    table = FIRST[:3].assign(
        api=list("aab"), frequency="high", valid=[True, False, True], valid_closed=False
    )
    (found, *_) = valid_rates(table)
    assert (found["condition"], found["metric"], found["n"]) == ("high", "valid_percent", 3)
    assert (found["ci_low"], found["value"], found["ci_high"]) == (50, pytest.approx(200 / 3), 100)


def test_policy_rows_are_those_of_tables_2_and_3():
    rows = values(policy_rows(PASSES, "dag", triggered(FIRST, "dag_plus_plus"), 50))
    found = [rows[f"dag/{name}", "valid_percent"] for name in ("high", "low", "all")]
    assert found == [100, 25, 62.5] and rows["dag/low", "valid_change_points"] == 25
    assert (
        rows["dag/high", "triggered_percent"] == 50 and rows["dag/all", "triggered_percent"] == 75
    )


@pytest.mark.parametrize(("precision", "found"), [(100, [25, 1, 0, 1]), (0, [-25, 0, 1, 1])])
def test_gained_and_lost_tasks_are_those_of_one_draw_and_the_change_is_expected(precision, found):
    ways = {name: both(PASSES, triggered(FIRST, name), precision) for name in ("base", "dag")}
    rows = values(compared_rows(FIRST, ways, [("dag", "base")]))
    metrics = ("valid_change_points", "gained_tasks", "lost_tasks", "p")
    assert [rows["dag/all - base/all", metric] for metric in metrics] == found


def test_all_comparisons_of_a_figure_are_adjusted_together():
    rows = [{"metric": m, "value": v} for m, v in (("p", 0.01), ("x", 3), ("p", 0.04))]
    assert [(row["metric"], round(row["value"], 9)) for row in adjusted(rows)] == [
        ("p_holm", 0.02),
        ("x", 3),
        ("p_holm", 0.04),
    ]


def test_the_expectation_is_a_straight_line_from_miss_to_hit():
    rows = values(precision_rows(PASSES, [0, 50, 100]))
    assert [rows[f"precision_{x}/high", "valid_percent"] for x in (0, 50, 100)] == [50, 75, 100]
    assert [rows[f"precision_{x}/all", "sampled_valid_percent"] for x in (0, 100)] == [25, 75]
    assert rows["precision_50/low", "valid_change_points"] == 25


def test_break_even_is_where_the_line_meets_the_base_model():
    found = break_even_rows(PASSES)[-1]
    assert found["condition"] == "break_even/all"
    assert found["ci_low"] <= found["value"] == 100 * (2 - 1) / (3 - 1) <= found["ci_high"]
    assert not break_even_rows(Passes(1, FIRST, MISS, HIT, None)), "a falling line"


def test_tokens_are_those_of_the_first_pass_and_where_it_retrieves_of_the_second():
    some = np.array([True, False, False, True])
    assert spent(PASSES, some, "prompt_tokens").tolist() == [10 + 35, 10, 10, 10 + 35]
    assert spent(PASSES, some, "prompt_tokens", RETRIEVED).tolist() == [10 + 40, 10, 10, 10 + 30]
    assert added_tokens(FIRST, HIT.assign(prompt_dropped=2)).tolist() == [32] * 4


def test_numbers_stand_side_by_side_and_counts_without_an_interval():
    p = {"model": "m", "condition": "way/all", "metric": "p", "value": 0.012}
    wide = side_by_side(
        [*class_rows(FIRST, "way", {"x_percent": [1, 0, 1, 1]}), p], ["p", "x_percent"]
    )
    assert list(wide.index) == [("m", f"way/{name}") for name in ("high", "low", "all")]
    assert wide.p.tolist() == ["", "", "0.012"] and wide.x_percent.iloc[2].startswith("75.0 [")
