"""Does a confidence say how often the answer is right? (CloudAPIBench, Section 4.2 and Figure 9a)

Throughout: ``correct`` is (n,) booleans, ``confidence`` is (n,) numbers from 0 to 1, ``clusters`` (n,) labels, equal
for answers that are resampled together. Brier's score is a mean: ``rates.rate`` of ``(confidence - correct) ** 2``.
"""

from collections.abc import Callable
from functools import partial
from math import nan

import numpy as np
from scipy.stats import rankdata

from lookuplab.scoring.rates import Rate, bare_row, bootstrap, rate, row


def auroc_interval(correct, confidence, clusters, less=None) -> Rate:
    """Chance that a right answer has a higher confidence than a wrong one (ties half).

    less: (n,) other confidences in the same answers, whose AUROC is subtracted, on the same resamples.
    NaN where all answers are right, or all wrong.
    """
    if len(set(correct)) < 2:
        return Rate(nan, nan, nan, len(correct))
    of, of_less = (
        _counted(_auroc, correct, one) if one is not None else lambda weights: 0
        for one in (confidence, less)
    )
    return bootstrap(lambda weights: of(weights) - of_less(weights), clusters)[0]


def ece_interval(correct, confidence, clusters, bins: int = 10) -> Rate:
    """Expected calibration error: distance of share right and mean confidence in equal-mass bins, by their size.

    A resample is noisier than the sample and its error, a mean of distances, therefore larger on average: plain
    percentiles would often lie wholly above the value. So they are lowered by that excess, down to 0 at most.
    """
    statistic = _counted(partial(_ece, bins=bins), correct, confidence)
    (found,) = bootstrap(statistic, clusters, centred=True)
    return Rate(found.value, max(found.low, 0.0), found.high, found.n)


def aurc_interval(correct, confidence, clusters) -> Rate:
    """Area under the risk-coverage curve; 0 is perfect.

    Coverage is the share of tasks answered, the most confident first and equal confidences together; risk the share of
    wrong answers among them, weighted by the coverage that it was reached with.
    """
    return bootstrap(_counted(_aurc, correct, confidence), clusters)[0]


def _counted(statistic: Callable, correct, confidence) -> Callable[[np.ndarray], np.ndarray]:
    """A statistic of the right and wrong answers at each level of confidence, as one of weights, (r, n) -> (r,).

    The statistic maps weighted counts of right and wrong answers, (r, levels) each, and the ascending levels (levels,)
    to (r,). Sorting once makes 10,000 resamples of 622 answers a matter of a second.
    """
    confidence = np.asarray(confidence, dtype=float)
    order = np.argsort(confidence, kind="stable")
    correct = np.asarray(correct, dtype=bool)[order]
    levels, starts = np.unique(confidence[order], return_index=True)

    def of(weights: np.ndarray) -> np.ndarray:
        weights = weights[:, order]
        parts = (weights * correct, weights * ~correct)
        return statistic(*(np.add.reduceat(part, starts, axis=1) for part in parts), levels)

    return of


def _auroc(right: np.ndarray, wrong: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The wrong answers below each right one, ties half."""
    below = np.cumsum(wrong, axis=1) - wrong / 2
    with np.errstate(invalid="ignore"):  # NaN where all are right, or all wrong
        return (right * below).sum(axis=1) / (right.sum(axis=1) * wrong.sum(axis=1))


def _ece(right: np.ndarray, wrong: np.ndarray, levels: np.ndarray, bins: int) -> np.ndarray:
    """A level belongs to the bin of its average rank, so equal confidences share a bin."""
    counts = right + wrong
    total = counts.sum(axis=1, keepdims=True)
    rank = np.cumsum(counts, axis=1) - (counts - 1) / 2
    member = np.ceil(rank * bins / total).clip(1, bins) - 1
    gap = right - counts * levels
    sums = [np.abs((gap * (member == bin)).sum(axis=1)) for bin in range(bins)]
    return sum(sums) / total[:, 0]


def _aurc(right: np.ndarray, wrong: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The highest confidence enters first."""
    counts, wrong = (right + wrong)[:, ::-1], wrong[:, ::-1]
    covered = np.cumsum(counts, axis=1)
    # nothing covered yet: no weight either
    risk = np.cumsum(wrong, axis=1) / np.maximum(covered, 1)
    return (risk * counts).sum(axis=1) / covered[:, -1]


def reliability_rows(model: str, correct, confidence, clusters, bins: int = 10) -> list[dict]:
    """Figure 9a as rows for ``plots.reliability``: two per non-empty bin, condition ``bin_<number>`` from 1.

    Bins hold equal mass, and equal confidences share one (their average rank decides). ``confidence`` is the bin's mean
    (0 to 1), ``correct_percent`` its share of right answers; ``n`` the bin's size.
    """
    correct, confidence, clusters = map(np.asarray, (correct, confidence, clusters))
    member, rows = np.ceil(rankdata(confidence) * bins / len(confidence)), []
    for number, one in enumerate(np.unique(member), start=1):
        inside, condition = member == one, f"bin_{number}"
        mean, right = confidence[inside].mean(), rate(correct[inside], clusters[inside])
        rows.append(bare_row(model, condition, "confidence", mean, right.n))
        rows.append(row(model, condition, "correct_percent", right.percent()))
    return rows
