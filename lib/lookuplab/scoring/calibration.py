"""Does a confidence predict how often the answer is right? (CloudAPIBench, Section 4.2 and Figure
9a)

Throughout, ``correct`` is (n,) booleans, ``confidence`` (n,) numbers from 0 to 1, and ``clusters``
(n,) labels that are equal for answers that depend on each other. The Brier score is a mean:
``rates.rate`` of ``(confidence - correct) ** 2``.
"""

from collections.abc import Callable
from math import fsum, nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2, norm, rankdata

from lookuplab.errors import UserError
from lookuplab.scoring.rates import (
    LEVEL,
    TAIL_PROBABILITY,
    Array,
    Rate,
    averages,
    bare_row,
    jackknife,
    of_change,
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
    """Return (n,) bin numbers from 1: bins of equal mass, by average rank, so that equal
    confidences share one. Raises UserError for fewer than one bin.
    """
    if bins < 1:
        raise UserError(f"{bins} bins: give at least 1")
    ranks = np.asarray(rankdata(confidence))
    return np.ceil(ranks * bins / len(ranks))


def ece_interval(
    correct: ArrayLike, confidence: ArrayLike, clusters: ArrayLike, bins: int = 10
) -> Rate:
    """Expected calibration error: mean distance of share right and mean confidence in equal-mass
    bins, by size.

    Noise never cancels in a sum of distances, so even a calibrated model's error is above 0. The
    interval is therefore Scheffé's: all errors whose gaps in the bins are jointly compatible with
    the observed ones. It covers the truth in more than 95% of samples, and reaches 0 if nothing
    shows that the model is miscalibrated.
    """
    gap = np.asarray(correct, dtype=float) - np.asarray(confidence, dtype=float)
    inside = equal_mass_bins(confidence, bins)[:, None] == np.arange(1, bins + 1)
    gaps = averages(gap[:, None] * inside, clusters, kind=of_change)
    value = fsum(abs(each.value) for each in gaps)
    reach = np.sqrt(fsum((each.high - each.low) ** 2 for each in gaps)) / 2
    reach *= np.sqrt(chi2.ppf(LEVEL, bins)) / norm.isf(TAIL_PROBABILITY)
    return Rate(value, max(value - reach, 0.0), min(value + reach, 1.0), len(gap), gaps[0].clusters)


def aurc_interval(correct: ArrayLike, confidence: ArrayLike, clusters: ArrayLike) -> Rate:
    """Area under the risk-coverage curve; 0 is perfect.

    Coverage is the share of tasks answered, most confident first and equal confidences together.
    Risk is the share of wrong answers among them. Each level of confidence is weighted by its share
    of the tasks.
    """
    return jackknife(weighted(_aurc, correct, confidence), clusters, of_share)[0]


def _aurc(right: Array, wrong: Array) -> Array:
    """Add answers from the highest confidence downwards."""
    counts = (right + wrong)[:, ::-1]
    wrong = wrong[:, ::-1]
    covered = np.cumsum(counts, axis=1)
    # no division by 0: where nothing is covered yet, the weight is 0 too
    risk = np.cumsum(wrong, axis=1) / np.maximum(covered, 1)
    area: Array = (risk * counts).sum(axis=1) / covered[:, -1]
    return area
