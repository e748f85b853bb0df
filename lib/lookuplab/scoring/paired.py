"""Two conditions on the same ids: which ids changed, how much, and what survives several comparisons."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests

from lookuplab.scoring.rates import REPETITIONS, Rate, cluster_bootstrap


@dataclass(frozen=True)
class McNemar:
    """Discordant counts (true under the first only, under the second only) and the exact two-sided p value."""

    only_first: int
    only_second: int
    p: float


def mcnemar(first, second) -> McNemar:
    """Exact McNemar test of two (n,) boolean arrays in the same order of ids; p is 1 when nothing changed."""
    first, second = _pair(first, second)
    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    changed = only_first + only_second
    return McNemar(only_first, only_second, float(binomtest(only_first, changed).pvalue) if changed else 1.0)


def paired_difference(first, second, clusters=None, repetitions=REPETITIONS, seed=0, level=0.95) -> Rate:
    """Mean of ``second - first``, (n,) each, with a paired bootstrap (by default every id is its own cluster)."""
    difference = np.asarray(second, dtype=float) - np.asarray(first, dtype=float)
    clusters = np.arange(len(difference)) if clusters is None else clusters
    low, high = cluster_bootstrap(difference, clusters, repetitions=repetitions, seed=seed, level=level)
    return Rate(float(difference.mean()), low, high, len(difference))


def holm(p_values) -> np.ndarray:
    """Holm's adjusted p values, (m,) in the order given, for the m comparisons of one figure."""
    p_values = np.asarray(p_values, dtype=float)
    return multipletests(p_values, method="holm")[1] if len(p_values) else p_values


def _pair(first, second) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"a paired test needs the same ids on both sides: {first.shape}, {second.shape}")
    return first, second
