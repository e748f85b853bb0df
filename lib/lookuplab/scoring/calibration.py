"""Does a confidence say how often the answer is right? (CloudAPIBench, Section 4.2 and Figure 9a)

Throughout: ``correct`` is (n,) booleans, ``confidence`` is (n,) numbers from 0 to 1, in the same order; ``clusters`` is
(n,) labels, equal for answers that are resampled together. Brier's score is a mean: ``rates.estimate`` of
``(confidence - correct) ** 2`` is its interval.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.metrics import brier_score_loss, roc_auc_score

from lookuplab.scoring.rates import REPETITIONS, Rate, estimate, resampled_weights


def auroc(correct, confidence) -> float:
    """Chance that a correct answer has a higher confidence than a wrong one (ties half); NaN without both kinds."""
    correct = np.asarray(correct, dtype=bool)
    if correct.all() or not correct.any():
        return float("nan")
    return float(roc_auc_score(correct, confidence))


def brier(correct, confidence) -> float:
    """Mean squared distance of the confidence from 0 or 1; 0 is perfect, 0.25 is always saying one half."""
    return float(brier_score_loss(np.asarray(correct, dtype=bool), confidence, pos_label=True))


def reliability(correct, confidence, bins: int = 10) -> pd.DataFrame:
    """One row per non-empty bin: ``low, high`` (confidences in it), ``confidence`` (mean), ``correct`` (share), ``n``.

    Bins hold equal mass. Equal confidences always share a bin (their average rank decides), so the table does not
    depend on the order of the answers; with many ties the bins are therefore less equal, or fewer.
    """
    confidence = np.asarray(confidence, dtype=float)
    if not len(confidence):
        raise ValueError("no answers to bin")
    member = np.ceil(rankdata(confidence) * bins / len(confidence)).astype(int)
    frame = pd.DataFrame({"bin": member, "confidence": confidence, "correct": np.asarray(correct, dtype=float)})
    groups = frame.groupby("bin")
    table = groups.agg(low=("confidence", "min"), high=("confidence", "max"), n=("confidence", "size"))
    table[["confidence", "correct"]] = groups[["confidence", "correct"]].mean()
    return table.reset_index(drop=True)[["low", "high", "confidence", "correct", "n"]]


def ece(correct, confidence, bins: int = 10) -> float:
    """Expected calibration error: distance of share correct and mean confidence in equal-mass bins, by their size."""
    table = reliability(correct, confidence, bins)
    return float((table.n * (table.correct - table.confidence).abs()).sum() / table.n.sum())


def auroc_interval(correct, confidence, clusters, repetitions=REPETITIONS, seed=0, level=0.95) -> Rate:
    """``auroc`` with a clustered bootstrap interval; (0, 1) around NaN where all answers are right, or all wrong."""
    return bootstrap(weighted_auroc, correct, confidence, clusters, repetitions, seed, level)


def ece_interval(correct, confidence, clusters, bins=10, repetitions=REPETITIONS, seed=0, level=0.95) -> Rate:
    """``ece`` with a clustered bootstrap interval, the bins formed anew in every resample.

    A resample is noisier than the sample and its error, a mean of distances, therefore larger on average: plain
    percentiles would often lie wholly above the value. So they are lowered by that excess, down to 0 at most.
    """
    def statistic(right, wrong, levels):
        return weighted_ece(right, wrong, levels, bins)

    return bootstrap(statistic, correct, confidence, clusters, repetitions, seed, level, centred=True)


def bootstrap(
    statistic: Callable, correct, confidence, clusters, repetitions, seed, level, centred: bool = False
) -> Rate:
    """A statistic of the right and wrong answers at each confidence, with a clustered percentile interval.

    statistic: maps ``right`` and ``wrong``, both (r, levels) numbers of answers, and the ascending distinct confidences
    (levels,) to (r,) values from 0 to 1; NaN where a resample has none. centred: see ``ece_interval``. Sorting once and
    resampling weights makes 10,000 resamples of 622 answers a matter of a second.
    """
    correct, confidence = np.asarray(correct, dtype=bool), np.asarray(confidence, dtype=float)
    if not len(correct) == len(confidence) == len(clusters) or not len(correct):
        raise ValueError(f"need answers and their clusters: {len(correct)}, {len(confidence)}, {len(clusters)}")
    return _interval(_weighted(statistic, correct, confidence), clusters, repetitions, seed, level, centred=centred)


def auroc_difference(correct, first, second, clusters, repetitions=REPETITIONS, seed=0, level=0.95) -> Rate:
    """AUROC of ``first`` minus AUROC of ``second``, (n,) confidences in the same answers, on the same resamples.

    (-1, 1) around NaN where all answers are right, or all wrong.
    """
    correct = np.asarray(correct, dtype=bool)
    of_first, of_second = (_weighted(weighted_auroc, correct, np.asarray(each)) for each in (first, second))

    def of(weights: np.ndarray) -> np.ndarray:
        return of_first(weights) - of_second(weights)

    return _interval(of, clusters, repetitions, seed, level, least=-1.0)


def _interval(of: Callable[[np.ndarray], np.ndarray], clusters, repetitions, seed, level, least: float = 0.0,
              centred: bool = False) -> Rate:
    """What ``of`` makes of the weights (r, n) of the answers, with its percentile interval, at the least ``least``."""
    value = float(of(np.ones((1, len(clusters))))[0])
    if np.isnan(value):
        return Rate(value, least, 1.0, len(clusters))
    drawn = np.concatenate([of(weights) for weights in resampled_weights(clusters, repetitions, seed)])
    low, high = np.nanquantile(drawn, [(1 - level) / 2, (1 + level) / 2]) - centred * (np.nanmean(drawn) - value)
    return Rate(value, max(float(low), least), float(high), len(clusters))


def _weighted(statistic: Callable, correct: np.ndarray, confidence: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The statistic, see ``bootstrap``, as a function of how often each answer counts, (r, n) -> (r,)."""
    order = np.argsort(confidence, kind="stable")
    levels, starts = np.unique(confidence[order], return_index=True)

    def of(weights: np.ndarray) -> np.ndarray:
        right = np.add.reduceat(weights[:, order] * correct[order], starts, axis=1)
        return statistic(right, np.add.reduceat(weights[:, order], starts, axis=1) - right, levels)

    return of


