"""Hits and misses by hand, exact shares of hits, and their expectation."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookuplab.errors import UserError
from lookuplab.retrieval.precision import expected, hit, hit_tasks, miss

RANKING = list("abcdef")
CLASSES = {"high": 205, "medium": 150, "low": 267}
STRATA = {f"{name}{number}": name for name, size in CLASSES.items() for number in range(size)}


def test_a_hit_leaves_the_top_k_alone_when_a_target_is_there():
    assert hit(RANKING, ["c"], 3) == ("a", "b", "c")
    assert hit(RANKING, ["z", "a"], 2) == ("a", "b")  # another acceptable one suffices


def test_a_hit_puts_the_asked_target_at_rank_k_otherwise():
    assert hit(RANKING, ["e"], 3) == ("a", "b", "e")
    assert hit(RANKING, ["z", "f"], 3) == ("a", "b", "z")
    assert hit(RANKING, ["b"], 1) == ("b",)


def test_a_miss_removes_every_acceptable_target():
    assert miss(RANKING, ["b"], 1) == ("a",)
    assert miss(RANKING, ["a", "c"], 3) == ("b", "d", "e")


@given(st.permutations(RANKING), st.lists(st.sampled_from("abcxyz"), min_size=1, max_size=3, unique=True),
       st.integers(1, 3))
def test_a_hit_always_has_a_target_and_a_miss_never(ranking, targets, k):
    found, missed = hit(ranking, targets, k), miss(ranking, targets, k)
    assert set(found) & set(targets) and not set(missed) & set(targets)
    assert len(set(found)) == len(set(missed)) == k


def test_a_ranking_too_short_for_k_is_refused():
    with pytest.raises(UserError, match="a ranking of 2 documents gives 2 of k = 3; rank deeper"):
        hit(["a", "x"], ["x"], 3)
    with pytest.raises(UserError, match="a ranking of 3 documents gives 2 of k = 3; rank deeper"):
        miss(["a", "b", "x"], ["x"], 3)


@pytest.mark.parametrize("select", [hit, miss])
def test_k_below_one_is_refused(select):
    with pytest.raises(UserError, match="k is 0"):
        select(RANKING, ["a"], 0)


def test_a_hit_without_a_target_is_refused():
    with pytest.raises(UserError, match="needs a target"):
        hit(RANKING, [], 1)


@pytest.mark.parametrize(("percent", "counts"), [
    (0, (0, 0, 0)), (10, (21, 15, 27)), (50, (103, 75, 134)), (99, (203, 149, 264)), (100, (205, 150, 267)),
])  # 10% of 205 is 20.5, 50% of 205 and of 267 are 102.5 and 133.5, 99% of 150 is 148.5: halves go up
def test_each_class_has_exactly_its_share_of_hits(percent, counts):
    chosen = hit_tasks(STRATA, percent)
    assert tuple(sum(STRATA[task] == name for task in chosen) for name in CLASSES) == counts


@pytest.mark.parametrize(("percent", "tasks", "hits"), [(29, 50, 15), (14.5, 100, 15), (50, 5, 3)])
def test_halves_go_up_where_floats_or_banker_s_rounding_go_down(percent, tasks, hits):
    assert len(hit_tasks(dict.fromkeys(map(str, range(tasks)), "only"), percent)) == hits


def test_sets_nest_as_the_precision_grows():
    sets = [hit_tasks(STRATA, percent) for percent in range(0, 101, 5)]
    assert all(small <= large for small, large in zip(sets, sets[1:]))


def test_hits_depend_on_the_seed_and_not_on_the_order():
    shuffled = list(STRATA.items())
    random.Random(1).shuffle(shuffled)
    assert hit_tasks(dict(shuffled), 50) == hit_tasks(STRATA, 50) != hit_tasks(STRATA, 50, seed=1)


@pytest.mark.parametrize("percent", [-1, 100.5, math.nan])
def test_an_impossible_precision_is_one_clear_line(percent):
    with pytest.raises(UserError, match="from 0 to 100"):
        hit_tasks(STRATA, percent)
    with pytest.raises(UserError, match="from 0 to 100"):
        expected([1], [0], percent)


def test_expectation_by_hand():
    values = expected([True, True, False], [True, False, True], 90)
    assert values.tolist() == pytest.approx([1.0, 0.9, 0.1]) and values.dtype == float


def test_expectation_is_exact_at_both_ends_and_where_retrieval_changes_nothing():
    outcomes = np.array([[1, 1, 0, 0], [1, 0, 1, 0]])
    assert expected(*outcomes, 100).tolist() == outcomes[0].tolist()
    assert expected(*outcomes, 0).tolist() == outcomes[1].tolist()
    assert all(expected([1], [1], percent)[0] == 1 for percent in range(101))


def test_expectation_is_the_mean_over_drawn_hits():
    hits, misses = np.arange(10) % 2, np.arange(10) % 3 == 0
    strata = dict.fromkeys(map(str, range(10)), "only")
    sampled = []
    for seed in range(2000):
        chosen = hit_tasks(strata, 30, seed)
        sampled.append(np.mean([hits[int(t)] if t in chosen else misses[int(t)] for t in strata]))
    assert np.mean(sampled) == pytest.approx(expected(hits, misses, 30).mean(), abs=0.01)


def test_outcomes_of_different_tasks_are_refused():
    with pytest.raises(ValueError, match="hits and"):
        expected([1, 0], [1], 50)
