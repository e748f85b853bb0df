"""Numbers with their 95% intervals, and the rows of the tidy schema that hold them.

Tasks about the same API (or origin problem, or repository) fail together, so they are resampled together: intervals
are percentile bootstraps over whole clusters, with one seed. Wilson's is for independent tasks.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb, inf, nan
from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from lookuplab.errors import UserError

REPETITIONS, LEVEL = 10_000, 0.95
CHUNK = 1_000  # resamples weighed at a time: bounds the memory to CHUNK x values numbers


@dataclass(frozen=True)
class Rate:
    """A number with its interval; ``n`` counts the values behind it (tasks, tokens, pairs). Shares are 0 to 1."""

    value: float
    low: float
    high: float
    n: int

    def percent(self) -> "Rate":
        """The same in percent, as the artifacts' ``*_percent`` metrics want it."""
        return Rate(100 * self.value, 100 * self.low, 100 * self.high, self.n)


def row(model: str, condition: str, metric: str, number: Rate) -> dict:
    """One number with its interval, as every artifact has it."""
    key = {"model": model, "condition": condition, "metric": metric, "value": number.value}
    return key | {"ci_low": number.low, "ci_high": number.high, "n": number.n}


def bare_row(model: str, condition: str, metric: str, value: float, n: int) -> dict:
    """A number without an interval (a count, a p value, a threshold)."""
    return row(model, condition, metric, Rate(float(value), nan, nan, n))


def wilson(successes: float, n: int) -> tuple[float, float]:
    """Wilson's score interval for ``successes`` out of ``n``; (0, 1) when nothing was observed."""
    if n == 0:
        return 0.0, 1.0
    low, high = proportion_confint(successes, n, alpha=1 - LEVEL, method="wilson")
    return float(max(low, 0.0)), float(min(high, 1.0))


@lru_cache(maxsize=8)
def _drawn(clusters: int, repetitions: int, seed: int) -> np.ndarray:
    """How often each cluster is in each resample, (repetitions, clusters). Rows of a table share them."""
    size = repetitions, clusters
    places = np.random.default_rng(seed).integers(clusters, size=size)
    places += clusters * np.arange(repetitions)[:, None]
    counts = np.bincount(places.ravel(), minlength=places.size)
    return counts.reshape(size).astype(np.uint16)


def resampled_weights(clusters, repetitions=REPETITIONS, seed=0) -> Iterator[np.ndarray]:
    """How often each of n values is in each resample of whole clusters, (at most CHUNK, n) at a time.

    clusters: (n,) labels, equal for values that belong together. The same for the same labels and seed.
    """
    labels, member = np.unique(np.asarray(clusters), return_inverse=True)
    for start in range(0, repetitions, CHUNK):
        counts = _drawn(len(labels), repetitions, seed)[start : start + CHUNK]
        yield counts.astype(float).take(member, axis=1)


def bootstrap(
    statistic: Callable, clusters, repetitions=REPETITIONS, seed=0, centred=False
) -> list[Rate]:
    """A statistic of the sample with its percentile interval over resamples of whole clusters.

    statistic: maps weights, (r, n) numbers of how often each value counts, to (r,) or, for m statistics on the same
    resamples, to (r, m). NaN where a resample has no value; such resamples are left out. Returns m numbers.
    centred: lower the interval by what resamples exceed the sample on average, for statistics that noise increases.
    """
    value = np.atleast_1d(statistic(np.ones((1, len(clusters))))[0])
    weights = resampled_weights(clusters, repetitions, seed)
    drawn = np.concatenate([statistic(some) for some in weights]).reshape(repetitions, -1)
    ends = np.nanquantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    if centred:
        ends -= np.nanmean(drawn, axis=0) - value
    return [Rate(*map(float, one), len(clusters)) for one in zip(value, *ends, strict=True)]


def averages(parts, clusters, wholes=None) -> list[Rate]:
    """Sum of each column of ``parts`` over that of ``wholes``, (n, m) each, on the same resamples.

    Without ``wholes`` the mean of each column. ``n`` is the sum of the wholes.
    """
    parts = np.asarray(parts, dtype=float)
    wholes = np.ones_like(parts) if wholes is None else np.asarray(wholes)
    labels, member = np.unique(np.asarray(clusters), return_inverse=True)
    # a resample is a vector of the clusters' weights, so all columns are one matrix product
    part, whole = (
        np.stack([np.bincount(member, column) for column in each.T], axis=1)
        for each in (parts, wholes)
    )
    drawn = bootstrap(lambda weights: weights @ part / np.maximum(weights @ whole, 1e-12), labels)
    sizes = [round(float(column.sum())) for column in wholes.T]
    found = zip(drawn, parts.sum(axis=0) / wholes.sum(axis=0), sizes, strict=True)
    return [Rate(float(value), one.low, one.high, n) for one, value, n in found]


