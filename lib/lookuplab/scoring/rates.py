"""Computes numbers with their 95% intervals, and makes the rows that hold them.

Tasks about the same API (or origin problem, or repository) succeed and fail together, so whole
*clusters* are the independent observations. The variance of every number is the jackknife variance
over clusters. Student's t widens the interval if clusters are few or uneven, or if few of them
cause most of the variance.

There are four kinds of intervals (``IntervalKind``): for shares and scores (Korn and Graubard
1998), for changes of shares, for changes of scores, and for unbounded numbers. A share counts
outcomes that are right or wrong (tasks solved, dependencies covered). A score is any other number
from 0 to 1 (BLEU, edit similarity, MRR, AUROC). The notebook ``mini/interval_coverage`` simulates
how often the intervals cover the truth.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import comb, nan, sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookuplab.errors import UserError

LEVEL = 0.95
TAIL_PROBABILITY = (1 - LEVEL) / 2
# the jackknife computes this many leave-one-out samples at once, so that its array of weights is at
# most this many times as large as the sample
LEFT_OUT_AT_ONCE = 1_000
# a variance below NOTHING is a rounding error; TINY avoids division by 0
NOTHING, TINY = 1e-15, 1e-300

Array = NDArray[Any]


@dataclass(frozen=True)
class Rate:
    """A number with its 95% interval. Shares are from 0 to 1.

    ``n`` is how many values the number is computed from (tasks, tokens, pairs), ``clusters`` how
    many independent observations are among these values.
    """

    value: float
    low: float
    high: float
    n: int
    clusters: float = nan

    def percent(self) -> "Rate":
        """Return the same number in percent, for metrics whose name ends in ``_percent``."""
        return replace(self, value=100 * self.value, low=100 * self.low, high=100 * self.high)


def row(model: str, condition: str, metric: str, number: Rate) -> dict[str, Any]:
    """Return one number with its interval, as a row of an artifact."""
    return {
        "model": model,
        "condition": condition,
        "metric": metric,
        "value": number.value,
        "ci_low": number.low,
        "ci_high": number.high,
        "n": number.n,
        "clusters": number.clusters,
    }


def bare_row(model: str, condition: str, metric: str, value: float, n: int) -> dict[str, Any]:
    """Return a row for a number without an interval (a count, a p value, a threshold)."""
    return row(model, condition, metric, Rate(float(value), nan, nan, n))


@dataclass(frozen=True)
class Estimates:
    """The input of an interval: arrays of one shape, with one entry per statistic.

    ``freedom`` are the degrees of freedom of the ``variance``. ``clusters`` and ``n`` are the
    numbers of clusters and of values from which each statistic is computed.
    """

    value: Array
    variance: Array
    freedom: Array
    clusters: Array
    n: Array


IntervalKind = Callable[
    [Estimates], tuple[Array, Array]
]  # the lower and the upper ends of the intervals


def of_share(estimates: Estimates) -> tuple[Array, Array]:
    """Return the intervals of shares and scores, which lie from 0 to 1: Clopper and Pearson's (Korn
    and Graubard 1998).

    Each is computed for the number of independent observations that would have this variance. If
    clusters do not differ at all, that number is the number of clusters.
    """
    # scipy.stats has the same functions, but takes a second to import
    from scipy.special import betainccinv, betaincinv, ndtri, stdtrit

    value = np.clip(estimates.value, 0, 1)
    effective = value * (1 - value) / np.maximum(estimates.variance, NOTHING)
    size = np.where(estimates.variance > NOTHING, effective, estimates.clusters)
    size = size * (ndtri(TAIL_PROBABILITY) / stdtrit(estimates.freedom, TAIL_PROBABILITY)) ** 2
    low = betaincinv(value * size, size - value * size + 1, TAIL_PROBABILITY)
    high = betainccinv(value * size + 1, size - value * size, TAIL_PROBABILITY)
    return np.nan_to_num(low, nan=0), np.nan_to_num(high, nan=1)  # for values of 0 and 1


def of_change(estimates: Estimates) -> tuple[Array, Array]:
    """Return the intervals of differences of two shares.

    A term for one unseen change is added to the variance: a few clusters without any change do not
    show that nothing ever changes (in the spirit of Agresti and Min 2005).
    """
    unseen = 1 / ((estimates.n + 2) * (estimates.clusters + 2))
    return of_score_change(replace(estimates, variance=estimates.variance + unseen))


def of_score_change(estimates: Estimates) -> tuple[Array, Array]:
    """Return the intervals of differences of two scores: ``of_number``, cut off at -1 and 1.

    No term for an unseen change is added, unlike in ``of_change``. Scores change a little in most
    tasks, so one more change from 0 to 1 would dominate their variance.
    """
    low, high = of_number(estimates)
    return np.maximum(low, -1), np.minimum(high, 1)


def of_number(estimates: Estimates) -> tuple[Array, Array]:
    """Return Student's t intervals of any numbers. They are NaN if nothing varied or there is a
    single cluster, because nothing is then known.
    """
    from scipy.special import stdtrit  # here, so that pages about finished runs need not wait

    reach = -stdtrit(estimates.freedom, TAIL_PROBABILITY) * np.sqrt(estimates.variance)
    reach = np.where(estimates.variance > NOTHING, reach, nan)
    return estimates.value - reach, estimates.value + reach


def wilson(successes: float, n: int) -> tuple[float, float]:
    """Return Wilson's score interval for ``successes`` out of ``n`` independent trials."""
    share, z2 = successes / n, NormalDist().inv_cdf(TAIL_PROBABILITY) ** 2
    centre, scale = share + z2 / (2 * n), 1 + z2 / n
    reach = sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n**2)))
    return max((centre - reach) / scale, 0.0), min((centre + reach) / scale, 1.0)


