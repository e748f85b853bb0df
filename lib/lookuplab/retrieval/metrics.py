"""How good rankings are: one value a query, so that the caller can average, bootstrap and compare by query.

``rankings`` maps query ids to document ids, best first; ``relevant`` maps query ids to their relevant documents. Values
come in the order of ``rankings``. k < 1 and a query without relevant documents raise UserError.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from lookuplab.errors import UserError
from lookuplab.retrieval import check_k

Rankings = Mapping[str, Sequence[str]]
Relevant = Mapping[str, Collection[str]]


def success_at(rankings: Rankings, relevant: Relevant, k: int) -> np.ndarray:
    """Whether any relevant document is in the top k, (n,) booleans.

    What CloudAPIBench calls precision@k, and nokia/codesearch and the paper on StackOverflow recall@k.
    """
    return reciprocal_rank(rankings, relevant, k) > 0


def recall_at(rankings: Rankings, relevant: Relevant, k: int) -> np.ndarray:
    """The share of the relevant documents that are in the top k, (n,) floats."""
    return _values(
        rankings, relevant, k, lambda found, wanted: len(wanted & {*found}) / len(wanted)
    )


def reciprocal_rank(rankings: Rankings, relevant: Relevant, k: int | None = None) -> np.ndarray:
    """1 / rank of the first relevant document, 0 where there is none in the top k, (n,) floats; its mean
    is MRR@k.

    Without ``k`` the whole ranking counts. nokia/codesearch and so the paper cut at 20.
    """

    def reciprocal(found: Sequence[str], wanted: set[str]) -> float:
        return next((1 / rank for rank, name in enumerate(found, 1) if name in wanted), 0.0)

    return _values(rankings, relevant, k, reciprocal)


def ndcg_at(rankings: Rankings, relevant: Relevant, k: int) -> np.ndarray:
    """Normalised discounted cumulative gain of the top k, (n,) floats from 0 to 1; a relevant document is
    worth 1.

    A document at rank r counts 1 / log2(r + 1), once; divided by what an ideal order of the relevant
    documents gets (Jarvelin and Kekalainen 2002).
    """

    def gain(found: Sequence[str], wanted: set[str]) -> float:
        discounts, gains = 1 / np.log2(np.arange(2, k + 2)), np.zeros(k)
        different = [name in wanted for name in dict.fromkeys(found)]
        gains[: len(different)] = different
        return discounts @ gains / (discounts @ (np.arange(k) < len(wanted)))

    return _values(rankings, relevant, k, gain)


def _values(rankings: Rankings, relevant: Relevant, k: int | None, measure: Callable) -> np.ndarray:
    """``measure`` of each query's top k and its relevant documents."""
    check_k(1 if k is None else k)
    values = []
    for query, ranking in rankings.items():
        wanted = set(relevant.get(query, ()))
        if not wanted:
            raise UserError(
                f"no relevant document is known for {query}: it can be neither found nor missed"
            )
        values.append(measure(ranking[:k], wanted))
    return np.array(values, dtype=float)
