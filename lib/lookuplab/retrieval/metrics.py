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
    """Whether any relevant document is in the top k, (n,) booleans: what CloudAPIBench calls precision@k."""
    check_k(k)
    return np.array([any(name in wanted for name in ranking[:k]) for ranking, wanted in _pairs(rankings, relevant)],
                    dtype=bool)


def recall_at(rankings: Rankings, relevant: Relevant, k: int) -> np.ndarray:
    """The share of the relevant documents that are in the top k, (n,) floats."""
    check_k(k)
    return np.array([len(wanted & set(ranking[:k])) / len(wanted) for ranking, wanted in _pairs(rankings, relevant)],
                    dtype=float)


def reciprocal_rank(rankings: Rankings, relevant: Relevant) -> np.ndarray:
    """1 / rank of the first relevant document, 0 where there is none, (n,) floats; its mean is MRR."""
    return np.array([next((1 / rank for rank, name in enumerate(ranking, 1) if name in wanted), 0.0)
                     for ranking, wanted in _pairs(rankings, relevant)], dtype=float)


def _pairs(rankings: Rankings, relevant: Relevant) -> Iterator[tuple[Sequence[str], set[str]]]:
    for query, ranking in rankings.items():
        wanted = set(relevant.get(query, ()))
        if not wanted:
            raise UserError(f"no relevant document is known for {query}: it can be neither found nor missed")
        yield ranking, wanted
