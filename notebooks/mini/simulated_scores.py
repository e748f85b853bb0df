"""Simulates scores that are not shares, and counts how often their intervals contain the true value
(interval_coverage.ipynb). Each score is simulated under two conditions, for the same functions or
queries.

A sampler has three arguments: ``sizes``, of shape (clusters,), is the number of functions in each
cluster; ``draws`` is the number of draws; ``correlation`` is the part of the variance that lies
between clusters. A sampler returns the counts from which the score is computed, summed over the
functions of each cluster, in the shape (draws, clusters, condition, count).
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.random import Generator

from lookuplab.scoring.rates import Array, IntervalKind, Rows, bare_row, jackknife, rate, row
from lookuplab.toolgen.similarity import bleu
from lookuplab_notebooks.toolgen.table_rows import ratio

# possible reciprocal ranks of the right document, with 0 if it is not found
RANKS = np.array([1, 1 / 2, 1 / 3, 1 / 5, 1 / 10, 0])
FOUND = np.array([0.1, 0.05, 0.05, 0.05, 0.05, 0.7])  # the probability of each of these ranks
# MATCHES are the shares of a generated function's n-grams, for n from 1 to 4, that the original
# function also has. LENGTHS are the lengths of generated functions divided by those of the
# originals. Of each pair, the first is without the tool, the second with it. The numbers are close
# to those of the mini models.
MATCHES = ((0.30, 0.12, 0.05, 0.03), (0.33, 0.14, 0.06, 0.035))
LENGTHS = (0.84, 0.70)


def edit_similarities(generator: Generator, sizes: Array, draws: int, correlation: float) -> Array:
    """Sample scores with mean 0.4 and standard deviation 0.2. Under the second condition, half of
    the scores are drawn again, with a mean that is 0.04 higher on average and differs between
    clusters.
    """
    between = correlation * 0.04
    shape = (draws, len(sizes))
    middle = _beta(generator, np.full(shape, 0.4), between)
    gain = np.full(shape, 0.04)
    gain += generator.normal(0, between**0.5, shape)
    middle, gain = (values.repeat(sizes, axis=1) for values in (middle, gain))
    first, other = (_beta(generator, middle, 0.04 - between) for _ in range(2))
    second = np.where(generator.random(first.shape) < 0.5, first, other + gain)
    return _means(first, second, sizes)


def _beta(generator: Generator, mean: Array, variance: float) -> Array:
    """Return random numbers from 0 to 1 with these means and this variance. If the variance is too
    large for a mean, it is cut to 90% of the largest possible variance.
    """
    strength = mean * (1 - mean) / np.clip(variance, 1e-9, 0.9 * mean * (1 - mean)) - 1
    return generator.beta(mean * strength, (1 - mean) * strength)


def reciprocal_ranks(generator: Generator, sizes: Array, draws: int, correlation: float) -> Array:
    """Sample RANKS with the probabilities FOUND. The two conditions are two rankers, which are good
    at different clusters. Half of the queries have the same rank in both, and for the other half
    the second ranker draws its own rank.
    """
    strength = 1 / max(correlation, 1e-6) - 1
    ranks = []
    for _ in range(2):
        found = generator.dirichlet(strength * FOUND, (draws, len(sizes))).repeat(sizes, axis=1)
        reached = found.cumsum(axis=-1)[..., :-1]
        ranks.append(RANKS[(generator.random((*found.shape[:2], 1)) > reached).sum(axis=-1)])
    first, other = ranks
    second = np.where(generator.random(first.shape) < 0.5, first, other)
    return _means(first, second, sizes)


def _means(first: Array, second: Array, sizes: Array) -> Array:
    """Return the counts from which the means of ``first`` and ``second``, both (draws, n), are
    computed: the sum and the number of the values, (draws, clusters, condition, sum/number).
    """
    wholes = np.broadcast_to(sizes, (len(first), len(sizes)))
    sums = (_sums(values, sizes) for values in (first, second))
    return np.stack([np.stack([part, wholes], axis=-1) for part in sums], axis=2)


def _sums(values: Array, sizes: Array) -> Array:
    """Return the sums of ``values``, (draws, n), within each cluster, (draws, clusters)."""
    return np.add.reduceat(values, sizes.cumsum() - sizes, axis=1)


def common_ngrams(generator: Generator, sizes: Array, draws: int, correlation: float) -> Array:
    """Sample the ten counts of BLEU-4: the matches and totals of n-grams for n from 1 to 4, and the
    lengths of the generated and the original function. Functions differ greatly in length. Clusters
    differ in difficulty, and the tool changes the difficulty.
    """
    shape = (draws, sizes.sum())
    conditions = []
    wanted = 4 + np.exp(generator.normal(3.5, 0.7, shape))
    spread = 0.6 * correlation**0.5
    ease = np.ones((draws, len(sizes)))
    for shares, length, more in zip(MATCHES, LENGTHS, (spread, spread / 3), strict=True):
        ease = ease * np.exp(generator.normal(-(more**2) / 2, more, ease.shape))
        written = wanted * length * np.exp(generator.normal(0, 0.4, shape))
        totals = [np.maximum(written.astype(int) - order, 1) for order in range(4)]
        matches = [
            generator.binomial(total, np.minimum(ease.repeat(sizes, axis=1) * share, 1))
            for total, share in zip(totals, shares, strict=True)
        ]
        counts = (*matches, *totals, totals[0], wanted)
        conditions.append(np.stack([_sums(count, sizes) for count in counts], axis=-1))
    return np.stack(conditions, axis=2)


SCORES = {
    "edit similarity": (edit_similarities, ratio),
    "MRR": (reciprocal_ranks, ratio),
    "BLEU-4": (common_ngrams, bleu),
}


def coverage_rows(
    condition: str,
    counts: Array,
    sizes: Sequence[int],
    value: Callable[[Array], Array],
    kind: IntervalKind,
) -> Rows:
    """Return two rows: ``coverage_percent``, the share of the draws whose interval contains the
    true value, and ``mean_width`` of the intervals.

    ``counts`` are (draws, clusters, ...). ``value`` computes the score from their sums over
    clusters, (draws, ...). The true value is the score of all draws together. An unknown interval
    counts as not containing the true value.
    """
    draws = len(counts)
    of_clusters = counts.swapaxes(0, 1)
    at = ("", condition)
    found = jackknife(
        lambda weights: value(np.tensordot(weights, of_clusters, 1)),
        range(len(sizes)),
        kind,
        np.repeat(np.asarray(sizes)[:, None], draws, axis=1),
    )
    truth = value(counts.sum(axis=(0, 1)) / draws)
    holds = rate([one.low <= truth <= one.high for one in found]).percent()
    width = np.nanmean([one.high - one.low for one in found])
    return [row(*at, "coverage_percent", holds), bare_row(*at, "mean_width", width, draws)]
