"""Tests ranking measures on queries that can be computed by hand."""

from itertools import permutations

import numpy as np
import pytest

from lookuplab.retrieval.metrics import (
    listed,
    ndcg_at,
    recall_at,
    reciprocal_rank,
    relevant_ranks,
    success_at,
)

RANKINGS = dict.fromkeys(("q1", "q2", "q3"), "abc")
# in another order, because queries are matched by id
RELEVANT = {"q3": ["z"], "q1": ["c", "b"], "q2": ("a",)}


SECOND, THIRD = 1 / np.log2(3), 1 / 2  # what a document counts at these ranks


@pytest.mark.parametrize(
    ("measure", "k", "values"),
    [
        (success_at, 2, [1, 1, 0]),
        (recall_at, 2, [0.5, 1, 0]),
        (reciprocal_rank, 20, [0.5, 1, 0]),
        (reciprocal_rank, 1, [0, 1, 0]),
        (ndcg_at, 10, [(SECOND + THIRD) / (1 + SECOND), 1, 0]),
        (ndcg_at, 2, [SECOND / (1 + SECOND), 1, 0]),
    ],
)
def test_measures_by_hand(measure, k, values):
    assert measure(listed(RANKINGS, RELEVANT, 20), k) == pytest.approx(values)


@pytest.mark.parametrize("measure", [success_at, recall_at, reciprocal_rank, ndcg_at])
@pytest.mark.parametrize("relevant", ["a", "f", "be", "cd", "bcde", "abcdef"])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 20])
def test_equal_scores_give_the_mean_over_all_orders(measure, relevant, k):
    scores = {"a": 2, "b": 1, "c": 1, "d": 1, "e": 0, "f": 0}
    orders = {"".join(order) for order in permutations(scores)}
    orders = [order for order in orders if sorted(order, key=scores.get, reverse=True) == [*order]]
    each = listed({one: one for one in orders}, dict.fromkeys(orders, relevant), 20)
    at = ["abcdef".index(name) for name in relevant]
    tied = relevant_ranks([(np.array([*scores.values()], float), at, len(at))], 20)
    assert len(orders) == 3 * 2 * 2
    assert measure(tied, k) == pytest.approx([measure(each, k).mean()])


def test_documents_that_are_not_ranked_and_relevant_ones_that_do_not_exist_are_never_found():
    found = relevant_ranks([(np.array([-np.inf, 0.0, 1.0]), [0, 1], 3)], 20)
    assert recall_at(found, 20) == pytest.approx([1 / 3])
    assert reciprocal_rank(found, 20) == pytest.approx([1 / 2]) and not found.undecided.any()
