"""Makes the rows of the notebooks fig9_confidence and selective_retrieval. The rows say how well
the confidence of a first pass predicts which calls are valid, and how much a trigger gains (paper,
Section 4.2).

A trigger is an order of the tasks, beginning with the task that needs documentation most, and a
point in this order at which lookups stop. ``share_rows`` compares different orders at equal shares
of lookups, so no threshold has to be chosen. ``held_out_rows`` measures the value of a threshold
that was chosen on other APIs. Nothing here runs a model.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np
from numpy.typing import ArrayLike
from pandas import DataFrame

from lookuplab.cloudapi.bench import AGGREGATES
from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.policies import (
    UNDIVIDED,
    Retriever,
    Rows,
    by_class,
    class_rows,
    outcome,
    rows_of,
    triggered,
)
from lookuplab.errors import UserError
from lookuplab.paths import hashed
from lookuplab.scoring.calibration import aurc_interval, auroc_interval, ece_interval
from lookuplab.scoring.rates import averages, bare_row, of_change, of_share, rate
from lookuplab_notebooks.cloudapibench.passes_compared import compared_rows

BINS = 5, 10, 15, 20  # the calibration error is computed with each of these numbers of bins
# a threshold counts as good if validity at this threshold is at most this many points below the
# best validity
TOLERATED = 1.0


def calibration_rows(first: DataFrame, counts: Sequence[int]) -> Rows:
    """Return rows that say how well the confidence of the first pass separates valid from invalid
    calls (Figure 9a in numbers). ``counts``, (tasks,), say how often each task's API was seen in
    training.

    The conditions are:

    - each frequency class and *all*: ``auroc``; ``auroc_rests_on_tasks``, the number of valid or of
      invalid calls, whichever is smaller; ``mean_confidence``; and only for *all*, ``brier`` and
      ``ece`` (10 equal-mass bins).
    - *bins_5* and so on: ``ece`` with this number of bins.
    - *minimum*, *mean*, *product*, *last*: ``auroc`` of each aggregate of the tokens' confidence.
    - *minimum - mean* and so on: ``auroc_change_points``, the paired difference between the
      aggregates' AUROCs. Despite the metric's name, the unit is 1: 0.8 - 0.7 gives 0.1.
    - *frequency*: ``auroc`` of ``counts`` in place of the confidence.
    """
    valid = first.valid.to_numpy(dtype=bool)
    sure = first["minimum"]
    apis = first.cluster
    rows, measures = [], {}
    for name, mask in by_class(first).items():
        rarer = np.bincount(valid[mask], minlength=2).min()
        at = first.model.iloc[0], name, "auroc_rests_on_tasks"
        rows.append(bare_row(*at, rarer, mask.sum()))
        measures[name, "auroc"] = auroc_interval(valid[mask], sure[mask], apis[mask])
        measures[name, "mean_confidence"] = rate(sure[mask], apis[mask])
    measures["all", "brier"] = rate((sure - valid) ** 2, apis)
    measures["all", "ece"] = ece_interval(valid, sure, apis)
    measures |= {(f"bins_{n}", "ece"): ece_interval(valid, sure, apis, n) for n in BINS}
    measures |= {(name, "auroc"): auroc_interval(valid, first[name], apis) for name in AGGREGATES}
    for name in list(AGGREGATES)[1:]:
        change = auroc_interval(valid, sure, apis, less=first[name])
        measures[f"minimum - {name}", "auroc_change_points"] = change
    measures["frequency", "auroc"] = auroc_interval(valid, counts, apis)
    defined = {name: number for name, number in measures.items() if not math.isnan(number.value)}
    return rows + rows_of(first, defined)


def curve(
    passes: Passes, thresholds: ArrayLike, retriever: Retriever, policy: str = "dag_confidence"
) -> np.ndarray:
    """Return the probability of a valid call for each task and threshold of a policy, (tasks,
    thresholds). Documentation is retrieved where the policy's score is below the threshold.
    """
    return outcome(passes, triggered(passes.first, policy, thresholds), retriever)


def best(means: np.ndarray) -> np.ndarray:
    """Return the index of the best threshold. ``means``, (..., thresholds), are the mean validities
    at ascending thresholds. Of equally good thresholds, the lowest wins, because it has the fewest
    lookups.
    """
    # the small term treats means as equal if they differ only by rounding
    return (means >= means.max(axis=-1, keepdims=True) - 1e-12).argmax(axis=-1)


def best_on_others(values: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Return, for each fold, the index of the threshold that is best on the other folds.
    ``values``, (tasks, thresholds), are outcomes, and ``fold``, (tasks,), are the tasks' folds.
    """
    return np.array([best(values[fold != part].mean(axis=0)) for part in range(fold.max() + 1)])


def _range_around(at: int, near: np.ndarray) -> list[int]:
    """Return the first and the last index of the run of True values in ``near``, (n,), that
    contains the index ``at``. The entry ``at`` itself counts as True.
    """
    far = np.flatnonzero(~near)
    return [max(far[far < at], default=-1) + 1, min(far[far > at], default=len(near)) - 1]