def averages(
    parts: ArrayLike,
    clusters: ArrayLike,
    wholes: ArrayLike | None = None,
    kind: IntervalKind = of_number,
) -> list[Rate]:
    """Return, for each column, the sum of ``parts`` divided by the sum of ``wholes``. Both are (n,
    m). By default the wholes are 1, so the result is the mean of each column.

    A result's ``n`` is the sum of its wholes; if it is 0, the value is NaN.
    """
    parts = np.asarray(parts, dtype=float)
    wholes = np.ones_like(parts) if wholes is None else np.asarray(wholes, dtype=float)
    part, whole = _by_cluster(clusters, parts), _by_cluster(clusters, wholes)
    total, size = parts.sum(axis=0), wholes.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _numbers(kind, total / size, (total - part) / (size - whole), whole, size.round())


def jackknife(
    statistic: Callable[[Array], Array],
    clusters: ArrayLike,
    kind: IntervalKind | Sequence[IntervalKind] = of_number,
    wholes: ArrayLike | None = None,
) -> list[Rate]:
    """Return m smooth statistics of the sample with their jackknife intervals.

    statistic: a function of weights, (r, n), which say how often each value counts in each of r
    samples. It returns (r,) or, for m statistics, (r, m). An undefined statistic is NaN.
    wholes: (n, m), how much each value adds to the ``n`` of each statistic, by default 1. kind: one
    kind for all statistics, or a sequence of one kind per statistic.
    """
    labels, member = np.unique(np.asarray(clusters), return_inverse=True)
    value = np.atleast_1d(statistic(np.ones((1, len(member))))[0])
    left_out = (
        np.arange(start, min(start + LEFT_OUT_AT_ONCE, len(labels)))[:, None] != member
        for start in range(0, len(labels), LEFT_OUT_AT_ONCE)
    )
    without = np.concatenate([statistic(weights.astype(float)) for weights in left_out])
    wholes = np.ones((len(member), len(value))) if wholes is None else np.asarray(wholes)
    sizes = _by_cluster(member, wholes)
    return _numbers(kind, value, without.reshape(len(labels), -1), sizes, sizes.sum(axis=0).round())


def _by_cluster(clusters: ArrayLike, values: Array) -> Array:
    """Return the sums of (n, m) values within each of the c clusters, (c, m)."""
    labels, member = np.unique(np.asarray(clusters), return_inverse=True)
    sums = np.zeros((len(labels), values.shape[1]))
    np.add.at(sums, member, values)
    return sums


def _numbers(
    kind: IntervalKind | Sequence[IntervalKind],
    values: Array,
    without: Array,
    sizes: Array,
    counts: Array,
) -> list[Rate]:
    """Return statistics with their jackknife intervals.

    values: (m,) statistics. without: (c, m) the same statistics without each of the c clusters, NaN
    if nothing is left. sizes: (c, m) the weight of each cluster. counts: (m,) the n of each
    statistic.
    """
    is_known = (sizes > 0) & np.isfinite(without)
    clusters = (sizes > 0).sum(axis=0)
    left = is_known.sum(axis=0)
    without = np.where(is_known, without, nan)
    apart = without - np.nansum(without, axis=0) / np.maximum(left, 1)
    squares, fourths = (np.nansum(apart**power, axis=0) for power in (2, 4))
    variance = squares * (clusters - 1) / np.maximum(clusters, 1)
    # Degrees of freedom: fewer if clusters are uneven (Kish), or if a few of them make up most of
    # the variance (kurtosis).
    even = sizes.sum(axis=0) ** 2 / np.maximum((sizes**2.0).sum(axis=0), TINY)
    kurtosis = left * fourths / np.maximum(squares**2, TINY)
    freedom = np.maximum(np.minimum(even - 1, 2 * left / np.maximum(kurtosis - 1, TINY)), 1)
    kinds = [kind] * len(values) if callable(kind) else kind
    estimates = Estimates(values, variance, freedom, clusters, counts)
    ends = {each: each(estimates) for each in set(kinds)}
    rates = []
    for at, value in enumerate(map(float, values)):
        low, high = (float(end[at]) for end in ends[kinds[at]])
        # rounding must not put a number outside its interval
        low, high = min(low, value), max(high, value)
        rates.append(Rate(value, low, high, int(counts[at]), int(clusters[at])))
    return rates