def shares(parts, clusters, wholes) -> list[Rate]:
    """``averages`` from 0 to 1 that never claim certainty.

    If every cluster has the same share (all valid, say), every resample is equal; then the interval is Wilson's with
    the number of clusters as n, the independent observations that we have.
    """
    found = averages(parts, clusters, wholes)
    for at, number in enumerate(found):
        if number.high - number.low < 1e-12:
            independent = len(set(np.asarray(clusters)[wholes[:, at] > 0]))
            ends = wilson(number.value * independent, independent)
            found[at] = Rate(number.value, *ends, number.n)
    return found


def estimates(values, clusters) -> list[Rate]:
    """``shares`` of each column of ``values``, (n, m) from 0 to 1, in the n values."""
    values = np.asarray(values, dtype=float)
    if not len(values):
        return [Rate(nan, 0.0, 1.0, 0)] * values.shape[1]
    return shares(values, clusters, np.ones_like(values))


def average(values, clusters) -> Rate:
    """The mean of any numbers, (n,)."""
    return averages(np.asarray(values)[:, None], clusters)[0]


def rate(values, clusters=None) -> Rate:
    """``estimates`` of one column, (n,) booleans or numbers from 0 to 1; without ``clusters`` Wilson's interval."""
    values = np.asarray(values, dtype=float)
    if clusters is None and len(values):
        return Rate(float(values.mean()), *wilson(values.sum(), len(values)), len(values))
    return estimates(values[:, None], clusters)[0]


def pass_at_k(n: int, c: int, k: int) -> float:
    """pass@k of one problem of whose ``n`` samples ``c`` passed: the chance that one of k samples passes.

    The unbiased form of Chen et al. (2021, Section 2.1) from all n samples, 1 - C(n-c, k) / C(n, k): the share of the
    sets of k samples that hold a pass. Exact, since Python's integers are. Raises UserError for k > n: fewer samples
    say nothing about more.
    """
    if not 1 <= k <= n:
        raise UserError(
            f"pass@{k} needs 1 <= k <= n, and there are n = {n} samples: draw more, or ask for a smaller k"
        )
    return 1 - comb(n - c, k) / comb(n, k)


def perplexity(logprobs: Sequence[Sequence[float]], clusters) -> Rate:
    """exp of the mean negative log-probability over all tokens (CloudAPIBench, Figure 1 right).

    logprobs: one sequence of natural-log token probabilities per continuation. clusters: one label per continuation.
    ``n`` is the tokens. From a single cluster nothing is known about the spread: the interval is then (1, inf).
    """
    flat = -np.concatenate(logprobs)
    labels = np.repeat(np.asarray(clusters), [len(one) for one in logprobs])
    if len(set(clusters)) == 1:
        return Rate(float(np.exp(flat.mean())), 1.0, inf, len(flat))
    return bootstrap(lambda weights: np.exp(weights @ flat / weights.sum(axis=1)), labels)[0]


def paired_difference(first, second, clusters=None) -> Rate:
    """Mean of ``second - first``, (n,) each on the same ids; by default every id is its own cluster."""
    change = np.asarray(second, dtype=float) - np.asarray(first, dtype=float)
    return average(change, np.arange(len(change)) if clusters is None else clusters)


def difference(first: Rate, second: Rate) -> Rate:
    """``first - second`` of two estimates whose single values are gone, from their intervals alone.

    The square-and-add interval (Newcombe 1998, Zou and Donner 2008): exact Newcombe for two Wilson intervals. It
    assumes independent estimates; for two conditions on the same tasks, which usually agree, it is too wide rather than
    too narrow. ``n`` is the total.
    """
    value = first.value - second.value
    low = value - np.hypot(first.value - first.low, second.high - second.value)
    high = value + np.hypot(first.high - first.value, second.value - second.low)
    return Rate(value, float(low), float(high), first.n + second.n)


class McNemar(NamedTuple):
    """Discordant counts (true under the first only, under the second only) and the exact two-sided p value."""

    only_first: int
    only_second: int
    p: float


def mcnemar(first, second) -> McNemar:
    """Exact McNemar test of two (n,) boolean arrays in the same order of ids; p is 1 when nothing changed."""
    change = np.asarray(second, dtype=int) - np.asarray(first, dtype=int)
    lost, gained = int((change < 0).sum()), int((change > 0).sum())
    p = float(binomtest(lost, lost + gained).pvalue) if lost + gained else 1.0
    return McNemar(lost, gained, p)


def holm(p_values) -> np.ndarray:
    """Holm's adjusted p values, (m,) in the order given, for the m comparisons of one figure."""
    return multipletests(p_values, method="holm")[1] if len(p_values) else np.array([])
