"""Measures the quality of rankings. Each measure returns one value per query, so that the caller
can average the values, or compare two rankers query by query.

Documents with equal scores could be ranked in any order. Each function therefore returns the
expected value of its measure over all orders of such ties (McSherry and Najork 2008, "Computing
information retrieval performance measures efficiently in the presence of tied scores"). The result
depends neither on the documents' ids nor on their order in a file.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[Any]


class RelevantRanks(NamedTuple):
    """The ranks of the relevant documents in the rankings of n queries, down to rank k. Where
    scores are tied, ranks are known only as probabilities; without ties, all probabilities are 0
    or 1.

    - ``each``, (n, k): the probability that the document at a rank is relevant.
    - ``first``, (n, k): the probability that the document at a rank is the first relevant one.
    - ``relevant``, (n,): the number of relevant documents, at least 1.
    """

    each: Floats
    first: Floats
    relevant: Floats

    @property
    def undecided(self) -> Floats:
        """Return (n,) booleans: whether ties leave the ranks of relevant documents open."""
        undecided: Floats = ~np.all(np.isin(self.each, (0, 1)), axis=1)
        return undecided

    def tell(self, name: str) -> None:
        """Print the number of undecided queries of the ranker called ``name``, unless it is 0."""
        if count := self.undecided.sum():
            print(
                f"{name}: {count} of {len(self.relevant)} queries undecided: equal scores, so the "
                "numbers are expected values over all orders"
            )


def relevant_ranks(lines: Iterable[tuple[Floats, Sequence[int], int]], k: int) -> RelevantRanks:
    """Return the ranks of the relevant documents. ``lines`` has a tuple (scores, indices, number)
    for each query:

    - scores: (m,) floats, one per document; higher is better. A document with the score -inf is not
      ranked.
    - indices: the indices of the relevant documents in the scores.
    - number: how many relevant documents exist, ranked or not.
    """
    each, first, numbers = [], [], []
    for scores, relevant, number in lines:
        depth = min(k, int((scores > -np.inf).sum()))
        least = np.partition(scores, -depth)[-depth] if depth else np.inf
        # the groups of equal scores; the scores are negated, because np.unique sorts upwards and
        # the best group must come first
        values, sizes = np.unique(-scores[scores >= least], return_counts=True)
        mine = -scores[relevant]
        hits = np.bincount(np.searchsorted(values, mine[mine <= -least]), minlength=len(values))
        each.append(np.zeros(k))
        # within a group, every document is equally likely at each of the group's ranks
        each[-1][:depth] = np.repeat(hits / sizes, sizes)[:depth]
        first.append(np.zeros(k))
        if hits.any():
            # The first relevant document is in the first group with a hit. It is at the j-th rank
            # of the group if the document there is relevant and the j - 1 documents before it are
            # not. All orders of the group are equally likely, so the chance is as in drawing
            # without replacement.
            at = int((hits > 0).argmax())
            before, rest = sizes[:at].sum(), sizes[at] - np.arange(sizes[at] - hits[at] + 1)
            none_yet = np.cumprod([1, *(1 - hits[at] / rest[:-1])])
            chances = (none_yet * hits[at] / rest)[: depth - before]
            first[-1][before : before + len(chances)] = chances
        numbers.append(number)
    shape = (len(numbers), k)
    return RelevantRanks(np.reshape(each, shape), np.reshape(first, shape), np.array(numbers))


def listed(
    rankings: Mapping[str, Sequence[str]], relevant: Mapping[str, Collection[str]], k: int
) -> RelevantRanks:
    """Return the ranks of the relevant documents in rankings without ties. ``rankings`` maps the id
    of a query to the ids of its documents, best first and without duplicates. ``relevant`` maps the
    same id to the ids of the relevant documents.
    """
    return relevant_ranks(
        (
            (
                -np.arange(1.0, len(ranking) + 1),
                [at for at, name in enumerate(ranking) if name in relevant[query]],
                len(set(relevant[query])),
            )
            for query, ranking in rankings.items()
        ),
        k,
    )


def success_at(found: RelevantRanks, k: int) -> Floats:
    """Return the probability that a relevant document is in the top k, (n,) floats. Without ties,
    it is 0 or 1.

    CloudAPIBench calls this precision@k; nokia/codesearch and the StackOverflow paper call it
    recall@k.
    """
    # rounding errors may make the sum larger than 1
    chances: Floats = np.minimum(found.first[:, :k].sum(axis=1), 1)
    return chances


def recall_at(found: RelevantRanks, k: int) -> Floats:
    """Return the share of the relevant documents that are in the top k, (n,) floats."""
    shares: Floats = found.each[:, :k].sum(axis=1) / found.relevant
    return shares


def reciprocal_rank(found: RelevantRanks, k: int) -> Floats:
    """Return 1 / rank of the first relevant document, (n,) floats; 0 if the top k has none. The
    mean over queries is MRR@k.

    The StackOverflow paper uses nokia/codesearch's k, which is 20.
    """
    reciprocals: Floats = (found.first[:, :k] / np.arange(1, k + 1)).sum(axis=1)
    return reciprocals


def ndcg_at(found: RelevantRanks, k: int) -> Floats:
    """Return the normalised discounted cumulative gain (nDCG) of the top k, (n,) floats from 0 to
    1. All relevant documents are equally relevant.

    A relevant document at rank r counts 1 / log2(r + 1). The sum over these documents is divided by
    the sum for the ideal ranking, in which all relevant documents come first (Jarvelin and
    Kekalainen 2002).
    """
    discounts = 1 / np.log2(np.arange(2, k + 2))
    ideal = (np.arange(k) < found.relevant[:, None]) @ discounts
    gains: Floats = found.each[:, :k] @ discounts / ideal
    return gains
