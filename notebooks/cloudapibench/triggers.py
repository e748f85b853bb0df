"""How well the confidence of a first pass predicts which calls are valid, and how much a trigger
gains (paper, Section 4.2): the rows of fig9_confidence and selective_retrieval.

A trigger is an order of the tasks, beginning with the one that needs documentation most, and a
point at which to stop. Orders by confidence or API frequency can be compared with a random order
and with the best one without choosing a threshold. ``held_out_rows`` measures the value of a
threshold that was chosen on other APIs. Nothing here runs a model.
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
    Hits,
    Rows,
    by_class,
    class_rows,
    outcome,
    rows_of,
    triggered,
)
from lookuplab.errors import UserError
from lookuplab.models.store import hashed
from lookuplab.scoring.calibration import aurc_interval, auroc_interval, ece_interval
from lookuplab.scoring.rates import (
    Rate,
    averages,
    bare_row,
    of_change,
    of_share,
    rate,
)
from lookuplab_notebooks.cloudapibench.passes_compared import compared_rows

BINS = 5, 10, 15, 20  # numbers of bins for the calibration error
# points; a threshold whose validity is at most this far below the best counts as equally good
TOLERATED = 1.0


def calibration_rows(first: DataFrame, counts: Sequence[int]) -> Rows:
    """Return how well the confidence of the first pass separates valid from invalid invocations
    (Figure 9a in numbers).

    For each class and *all*: ``auroc``, ``auroc_rests_on_tasks`` (how many tasks are of the rarer
    kind, valid or invalid), ``mean_confidence`` and, for *all* only, ``brier`` and ``ece`` (10
    equal-mass bins). Further conditions: *bins_5* and so on: ``ece`` with so many bins; *minimum,
    mean, product, last*: ``auroc`` of each aggregate; *minimum - mean* and so on:
    ``auroc_change_points``, their paired difference (0 to 1, like an AUROC); *frequency*: ``auroc``
    of how often the API was seen, (tasks,) ``counts``.
    """
    valid = first.valid.to_numpy(dtype=bool)
    sure = first["minimum"]
    apis = first.cluster
    rests = {}
    measures = {}
    for name, mask in by_class(first).items():
        rarer = np.bincount(valid[mask], minlength=2).min()
        rests[name, "auroc_rests_on_tasks"] = Rate(float(rarer), math.nan, math.nan, mask.sum())
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
    return rows_of(first, rests | defined)


def curve(
    passes: Passes, thresholds: ArrayLike, hits: Hits, policy: str = "dag_confidence"
) -> np.ndarray:
    """Return (tasks, thresholds) probabilities of a valid invocation if documentation is retrieved
    below each threshold of a policy.
    """
    return outcome(passes, triggered(passes.first, policy, thresholds), hits)


def best(means: np.ndarray) -> np.ndarray:
    """Return the index of the best of the ascending thresholds (the last axis of ``means``); ties
    go to the fewest lookups.
    """
    return np.asarray((means >= means.max(axis=-1, keepdims=True) - 1e-12).argmax(axis=-1))


def _range_around(at: int, near: np.ndarray) -> list[int]:
    """Return the first and last index of the run of True around ``at``. The entry ``at`` itself
    counts as True.
    """
    far = np.flatnonzero(~near)
    return [max(far[far < at], default=-1) + 1, min(far[far > at], default=len(near)) - 1]


def threshold_rows(passes: Passes, thresholds: np.ndarray, hits: Hits) -> Rows:
    """Return the best threshold over all tasks, and how much is lost by a higher one.

    *optimal* (metric ``threshold``) is the smallest of the best thresholds; its interval contains
    every threshold that is not significantly worse in the paired comparison.

    *optimal_range_low*, *optimal_range_high*: the ends of the range of thresholds around it that
    lose at most one point. Each end has an interval. Its inner bound is the end of the range in
    which even the upper bound of the loss is at most one point. Its outer bound is the end of the
    range in which the lower bound of the loss is at most one point. (In samples drawn from the APIs
    of the mini tasks with replacement, these intervals covered 94 to 99% of the ends; percentiles
    of a bootstrap covered as few as 85%.)

    ``largest_fall_points`` of each class: the largest fall in validity from a threshold to any
    higher one, 0 if it never falls; ``ci_high`` bounds the falls from the best threshold so far to
    every later one.
    """
    first = passes.first
    values = curve(passes, thresholds, hits)
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
    """Return (n, shares) probability that each task is among the lowest share of ``score``, (n,),
    if ties are broken at random.

    A constant score gives a random order: every task has the probability ``share``. Columns sum to
    n times the share.
    """
    _, member, size = np.unique(score, return_inverse=True, return_counts=True)
    before = (np.cumsum(size) - size)[member]
    places = np.asarray(shares, dtype=float) * len(member)
    return np.asarray(np.clip((places - before[:, None]) / size[member][:, None], 0, 1))


def looked_up(
    p: Passes, counts: Sequence[int], shares: ArrayLike, hits: Hits
) -> dict[str, np.ndarray]:
    """Return {order: (tasks, shares) probabilities of a valid call} if the tasks that come first in
    an order are looked up.

    The orders are *confidence* of the first pass; *frequency*, how often the API was seen
    (``counts``, which only a controlled world knows exactly); *random*; *oracle*, by the gain from
    this retriever; and *asked*, by the probability of the mark, of models that learned it.
    """
    base = p.first.valid.to_numpy(dtype=float)[:, None]
    gain = outcome(p, True, hits) - base[:, 0]
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
    hits: Hits,
    metric: str = "valid_percent",
) -> Rows:
    """Return validity against the share of tasks with documentation: ``share_25/order`` (percent),
    for ``plots.curves``.

    The orders are those of ``looked_up``. For each, ``<metric without
    _percent>_above_random_points`` is its mean lead over random across all shares, paired.
    """
    first = passes.first
    rows = []
    valid = looked_up(passes, counts, shares, hits)
    for name, values in valid.items():
        names = [f"share_{100 * share:g}/{name}" for share in shares]
        rows += class_rows(first, names, {metric: values.clip(0, 1)}, {"": True})
    lead = metric.replace("percent", "above_random_points")
    for name in ("confidence", "frequency", "oracle"):
        above = (valid[name] - valid["random"]).mean(axis=1)
        rows += class_rows(first, name, {lead: above}, {"": True})
    return rows


def folds(clusters: Iterable[str], strata: Iterable[str], count: int, seed: int) -> np.ndarray:
    """Return (n,) fold numbers from 0: whole clusters, dealt out in the order of a seeded hash
    within each stratum.

    The result depends on the labels alone, not on their order. Each stratum continues where the one
    before stopped, so that the folds have equally many clusters. Raises UserError for fewer than
    two folds.
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
    hits: Hits,
    seed: int,
) -> Rows:
    """Return three ways to choose a threshold, judged on the same tasks.

    ``valid_percent`` of ``fixed/class``; of ``held_out/class``, with thresholds chosen on the other
    ``count - 1`` parts of the APIs; and of ``best_in_sample/class``, with the threshold chosen on
    the very tasks that it is judged on. Also the ``threshold`` of each (``held_out/fold_1`` ...)
    and paired ``valid_change_points``: best in sample - held out is the optimism, never below 0
    over all tasks; held out - fixed is the gain from choosing.
    """
    first = passes.first
    values = curve(passes, thresholds, hits)
    fold = folds(first.cluster, first.frequency, count, seed)
    at = best(values.mean(axis=0))
    chosen = np.array([best(values[fold != number].mean(axis=0)) for number in range(count)])
    ways = {
        "fixed": curve(passes, fixed, hits),
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
    """Return how often the answers given without documentation are wrong: ``risk_percent`` at
    ``coverage_50/order``.

    The most confident ``coverage`` of the tasks is answered; the rest would be looked up. Orders
    are as in ``share_rows``, but *ideal*, in place of *oracle*, puts all correct answers first. For
    confidence and frequency, there is also ``aurc``, the area under the curve.
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
