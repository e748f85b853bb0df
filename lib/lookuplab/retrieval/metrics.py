"""How good rankings are: one value a query, so that the caller can average, bootstrap and compare by query.

``rankings`` maps query ids to document ids, best first; ``relevant`` maps query ids to their relevant documents. Values
come in the order of ``rankings``. A query without relevant documents raises UserError.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from lookuplab.errors import UserError
from lookuplab.retrieval import check_k

Rankings = Mapping[str, Sequence[str]]
Relevant = Mapping[str, Collection[str]]


def success_at(rankings: Rankings, relevant: Relevant, k: int) -> np.ndarray:
    """Whether any relevant document is in the top k, (n,) booleans.

    What CloudAPIBench calls precision@k, and nokia/codesearch and the paper on StackOverflow call recall@k.
    """
    check_k(k)
    return np.array([any(name in wanted for name in ranking[:k]) for ranking, wanted in _pairs(rankings, relevant)],
                    dtype=bool)


def recall_at(rankings: Rankings, relevant: Relevant, k: int) -> np.ndarray:
    """The share of the relevant documents that are in the top k, (n,) floats."""
    check_k(k)
    return np.array([len(wanted & set(ranking[:k])) / len(wanted) for ranking, wanted in _pairs(rankings, relevant)],
                    dtype=float)


def reciprocal_rank(rankings: Rankings, relevant: Relevant, k: int | None = None) -> np.ndarray:
    """1 / rank of the first relevant document, 0 where there is none in the top k, (n,) floats; its mean is MRR@k.

    Without ``k`` the whole ranking counts. nokia/codesearch and so the paper cut at 20.
    """
    if k is not None:
        check_k(k)
    return np.array([next((1 / rank for rank, name in enumerate(ranking[:k], 1) if name in wanted), 0.0)
                     for ranking, wanted in _pairs(rankings, relevant)], dtype=float)


def ndcg_at(rankings: Rankings, relevant: Relevant, k: int) -> np.ndarray:
    """Normalised discounted cumulative gain of the top k, (n,) floats from 0 to 1; a relevant document is worth 1.

    A document at rank r counts 1 / log2(r + 1), once; divided by what an ideal order of the relevant documents gets
    (Jarvelin and Kekalainen 2002).
    """
    check_k(k)
    discounts = 1 / np.log2(np.arange(2, k + 2))
    values = []
    for ranking, wanted in _pairs(rankings, relevant):
        gains = np.zeros(k)
        for at, name in enumerate(dict.fromkeys(ranking[:k])):
            gains[at] = name in wanted
        values.append(discounts @ gains / (discounts @ (np.arange(k) < len(wanted))))
    return np.array(values, dtype=float)


def _pairs(rankings: Rankings, relevant: Relevant) -> Iterator[tuple[Sequence[str], set[str]]]:
    for query, ranking in rankings.items():
        wanted = set(relevant.get(query, ()))
        if not wanted:
            raise UserError(f"no relevant document is known for {query}: it can be neither found nor missed")
        yield ranking, wanted