def threshold_rows(passes: Passes, thresholds: np.ndarray, retriever: Retriever) -> Rows:
    """Return rows with the best threshold over all tasks, the range of almost equally good
    thresholds, and the loss from thresholds that are too high.

    *optimal* (metric ``threshold``) is the smallest of the best thresholds. Its interval contains
    every threshold that is not significantly worse in the paired comparison.

    *optimal_range_low* and *optimal_range_high* are the two ends of the range: the thresholds
    around *optimal* that lose at most one point of validity. To get the intervals of the ends, the
    range is determined twice more. With the upper bounds of the losses in place of the losses, the
    range is narrower; with the lower bounds, it is wider. The interval of an end reaches from this
    end of the narrower range to the same end of the wider range. (A simulation drew the APIs of the
    mini tasks with replacement. These intervals contained the true end in 94 to 99% of the draws.
    Intervals of bootstrap percentiles contained it in as few as 85%.)

    ``largest_fall_points`` of each class is the largest fall in validity from a threshold to any
    higher threshold, or 0 if validity never falls. To find it, validity at each threshold is
    compared with the best validity at or below this threshold. ``ci_high`` is the highest upper
    bound of all these falls.
    """
    first = passes.first
    values = curve(passes, thresholds, retriever)
    at = int(best(values.mean(axis=0)))
    behind = averages(values[:, [at]] - values, first.cluster, kind=of_change)
    good = thresholds[[one.low <= 0 for one in behind]]
    optimal = replace(behind[0], value=thresholds[at], low=good.min(), high=good.max())
    numbers = {("optimal", "threshold"): optimal}
    lost = np.array([(one.value, one.low, one.high) for one in behind])
    ranges = [thresholds[_range_around(at, near)] for near in (lost <= TOLERATED / 100 + 1e-12).T]
    for end, (value, *ends) in zip(("low", "high"), zip(*ranges, strict=True), strict=True):
        number = replace(optimal, value=value, low=min(ends), high=max(ends))
        numbers[f"optimal_range_{end}", "threshold"] = number
    for name, mask in by_class(first).items():
        means = values[mask].mean(axis=0)
        peaks = [means[: at + 1].argmax() for at in range(len(means))]
        falls = averages((values[:, peaks] - values)[mask], first.cluster[mask], kind=of_change)
        worst = max(falls, key=attrgetter("value"))
        highest = max(one.high for one in falls)
        number = replace(worst, low=max(0.0, worst.low), high=highest)
        numbers[name, "largest_fall_points"] = number.percent()
    return rows_of(first, numbers)


def lowest(score: ArrayLike, shares: ArrayLike) -> np.ndarray:
    """Return, for each task and share, the probability that the task is selected, (tasks, shares).
    A share of 0.25 selects the quarter of the tasks with the lowest ``score``, (tasks,). Ties are
    broken at random.

    With a constant score, the order is random and every task has the probability ``share``. Each
    column sums to the share times the number of tasks.
    """
    _, member, size = np.unique(score, return_inverse=True, return_counts=True)
    before = (np.cumsum(size) - size)[member]
    places = np.asarray(shares, dtype=float) * len(member)
    return np.clip((places - before[:, None]) / size[member][:, None], 0, 1)


def looked_up(
    p: Passes, counts: Sequence[int], shares: ArrayLike, retriever: Retriever
) -> dict[str, np.ndarray]:
    """Return {order: (tasks, shares) probabilities of a valid call}. Documentation is looked up for
    a share of the tasks: those that come first in the order.

    - *confidence*: the task with the lowest confidence in the first pass comes first.
    - *frequency*: the task with the rarest API comes first. ``counts`` say how often each API was
      in the training texts, which is known only for the mini models.
    - *random*: all orders are equally likely.
    - *oracle*: the task that gains most from this retriever comes first.
    - *asked*: the task with the highest probability of asking for documentation comes first. Only
      models that learned to ask have this order.
    """
    base = p.first.valid.to_numpy(dtype=float)[:, None]
    gain = outcome(p, True, retriever) - base[:, 0]
    orders = {
        "confidence": p.first["minimum"],
        "frequency": counts,
        "random": np.zeros(len(gain)),
        "oracle": -gain,
    }
    if "asked" in p.first:
        orders["asked"] = -p.first.asked
    return {name: base + lowest(order, shares) * gain[:, None] for name, order in orders.items()}


