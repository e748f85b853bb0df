"""Computes estimates with 95% intervals, and turns them into rows of artifacts.

Tasks about the same API, from the same original problem or from the same repository tend to succeed
or fail together. The independent observations are therefore *clusters* of tasks, and not tasks. The
variance of every estimate is the jackknife variance over clusters. Student's t distribution widens
the interval if there are few clusters, if their sizes are uneven, or if a few clusters cause most
of the variance.

There are four kinds of intervals (``IntervalKind``): ``of_share`` for shares and scores,
``of_change`` for changes of shares, ``of_score_change`` for changes of scores, and ``of_number``
for numbers without bounds. A share is a mean of outcomes that are right or wrong (tasks solved,
dependencies covered). A score is any other number from 0 to 1 (BLEU, edit similarity, MRR, AUROC).
The notebook ``mini/interval_coverage`` simulates how often the intervals cover the true values.
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
# The jackknife computes at most this many leave-one-out samples at once, because its array of
# weights has a row of n weights for each sample.
LEFT_OUT_AT_ONCE = 1_000
# a variance below NOTHING is only a rounding error; TINY avoids division by 0
NOTHING, TINY = 1e-15, 1e-300

Array = NDArray[Any]
Rows = list[dict[str, Any]]  # rows of an artifact, as ``row`` makes them


@dataclass(frozen=True)
class Rate:
    """A number with its 95% interval, from ``low`` to ``high``. Shares are from 0 to 1.

    ``n`` is the number of values (tasks, tokens, pairs) from which the number was computed.
    ``clusters`` is the number of clusters that these values belong to.
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
    """The numbers from which an ``IntervalKind`` computes intervals. All arrays have the same
    shape, with one entry per statistic.

    ``variance`` is the variance of the statistic, and ``freedom`` its degrees of freedom.
    ``clusters`` and ``n`` are the numbers of clusters and of values behind each statistic.
    """

    value: Array
    variance: Array
    freedom: Array
    clusters: Array
    n: Array


# returns the lower and the upper ends of the intervals
IntervalKind = Callable[[Estimates], tuple[Array, Array]]


def of_share(estimates: Estimates) -> tuple[Array, Array]:
    """Return Clopper and Pearson's intervals of shares and scores (numbers from 0 to 1), for the
    effective sample size of Korn and Graubard (1998).

    The effective sample size is the number of independent observations that would give the same
    variance; if the variance is 0, it is the number of clusters. The effective sample size is
    reduced if the variance has few degrees of freedom.
    """
    # scipy.stats has the same functions, but takes a second to import
    from scipy.special import betainccinv, betaincinv, ndtri, stdtrit

    value = np.clip(estimates.value, 0, 1)
    effective = value * (1 - value) / np.maximum(estimates.variance, NOTHING)
    size = np.where(estimates.variance > NOTHING, effective, estimates.clusters)
    size = size * (ndtri(TAIL_PROBABILITY) / stdtrit(estimates.freedom, TAIL_PROBABILITY)) ** 2
    low = betaincinv(value * size, size - value * size + 1, TAIL_PROBABILITY)
    high = betainccinv(value * size + 1, size - value * size, TAIL_PROBABILITY)
    # SciPy returns NaN for the lower end of the value 0, and for the upper end of the value 1
    return np.nan_to_num(low, nan=0), np.nan_to_num(high, nan=1)


def of_change(estimates: Estimates) -> tuple[Array, Array]:
    """Return the intervals of differences of two shares.

    A term for one unseen change is added to the variance (in the spirit of Agresti and Min 2005).
    Without it, the variance of a few clusters that do not change would be 0, as if nothing could
    ever change.
    """
    unseen = 1 / ((estimates.n + 2) * (estimates.clusters + 2))
    return of_score_change(replace(estimates, variance=estimates.variance + unseen))


def of_score_change(estimates: Estimates) -> tuple[Array, Array]:
    """Return the intervals of differences of two scores. They are the intervals of ``of_number``,
    cut off at -1 and 1.

    Unlike ``of_change``, this function adds no term for an unseen change. The term stands for a
    further change from 0 to 1. In most tasks, scores change much less, so the term would dominate
    the variance.
    """
    low, high = of_number(estimates)
    return np.maximum(low, -1), np.minimum(high, 1)


def of_number(estimates: Estimates) -> tuple[Array, Array]:
    """Return Student's t intervals of numbers without bounds. If the variance is 0, the data do not
    show how much the number varies, so the ends of the interval are NaN. The variance is always 0
    for a single cluster.
    """
    # imported here, because the code that judges claims imports this module, but must not need
    # SciPy
    from scipy.special import stdtrit

    reach = -stdtrit(estimates.freedom, TAIL_PROBABILITY) * np.sqrt(estimates.variance)
    reach = np.where(estimates.variance > NOTHING, reach, nan)
    return estimates.value - reach, estimates.value + reach