def average(values: ArrayLike, clusters: ArrayLike) -> Rate:
    """Return the mean of (n,) unbounded numbers with its interval."""
    return averages(np.asarray(values)[:, None], clusters)[0]


def rate(values: ArrayLike, clusters: ArrayLike | None = None) -> Rate:
    """Return the mean of (n,) booleans or numbers from 0 to 1, with its interval. If ``clusters``
    is None, this is Wilson's interval.
    """
    values = np.asarray(values, dtype=float)
    n = len(values)
    if clusters is None and n:
        return Rate(float(values.mean()), *wilson(values.sum(), n), n, n)
    return averages(values[:, None], [] if clusters is None else clusters, kind=of_share)[0]


def paired_difference(
    first: ArrayLike,
    second: ArrayLike,
    clusters: ArrayLike | None = None,
    kind: IntervalKind = of_change,
) -> Rate:
    """Return the mean of ``second - first``, (n,) each from 0 to 1 for the same tasks. By default
    every task is its own cluster. ``kind`` is ``of_score_change`` for scores.
    """
    change = np.asarray(second, dtype=float) - np.asarray(first, dtype=float)
    clusters = np.arange(len(change)) if clusters is None else clusters
    return averages(change[:, None], clusters, kind=kind)[0]


def over_seeds(
    values: Array, clusters: ArrayLike, kind: IntervalKind = of_number, minus: Array | None = None
) -> Rate:
    """Return the mean of ``values``, (tasks, seeds of training), with an interval over both tasks
    and seeds. With ``minus``, (tasks, seeds of another model), return the difference of both means.

    The variance is the sum of a part for tasks and a part for each model's seeds. The part for
    tasks is the jackknife variance, over ``clusters`` of tasks, of each task's mean over seeds. The
    part for seeds is the variance of the seeds' means, divided by the number of seeds; for a model
    with one seed it is 0, so the interval does not cover the luck of its training. This is two-way
    clustering (Cameron, Gelbach and Miller 2011) without the subtraction of the common part. The
    degrees of freedom are Satterthwaite's (1946).
    """
    models = [values] if minus is None else [values, minus]
    means = [of_model.mean(axis=0) for of_model in models if of_model.shape[1] > 1]
    between = [of_seeds.var(ddof=1) / len(of_seeds) for of_seeds in means]

    def both(within: Estimates) -> tuple[Array, Array]:
        variance = within.variance + sum(between)
        parts = within.variance**2 / within.freedom
        for one, of_seeds in zip(between, means, strict=True):
            parts = parts + one**2 / (len(of_seeds) - 1)
        freedom = np.where(variance > NOTHING, variance**2 / np.maximum(parts, NOTHING**2), 1)
        return kind(replace(within, variance=variance, freedom=freedom))

    each = values.mean(axis=1) - (0 if minus is None else minus.mean(axis=1))
    return averages(each[:, None], clusters, kind=both)[0]


def difference(first: Rate, second: Rate) -> Rate:
    """Return ``first - second`` of two estimates, computed from their intervals alone, without the
    individual values.

    This is the square-and-add interval (Newcombe 1998, Zou and Donner 2008); for two Wilson
    intervals it is exactly Newcombe's. It assumes independent estimates. For two conditions on the
    same tasks, which usually agree, it is too wide rather than too narrow. ``n`` is the total.
    """
    value = first.value - second.value
    low = value - np.hypot(first.value - first.low, second.high - second.value)
    high = value + np.hypot(first.high - first.value, second.value - second.low)
    return Rate(value, float(low), float(high), first.n + second.n)


class McNemar(NamedTuple):
    """The number of tasks that are true only under the first condition, the number that are true
    only under the second, and the exact two-sided p value.
    """

    only_first: int
    only_second: int
    p: float


def mcnemar(first: ArrayLike, second: ArrayLike) -> McNemar:
    """Return the exact McNemar test of two (n,) boolean arrays in the same order of tasks; p is 1
    if nothing changed.
    """
    from scipy.special import bdtr  # the binomial distribution

    change = np.asarray(second, dtype=int) - np.asarray(first, dtype=int)
    lost = int((change < 0).sum())
    gained = int((change > 0).sum())
    p = min(2 * float(bdtr(min(lost, gained), lost + gained, 0.5)), 1.0)
    return McNemar(lost, gained, p)


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return pass@k of a problem with ``n`` samples, ``c`` of which passed: the probability that at
    least one of k samples passes.

    This is the unbiased estimator of Chen et al. (2021, Section 2.1), 1 - C(n-c, k) / C(n, k): the
    share of the sets of k samples that contain a pass. It is computed exactly, with Python's
    integers. Raises UserError for k > n, because n samples say nothing about more.
    """
    if not 1 <= k <= n:
        raise UserError(
            f"pass@{k} needs 1 <= k <= n, and there are n = {n} samples: draw more, or lower k"
        )
    return 1 - comb(n - c, k) / comb(n, k)
