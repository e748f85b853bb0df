"""Policies as selections among three passes, on four tasks that can be counted by hand (Section 4)."""

import numpy as np
import pandas as pd
import pytest

from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.policies import (
    Way, adjusted, by_class, change_rows, compared_rows, once, outcome, policy_rows, sampled_hits, spent, triggered,
)
from lookuplab.errors import UserError

# task: class, valid without documents, with a hit, with a miss, the name exists, confidence
ROWS = [("h1", "high", 1, 1, 0, True, 0.95), ("h2", "high", 1, 1, 1, True, 0.60),
        ("l1", "low", 0, 1, 0, False, 0.90), ("l2", "low", 0, 0, 0, True, 0.10)]


def frame(valid):
    table = pd.DataFrame(ROWS, columns=["task", "frequency", "first", "hit", "miss", "exists", "minimum"])
    return table.assign(model="m", api=table.task, valid=table[valid].astype(bool), exists_anywhere=True,
                        prompt_tokens={"first": 10, "hit": 40, "miss": 30}[valid], new_tokens=5)


@pytest.fixture
def passes():
    return Passes(1, frame("first"), frame("hit"), frame("miss"), np.array([True, True, False, False]))


@pytest.mark.parametrize("policy, expected", [
    ("base", [0, 0, 0, 0]), ("dag", [1, 1, 1, 1]), ("dag_index_lookup", [0, 0, 1, 0]),
    ("dag_confidence", [0, 1, 0, 1]), ("dag_plus_plus", [0, 1, 1, 1]),
])
def test_a_policy_retrieves_where_the_paper_says(passes, policy, expected):
    assert triggered(passes.first, policy).tolist() == [bool(value) for value in expected]


def test_a_confidence_equal_to_the_threshold_retrieves_nothing(passes):
    assert triggered(passes.first, "dag_confidence", 0.6).tolist() == [False, False, False, True]


def test_a_name_that_exists_anywhere_is_enough_where_that_is_asked(passes):
    assert not triggered(passes.first, "dag_index_lookup", lookup="anywhere").any()


def test_without_a_trigger_the_outcome_is_the_base_models(passes):
    assert outcome(passes, triggered(passes.first, "base"), 0).tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("precision, expected", [(0, [0, 1, 0, 0]), (50, [0.5, 1, 0.5, 0]), (100, [1, 1, 1, 0])])
def test_at_a_precision_the_outcome_is_the_exact_expectation(passes, precision, expected):
    assert outcome(passes, triggered(passes.first, "dag"), precision).tolist() == expected


def test_given_the_hits_the_outcome_is_that_draw(passes):
    assert outcome(passes, triggered(passes.first, "dag"), passes.retrieved).tolist() == [1, 1, 0, 0]


def test_the_mean_over_all_draws_is_the_expectation(passes):
    everywhere = triggered(passes.first, "dag")
    draws = [outcome(passes, everywhere, sampled_hits(passes.first, 50, seed)) for seed in range(400)]
    assert np.mean(draws, axis=0) == pytest.approx(outcome(passes, everywhere, 50), abs=0.1)


def test_a_seed_changes_the_draw_and_not_the_expectation(passes):
    rows = [{(row["condition"], row["metric"]): row["value"] for row in
             policy_rows(passes, "dag", triggered(passes.first, "dag"), 50, seed)} for seed in range(8)]
    assert len({row["dag/low", "sampled_valid_percent"] for row in rows}) == 2
    assert {row["dag/low", "valid_percent"] for row in rows} == {25}


def test_every_class_has_its_share_of_hits(passes):
    hits = sampled_hits(passes.first, 50)
    assert hits[:2].sum() == 1 and hits[2:].sum() == 1


def test_policy_rows_are_those_of_tables_2_and_3(passes):
    rows = {(row["condition"], row["metric"]): row["value"]
            for row in policy_rows(passes, "dag++", triggered(passes.first, "dag_plus_plus"), 50)}
    assert rows["dag++/high", "valid_percent"] == 100 and rows["dag++/high", "triggered_percent"] == 50
    assert rows["dag++/low", "valid_percent"] == 25 and rows["dag++/low", "valid_change_points"] == 25
    assert rows["dag++/all", "valid_percent"] == 62.5 and rows["dag++/all", "triggered_percent"] == 75