def wilson(successes: float, n: int) -> tuple[float, float]:
    """Return Wilson's score interval for ``successes`` out of ``n`` independent trials. Without a
    trial, it goes from 0 to 1. Raises UserError if there are fewer than 0 or more than ``n``
    successes.
    """
    if successes < 0 or successes > n:
        raise UserError(f"{successes} successes in {n} trials: give from 0 to all of the trials")
    if n == 0:
        return 0.0, 1.0
    share, z2 = successes / n, NormalDist().inv_cdf(TAIL_PROBABILITY) ** 2
    centre, scale = share + z2 / (2 * n), 1 + z2 / n
    reach = sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n**2)))
    return max((centre - reach) / scale, 0.0), min((centre + reach) / scale, 1.0)


def averages(
    numerators: ArrayLike,
    clusters: ArrayLike,
    denominators: ArrayLike | None = None,
    kind: IntervalKind = of_number,
) -> list[Rate]:
    """Return m ratios with their intervals: for each column, the sum of ``numerators`` divided by
    the sum of ``denominators``. Both arrays are (n, m). By default all denominators are 1, so the
    ratio is the mean of the column.

    The ``n`` of a ratio is the sum of its denominators. If this sum is 0, the value is NaN.
    """
    numerators = np.asarray(numerators, dtype=float)
    denominators = np.asarray(
        np.ones_like(numerators) if denominators is None else denominators, dtype=float
    )
    part, whole = _by_cluster(clusters, numerators), _by_cluster(clusters, denominators)
    total, size = numerators.sum(axis=0), denominators.sum(axis=0)
    # to leave out a cluster, subtract its sums from both totals
    with np.errstate(divide="ignore", invalid="ignore"):
        return _numbers(kind, total / size, (total - part) / (size - whole), whole, size.round())


def jackknife(
    statistic: Callable[[Array], Array],
    clusters: ArrayLike,
    kind: IntervalKind | Sequence[IntervalKind] = of_number,
    wholes: ArrayLike | None = None,
) -> list[Rate]:
    """Return m smooth statistics of a sample of n values, with their jackknife intervals.

    - ``statistic`` is a function of weights (r, n), which say how often each value counts in each
      of r samples. It returns (r,), or (r, m) for m statistics. An undefined statistic is NaN.
    - ``clusters`` are (n,) labels of the values.
    - ``kind`` is one kind for all statistics, or a sequence with one kind for each.
    - ``wholes``, (n, m), say how much each value adds to the ``n`` of each statistic; by default 1.
    """
    labels, member = np.unique(np.asarray(clusters), return_inverse=True)
    value = np.atleast_1d(statistic(np.ones((1, len(member))))[0])
    left_out = (
        np.arange(start, min(start + LEFT_OUT_AT_ONCE, len(labels)))[:, None] != member
        for start in range(0, len(labels) or 1, LEFT_OUT_AT_ONCE)
    )
    without = np.concatenate([statistic(weights.astype(float)) for weights in left_out])
    wholes = np.ones((len(member), len(value))) if wholes is None else np.asarray(wholes)
    sizes = _by_cluster(member, wholes)
    return _numbers(kind, value, without.reshape(sizes.shape), sizes, sizes.sum(axis=0).round())


def _by_cluster(clusters: ArrayLike, values: Array) -> Array:
    """Return the sums of the (n, m) ``values`` in each of the c clusters, (c, m)."""
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
    """Return m statistics with their jackknife intervals.

    - ``values`` are the statistics of the whole sample, (m,).
    - ``without`` are the statistics of the sample without each of the c clusters, (c, m). They are
      NaN if nothing is left.
    - ``sizes`` are the weights of the clusters in each statistic, (c, m).
    - ``counts`` are the numbers of values behind the statistics, (m,).
    """
    is_known = (sizes > 0) & np.isfinite(without)
    clusters = (sizes > 0).sum(axis=0)
    left = is_known.sum(axis=0)
    without = np.where(is_known, without, nan)
    # the distance of each leave-one-out statistic from the mean of all of them
    deviations = without - np.nansum(without, axis=0) / np.maximum(left, 1)
    squares, fourths = (np.nansum(deviations**power, axis=0) for power in (2, 4))
    variance = squares * (clusters - 1) / np.maximum(clusters, 1)
    # The degrees of freedom are fewer if the clusters' sizes are uneven (Kish's effective number of
    # clusters), or if a few clusters cause most of the variance (a high kurtosis).
    even = sizes.sum(axis=0) ** 2 / np.maximum((sizes**2.0).sum(axis=0), TINY)
    kurtosis = left * fourths / np.maximum(squares**2, TINY)
    freedom = np.maximum(np.minimum(even - 1, 2 * left / np.maximum(kurtosis - 1, TINY)), 1)
    kinds = [kind] * len(values) if callable(kind) else kind
    estimates = Estimates(values, variance, freedom, clusters, counts)
    ends = {each: each(estimates) for each in set(kinds)}
    rates = []
    for at, value in enumerate(map(float, values)):
        low, high = (float(end[at]) for end in ends[kinds[at]])
        # rounding errors must not put a number outside its interval
        low, high = min(low, value), max(high, value)
        rates.append(Rate(value, low, high, int(counts[at]), int(clusters[at])))
    return rates


