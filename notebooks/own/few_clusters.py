"""Removes the confidence intervals of numbers that rest on too few clusters of tasks."""

from collections.abc import Iterable
from math import nan
from typing import Any

from lookuplab.scoring.rates import TAIL_PROBABILITY, Rows

LEAST_CLUSTERS = 8  # with fewer clusters, the variance between clusters is too uncertain
NEARLY_NOTHING = 1e-9  # a lower end below this, in percent, is rounding error and becomes 0


def honest_rows(rows: Iterable[dict[str, Any]]) -> Rows:
    """Return an artifact's rows, in which numbers with fewer than LEAST_CLUSTERS clusters have no
    interval.

    An exception is a share of 0 or 100%, because all clusters agree on it. Its interval is Clopper
    and Pearson's exact interval, computed as if each cluster were one observation.
    """
    honest = []
    for number in rows:
        clusters, low, high = number["clusters"], number["ci_low"], number["ci_high"]
        if clusters < LEAST_CLUSTERS:
            low = high = nan
            is_share = number["metric"].endswith("_percent") and "change" not in number["metric"]
            if is_share and number["value"] in (0, 100):
                end = 100 * TAIL_PROBABILITY ** (1 / clusters)
                low, high = (end, 100.0) if number["value"] else (0.0, 100 - end)
        elif abs(low) < NEARLY_NOTHING:
            low = 0.0
        honest.append({**number, "ci_low": low, "ci_high": high})
    return honest
