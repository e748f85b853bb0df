"""Hits and misses by hand, exact shares of hits, and their expectation."""

import math

import pytest

from lookuplab.errors import UserError
from lookuplab.retrieval.precision import expected, hit, hit_tasks, miss

RANKING = list("abcdef")
CLASSES = {"high": 205, "medium": 150, "low": 267}
STRATA = {f"{name}{number}": name for name, size in CLASSES.items() for number in range(size)}


def test_a_hit_is_the_top_k_with_the_asked_target_at_rank_k_where_none_is_there():
    assert hit(RANKING, ["c"], 3) == ("a", "b", "c")
    assert hit(RANKING, ["z", "a"], 2) == ("a", "b")  # another acceptable one suffices
    assert hit(RANKING, ["z", "f"], 3) == ("a", "b", "z")
    assert hit(RANKING, ["b"], 1) == ("b",)


def test_a_miss_removes_every_acceptable_target():
    assert miss(RANKING, ["b"], 1) == ("a",)
    assert miss(RANKING, ["a", "c"], 3) == ("b", "d", "e")


def test_a_ranking_too_short_and_k_below_one_are_refused():
    for ranking, k, message in ((["a", "b"], 3, "gives 2 of k = 3"), (RANKING, 0, "k is 0")):
        with pytest.raises(UserError, match=message):
            miss(ranking, ["c"], k)


def test_each_class_has_exactly_its_share_of_hits():
    chosen = hit_tasks(STRATA, 50)  # of 205, 150 and 267: halves go up
    assert [sum(STRATA[task] == name for task in chosen) for name in CLASSES] == [103, 75, 134]


@pytest.mark.parametrize(("percent", "tasks", "hits"), [(29, 50, 15), (14.5, 100, 15), (50, 5, 3)])
def test_halves_go_up_where_floats_or_banker_s_rounding_go_down(percent, tasks, hits):
    assert len(hit_tasks(dict.fromkeys(map(str, range(tasks)), "only"), percent)) == hits


def test_sets_nest_as_the_precision_grows():
    sets = [hit_tasks(STRATA, percent) for percent in range(0, 101, 5)]
    assert all(small <= large for small, large in zip(sets, sets[1:], strict=False))


def test_hits_depend_on_the_seed_and_not_on_the_order():
    backwards = dict(reversed(STRATA.items()))
    assert hit_tasks(backwards, 50) == hit_tasks(STRATA, 50) != hit_tasks(STRATA, 50, seed=1)


@pytest.mark.parametrize("percent", [-1, 100.5, math.nan])
def test_an_impossible_precision_is_one_clear_line(percent):
    with pytest.raises(UserError, match="from 0 to 100"):
        hit_tasks(STRATA, percent)


def test_expectation_by_hand_and_exact_where_nothing_is_drawn():
    assert expected([True, True, False], [True, False, True], 90).tolist() == pytest.approx(
        [1, 0.9, 0.1]
    )
    assert expected([1, 0], [0, 1], 100).tolist() == expected([0, 1], [1, 0], 0).tolist() == [1, 0]
    assert all(expected([1], [1], percent)[0] == 1 for percent in range(101))
