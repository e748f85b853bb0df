"""One rate and its 95% interval: Wilson for independent tasks, a seeded percentile bootstrap over clusters otherwise.

Tasks about the same API (or origin problem, or repository) fail together, so they are resampled together.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from statsmodels.stats.proportion import proportion_confint

REPETITIONS = 10_000
_CHUNK = 1_000  # repetitions drawn at a time: bounds the memory to _CHUNK x clusters numbers
_FEW = 500  # clusters whose draws are kept: 10 MB


@dataclass(frozen=True)
class Rate:
    """A number with its interval; ``n`` counts the values behind it (tasks, tokens, pairs). Shares are 0 to 1."""

    value: float
    low: float
    high: float
    n: int

    def percent(self) -> "Rate":
        """The same in percent, as the artifacts' ``*_percent`` metrics want it."""
        return replace(self, value=100 * self.value, low=100 * self.low, high=100 * self.high)


def wilson(successes: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for ``successes`` out of ``n``; (0, 1) when nothing was observed."""
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    if n == 0:
        return 0.0, 1.0
    low, high = proportion_confint(successes, n, alpha=1 - level, method="wilson")
    return float(max(low, 0.0)), float(min(high, 1.0))


def mean(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The default statistic, over all values: ``sums`` and ``counts`` are the resamples' totals, (repetitions,)."""
    return sums / counts


def cluster_bootstrap(
    values, clusters, statistic=mean, repetitions=REPETITIONS, seed=0, level=0.95
) -> tuple[float, float]:
    """Percentile interval of a statistic when whole clusters are drawn with replacement.

    values: (n,) numbers; clusters: (n,) labels, equal for values that belong together.
    statistic: maps the resamples' totals and counts, each (repetitions,), to (repetitions,): any function of a mean.
    Depends on the set of (value, cluster) pairs and the seed, not on their order.
    """
    sums, counts = _totals(values, clusters)
    drawn = [statistic(weights @ sums, weights @ counts) for weights in _weights(len(sums), repetitions, seed)]
    low, high = np.quantile(np.concatenate(drawn), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def resampled_weights(clusters, repetitions=REPETITIONS, seed=0) -> Iterator[np.ndarray]:
    """How often each value stands in each resample, (some repetitions, n) at a time: ``cluster_bootstrap``'s resamples.

    For statistics that are no function of a mean: they take weights.
    """
    labels, member = np.unique(np.asarray(clusters), return_inverse=True)
    for weights in _weights(len(labels), repetitions, seed):
        yield weights[:, member]


def _weights(clusters: int, repetitions: int, seed: int) -> Iterator[np.ndarray]:
    """How often each cluster is drawn, (at most _CHUNK, clusters): the same for the same number of clusters and seed."""
    drawn = _kept if clusters <= _FEW else _drawn
    return (counts.astype(float) for counts in drawn(clusters, repetitions, seed))


def _drawn(clusters: int, repetitions: int, seed: int) -> Iterator[np.ndarray]:
    generator = np.random.default_rng(seed)
    for start in range(0, repetitions, _CHUNK):
        size = min(_CHUNK, repetitions - start), clusters
        places = generator.integers(clusters, size=size) + clusters * np.arange(size[0])[:, None]
        yield np.bincount(places.ravel(), minlength=places.size).reshape(size).astype(np.uint16)


@lru_cache(maxsize=16)
def _kept(clusters: int, repetitions: int, seed: int) -> list[np.ndarray]:
    """All rows of a table have the same few numbers of clusters, so they draw once."""
    return list(_drawn(clusters, repetitions, seed))


def rate(values, clusters=None, repetitions=REPETITIONS, seed=0, level=0.95) -> Rate:
    """The share of true values, with Wilson's interval, or the clustered bootstrap's when ``clusters`` is given.

    values: (n,) booleans or 0/1. If every cluster has the same rate (all valid, say), every resample is equal and the
    bootstrap would claim certainty; then the interval is Wilson's with the number of clusters as n, the independent
    observations that we have.
    """
    values = np.asarray(values, dtype=float)
    if not np.isin(values, (0, 1)).all():
        raise ValueError("a rate needs values that are 0 or 1")
    if not len(values):
        return Rate(float("nan"), 0.0, 1.0, 0)
    share = float(values.mean())
    if clusters is None:
        return Rate(share, *wilson(values.sum(), len(values), level), len(values))
    sums, counts = _totals(values, clusters)
    if np.ptp(sums / counts) == 0:
        return Rate(share, *wilson(share * len(sums), len(sums), level), len(values))
    return Rate(share, *cluster_bootstrap(values, clusters, mean, repetitions, seed, level), len(values))


def estimate(values, clusters, repetitions=REPETITIONS, seed=0, level=0.95) -> Rate:
    """``rate`` for values that may lie between 0 and 1, such as the expectation over a retriever's hits.

    values: (n,) numbers from 0 to 1; clusters: (n,) labels. The same as ``rate`` where all values are 0 or 1.
    """
    return estimates(np.asarray(values, dtype=float).reshape(-1, 1), clusters, repetitions, seed, level)[0]


def estimates(values, clusters, repetitions=REPETITIONS, seed=0, level=0.95) -> list[Rate]:
    """``estimate`` of each column of ``values``, (n, m), all on the same resamples: a curve over m settings."""
    values = np.asarray(values, dtype=float)
    if values.ndim != 2 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError("an estimate needs values from 0 to 1, a column for each setting")
    if not len(values):
        return [Rate(float("nan"), 0.0, 1.0, 0)] * values.shape[1]
    independent = len(np.unique(np.asarray(clusters)))

    def certain(found: Rate) -> Rate:  # every resample is equal, see ``rate``
        low, high = wilson(found.value * independent, independent, level)
        return replace(found, low=low, high=high)

    return [certain(found) if found.high - found.low < 1e-12 else found
            for found in averages(values, clusters, repetitions, seed, level)]


def average(values, clusters, repetitions=REPETITIONS, seed=0, level=0.95) -> Rate:
    """The mean of any (n,) numbers, such as tokens, with a clustered bootstrap interval."""
    return averages(np.asarray(values, dtype=float).reshape(-1, 1), clusters, repetitions, seed, level)[0]


def averages(values, clusters, repetitions=REPETITIONS, seed=0, level=0.95) -> list[Rate]:
    """``average`` of each column of ``values``, (n, m), all on the same resamples.

    As exact as m calls and far faster: each resample is a vector of weights, and all columns are one matrix product.
    """
    values = np.asarray(values, dtype=float)
    totals = [_totals(column, clusters) for column in values.T]
    sums, counts = np.array([sums for sums, _ in totals]).T, totals[0][1]
    drawn = [weights @ sums / (weights @ counts)[:, None] for weights in _weights(len(counts), repetitions, seed)]
    lows, highs = np.quantile(np.concatenate(drawn), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return [Rate(float(value), float(low), float(high), len(values))
            for value, low, high in zip(values.mean(axis=0), lows, highs, strict=True)]


def _totals(values, clusters) -> tuple[np.ndarray, np.ndarray]:
    """Per-cluster sum and count, in the order of the sorted labels."""
    values, clusters = np.asarray(values, dtype=float), np.asarray(clusters)
    if values.ndim != 1 or len(values) != len(clusters) or not len(values):
        raise ValueError(f"need as many clusters as values and at least one: {values.shape}, {clusters.shape}")
    _, member = np.unique(clusters, return_inverse=True)
    return np.bincount(member, weights=values), np.bincount(member).astype(float)


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
