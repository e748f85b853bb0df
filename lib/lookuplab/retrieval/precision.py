"""The retriever of configurable precision (CloudAPIBench, Section 3.1 "Retriever") as selections from one ranking.

"For an x% precision@k setting, we return k documents via BM25, ensuring that the target API's documentation is included
x% of the time." A question needs one hit and one miss for a given k; every x is a mixture of the two.
"""

import hashlib
from collections.abc import Mapping, Sequence
from decimal import Decimal

import numpy as np

from lookuplab.errors import UserError


def hit(ranking: Sequence[str], targets: Sequence[str], k: int) -> tuple[str, ...]:
    """The top k with a target in it: as ranked where any of ``targets`` is there, else ``targets[0]`` at rank k.

    ``targets`` are all acceptable documents, the one asked for first. Raises UserError for k < 1 and for a
    ranking too short to give k documents.
    """
    top = _top(ranking, k)
    return top if set(top) & set(targets) else (*top[: k - 1], targets[0])


def miss(ranking: Sequence[str], targets: Sequence[str], k: int) -> tuple[str, ...]:
    """The top k without any acceptable target; rank at least k + len(targets) deep. Errors as ``hit``."""
    return _top([document for document in ranking if document not in targets], k)


def _top(ranking: Sequence[str], k: int) -> tuple[str, ...]:
    if k < 1:
        raise UserError(f"k is {k}; the number of retrieved documents must be 1 or more")
    if len(ranking) < k:  # fewer documents than asked for would pass for a smaller k
        raise UserError(
            f"a ranking gives {len(ranking)} of k = {k} documents; rank deeper or lower k"
        )
    return tuple(ranking[:k])


def hit_tasks(strata: Mapping[str, str], percent: float, seed: int = 0) -> frozenset[str]:
    """The tasks that get a hit at ``percent`` precision: exactly percent/100 of each class, halves rounded up.

    ``strata`` maps task ids to classes. A seeded hash of the id orders each class, so the sets nest as ``percent``
    grows and do not depend on the order of the tasks. Raises UserError outside 0-100.
    """
    _check_percent(percent)
    order = sorted(strata, key=lambda one: hashlib.sha256(f"{seed} {one}".encode()).hexdigest())
    chosen: set[str] = set()
    for name in set(strata.values()):
        members = [task for task in order if strata[task] == name]
        # decimals, as the number was written: in floats 29 / 100 * 50 is a little below 14.5 and would be rounded down
        hits = Decimal(str(percent)) * len(members) / 100 + Decimal("0.5")
        chosen.update(members[: int(hits)])
    return frozenset(chosen)


def expected(hit, miss, percent: float) -> np.ndarray:
    """What each task is worth on average when ``percent`` of the draws are hits: x hit + (1 - x) miss.

    hit, miss: (n,) booleans or numbers, the outcomes with a hit and with a miss. Returns (n,) floats. Raises UserError
    outside 0-100.
    """
    _check_percent(percent)
    hit, miss = np.asarray(hit, dtype=float), np.asarray(miss, dtype=float)
    # exact where both are equal, unlike the formula as written
    return miss + percent / 100 * (hit - miss)


def _check_percent(percent: float) -> None:
    if not 0 <= percent <= 100:  # also NaN
        raise UserError(
            f"a retriever precision of {percent}% is impossible; give a number from 0 to 100"
        )
