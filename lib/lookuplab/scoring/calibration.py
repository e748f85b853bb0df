"""Does a confidence predict how often the answer is right? (CloudAPIBench, Section 4.2 and Figure
9a)

Throughout, ``correct`` is (n,) booleans, ``confidence`` (n,) numbers from 0 to 1, and ``clusters``
(n,) labels that are equal for answers that depend on each other. The Brier score is a mean:
``rates.rate`` of ``(confidence - correct) ** 2``.
"""

from collections.abc import Callable
from math import nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from lookuplab.errors import UserError
from lookuplab.scoring.rates import (
    Array,
    Rate,
    bare_row,
    jackknife,
    of_score_change,
    of_share,
    rate,
    row,
)

RARE = 20  # the least number of right answers, and of wrong ones, that an AUROC needs


def auroc_interval(
    correct: ArrayLike,
    confidence: ArrayLike,
    clusters: ArrayLike,
    less: ArrayLike | None = None,
) -> Rate:
    """Probability that a right answer has a higher confidence than a wrong one (ties count half).

    less: (n,) other confidences in the same answers, whose AUROC is subtracted, paired by answer.
    NaN if fewer than RARE answers are right, or wrong: a handful of them would decide it.
    """
    counts = np.bincount(np.asarray(correct, dtype=int), minlength=2)
    if min(counts) < RARE:
        return Rate(nan, nan, nan, int(sum(counts)))
    auroc = weighted(_auroc, correct, confidence)
    if less is None:
        return jackknife(auroc, clusters, of_share)[0]
    other = weighted(_auroc, correct, less)
    return jackknife(lambda weights: auroc(weights) - other(weights), clusters, of_score_change)[0]


def weighted(
    statistic: Callable[[Array, Array], Array], correct: ArrayLike, confidence: ArrayLike
) -> Callable[[Array], Array]:
    """Turn a statistic of right and wrong answers per level of confidence into one of weights, (r,
    n) -> (r,).

    The statistic maps weighted counts of right and wrong answers at the ascending levels, (r,
    levels) each, to (r,). Sorting is done once for all rows of weights.
    """
    confidence = np.asarray(confidence, dtype=float)
    order = np.argsort(confidence, kind="stable")
    correct = np.asarray(correct, dtype=bool)[order]
    _, starts = np.unique(confidence[order], return_index=True)

    def of(weights: Array) -> Array:
        weights = weights[:, order]
        right = weights * correct
        wrong = weights * ~correct
        return statistic(*(np.add.reduceat(part, starts, axis=1) for part in (right, wrong)))

    return of


def _auroc(right: Array, wrong: Array) -> Array:
    """Count the wrong answers below each right one, ties half."""
    below = np.cumsum(wrong, axis=1) - wrong / 2
    with np.errstate(invalid="ignore"):  # NaN where all are right, or all wrong
        area: Array = (right * below).sum(axis=1) / (right.sum(axis=1) * wrong.sum(axis=1))
    return area


def reliability_rows(
    model: str, correct: ArrayLike, confidence: ArrayLike, clusters: ArrayLike, bins: int = 10
) -> list[dict[str, Any]]:
    """Figure 9a as rows for ``plots.reliability``: two per non-empty bin, condition
    ``bin_<number>`` from 1.

    Bins hold equal mass, and equal confidences share one (their average rank decides).
    ``confidence`` is the bin's mean (0 to 1), ``correct_percent`` its share of right answers; ``n``
    the bin's size.
    """
    correct, confidence, clusters = map(np.asarray, (correct, confidence, clusters))
    member = equal_mass_bins(confidence, bins)
    rows = []
    for number, label in enumerate(np.unique(member), start=1):
        inside = member == label
        right = rate(correct[inside], clusters[inside])
        key = model, f"bin_{number}"
        rows.append(bare_row(*key, "confidence", confidence[inside].mean(), right.n))
        rows.append(row(*key, "correct_percent", right.percent()))
    return rows


def equal_mass_bins(confidence: ArrayLike, bins: int) -> Array:
    """(n,) bin numbers from 1: bins of equal mass, by average rank, so that equal confidences share
    one. Raises UserError for fewer than one bin.
    """
    if bins < 1:
        raise UserError(f"{bins} bins: give at least 1")
    ranks = np.asarray(rankdata(confidence))
    return np.ceil(ranks * bins / len(ranks))
