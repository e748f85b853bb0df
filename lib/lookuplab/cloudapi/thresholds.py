"""API invocation confidence as a measure and as a trigger: Figures 8, 9a and 9b (paper, Section 4.2).

A curve over a hundred thresholds is a hundred selections among the three passes of ``dag.passes``; nothing here takes a
model, so nothing here can generate. Intervals are clustered by API, the points of a curve share their resamples.
"""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from lookuplab.cloudapi.confidence import AGGREGATES, name_places
from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.policies import PRECISION, below, by_class, change_rows, outcome, triggered, valid_rows
from lookuplab.errors import UserError
from lookuplab.models.types import Completion
from lookuplab.scoring.calibration import auroc_difference, auroc_interval, ece_interval
from lookuplab.scoring.rates import Rate, estimate, estimates, resampled_weights
from lookuplab.scoring.rows import bare_row, row
from lookuplab.scoring.selective import best_threshold

NEAR = 1.0  # points: a threshold is as good as the best if it is no more than this below it
BINS = 10


def grid(count: int = 101) -> np.ndarray:
    """(count,) thresholds from 0 to 1, evenly spaced, whole hundredths. UserError where that cannot be."""
    if count < 2 or 100 % (count - 1):
        raise UserError(f"{count} thresholds from 0 to 1 are not whole hundredths; choose 101, 51, 26, 21, 11, 6, 5, 3 "
                        "or 2")
    return np.arange(count) * (100 // (count - 1)) / 100


def label(threshold: float) -> str:
    """``threshold_0.80``: how conditions name a threshold."""
    return f"threshold_{threshold:.2f}"


def outcomes(passes: Passes, thresholds: Sequence[float], hits: float | np.ndarray = PRECISION) -> np.ndarray:
    """(tasks, thresholds) chances of a valid invocation when documentation is retrieved below each threshold.

    ``hits`` as in ``policies.outcome``.
    """
    masks = [triggered(passes.first, "dag_confidence", threshold) for threshold in thresholds]
    return np.column_stack([outcome(passes, mask, hits) for mask in masks])


def threshold_rows(passes: Passes, thresholds: Sequence[float], hits: float | np.ndarray = PRECISION) -> list[dict]:
    """Figure 9b as rows ``threshold_0.80/class``, and ``base/class`` for comparison.

    ``valid_percent`` (expected over the retriever's hits) and ``triggered_percent``.
    """
    first, model = passes.first, passes.first.model.iloc[0]
    valid, masks = outcomes(passes, thresholds, hits), np.column_stack([below(first, each) for each in thresholds])
    rows = valid_rows(passes, "base", first.valid.to_numpy(dtype=float))
    for name, members in by_class(first).items():
        apis = first.api[members]
        found = {"valid_percent": estimates(valid[members], apis), "triggered_percent": estimates(masks[members], apis)}
        rows += [row(model, f"{label(threshold)}/{name}", metric, number.percent())
                 for metric, numbers in found.items() for threshold, number in zip(thresholds, numbers, strict=True)]
    return rows


def step_rows(passes: Passes, steps: Sequence[tuple[float, float]], hits: float | np.ndarray = PRECISION) -> list[dict]:
    """Paired changes from the first to the second threshold of each step, as ``policies.change_rows`` states them."""
    found = []
    for before, after in steps:
        old, new = outcomes(passes, (before, after), hits).T
        found += change_rows(passes.first, (label(after), new), (label(before), old))
    return found


def optimum_rows(passes: Passes, thresholds: Sequence[float], hits: float | np.ndarray = PRECISION) -> list[dict]:
    """The best threshold over all tasks, as rows of metric ``threshold``.

    *optimal*, the smallest of the best, with the interval of the best threshold over resamples of the APIs;
    *optimal_range_low*, *optimal_range_high*: the thresholds around it that lose at most one point.
    """
    first, values, thresholds = passes.first, outcomes(passes, thresholds, hits), np.asarray(thresholds, dtype=float)
    best = best_threshold(values, thresholds)
    low, high = near_optimum(values.mean(axis=0), thresholds, best)
    n, model = len(first), first.model.iloc[0]
    optimal = row(model, "optimal", "threshold", Rate(best, *_resampled_best(values, thresholds, first.api), n))
    ends = {"optimal_range_low": low, "optimal_range_high": high}
    return [optimal] + [bare_row(model, name, "threshold", end, n) for name, end in ends.items()]


def near_optimum(means: np.ndarray, thresholds: np.ndarray, best: float, within: float = NEAR) -> tuple[float, float]:
    """Ends of the run of thresholds around ``best`` whose mean, (m,) from 0 to 1, is within so many points of its."""
    at = int(np.flatnonzero(thresholds == best)[0])
    worse = np.flatnonzero(means < means[at] - within / 100 - 1e-12)
    return (float(thresholds[worse[worse < at].max(initial=-1) + 1]),
            float(thresholds[worse[worse > at].min(initial=len(means)) - 1]))


def _resampled_best(values: np.ndarray, thresholds: np.ndarray, clusters) -> tuple[float, float]:
    """95% percentile interval of the best threshold over clustered resamples, the smallest among equals."""
    drawn = []
    for weights in resampled_weights(clusters):
        means = (weights @ values) / weights.sum(axis=1, keepdims=True)
        drawn.append(thresholds[(means >= means.max(axis=1, keepdims=True) - 1e-12).argmax(axis=1)])
    low, high = np.quantile(np.concatenate(drawn), [0.025, 0.975])
    return float(low), float(high)


def calibration_rows(first: pd.DataFrame, counts: np.ndarray | None = None,
                     bins: Sequence[int] = (5, 10, 15, 20)) -> list[dict]:
    """How well the confidence of the first pass tells valid from invalid (Figure 9a in numbers).

    Condition a class or *all*: ``auroc``, ``auroc_rests_on_tasks`` (how many are of the rarer kind, valid or invalid),
    ``mean_confidence`` and, of *all*, ``brier`` and ``ece`` (equal-mass bins);
    *bins_5* and so on: ``ece`` again; *minimum, mean, product, last*: ``auroc`` of each aggregate, and
    *minimum - mean* and so on: ``auroc_change_points``, their paired difference (0 to 1, as an AUROC); *frequency*:
    ``auroc`` of how often the API was seen, (tasks,) ``counts``.
    """
    model, valid, sure = first.model.iloc[0], first.valid.to_numpy(dtype=bool), first["minimum"].to_numpy()
    found: list[tuple[str, str, Rate]] = []
    for name, members in by_class(first).items():
        found.append((name, "auroc", auroc_interval(valid[members], sure[members], first.api[members])))
        found.append((name, "mean_confidence", estimate(sure[members], first.api[members])))
    found.append(("all", "brier", estimate((sure - valid) ** 2, first.api)))
    found.append(("all", "ece", ece_interval(valid, sure, first.api, BINS)))
    found += [(f"bins_{count}", "ece", ece_interval(valid, sure, first.api, count)) for count in bins]
    found += [(name, "auroc", auroc_interval(valid, first[name], first.api)) for name in AGGREGATES]
    found += [(f"minimum - {name}", "auroc_change_points", auroc_difference(valid, sure, first[name], first.api))
              for name in AGGREGATES if name != "minimum"]
    if counts is not None:
        found.append(("frequency", "auroc", auroc_interval(valid, counts, first.api)))
    rarer = [bare_row(model, name, "auroc_rests_on_tasks", min(valid[members].sum(), (~valid[members]).sum()),
                      int(members.sum())) for name, members in by_class(first).items()]
    return rarer + [row(model, *place, number) for *place, number in found if not np.isnan(number.value)]


def typical_failure(first: pd.DataFrame) -> str | None:
    """The task whose invalid call has the median confidence (the lower one of two), for Figure 8; ties by task id.

    Calls that name no API have no tokens to show; without an invalid call a valid one serves; None without any.
    """
    named = first[first["minimum"] > 0]
    ordered = (named[~named.valid.astype(bool)] if not named.valid.all() else named).sort_values(["minimum", "task"])
    return None if ordered.empty else ordered.task.iloc[(len(ordered) - 1) // 2]


def shown_tokens(done: Completion, code: str | None = None, after: int = 12) -> list[tuple[str, float, bool]]:
    """The name's tokens and up to ``after`` more: (text, probability, whether it counts), for Figure 8.

    Empty where no API is named; UserError without log-probabilities. ``code`` as in ``confidence.name_tokens``.
    """
    name = name_places(done, code)
    if not name:
        return []
    shown = [(done.tokens[at], math.exp(done.token_logprobs[at]), at in name)
             for at in range(name.start, min(name.stop + after, len(done.tokens)))]
    return [token for token in shown if token[0] or token[2]]  # an end-of-text token spells nothing
