"""Ranking measures on queries that can be worked out by hand."""

import numpy as np
import pytest

from lookuplab.retrieval.metrics import ndcg_at, recall_at, reciprocal_rank, success_at

RANKINGS = {"q1": ["a", "b", "c"], "q2": ["a", "b", "c"], "q3": ["a", "b", "c"]}
# in another order: values are matched by id
RELEVANT = {"q3": ["z"], "q1": ["c", "b"], "q2": ("a",)}
MANY = [*map(str, range(30))]


def test_success_is_any_relevant_document_in_the_top_k():
    assert success_at(RANKINGS, RELEVANT, 1).tolist() == [False, True, False]
    assert success_at(RANKINGS, RELEVANT, 2).tolist() == [True, True, False]


def test_recall_is_the_share_of_the_relevant_documents():
    assert recall_at(RANKINGS, RELEVANT, 2).tolist() == [0.5, 1.0, 0.0]


def test_reciprocal_rank_is_that_of_the_first_relevant_document_cut_at_k():
    assert reciprocal_rank(RANKINGS, RELEVANT, 20).tolist() == [0.5, 1.0, 0.0]
    late = {"q": MANY, "r": MANY}
    assert reciprocal_rank(late, {"q": ["19"], "r": ["20"]}, 20).tolist() == [1 / 20, 0]


def test_ndcg_by_hand():
    second, third = 1 / np.log2(3), 1 / 2
    for k, value in ((10, (second + third) / (1 + second)), (2, second / (1 + second))):
        assert ndcg_at(RANKINGS, RELEVANT, k).tolist() == pytest.approx([value, 1, 0])
    for count in (1, 9, 10, 29):
        assert ndcg_at({"q": MANY}, {"q": MANY[:count]}, 10) == 1, "the ideal order"
