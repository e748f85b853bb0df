"""Numbers with their 95% intervals, and the rows of the tidy schema that hold them.

Tasks about the same API (or origin problem, or repository) fail together, so they are resampled together: intervals
are percentile bootstraps over whole clusters, with one seed. Wilson's is for independent tasks.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests
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


def row(model: str, condition: str, metric: str, number: Rate) -> dict:
    """One number with its interval, as every artifact has it."""
    interval = {"ci_low": number.low, "ci_high": number.high, "n": number.n}
    return {
        "model": model,
        "condition": condition,
        "metric": metric,
        "value": number.value,
    } | interval


def bare_row(model: str, condition: str, metric: str, value: float, n: int) -> dict:
    """A number without an interval (a count, a p value, a threshold)."""
    return row(model, condition, metric, Rate(float(value), float("nan"), float("nan"), n))


def wilson(successes: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for ``successes`` out of ``n``; (0, 1) when nothing was observed."""
    if n == 0:
        return 0.0, 1.0
    low, high = proportion_confint(successes, n, alpha=1 - level, method="wilson")
    return float(max(low, 0.0)), float(min(high, 1.0))


def resampled_weights(clusters, repetitions=REPETITIONS, seed=0) -> Iterator[np.ndarray]:
    """How often each of n values stands in each resample of whole clusters, (some repetitions, n) at a time.

    clusters: (n,) labels, equal for values that belong together. The same for the same labels and seed.
    """
    labels, member = np.unique(np.asarray(clusters), return_inverse=True)
    drawn = _kept if len(labels) <= _FEW else _drawn
    apart = np.array_equal(member, np.arange(len(labels)))  # nothing to deal out
    for counts in drawn(len(labels), repetitions, seed):
        yield counts.astype(float) if apart else counts.astype(float)[:, member]


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


def bootstrap(
    statistic: Callable[[np.ndarray], np.ndarray],
    clusters,
    repetitions=REPETITIONS,
    seed=0,
    level=0.95,
    centred=False,
) -> list[Rate]:
    """A statistic of the sample with its percentile interval over resamples of whole clusters.

    statistic: maps weights, (r, n) numbers of how often each value counts, to (r,) or, for m statistics on the same
    resamples, to (r, m). NaN where a resample has no value; such resamples are left out. Returns m numbers.
    centred: lower the interval by what resamples exceed the sample on average, for statistics that noise increases.
    """
    value = np.atleast_1d(statistic(np.ones((1, len(clusters))))[0])
    drawn = np.concatenate(
        [statistic(weights) for weights in resampled_weights(clusters, repetitions, seed)]
    )
    drawn = drawn.reshape(len(drawn), -1)
    ends = np.nanquantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    if centred:
        ends = ends - (np.nanmean(drawn, axis=0) - value)
    return [Rate(*map(float, one), len(clusters)) for one in zip(value, *ends, strict=True)]


def ratios(parts, wholes, clusters, **options) -> list[Rate]:
    """Sum over sum of each column of ``parts`` and ``wholes``, (n, m) numbers each, on the same resamples.

    ``n`` is the sum of the wholes. Options of ``bootstrap``. Each resample is a vector of clusters' weights, so all
    columns are one matrix product.
    """
    labels, member = np.unique(np.asarray(clusters), return_inverse=True)
    part, whole = (
        np.stack([np.bincount(member, column) for column in each.T], axis=1)
        for each in (parts, wholes)
    )
    drawn = bootstrap(
        lambda weights: weights @ part / np.maximum(weights @ whole, 1e-12), labels, **options
    )
    sizes = [round(float(each.sum())) for each in wholes.T]
    found = zip(drawn, parts.sum(axis=0) / wholes.sum(axis=0), sizes, strict=True)
    return [replace(number, value=float(value), n=n) for number, value, n in found]


def shares(parts, wholes, clusters, **options) -> list[Rate]:
    """``ratios`` from 0 to 1 that never claim certainty.

    If every cluster has the same share (all valid, say), every resample is equal; then the interval is Wilson's with
    the number of clusters as n, the independent observations that we have.
    """
    found = ratios(parts, wholes, clusters, **options)
    for at, number in enumerate(found):
        if number.high - number.low < 1e-12:
            independent = len(set(np.asarray(clusters)[wholes[:, at] > 0]))
            low, high = wilson(number.value * independent, independent)
            found[at] = replace(number, low=low, high=high)
    return found


def estimates(values, clusters, **options) -> list[Rate]:
    """``shares`` of each column of ``values``, (n, m) from 0 to 1, in the n values."""
    values = np.asarray(values, dtype=float)
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("a rate needs values from 0 to 1")
    if not len(values):
        return [Rate(float("nan"), 0.0, 1.0, 0)] * values.shape[1]
    return shares(values, np.ones_like(values), clusters, **options)


def averages(values, clusters, **options) -> list[Rate]:
    """The mean of each column of ``values``, (n, m) any numbers; as ``ratios``."""
    values = np.asarray(values, dtype=float)
    return ratios(values, np.ones_like(values), clusters, **options)


def average(values, clusters, **options) -> Rate:
    """``averages`` of one column, (n,)."""
    return averages(np.asarray(values, dtype=float)[:, None], clusters, **options)[0]


def rate(values, clusters=None, **options) -> Rate:
    """``estimates`` of one column, (n,) booleans or numbers from 0 to 1; without ``clusters`` Wilson's interval."""
    values = np.asarray(values, dtype=float)
    if clusters is None and len(values):
        return Rate(float(values.mean()), *wilson(values.sum(), len(values)), len(values))
    return estimates(values[:, None], clusters, **options)[0]


def perplexity(logprobs: Sequence[Sequence[float]], clusters) -> Rate:
    """exp of the mean negative log-probability over all tokens (CloudAPIBench, Figure 1 right).

    logprobs: one sequence of natural-log token probabilities per continuation. clusters: one label per continuation.
    ``n`` is the tokens. From a single cluster nothing is known about the spread: the interval is then (1, inf).
    """
    flat = -np.concatenate(logprobs)
    labels = np.repeat(np.asarray(clusters), [len(one) for one in logprobs])
    if len(set(clusters)) == 1:
        return Rate(float(np.exp(flat.mean())), 1.0, float("inf"), len(flat))
    return bootstrap(lambda weights: np.exp(weights @ flat / weights.sum(axis=1)), labels)[0]


def paired_difference(first, second, clusters=None, **options) -> Rate:
    """Mean of ``second - first``, (n,) each on the same ids; by default every id is its own cluster."""
    change = np.asarray(second, dtype=float) - np.asarray(first, dtype=float)
    return average(change, np.arange(len(change)) if clusters is None else clusters, **options)


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
    first, second = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    changed = only_first + only_second
    return McNemar(
        only_first, only_second, float(binomtest(only_first, changed).pvalue) if changed else 1.0
    )


def holm(p_values) -> np.ndarray:
    """Holm's adjusted p values, (m,) in the order given, for the m comparisons of one figure."""
    return multipletests(p_values, method="holm")[1] if len(p_values) else np.array([])
