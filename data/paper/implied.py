"""Which claims of claims.yaml follow from others by arithmetic, so that one fact would count twice;
`lookuplab claims` prints them, and a test holds that they say so (``follows_from``).

Comparisons are differences of two numbers, or of one and 0, with a least and a greatest value. The
least differences that all of them together imply are the longest paths from cell to cell.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, product
from math import inf
from typing import Any

from lookuplab.results.claims import Claim, Comparison, inequalities

MODELS = ["m-small", "m-large"]  # any two sizes stand for all


def bounds(each: Comparison) -> Iterator[tuple[Any, float]]:
    """The least value of the first cell minus the second (or 0, None), and the other way round."""
    yield (each.first, each.second), each.least
    yield (each.second, each.first), -each.most


def follows(asked: Sequence[Comparison], given: Iterable[Comparison], metric: str) -> bool:
    """Whether all of ``asked`` are true if all of ``given`` are; shares lie between 0 and 100
    percent. What follows from nothing cannot fail.
    """
    given = list(given)
    cells = [None, *{cell for each in [*asked, *given] for cell in each.cells}]
    ends = (0, 100) if metric.endswith("_percent") and "change" not in metric else (-inf, inf)
    limits = [Comparison("", cell, None, *ends) for cell in cells if cell]
    least: dict[Any, float] = defaultdict(lambda: -inf)
    for pair, bound in chain(*map(bounds, [*given, *limits])):
        least[pair] = max(least[pair], bound)
    for via, first, second in product(cells, repeat=3):
        least[first, second] = max(least[first, second], least[first, via] + least[via, second])
    return all(least[pair] >= bound for pair, bound in chain(*map(bounds, asked)))


def implications(claims: Iterable[Claim]) -> dict[str, list[str]]:
    """Claim -> as few others, about the same metric of the same artifact, as imply it."""
    alike: dict[Any, dict[str, list[Comparison]]] = defaultdict(dict)
    for claim in claims:
        metric = claim.artifact_id, claim.test["metric"]
        alike[metric][claim.id] = list(inequalities(claim, MODELS))
    found = {}
    for (_, metric), members in alike.items():
        for id, asked in members.items():
            given = [*members]
            for out in [id, *given]:
                fewer = [one for one in given if one != out]
                if follows(asked, chain(*(members[one] for one in fewer)), metric):
                    given = fewer
            if id not in given:
                found[id] = given
    return found
