"""Measures how well a model's confidence in its answers predicts which answers are right
(CloudAPIBench, Section 4.2 and Figure 9a).

Arguments have one entry per answer: ``correct``, (n,) booleans; ``confidence``, (n,) numbers from 0
to 1; and ``clusters``, (n,) labels. Answers that depend on each other have the same label. NaN in
``correct`` or ``confidence`` raises UserError.

The Brier score needs no function here, because it is a plain mean:
``rates.rate((confidence - correct) ** 2, clusters)``.
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
    known,
    of_change,
    of_score_change,
    of_share,
    rate,
    row,
)

RARE = 20  # an AUROC needs at least this many right answers, and at least this many wrong ones


def auroc_interval(
    correct: ArrayLike,
    confidence: ArrayLike,
    clusters: ArrayLike,
    less: ArrayLike | None = None,
) -> Rate:
    """Return the AUROC: the probability that a right answer has a higher confidence than a wrong
    one. Ties count half.

    If ``less``, a second confidence in the same answers, is given, the function returns the AUROC
    of ``confidence`` minus the AUROC of ``less``, with an interval for this paired difference.

    The result is NaN if fewer than RARE answers are right or fewer than RARE are wrong, because a
    handful of answers would then decide it.
    """
    counts = np.bincount(known(correct).astype(int), minlength=2)
    if min(counts) < RARE:
        return Rate(nan, nan, nan, int(sum(counts)))
    auroc = on_weighted_samples(_auroc, correct, confidence)
    if less is None:
        return jackknife(auroc, clusters, of_share)[0]
    other = on_weighted_samples(_auroc, correct, less)
    return jackknife(lambda weights: auroc(weights) - other(weights), clusters, of_score_change)[0]


def on_weighted_samples(
    statistic: Callable[[Array, Array], Array], correct: ArrayLike, confidence: ArrayLike
) -> Callable[[Array], Array]:
    """Return a function that computes ``statistic`` on r weighted samples at once. The function
    takes the weights of the answers in each sample, (r, n), and returns (r,).

    ``statistic`` takes two arrays (r, levels): the weighted number of right answers and of wrong
    answers at each level of confidence, lowest level first. It returns (r,).
    """
    confidence = known(confidence)
    order = np.argsort(confidence, kind="stable")  # once, and not again for each sample
    correct = known(correct)[order].astype(bool)
    _, starts = np.unique(confidence[order], return_index=True)

    def of(weights: Array) -> Array:
        weights = weights[:, order]
        right = weights * correct
        wrong = weights * ~correct
        return statistic(*(np.add.reduceat(part, starts, axis=1) for part in (right, wrong)))

    return of


def _auroc(right: Array, wrong: Array) -> Array:
    """Return (r,) AUROCs: the share of the pairs of a right and a wrong answer in which the right
    answer has the higher confidence. Ties count half. ``on_weighted_samples`` describes the
    arguments.
    """
    # for each level, the wrong answers below it, and half of the wrong answers at it
    below = np.cumsum(wrong, axis=1) - wrong / 2
    with np.errstate(invalid="ignore"):  # NaN if all answers are right, or all wrong
        area: Array = (right * below).sum(axis=1) / (right.sum(axis=1) * wrong.sum(axis=1))
    return area


def reliability_rows(
    model: str, correct: ArrayLike, confidence: ArrayLike, clusters: ArrayLike, bins: int = 10
) -> list[dict[str, Any]]:
    """Return the rows of Figure 9a, which ``plots.reliability`` draws. There are two rows for each
    non-empty bin, with the condition ``bin_<number>``; numbers begin at 1.

    The row with the metric ``confidence`` has the mean confidence of the answers in the bin (0 to
    1). The row with the metric ``correct_percent`` has the percentage of these answers that are
    right. ``n`` is the number of answers in the bin.
    """
    correct, confidence, clusters = known(correct), known(confidence), np.asarray(clusters)
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
    """Return the number of each answer's bin, (n,) floats: 1.0, 2.0 and so on up to ``bins``.
    Answers are ranked by confidence, and every bin takes an equal share of the ranks. Equal
    confidences have the same (average) rank, so they are in the same bin. Raises UserError for
    fewer than one bin.
    """
    if bins < 1:
        raise UserError(f"{bins} bins: give at least 1")
    ranks: Array = pd.Series(known(confidence)).rank().to_numpy()
    return np.ceil(ranks * bins / len(ranks))


def ece_interval(
    correct: ArrayLike, confidence: ArrayLike, clusters: ArrayLike, bins: int = 10
) -> Rate:
    """Return the expected calibration error (ECE). The gap of a bin (``equal_mass_bins``) is the
    share of right answers minus the mean confidence. The ECE is the mean of the absolute gaps,
    weighted by the sizes of the bins.

    Absolute values do not cancel, so noise alone gives even a calibrated model an error above 0.
    The interval is therefore Scheffé's: it contains the error of every set of gaps that is jointly
    compatible with the observed gaps. It covers the true error in more than 95% of samples. It
    begins at 0 unless the answers show that the model is miscalibrated.
    """
    gap = known(correct) - known(confidence)
    inside = equal_mass_bins(confidence, bins)[:, None] == np.arange(1, bins + 1)
    gaps = averages(gap[:, None] * inside, clusters, kind=of_change)
    value = fsum(abs(each.value) for each in gaps)
    # The half-width of the interval: the root of the sum of the gaps' squared half-widths. It is
    # then widened, because the interval must cover all gaps at once (chi-squared), and not only
    # each gap by itself.
    reach = np.sqrt(fsum((each.high - each.low) ** 2 for each in gaps)) / 2
    reach *= np.sqrt(chdtri(bins, 1 - LEVEL)) / -ndtri(TAIL_PROBABILITY)
    return Rate(value, max(value - reach, 0.0), min(value + reach, 1.0), len(gap), gaps[0].clusters)


def aurc_interval(correct: ArrayLike, confidence: ArrayLike, clusters: ArrayLike) -> Rate:
    """Return the area under the risk-coverage curve; 0 is perfect.

    Answers are accepted in the order of their confidence, highest first; answers with equal
    confidences are accepted together. Coverage is the share of all answers that are accepted, and
    risk is the share of wrong answers among the accepted ones. The area is the mean risk over the
    levels of confidence, weighted by the share of the answers at each level.
    """
    return jackknife(on_weighted_samples(_aurc, correct, confidence), clusters, of_share)[0]


def _aurc(right: Array, wrong: Array) -> Array:
    """Return (r,) areas under the curve. ``on_weighted_samples`` describes the arguments."""
    # reversed, because the curve begins at the highest level of confidence
    counts = (right + wrong)[:, ::-1]
    wrong = wrong[:, ::-1]
    covered = np.cumsum(counts, axis=1)
    # where nothing is covered yet, the risk has no weight; the maximum only avoids division by 0
    risk = np.cumsum(wrong, axis=1) / np.maximum(covered, 1)
    with np.errstate(invalid="ignore"):  # NaN without answers
        area: Array = (risk * counts).sum(axis=1) / counts.sum(axis=1)
    return area
