"""API invocation confidence as a measure and as a trigger (Figure 9), and what such a trigger is worth (Section 4.2).

Nothing here takes a model, so nothing here can generate: a curve over a hundred thresholds is a hundred selections
among the three passes of ``dag.passes``. A trigger is an order of the tasks, from the one that needs documentation most,
and a place to stop. Orders by confidence or API frequency can be compared with none and with the best one without
choosing a threshold; ``held_out_rows`` then asks what a threshold is worth that was chosen on other APIs.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
import pandas as pd

from lookuplab.cloudapi.dag import AGGREGATES, Passes
from lookuplab.cloudapi.policies import (
    PRECISION,
    THRESHOLD,
    by_class,
    class_rows,
    outcome,
    triggered,
)
from lookuplab.scoring.calibration import (
    aurc_interval,
    auroc_interval,
    ece_interval,
)
from lookuplab.scoring.rates import (
    bare_row,
    bootstrap,
    rate,
    row,
    shares,
)

NEAR = 1.0  # points: a threshold is as good as the best if it is no more than this below it


def calibration_rows(
    first: pd.DataFrame, counts: Sequence[float], bins: Sequence[int] = (5, 10, 15, 20)
) -> list[dict]:
    """How well the confidence of the first pass tells valid from invalid (Figure 9a in numbers).

    Condition a class or *all*: ``auroc``, ``auroc_rests_on_tasks`` (how many are of the rarer kind, valid or invalid),
    ``mean_confidence`` and, of *all*, ``brier`` and ``ece`` (10 equal-mass bins);
    *bins_5* and so on: ``ece`` again; *minimum, mean, product, last*: ``auroc`` of each aggregate, and
    *minimum - mean* and so on: ``auroc_change_points``, their paired difference (0 to 1, as an AUROC); *frequency*:
    ``auroc`` of how often the API was seen, (tasks,) ``counts``.
    """
    model, apis, masks = first.model.iloc[0], first.api, by_class(first)
    valid, sure = first.valid.to_numpy(dtype=bool), first["minimum"]
    rows, found = [], {}
    for name, mask in masks.items():
        rarer, more = sorted(np.bincount(valid[mask], minlength=2))
        rows.append(bare_row(model, name, "auroc_rests_on_tasks", rarer, rarer + more))
        found[name, "auroc"] = auroc_interval(valid[mask], sure[mask], apis[mask])
        found[name, "mean_confidence"] = rate(sure[mask], apis[mask])
    found["all", "brier"] = rate((sure - valid) ** 2, apis)
    found["all", "ece"] = ece_interval(valid, sure, apis)
    for count in bins:
        found[f"bins_{count}", "ece"] = ece_interval(valid, sure, apis, count)
    for name in AGGREGATES:
        found[name, "auroc"] = auroc_interval(valid, first[name], apis)
    for name in list(AGGREGATES)[1:]:
        change = auroc_interval(valid, sure, apis, less=first[name])
        found[f"minimum - {name}", "auroc_change_points"] = change
    found["frequency", "auroc"] = auroc_interval(valid, counts, apis)
    known = {place: number for place, number in found.items() if not np.isnan(number.value)}
    return rows + [row(model, *place, number) for place, number in known.items()]


def label(threshold: float) -> str:
    """``threshold_0.80``: how conditions name a threshold."""
    return f"threshold_{threshold:.2f}"


def curve(
    passes: Passes, thresholds: Sequence[float], hits: float | np.ndarray = PRECISION
) -> tuple:
    """Chances of a valid invocation when documentation is retrieved below each threshold, and for which tasks it is.

    Both (tasks, thresholds); ``hits`` as in ``policies.outcome``.
    """
    masks = [triggered(passes.first, "dag_confidence", threshold) for threshold in thresholds]
    retrieve = np.column_stack(masks)
    return outcome(passes, retrieve, hits), retrieve


def best(means: np.ndarray) -> np.ndarray:
    """Which of the ascending thresholds, the last axis of ``means``, is best; the first of equals looks up least."""
    return (means >= means.max(axis=-1, keepdims=True) - 1e-12).argmax(axis=-1)


def optimum_rows(
    passes: Passes, thresholds: np.ndarray, hits: float | np.ndarray = PRECISION
) -> list[dict]:
    """The best threshold over all tasks, as rows of metric ``threshold``.

    *optimal*, the smallest of the best, with the interval of the best threshold over resamples of the APIs;
    *optimal_range_low*, *optimal_range_high*: the thresholds around it that lose at most one point.
    """
    values, model = curve(passes, thresholds, hits)[0], passes.first.model.iloc[0]
    (optimal,) = bootstrap(
        lambda weights: thresholds[best(weights @ values / weights.sum(axis=1, keepdims=True))],
        passes.first.api,
    )
    means = values.mean(axis=0)
    at = best(means)
    worse = np.flatnonzero(means < means[at] - NEAR / 100 - 1e-12)
    ends = {
        "low": worse[worse < at].max(initial=-1) + 1,
        "high": worse[worse > at].min(initial=len(means)) - 1,
    }
    return [row(model, "optimal", "threshold", optimal)] + [
        bare_row(model, f"optimal_range_{end}", "threshold", thresholds[place], len(values))
        for end, place in ends.items()
    ]


def lowest(score, shares: Sequence[float]) -> np.ndarray:
    """(n, shares) chance of each task to be among the lowest share of ``score``, (n,), when a coin breaks the ties.

    A constant score is a random order: every task has the chance ``share``. Columns sum to n times the share.
    """
    _, member, size = np.unique(score, return_inverse=True, return_counts=True)
    before, places = (np.cumsum(size) - size)[member], np.asarray(shares, dtype=float) * len(member)
    return np.clip((places - before[:, None]) / size[member][:, None], 0, 1)


def share_rows(
    passes: Passes,
    counts: Sequence[float],
    shares: Sequence[float],
    hits: float | np.ndarray = PRECISION,
    metric: str = "valid_percent",
) -> list[dict]:
    """Validity over the share of tasks with documentation: ``share_25/order`` (percent), for ``plots.curves``.

    Orders by *confidence* of the first pass; *frequency*, how often the API was seen (``counts``, which only a
    controlled world knows exactly); *random*; *oracle*, who gains most from this retriever. Per order ``<metric without
    _percent>_above_random_points``: its mean lead over all shares, paired.
    """
    first, rows = passes.first, []
    base = first.valid.to_numpy(dtype=float)
    gain = outcome(passes, True, hits) - base
    orders = {"confidence": first["minimum"], "frequency": counts, "random": 0 * base}
    valid = {
        name: base[:, None] + lowest(order, shares) * gain[:, None]
        for name, order in (orders | {"oracle": -gain}).items()
    }
    for name, values in valid.items():
        names = [f"share_{100 * share:g}/{name}" for share in shares]
        rows += class_rows(first, names, {metric: values.clip(0, 1)}, {"": True})
    random, lead = valid.pop("random"), metric.replace("percent", "above_random_points")
    for name, values in valid.items():
        rows += class_rows(first, name, {lead: (values - random).mean(axis=1)}, {"": True})
    return rows


def folds(clusters: Sequence[str], strata: Sequence[str], count: int, seed: int) -> np.ndarray:
    """(n,) fold numbers from 0: whole clusters, dealt out in the order of a seeded hash within each stratum.

    Depends on the labels alone, not on their order; the strata continue each other's deal, so that the folds hold
    equally many clusters.
    """

    def order(pair: tuple[str, str]) -> tuple[str, bytes]:
        return pair[0], hashlib.sha256(f"{seed}/{pair[1]}".encode()).digest()

    dealt = sorted(set(zip(strata, clusters, strict=True)), key=order)
    fold = {cluster: number % count for number, (_, cluster) in enumerate(dealt)}
    return np.array([fold[cluster] for cluster in clusters])


def held_out_rows(
    passes: Passes,
    thresholds: np.ndarray,
    fixed: float = THRESHOLD,
    count: int = 5,
    hits: float | np.ndarray = PRECISION,
    seed: int = 0,
) -> list[dict]:
    """Three ways to a threshold, judged on the same tasks: ``valid_percent`` of ``fixed/class``, of ``held_out/class``,
    chosen on the other ``count - 1`` parts of the APIs, and of ``best_in_sample/class``, chosen on what it reports.

    ``threshold`` of each (``held_out/fold_1`` ...) and paired ``valid_change_points``: best in sample - held out is the
    optimism, never below 0 over all tasks; held out - fixed is what choosing gains.
    """
    first, values = passes.first, curve(passes, thresholds, hits)[0]
    fold, at = folds(first.api, first.frequency, count, seed), best(values.mean(axis=0))
    chosen = np.array([best(values[fold != number].mean(axis=0)) for number in range(count)])
    ways = {
        "fixed": curve(passes, [fixed], hits)[0][:, 0],
        "best_in_sample": values[:, at],
        "held_out": values[np.arange(len(values)), chosen[fold]],
    }
    used = {"fixed": fixed, "best_in_sample": thresholds[at]}
    used |= {f"held_out/fold_{n}": value for n, value in enumerate(thresholds[chosen], 1)}
    model, rows = first.model.iloc[0], []
    for name, value in used.items():
        rows.append(bare_row(model, name, "threshold", value, len(first)))
    for name, valid in ways.items():
        rows += class_rows(first, name, {"valid_percent": valid})
    for new, old in (("best_in_sample", "held_out"), ("held_out", "fixed")):
        rows += class_rows(first, f"{new} - {old}", {"valid_change_points": ways[new] - ways[old]})
    return rows


def risk_rows(
    first: pd.DataFrame, counts: Sequence[float], coverages: Sequence[float]
) -> list[dict]:
    """How wrong the answers are that are given without documentation: ``risk_percent`` of ``coverage_50/order``.

    The surest ``coverage`` of the tasks is answered, the rest would be looked up. Orders as in ``share_rows``, but
    *ideal* answers every right one first. Per order ``aurc``, the area below; *random*'s is the error rate. Where every
    resample agrees (all right, say) the interval is Wilson's of the APIs answered, as in ``rates.rate``.
    """
    model, rows = first.model.iloc[0], []
    valid, apis = first.valid.to_numpy(dtype=bool), first.api.to_numpy()
    informed = {"confidence": first["minimum"], "frequency": counts}
    orders = informed | {"random": 0 * valid, "ideal": valid}
    for name, order in orders.items():
        answered = 1 - lowest(order, 1 - np.asarray(coverages))
        risks = shares(~valid[:, None] * answered, apis, answered)
        for coverage, risk in zip(coverages, risks, strict=True):
            place = f"coverage_{100 * coverage:g}/{name}", "risk_percent"
            rows.append(row(model, *place, risk.percent()))
    for name, order in informed.items():
        rows.append(row(model, name, "aurc", aurc_interval(valid, order, apis)))
    rows.append(row(model, "random", "aurc", rate(~valid, apis)))
    # One task enters after the other.
    ideal = np.mean(np.cumsum(np.sort(~valid)) / np.arange(1, len(valid) + 1))
    return [*rows, bare_row(model, "ideal", "aurc", ideal, len(valid))]