def weighted_auroc(right: np.ndarray, wrong: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """``auroc`` of counted answers, see ``bootstrap``: the wrong ones below each right one, ties half."""
    below = np.cumsum(wrong, axis=1) - wrong / 2
    pairs = right.sum(axis=1) * wrong.sum(axis=1)
    return np.divide((right * below).sum(axis=1), pairs, out=np.full(len(right), np.nan), where=pairs > 0)


def weighted_ece(right: np.ndarray, wrong: np.ndarray, levels: np.ndarray, bins: int = 10) -> np.ndarray:
    """``ece`` of counted answers, see ``bootstrap``: a level belongs to the bin of its average rank, as there."""
    counts = right + wrong
    total = counts.sum(axis=1, keepdims=True)
    rank = np.cumsum(counts, axis=1) - (counts - 1) / 2
    member = np.ceil(rank * bins / total).clip(1, bins).astype(int) - 1
    places = (member + bins * np.arange(len(counts))[:, None]).ravel()
    gap = np.bincount(places, (right - counts * levels).ravel(), minlength=bins * len(counts))
    return np.abs(gap.reshape(-1, bins)).sum(axis=1) / total[:, 0]


def reliability_rows(model: str, correct, confidence, clusters, bins: int = 10) -> list[dict]:
    """Tidy rows of ``reliability`` for ``plots.reliability_diagram``: two per bin, condition ``bin_<number>`` from 1.

    ``confidence`` is the bin's mean (0 to 1), ``correct_percent`` its share of right answers with an interval clustered
    as everywhere; ``n`` the bin's size.
    """
    confidence, clusters = np.asarray(confidence, dtype=float), np.asarray(clusters)
    rows = []
    for number, found in enumerate(reliability(correct, confidence, bins).itertuples(), start=1):
        inside = (found.low <= confidence) & (confidence <= found.high)
        share = estimate(np.asarray(correct, dtype=float)[inside], clusters[inside]).percent()
        of_bin = {"model": model, "condition": f"bin_{number}", "n": int(found.n)}
        rows.append(of_bin | {"metric": "confidence", "value": float(found.confidence)})
        interval = {"value": share.value, "ci_low": share.low, "ci_high": share.high}
        rows.append(of_bin | {"metric": "correct_percent"} | interval)
    return rows
