"""Perplexity of given continuations (CloudAPIBench, Figure 1 right: the target API's tokens)."""

from collections.abc import Sequence

import numpy as np

from lookuplab.scoring.rates import REPETITIONS, Rate, cluster_bootstrap, mean


def perplexity(logprobs: Sequence[Sequence[float]], clusters=None, repetitions=REPETITIONS, seed=0, level=0.95) -> Rate:
    """exp of the mean negative log-probability over all tokens, with a clustered bootstrap interval.

    logprobs: one sequence of natural-log token probabilities per continuation (lengths may differ, none empty in
    total).
    clusters: one label per continuation (the API); by default each continuation is its own cluster. ``n`` of the result
    is the tokens. From a single cluster nothing is known about the spread: the interval is then (1, inf).
    """
    lengths = [len(row) for row in logprobs]
    labels = np.arange(len(lengths)) if clusters is None else np.asarray(clusters)
    if len(labels) != len(lengths) or not sum(lengths):
        raise ValueError(
            f"need one cluster per continuation and at least one token: {len(labels)} clusters, {sum(lengths)} tokens"
        )
    flat = -np.concatenate([np.asarray(row, dtype=float) for row in logprobs])

    def statistic(sums, counts):
        return np.exp(mean(sums, counts))

    low, high = 1.0, float("inf")
    if len(np.unique(labels)) > 1:
        low, high = cluster_bootstrap(flat, np.repeat(labels, lengths), statistic, repetitions, seed, level)
    return Rate(float(np.exp(flat.mean())), low, high, len(flat))
