"""To answer or to look up: what a confidence is worth as the trigger, and its threshold chosen on other tasks.

"Coverage" is the share of tasks answered without looking up, "risk" the share of wrong answers among them. The paper
(Section 4.2) reads its threshold off the tasks that it reports; here no API serves both.
``correct`` is (n,) booleans, ``confidence`` (n,) numbers from 0 to 1, ``clusters`` (n,) labels (the API).
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lookuplab.scoring.calibration import bootstrap
from lookuplab.scoring.rates import REPETITIONS, Rate

_TIE = 1e-12  # means that differ by less are equal but for rounding


def risk_coverage(correct, confidence) -> pd.DataFrame:
    """One row per distinct confidence, from the highest: ``coverage``, ``risk``, ``threshold`` (0 to 1 each).

    The tasks answered are those with a confidence of at least ``threshold``: equal confidences enter together.
    """
    table = pd.DataFrame({"threshold": np.asarray(confidence, dtype=float), "wrong": ~np.asarray(correct, dtype=bool)})
    if table.empty:
        raise ValueError("no answers to cover")
    levels = table.groupby("threshold")["wrong"].agg(["size", "sum"]).sort_index(ascending=False).cumsum().reset_index()
    levels["coverage"], levels["risk"] = levels["size"] / len(table), levels["sum"] / levels["size"]
    return levels[["coverage", "risk", "threshold"]]


def aurc(correct, confidence) -> float:
    """Area under the risk-coverage curve, each risk weighted by the coverage that it was reached with; 0 is perfect."""
    curve = risk_coverage(correct, confidence)
    return float((curve["risk"] * np.diff(curve["coverage"], prepend=0.0)).sum())


def aurc_interval(correct, confidence, clusters, repetitions=REPETITIONS, seed=0, level=0.95) -> Rate:
    """``aurc`` with a clustered bootstrap interval."""
    return bootstrap(_aurc, correct, confidence, clusters, repetitions, seed, level)


def _aurc(right: np.ndarray, wrong: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """``aurc`` of counted answers, see ``calibration.bootstrap``: the highest confidence enters first."""
    counts, wrong = (right + wrong)[:, ::-1], wrong[:, ::-1]
    covered = np.cumsum(counts, axis=1)
    risk = np.cumsum(wrong, axis=1) / np.maximum(covered, 1)  # nothing covered yet: no weight either
    return (risk * counts).sum(axis=1) / covered[:, -1]


def aurc_references(correct) -> dict[str, float]:
    """What ``aurc`` would be: ``ideal``, every right answer before every wrong one; ``random``, no information.

    ``aurc - ideal`` is the excess (E-AURC; Geifman, Uziel and El-Yaniv 2019).
    """
    correct = np.asarray(correct, dtype=bool)
    ordered = np.linspace(1, 0, len(correct))  # no ties: one task enters after the other
    return {"ideal": aurc(np.sort(correct)[::-1], ordered), "random": float((~correct).mean())}


def folds(clusters, strata=None, count: int = 2, seed: int = 0) -> np.ndarray:
    """(n,) fold numbers from 0: whole clusters, dealt out in the order of a seeded hash within each stratum (n,).

    Depends on the labels alone, not on their order; the strata continue each other's deal, so that the folds hold
    equally many clusters. ValueError for a cluster in two strata, or fewer clusters than folds.
    """
    clusters = [str(label) for label in clusters]
    order = _hashed(clusters, strata, seed)
    if not 2 <= count <= len(order):
        raise ValueError(f"{len(order)} clusters cannot make {count} folds of at least one; choose 2 to {len(order)}")
    place = {label: number % count for number, label in enumerate(order)}
    return np.array([place[label] for label in clusters])


def split(clusters, strata=None, share: float = 0.5, seed: int = 0) -> np.ndarray:
    """(n,) booleans: the tasks to choose a threshold on, about ``share`` of each stratum's clusters; report the others.

    As ``folds``: by whole clusters and a seeded hash. The sets nest as ``share`` grows.
    """
    if not 0 < share < 1:
        raise ValueError(f"a share of {share} leaves one side empty; choose one between 0 and 1")
    clusters = [str(label) for label in clusters]
    strata = [""] * len(clusters) if strata is None else [str(name) for name in strata]
    chosen: set[str] = set()
    for name in sorted(set(strata)):
        members = _hashed([label for label, other in zip(clusters, strata, strict=True) if other == name], None, seed)
        chosen.update(members[: round(share * len(members))])
    _hashed(clusters, strata, seed)  # refuses a cluster in two strata
    return np.array([label in chosen for label in clusters])


def _hashed(clusters: Sequence[str], strata, seed: int) -> list[str]:
    """The distinct clusters, stratum by stratum, in the order of a seeded hash."""
    pairs = {(str(name), label) for name, label in zip([""] * len(clusters) if strata is None else strata, clusters,
                                                     strict=True)}
    if len(pairs) > len({label for _, label in pairs}):
        raise ValueError("a cluster is in two strata: its tasks could not all be on one side")
    ordered = sorted(pairs, key=lambda pair: (pair[0], hashlib.sha256(f"{seed}/{pair[1]}".encode()).digest()))
    return [label for _, label in ordered]


def best_threshold(valid_by_threshold, thresholds) -> float:
    """The threshold with the best mean of ``valid_by_threshold``, (n, m), for ``thresholds``, (m,).

    Among equals the smallest: it looks up least.
    """
    values, thresholds = np.asarray(valid_by_threshold, dtype=float), np.asarray(thresholds, dtype=float)
    if values.ndim != 2 or values.shape[1] != len(thresholds) or not values.size:
        raise ValueError(f"need a column per threshold and a task: {values.shape} for {len(thresholds)} thresholds")
    means = values.mean(axis=0)
    return float(thresholds[means >= means.max() - _TIE].min())


@dataclass(frozen=True)
class CrossFitted:
    """Per fold the threshold chosen on the other folds, and per task, (n,), its own fold's threshold and the value."""

    chosen: Mapping[int, float]
    thresholds: np.ndarray
    values: np.ndarray


def cross_fitted(valid_by_threshold, folds, thresholds) -> CrossFitted:
    """Every task judged with a threshold that was chosen without its fold, so that all n tasks are used.

    valid_by_threshold: (n, m) for ``thresholds`` (m,); folds: (n,) from ``folds``. The mean of ``values`` is the
    validity to report; its interval is ``rates.estimate``'s, given the chosen thresholds.
    """
    values, thresholds = np.asarray(valid_by_threshold, dtype=float), np.asarray(thresholds, dtype=float)
    folds = np.asarray(folds)
    if len(folds) != len(values) or len(np.unique(folds)) < 2:
        raise ValueError(f"need a fold for each of {len(values)} tasks and at least two folds")
    chosen = {int(fold): best_threshold(values[folds != fold], thresholds) for fold in np.unique(folds)}
    of_task = np.array([chosen[int(fold)] for fold in folds])
    column = np.array([int(np.flatnonzero(thresholds == threshold)[0]) for threshold in of_task])
    return CrossFitted(chosen, of_task, values[np.arange(len(values)), column])
