"""Measures whether a confidence predicts how often the answer is right (CloudAPIBench, Section 4.2
and Figure 9a).

Throughout, ``correct`` is (n,) booleans and ``confidence`` (n,) numbers from 0 to 1. ``clusters``
are (n,) labels, equal for answers that depend on each other. The Brier score has no function here:
it is a mean, ``rates.rate`` of ``(confidence - correct) ** 2``.
"""

from collections.abc import Callable
from math import fsum, nan
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import chdtri, ndtri

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

RARE = 20  # an AUROC needs at least this many right answers and this many wrong ones


def auroc_interval(
    correct: ArrayLike,
    confidence: ArrayLike,
    clusters: ArrayLike,
    less: ArrayLike | None = None,
) -> Rate:
    """Return the AUROC: the probability that a right answer has a higher confidence than a wrong
    one. Ties count half.

    less: (n,) other confidences for the same answers; the result is then the AUROC of
    ``confidence`` minus the AUROC of ``less``, paired by answer.

    The result is NaN if fewer than RARE answers are right, or fewer than RARE are wrong: a handful
    of answers would decide it.
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
    """Return a function of weights, (r, n) -> (r,), that computes ``statistic`` on the weighted
    sample.

    ``statistic`` takes two arrays, (r, levels): the weighted counts of right and of wrong answers
    at each level of confidence, lowest first. It returns (r,). The answers are sorted once for all
    rows of weights.
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
    """Return the share of the (right, wrong) pairs in which the right answer has the higher
    confidence; ties count half.
    """
    below = np.cumsum(wrong, axis=1) - wrong / 2
    with np.errstate(invalid="ignore"):  # NaN if all answers are right, or all wrong
        area: Array = (right * below).sum(axis=1) / (right.sum(axis=1) * wrong.sum(axis=1))
    return area


def reliability_rows(
    model: str, correct: ArrayLike, confidence: ArrayLike, clusters: ArrayLike, bins: int = 10
) -> list[dict[str, Any]]:
    """Return Figure 9a as rows for ``plots.reliability``: two rows per non-empty bin, with the
    condition ``bin_<number>``. The first bin has the number 1.

    The row ``confidence`` has the bin's mean confidence (0 to 1), the row ``correct_percent`` the
    percentage of its answers that are right. ``n`` is the bin's size.
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
    """Return each answer's bin, (n,) numbers from 1. Every bin holds the same share of the ranks.
    Equal confidences have the same (average) rank, so they share a bin. Raises UserError for fewer
    than one bin.
    """
    if bins < 1:
        raise UserError(f"{bins} bins: give at least 1")
    ranks: Array = pd.Series(np.asarray(confidence)).rank().to_numpy()
    return np.ceil(ranks * bins / len(ranks))


def ece_interval(
    correct: ArrayLike, confidence: ArrayLike, clusters: ArrayLike, bins: int = 10
) -> Rate:
    """Return the expected calibration error (ECE): the distance between the share of right answers
    and the mean confidence in each bin of ``equal_mass_bins``, averaged with the bins' sizes as
    weights.

    Noise never cancels in a sum of distances, so even a calibrated model has an error above 0. The
    interval is therefore Scheffé's: all errors whose gaps in the bins are jointly compatible with
    the observed ones. It covers the truth in more than 95% of samples, and reaches 0 if nothing
    shows that the model is miscalibrated.
    """
    gap = np.asarray(correct, dtype=float) - np.asarray(confidence, dtype=float)
    inside = equal_mass_bins(confidence, bins)[:, None] == np.arange(1, bins + 1)
    gaps = averages(gap[:, None] * inside, clusters, kind=of_change)
    value = fsum(abs(each.value) for each in gaps)
    reach = np.sqrt(fsum((each.high - each.low) ** 2 for each in gaps)) / 2
    reach *= np.sqrt(chdtri(bins, 1 - LEVEL)) / -ndtri(TAIL_PROBABILITY)
    return Rate(value, max(value - reach, 0.0), min(value + reach, 1.0), len(gap), gaps[0].clusters)


def aurc_interval(correct: ArrayLike, confidence: ArrayLike, clusters: ArrayLike) -> Rate:
    """Return the area under the risk-coverage curve; 0 is perfect.

    Coverage is the share of tasks answered, most confident first and equal confidences together.
    Risk is the share of wrong answers among the tasks answered. Each level of confidence is
    weighted by its share of the tasks.
    """
    return jackknife(weighted(_aurc, correct, confidence), clusters, of_share)[0]


def _aurc(right: Array, wrong: Array) -> Array:
    """Return the area from the counts per level of confidence, lowest level first. Answers are
    added to the curve from the highest level downwards.
    """
    counts = (right + wrong)[:, ::-1]
    wrong = wrong[:, ::-1]
    covered = np.cumsum(counts, axis=1)
    # where nothing is covered yet the weight is 0 too; the maximum avoids a division by 0
    risk = np.cumsum(wrong, axis=1) / np.maximum(covered, 1)
    area: Array = (risk * counts).sum(axis=1) / covered[:, -1]
    return area
