"""How good rankings are: one value per query, so that the caller can average and compare query by
query.

``rankings`` maps query ids to document ids, best first, without duplicates; ``relevant`` maps query
ids to their relevant documents, at least one each. Values are in the order of ``rankings``.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rankings = Mapping[str, Sequence[str]]
Relevant = Mapping[str, Collection[str]]
Floats = NDArray[Any]


def success_at(rankings: Rankings, relevant: Relevant, k: int) -> Floats:
    """Whether any relevant document is in the top k, (n,) booleans.

    CloudAPIBench calls this precision@k; nokia/codesearch and the StackOverflow paper call it
    recall@k.
    """
    return recall_at(rankings, relevant, k) > 0


def recall_at(rankings: Rankings, relevant: Relevant, k: int) -> Floats:
    """The share of the relevant documents that are in the top k, (n,) floats."""
    hits, sizes = _hits(rankings, relevant, k)
    shares: Floats = hits.sum(axis=1) / sizes
    return shares


def reciprocal_rank(rankings: Rankings, relevant: Relevant, k: int) -> Floats:
    """1 / rank of the first relevant document, 0 where there is none in the top k, (n,) floats; the
    mean is MRR@k.

    nokia/codesearch, and therefore the paper, use k = 20.
    """
    hits, _ = _hits(rankings, relevant, k)
    reciprocals: Floats = (hits / np.arange(1, k + 1)).max(axis=1)
    return reciprocals


def ndcg_at(rankings: Rankings, relevant: Relevant, k: int) -> Floats:
    """Normalised discounted cumulative gain of the top k, (n,) floats from 0 to 1; a relevant
    document is worth 1.

    A document at rank r counts 1 / log2(r + 1); the sum is divided by that of an ideal order of the
    relevant documents (Jarvelin and Kekalainen 2002).
    """
    hits, sizes = _hits(rankings, relevant, k)
    discounts = 1 / np.log2(np.arange(2, k + 2))
    return hits @ discounts / ((np.arange(k) < sizes[:, None]) @ discounts)


def _hits(rankings: Rankings, relevant: Relevant, k: int) -> tuple[Floats, Floats]:
    """(n, k) whether the document at each rank is relevant, and (n,) the number of relevant
    documents.
    """
    hits = np.zeros((len(rankings), k), dtype=bool)
    for line, (query, ranking) in zip(hits, rankings.items(), strict=True):
        line[: len(ranking)] = [name in relevant[query] for name in ranking[:k]]
    return hits, np.array([len(set(relevant[query])) for query in rankings])
