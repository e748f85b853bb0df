"""Which tasks get documentation when only a share of them may: what the paper leaves open (Section 4).

A trigger is an order of the tasks, from the one that needs documentation most, and a place to stop. ``share`` runs from
0 (the base model) to 1 (DAG). Orders by confidence or API frequency can be compared with none and with the best one
without choosing a threshold; ``held_out_rows`` then asks what a threshold is worth that was chosen on other APIs.
Intervals are clustered by API; the order and the thresholds are taken as given.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.policies import (
    POLICIES, PRECISION, THRESHOLD, change_rows, outcome, spent, triggered, valid_rows,
)
from lookuplab.cloudapi.thresholds import label, outcomes
from lookuplab.scoring.paired import paired_difference
from lookuplab.scoring.rates import Rate, averages, estimates, rate, resampled_weights, wilson
from lookuplab.scoring.rows import bare_row, row
from lookuplab.scoring.selective import aurc_interval, aurc_references, best_threshold, cross_fitted, folds


def lowest(score, shares: Sequence[float]) -> np.ndarray:
    """(n, shares) chance of each task to be among the lowest share of ``score``, (n,), when a coin breaks the ties.

    A constant score is a random order: every task has the chance ``share``. Columns sum to n times the share.
    """
    score = np.asarray(score, dtype=float)
    _, member, size = np.unique(score, return_inverse=True, return_counts=True)
    before, places = (np.cumsum(size) - size)[member], np.asarray(shares, dtype=float) * len(score)
    return np.clip((places - before[:, None]) / size[member][:, None], 0, 1)


def orders(passes: Passes, counts: np.ndarray, hits: float | np.ndarray = PRECISION) -> dict[str, np.ndarray]:
    """Scores (tasks,) whose lowest tasks get documentation first.

    *confidence* of the first pass; *frequency*, how often the API was seen (``counts``, which only a controlled world
    knows exactly); *random*, none; *oracle*, who gains most from this retriever: no order does better at any share.
    """
    gain = outcome(passes, np.ones(len(counts), dtype=bool), hits) - passes.first.valid.to_numpy(dtype=float)
    return {"confidence": passes.first["minimum"].to_numpy(), "frequency": np.asarray(counts, dtype=float),
            "random": np.zeros(len(counts)), "oracle": -gain}


def share_rows(passes: Passes, counts: np.ndarray, shares: Sequence[float], hits: float | np.ndarray = PRECISION,
               metric: str = "valid_percent") -> list[dict]:
    """Validity over the share of tasks with documentation: ``share_25/order`` (percent), for ``plots.curves``.

    And per order ``<metric without _percent>_above_random_points``: its mean lead over all shares, paired.
    """
    first, model = passes.first, passes.first.model.iloc[0]
    base = first.valid.to_numpy(dtype=float)
    with_documents = outcome(passes, np.ones(len(first), dtype=bool), hits)
    rows, mean = [], {}
    for name, score in orders(passes, counts, hits).items():
        valid = base[:, None] + lowest(score, shares) * (with_documents - base)[:, None]
        mean[name] = valid.mean(axis=1)
        rows += [row(model, f"share_{100 * share:g}/{name}", metric, number.percent())
                 for share, number in zip(shares, estimates(valid.clip(0, 1), first.api), strict=True)]
    lead = metric.removesuffix("_percent") + "_above_random_points"
    return rows + [row(model, name, lead, paired_difference(mean["random"], mean[name], first.api).percent())
                   for name in mean if name != "random"]


def trade_off_rows(passes: Passes, thresholds: Sequence[float], hits: float | np.ndarray = PRECISION) -> list[dict]:
    """What each policy and each confidence threshold costs and brings, over all tasks.

    Conditions ``dag_plus_plus/all``, ``threshold_0.80/all``; metrics ``valid_percent``, ``valid_bm25_percent`` (BM25
    left alone as the retriever), ``triggered_percent``, ``tokens_per_task``, all expected.
    """
    first, model = passes.first, passes.first.model.iloc[0]
    masks = {f"{policy}/all": triggered(first, policy) for policy in POLICIES}
    masks |= {f"{label(threshold)}/all": triggered(first, "dag_confidence", threshold) for threshold in thresholds}
    values = {"valid_percent": [outcome(passes, mask, hits) for mask in masks.values()],
              "valid_bm25_percent": [outcome(passes, mask, passes.retrieved) for mask in masks.values()],
              "triggered_percent": list(masks.values())}
    rows = []
    for metric, columns in values.items():
        numbers = estimates(np.column_stack(columns), first.api)
        rows += [row(model, name, metric, number.percent()) for name, number in zip(masks, numbers, strict=True)]
    costs = averages(np.column_stack([spent(passes, mask, hits) for mask in masks.values()]), first.api)
    return rows + [row(model, name, "tokens_per_task", cost) for name, cost in zip(masks, costs, strict=True)]


def held_out_rows(passes: Passes, thresholds: Sequence[float], fixed: float = THRESHOLD, count: int = 5,
                  hits: float | np.ndarray = PRECISION, seed: int = 0) -> list[dict]:
    """Three ways to a threshold, judged on the same tasks: ``valid_percent`` of ``fixed/class``, of ``held_out/class``,
    chosen on the other ``count - 1`` parts of the APIs, and of ``best_in_sample/class``, chosen on what it reports.

    ``threshold`` of each (``held_out/fold_1`` ...) and paired ``valid_change_points`` (``policies.change_rows``): best
    in sample - held out is the optimism, never below 0 over all tasks; held out - fixed is what choosing gains.
    Without two APIs there is nothing to hold out, and nothing of it is reported.
    """
    first, model, n = passes.first, passes.first.model.iloc[0], len(passes.first)
    values = outcomes(passes, thresholds, hits)
    best = best_threshold(values, thresholds)
    ways = {"fixed": outcomes(passes, [fixed], hits)[:, 0], "best_in_sample": outcomes(passes, [best], hits)[:, 0]}
    chosen = {"fixed": fixed, "best_in_sample": best}
    if (count := min(count, first.api.nunique())) > 1:
        fitted = cross_fitted(values, folds(first.api, first.frequency, count, seed), thresholds)
        ways["held_out"] = fitted.values
        chosen |= {f"held_out/fold_{fold + 1}": threshold for fold, threshold in fitted.chosen.items()}
    rows = [bare_row(model, name, "threshold", value, n) for name, value in chosen.items()]
    pairs = [("best_in_sample", "held_out"), ("held_out", "fixed")] if "held_out" in ways else []
    for way, valid in ways.items():
        rows += valid_rows(passes, way, valid)
    for new, old in pairs:
        rows += change_rows(first, (new, ways[new]), (old, ways[old]))
    return rows


def risk_rows(first: pd.DataFrame, counts: np.ndarray, coverages: Sequence[float]) -> list[dict]:
    """How wrong the answers are that are given without documentation: ``risk_percent`` of ``coverage_50/order``.

    The surest ``coverage`` of the tasks is answered, the rest would be looked up. Orders as in ``orders``, but *ideal*
    answers every right one first. Per order ``aurc``, the area below; *random*'s is the error rate.
    """
    model, valid = first.model.iloc[0], first.valid.to_numpy(dtype=bool)
    scores = {"confidence": first["minimum"].to_numpy(), "frequency": np.asarray(counts, dtype=float),
              "random": np.zeros(len(first)), "ideal": valid.astype(float)}
    rows = []
    for name, score in scores.items():
        answered = 1 - lowest(score, 1 - np.asarray(coverages, dtype=float))
        rows += [row(model, f"coverage_{100 * coverage:g}/{name}", "risk_percent", number.percent())
                 for coverage, number in zip(coverages, _risks(~valid, answered, first.api), strict=True)]
    rows += [row(model, name, "aurc", aurc_interval(valid, scores[name], first.api))
             for name in ("confidence", "frequency")]
    rows.append(row(model, "random", "aurc", rate(~valid, first.api)))
    return rows + [bare_row(model, "ideal", "aurc", aurc_references(valid)["ideal"], len(first))]


def _risks(wrong: np.ndarray, answered: np.ndarray, clusters) -> list[Rate]:
    """Share of wrong answers among those answered, for each column of ``answered`` (n, m); clustered 95% intervals.

    Where every resample agrees (all right, say) the interval is Wilson's of the APIs answered, as in ``rates.rate``.
    """
    mistakes = wrong[:, None] * answered
    drawn = np.concatenate([(weights @ mistakes) / np.maximum(weights @ answered, 1e-12)
                            for weights in resampled_weights(clusters)])
    found = []
    for value, asked, resampled in zip(mistakes.sum(axis=0) / answered.sum(axis=0), answered.T, drawn.T, strict=True):
        low, high = np.quantile(resampled, [0.025, 0.975])
        if low == high:
            apis = len(set(np.asarray(clusters)[asked > 0]))
            low, high = wilson(value * apis, apis)
        found.append(Rate(float(value), float(low), float(high), round(float(asked.sum()))))
    return found


def against(frame: pd.DataFrame, x: str, y: str, name: str, conditions: Mapping[str, str]) -> pd.DataFrame:
    """Rows of metric ``y`` placed by metric ``x`` of the same model and condition, for ``plots.curves``.

    ``conditions`` maps those to place to the line that they belong to: ``dag/all`` with a trigger of 100 becomes
    ``share_100/DAG`` for the name "share". Of equal places of a line one is kept.
    """
    at = frame[frame["metric"] == x].set_index(["model", "condition"])["value"]
    rows = frame[(frame["metric"] == y) & frame["condition"].isin(list(conditions))]
    placed = [f"{name}_{at[model, condition]}/{conditions[condition]}" for model, condition in
              zip(rows["model"], rows["condition"], strict=True)]
    return rows.assign(condition=placed).drop_duplicates(["model", "condition", "metric"])
