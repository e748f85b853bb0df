"""Does a confidence say how often the answer is right? (CloudAPIBench, Section 4.2 and Figure 9a)

Throughout: ``correct`` is (n,) booleans, ``confidence`` is (n,) numbers from 0 to 1, ``clusters`` (n,) labels, equal
for answers that are resampled together. Brier's score is a mean: ``rates.rate`` of ``(confidence - correct) ** 2``.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.stats import rankdata

from lookuplab.scoring.rates import Rate, bare_row, bootstrap, rate, row


def auroc_interval(correct, confidence, clusters, **options) -> Rate:
    """Chance that a right answer has a higher confidence than a wrong one (ties half); options of ``rates.bootstrap``.

    (0, 1) around NaN where all answers are right, or all wrong.
    """
    return _of_both(correct, _counted(_auroc, correct, confidence), clusters, 0.0, options)


def auroc_difference(correct, first, second, clusters, **options) -> Rate:
    """AUROC of ``first`` minus AUROC of ``second``, (n,) confidences in the same answers, on the same resamples."""
    of_first, of_second = (_counted(_auroc, correct, confidence) for confidence in (first, second))
    return _of_both(
        correct, lambda weights: of_first(weights) - of_second(weights), clusters, -1.0, options
    )


def _of_both(correct, statistic: Callable, clusters, least: float, options: dict) -> Rate:
    if len(set(correct)) < 2:
        return Rate(float("nan"), least, 1.0, len(correct))
    return bootstrap(statistic, clusters, **options)[0]


def ece_interval(correct, confidence, clusters, bins: int = 10, **options) -> Rate:
    """Expected calibration error: distance of share right and mean confidence in equal-mass bins, by their size.

    A resample is noisier than the sample and its error, a mean of distances, therefore larger on average: plain
    percentiles would often lie wholly above the value. So they are lowered by that excess, down to 0 at most.
    """
    statistic = _counted(partial(_ece, bins=bins), correct, confidence)
    (found,) = bootstrap(statistic, clusters, centred=True, **options)
    return Rate(found.value, max(found.low, 0.0), found.high, found.n)


def aurc_interval(correct, confidence, clusters, **options) -> Rate:
    """Area under the risk-coverage curve; 0 is perfect.

    Coverage is the share of tasks answered, the most confident first and equal confidences together; risk the share of
    wrong answers among them, weighted by the coverage that it was reached with.
    """
    return bootstrap(_counted(_aurc, correct, confidence), clusters, **options)[0]


def _counted(statistic: Callable, correct, confidence) -> Callable[[np.ndarray], np.ndarray]:
    """A statistic of the right and wrong answers at each level of confidence, as one of weights, (r, n) -> (r,).

    statistic: maps ``right`` and ``wrong``, both (r, levels) numbers of answers, and the ascending distinct confidences
    (levels,) to (r,). Sorting once makes 10,000 resamples of 622 answers a matter of a second.
    """
    correct, confidence = np.asarray(correct, dtype=bool), np.asarray(confidence, dtype=float)
    order = np.argsort(confidence, kind="stable")
    levels, starts = np.unique(confidence[order], return_index=True)

    def of(weights: np.ndarray) -> np.ndarray:
        right = np.add.reduceat(weights[:, order] * correct[order], starts, axis=1)
        return statistic(right, np.add.reduceat(weights[:, order], starts, axis=1) - right, levels)

    return of


def _auroc(right: np.ndarray, wrong: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The wrong answers below each right one, ties half."""
    below = np.cumsum(wrong, axis=1) - wrong / 2
    pairs = right.sum(axis=1) * wrong.sum(axis=1)
    return np.divide(
        (right * below).sum(axis=1), pairs, out=np.full(len(right), np.nan), where=pairs > 0
    )


def _ece(right: np.ndarray, wrong: np.ndarray, levels: np.ndarray, bins: int) -> np.ndarray:
    """A level belongs to the bin of its average rank, so equal confidences share a bin."""
    counts = right + wrong
    total = counts.sum(axis=1, keepdims=True)
    rank = np.cumsum(counts, axis=1) - (counts - 1) / 2
    member = np.ceil(rank * bins / total).clip(1, bins).astype(int) - 1
    places = (member + bins * np.arange(len(counts))[:, None]).ravel()
    gap = np.bincount(places, (right - counts * levels).ravel(), minlength=bins * len(counts))
    return np.abs(gap.reshape(-1, bins)).sum(axis=1) / total[:, 0]


def _aurc(right: np.ndarray, wrong: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The highest confidence enters first."""
    counts, wrong = (right + wrong)[:, ::-1], wrong[:, ::-1]
    covered = np.cumsum(counts, axis=1)
    risk = np.cumsum(wrong, axis=1) / np.maximum(
        covered, 1
    )  # nothing covered yet: no weight either
    return (risk * counts).sum(axis=1) / covered[:, -1]


def reliability_rows(model: str, correct, confidence, clusters, bins: int = 10) -> list[dict]:
    """Figure 9a as rows for ``plots.reliability_diagram``: two per non-empty bin, condition ``bin_<number>`` from 1.

    Bins hold equal mass, and equal confidences share one (their average rank decides). ``confidence`` is the bin's mean
    (0 to 1), ``correct_percent`` its share of right answers; ``n`` the bin's size.
    """
    correct, confidence = np.asarray(correct, dtype=bool), np.asarray(confidence)
    clusters = np.asarray(clusters)
    member, rows = np.ceil(rankdata(confidence) * bins / len(confidence)), []
    for number, one in enumerate(np.unique(member), start=1):
        inside, condition = member == one, f"bin_{number}"
        rows.append(
            bare_row(model, condition, "confidence", confidence[inside].mean(), int(inside.sum()))
        )
        rows.append(
            row(
                model,
                condition,
                "correct_percent",
                rate(correct[inside], clusters[inside]).percent(),
            )
        )
    return rows