def share_rows(
    passes: Passes,
    counts: Sequence[int],
    shares: Sequence[float],
    retriever: Retriever,
    metric: str = "valid_percent",
) -> Rows:
    """Return rows of validity against the share of tasks with documentation, for ``plots.curves``.
    In the condition ``share_25/confidence``, 25 percent of the tasks have documentation: those that
    come first in the order *confidence* of ``looked_up``.

    For *confidence*, *frequency* and *oracle*, there is also a row with the metric
    ``<metric without _percent>_above_random_points``: validity with this order minus validity with
    the order *random*, paired by task and averaged over all shares.
    """
    first = passes.first
    rows = []
    valid = looked_up(passes, counts, shares, retriever)
    for name, values in valid.items():
        names = [f"share_{100 * share:g}/{name}" for share in shares]
        rows += class_rows(first, names, {metric: values.clip(0, 1)}, UNDIVIDED)
    lead = metric.replace("percent", "above_random_points")
    for name in ("confidence", "frequency", "oracle"):
        above = (valid[name] - valid["random"]).mean(axis=1)
        rows += class_rows(first, name, {lead: above}, UNDIVIDED)
    return rows


def folds(clusters: Iterable[str], strata: Iterable[str], count: int, seed: int) -> np.ndarray:
    """Return the fold of each task, (tasks,) numbers from 0. ``clusters`` and ``strata`` are the
    tasks' labels. All tasks of a cluster are in the same fold.

    Within each stratum, clusters are dealt to the folds in turn, in the order of a seeded hash. The
    next stratum continues with the next fold, so that the folds have equally many clusters. The
    result does not depend on the order of the tasks. Raises UserError for fewer than two folds.
    """
    if count < 2:
        raise UserError(f"{count} folds: at least 2 are needed, one of them held out")

    def order(pair: tuple[str, str]) -> tuple[str, str]:
        return pair[0], hashed(f"{seed}/{pair[1]}")

    dealt = sorted(set(zip(strata, clusters, strict=True)), key=order)
    fold = {cluster: number % count for number, (_, cluster) in enumerate(dealt)}
    return np.array([fold[cluster] for cluster in clusters])


def held_out_rows(
    passes: Passes,
    thresholds: np.ndarray,
    fixed: float,
    count: int,
    retriever: Retriever,
    seed: int,
) -> Rows:
    """Return rows that compare three ways to choose a threshold on the same tasks.

    ``fixed`` uses the threshold ``fixed``. ``held_out`` splits the APIs into ``count`` folds and
    uses in each fold the threshold that is best on the other folds. ``best_in_sample`` uses the
    threshold that is best on the same tasks on which it is judged. There are rows of
    ``valid_percent`` with the condition ``<way>/<class>``, and rows with the ``threshold`` of each
    way. For ``held_out``, each fold has its own threshold (``held_out/fold_1`` and so on).

    There are also rows of ``valid_change_points``, for two paired differences. ``best_in_sample``
    minus ``held_out`` says how far validity is overestimated if a threshold is chosen and judged on
    the same tasks. Over all tasks, this difference is never negative. ``held_out`` minus ``fixed``
    is the gain from choosing a threshold.
    """
    first = passes.first
    values = curve(passes, thresholds, retriever)
    fold = folds(first.cluster, first.frequency, count, seed)
    at = best(values.mean(axis=0))
    chosen = best_on_others(values, fold)
    ways = {
        "fixed": curve(passes, fixed, retriever),
        "best_in_sample": values[:, at],
        "held_out": values[np.arange(len(values)), chosen[fold]],
    }
    used = {"fixed": fixed, "best_in_sample": thresholds[at]}
    used |= {f"held_out/fold_{n}": value for n, value in enumerate(thresholds[chosen], 1)}
    model = first.model.iloc[0]
    rows = [bare_row(model, name, "threshold", cut, len(first)) for name, cut in used.items()]
    for name, valid in ways.items():
        rows += class_rows(first, name, {"valid_percent": valid})
    pairs = ("best_in_sample", "held_out"), ("held_out", "fixed")
    return [*rows, *compared_rows(first, ways, pairs)]


def risk_rows(first: DataFrame, counts: Sequence[int], coverages: Sequence[float]) -> Rows:
    """Return rows that say how often answers given without documentation are wrong:
    ``risk_percent`` with conditions such as ``coverage_50/<order>``.

    At a coverage of 50 percent, the half of the tasks that needs documentation least is answered,
    and the rest would be looked up. The orders are *confidence*, *frequency* and *random*, as in
    ``looked_up``, and *ideal*, in which all tasks with a valid call are answered first. For
    confidence and frequency, there is also ``aurc``, the area under the curve of risk over
    coverage.
    """
    numbers = {}
    valid = first.valid.to_numpy(dtype=bool)
    orders = {
        "confidence": first["minimum"],
        "frequency": counts,
        "random": np.zeros(len(valid)),
        "ideal": valid,
    }
    for name, order in orders.items():
        answered = 1 - lowest(order, 1 - np.asarray(coverages))
        risks = averages(~valid[:, None] * answered, first.cluster, answered, of_share)
        for coverage, risk in zip(coverages, risks, strict=True):
            numbers[f"coverage_{100 * coverage:g}/{name}", "risk_percent"] = risk.percent()
    for name in ("confidence", "frequency"):
        numbers[name, "aurc"] = aurc_interval(valid, orders[name], first.cluster)
    return rows_of(first, numbers)
