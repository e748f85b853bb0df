"""How often each API is to occur in the mini corpus: a randomised experiment that no paper could run.

A hash, not the API, decides the class, so that frequency is not confounded with how hard an API is to call.
"""

import math
import random
from collections import defaultdict

from lookuplab.cloudapi.benchmark import stable_order, unambiguous
from lookuplab.cloudapi.specs import ApiIndex

# APIs per class and provider; every other API of the index never occurs (count 0, which is low).
POOLS = {"high": {"aws": 90, "azure": 45}, "medium": {"aws": 110, "azure": 55}, "low": {"aws": 1500, "azure": 300}}
RANGES = {"high": (101, 600), "medium": (11, 100), "low": (1, 10)}


def assign(index: ApiIndex, seed: int = 0, pools: dict[str, dict[str, int]] = POOLS) -> dict[str, int]:
    """API id -> count, log-uniform in its class; each class is dealt evenly over the number of required arguments."""
    counts: dict[str, int] = {}
    for provider in ("aws", "azure"):
        by_required = defaultdict(list)
        for spec in sorted(unambiguous(index), key=lambda s: stable_order(s.id, seed)):
            if spec.provider == provider:
                by_required[min(len(spec.required), 5)].append(spec.id)
        for frequency in ("high", "medium", "low"):
            for api in _deal([by_required[key] for key in sorted(by_required)], pools[frequency][provider]):
                counts[api] = _log_uniform(*RANGES[frequency], random.Random(f"count {seed} {api}"))
    return counts


def _deal(buckets: list[list[str]], total: int) -> list[str]:
    """Take ``total`` ids from the fronts of the buckets in turn; what is taken is gone for the next class."""
    dealt: list[str] = []
    while len(dealt) < total and any(buckets):
        for bucket in buckets:
            if bucket and len(dealt) < total:
                dealt.append(bucket.pop(0))
    return dealt


def _log_uniform(low: int, high: int, rng: random.Random) -> int:
    """An integer between ``low`` and ``high`` inclusive whose logarithm is uniform."""
    drawn = int(math.exp(rng.uniform(math.log(low), math.log(high + 1))))
    return min(high, max(low, drawn))  # exp(log(101)) may come out a hair below 101