def known(values: ArrayLike) -> Array:
    """Return ``values`` as floats. Raises UserError if one is NaN: as a number, it would be higher
    than all confidences, and as a boolean, it would be true.
    """
    numbers = np.asarray(values, dtype=float)
    if missing := np.isnan(numbers).sum():
        raise UserError(f"{missing} of {numbers.size} values are NaN: leave these answers out")
    return numbers


def average(values: ArrayLike, clusters: ArrayLike) -> Rate:
    """Return the mean of (n,) numbers of any size, with its interval."""
    return averages(np.asarray(values)[:, None], clusters)[0]


def rate(values: ArrayLike, clusters: ArrayLike | None = None) -> Rate:
    """Return the mean of (n,) booleans or numbers from 0 to 1, with its interval. If ``clusters``
    is None, the values count as independent, and the interval is Wilson's.
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
    """Return the mean of ``second - first`` with its interval. Both are (n,) numbers from 0 to 1
    for the same tasks in the same order. By default every task is its own cluster. For scores,
    ``kind`` must be ``of_score_change``.
    """
    change = np.asarray(second, dtype=float) - np.asarray(first, dtype=float)
    clusters = np.arange(len(change)) if clusters is None else clusters
    return averages(change[:, None], clusters, kind=kind)[0]


def over_seeds(
    values: Array, clusters: ArrayLike, kind: IntervalKind = of_number, minus: Array | None = None
) -> Rate:
    """Return the mean of ``values`` with an interval that reflects the choice of both tasks and
    seeds. ``values`` has a row for each task, and a column for each seed with which the model was
    trained. ``minus`` has the same form, for another model. If ``minus`` is given, return the mean
    of ``values`` minus the mean of ``minus``.

    The variance is a sum:

    - The part for the tasks. Each task's values are averaged over the seeds. The part is the
      jackknife variance of the mean of these averages, over ``clusters`` of tasks.
    - A part for each model's seeds: the variance of the seeds' mean values, divided by the number
      of seeds. For a model that was trained with only one seed, this part is 0, so the interval
      does not reflect the choice of this seed.

    This is two-way clustering (Cameron, Gelbach and Miller 2011), except that the variance of the
    intersections of the two clusterings is not subtracted. The degrees of freedom are
    Satterthwaite's (1946).
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
    """Return ``first - second`` with an interval that is computed from the two intervals alone,
    because the individual values are not at hand.

    This is the square-and-add interval (Newcombe 1998, Zou and Donner 2008); for two Wilson
    intervals it is exactly Newcombe's. It assumes that the estimates are independent. For two
    conditions on the same tasks, whose outcomes usually agree, it is too wide rather than too
    narrow. The ``n`` of the result is the sum of both n.
    """
    value = first.value - second.value
    low = value - np.hypot(first.value - first.low, second.high - second.value)
    high = value + np.hypot(first.high - first.value, second.value - second.low)
    return Rate(value, float(low), float(high), first.n + second.n)


class McNemar(NamedTuple):
    """The result of McNemar's test: how many tasks are right only under the first condition, how
    many are right only under the second, and the exact two-sided p value.
    """

    only_first: int
    only_second: int
    p: float


def mcnemar(first: ArrayLike, second: ArrayLike) -> McNemar:
    """Return the result of McNemar's exact test. ``first`` and ``second`` are (n,) booleans: which
    tasks are right under each condition, in the same order of tasks. If the conditions agree on
    every task, p is 1. Raises UserError for NaN.
    """
    from scipy.special import bdtr  # the binomial distribution

    change = known(second) - known(first)
    lost = int((change < 0).sum())
    gained = int((change > 0).sum())
    p = min(2 * float(bdtr(min(lost, gained), lost + gained, 0.5)), 1.0)
    return McNemar(lost, gained, p)


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return pass@k of a problem with ``n`` samples, ``c`` of which passed: the probability that at
    least one of k samples passes.

    This is the unbiased estimator of Chen et al. (2021, Section 2.1), 1 - C(n-c, k) / C(n, k). Of
    all sets of k samples, it is the share that contains at least one sample that passed. Python's
    integers make it exact. Raises UserError for k > n, because n samples say nothing about larger
    sets, and for c < 0 and c > n.
    """
    if not (1 <= k <= n and 0 <= c <= n):
        raise UserError(
            f"pass@{k} needs 1 <= k <= n and 0 <= c <= n, and there are n = {n} samples, of which "
            f"c = {c} passed: draw more, or lower k"
        )
    return 1 - comb(n - c, k) / comb(n, k)
