"""Ranking measures on queries that can be worked out by hand."""

import numpy as np
import pytest

from lookuplab.retrieval.metrics import ndcg_at, recall_at, reciprocal_rank, success_at

RANKINGS = dict.fromkeys(("q1", "q2", "q3"), "abc")
# in another order: values are matched by id
RELEVANT = {"q3": ["z"], "q1": ["c", "b"], "q2": ("a",)}


SECOND, THIRD = 1 / np.log2(3), 1 / 2  # a document's worth at these ranks


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
    assert 1.0 * measure(RANKINGS, RELEVANT, k) == pytest.approx(values)