def test_a_class_without_tasks_has_no_rows(passes):
    assert list(by_class(passes.first)) == ["high", "low", "all"]


@pytest.mark.parametrize("wrong, words", [({"threshold": 1.5}, "threshold is 1.5"), ({"aggregate": "median"}, "median"),
                                          ({"lookup": "nowhere"}, "nowhere")])
def test_what_is_out_of_range_is_one_clear_line(passes, wrong, words):
    with pytest.raises(UserError, match=words):
        triggered(passes.first, "dag_confidence", **wrong)


def test_an_unknown_policy_is_one_clear_line(passes):
    with pytest.raises(UserError, match="choose one of base, dag"):
        triggered(passes.first, "dag+")


@pytest.mark.parametrize("precision", [-1, 101, float("nan")])
def test_a_precision_outside_0_to_100_is_one_clear_line(passes, precision):
    with pytest.raises(UserError, match="precision"):
        outcome(passes, triggered(passes.first, "dag"), precision)


def test_without_log_probabilities_the_threshold_is_one_clear_line(passes):
    silent = passes.first.assign(minimum=float("nan"))
    with pytest.raises(UserError, match="no log-probabilities"):
        triggered(silent, "dag_plus_plus")
    assert triggered(silent, "dag_index_lookup").sum() == 1, "index lookup needs none"


def test_a_change_is_paired_by_task_and_named_new_minus_old(passes):
    always, some = (outcome(passes, triggered(passes.first, name), 50) for name in ("dag", "dag_plus_plus"))
    rows = {row["condition"]: row["value"] for row in change_rows(passes.first, ("dag++", some), ("dag", always))}
    assert rows == {"dag++/high - dag/high": 25, "dag++/low - dag/low": 0, "dag++/all - dag/all": 12.5}


def test_without_another_outcome_the_change_is_from_the_base_model(passes):
    rows = {row["condition"]: row["value"] for row in change_rows(passes.first, ("dag", outcome(passes, True, 50)))}
    assert rows == {"dag/high": -25, "dag/low": 25, "dag/all": 0}


def numbers(rows):
    return {(row["condition"], row["metric"]): row["value"] for row in rows}


@pytest.fixture
def ways(passes):
    return {name: Way(passes, triggered(passes.first, name)) for name in ("base", "dag")}


def test_gained_and_lost_tasks_are_those_of_one_draw_and_the_change_is_expected(ways):
    sure = numbers(compared_rows(ways, [("dag", "base")], precision=100))
    assert (sure["dag/all - base/all", "gained_tasks"], sure["dag/all - base/all", "lost_tasks"]) == (1, 0)
    assert sure["dag/all - base/all", "p"] == 1  # one of one: 2 * 1/2
    never = numbers(compared_rows(ways, [("dag", "base")], precision=0))
    assert (never["dag/high - base/high", "gained_tasks"], never["dag/high - base/high", "lost_tasks"]) == (0, 1)
    half = numbers(compared_rows(ways, [("dag", "base")], precision=50))
    assert half["dag/high - base/high", "valid_change_points"] == -25


def test_single_passes_are_compared_without_any_draw(passes):
    rows = numbers(compared_rows({"first": once(passes.first), "miss": once(passes.miss)}, [("first", "miss")]))
    assert (rows["first/all - miss/all", "gained_tasks"], rows["first/all - miss/all", "lost_tasks"]) == (1, 0)


def test_all_comparisons_of_a_figure_are_adjusted_together():
    numbers = {"p": 0.01, "gained_tasks": 3}, {"p": 0.04}
    rows = adjusted({"metric": metric, "value": value} for each in numbers for metric, value in each.items())
    assert [number["metric"] for number in rows] == ["p_holm", "gained_tasks", "p_holm"]
    assert [number["value"] for number in rows] == [pytest.approx(0.02), 3, pytest.approx(0.04)]


def test_tokens_are_those_of_the_first_pass_and_where_it_retrieves_of_the_second(passes):
    some = np.array([True, False, False, True])
    assert spent(passes, some).tolist() == [15 + 40, 15, 15, 15 + 40]
    assert spent(passes, some, passes.retrieved).tolist() == [15 + 45, 15, 15, 15 + 35]
    assert spent(passes, some, columns=["new_tokens"]).tolist() == [10, 5, 5, 10]
