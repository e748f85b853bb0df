"""A repository's functions as rows: names that Jedi offers; coverage, success, their changes."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from pandas import DataFrame

from lookuplab.scoring.rates import (
    averages,
    bare_row,
    jackknife,
    of_change,
    of_share,
    paired_difference,
    rate,
    row,
)
from lookuplab.toolgen.success import CHECKS

Record = dict[str, Any]  # a function of a marked corpus
USES = ["covered", "dependencies"]


def judged_rows(frames: Mapping[tuple[str, str], DataFrame]) -> list[dict[str, Any]]:
    """Return (model, condition) -> frame of ``evaluation.judged_all``: ``depcov_percent`` of all
    dependencies, ``succrate_percent``, how many functions have each of pylint's errors, do nothing,
    got no verdict, or have an original to which pylint objects; and the changes from ``base`` to
    ``toolgen``, in points.
    """
    rows = []
    for (model, condition), frame in frames.items():
        uses = frame[USES].fillna(0).astype(float)
        judged = frame[frame.passed.notna()]
        if uses.dependencies.sum():
            covered = averages(uses[["covered"]], frame.cluster, uses[["dependencies"]], of_share)
            rows.append(row(model, condition, "depcov_percent", covered[0].percent()))
        if len(judged):
            passed = rate(judged.passed, judged.cluster).percent()
            rows.append(row(model, condition, "succrate_percent", passed))
        counts = {f"failed_{name}": frame.failures.str.contains(name) for name in sorted(CHECKS)}
        counts |= {"pylint_lost": frame.lost != "", "jedi_lost": frame.dependencies.isna()}
        counts["empty"] = frame["empty"]
        if frame.reference_passed.notna().any():
            counts["reference_failed"] = frame.reference_passed.eq(False)
        rows += [
            bare_row(model, condition, f"{name}_functions", flags.sum(), len(frame))
            for name, flags in counts.items()
        ]
    for model in dict.fromkeys(model for model, _ in frames):
        sides = [frames.get((model, condition)) for condition in ("base", "toolgen")]
        if any(side is None for side in sides):
            continue
        base, tool = sides
        both = base.passed.notna() & tool.passed.notna()
        change = paired_difference(base.passed[both], tool.passed[both], base.cluster[both])
        at = model, "toolgen - base"
        rows.append(row(*at, "succrate_change_points", change.percent()))
        counts = np.stack([side[USES].fillna(0).to_numpy(float) for side in sides], axis=1)
        if counts[..., 1].sum(axis=0).all():
            smaller = counts[..., 1].min(axis=1, keepdims=True)
            covered_more = partial(_covered_more, counts)
            [change] = jackknife(covered_more, base.cluster, of_change, smaller)
            rows.append(row(*at, "depcov_change_points", change.percent()))
    return rows


def offered_rows(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return the share of the names at which the tool was asked that it offers; clusters
    are files.
    """
    known = [record for record in records if not record["failures"] and record["asked"]]
    marks, asked = ([[record[name]] for record in known] for name in ("marks", "asked"))
    if not known:
        return []
    [share] = averages(marks, [record["file"] for record in known], asked, of_share)
    return [row("", "offered/all", "offered_percent", share.percent())]


def _covered_more(counts: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the change of the covered share of (functions, side, USES), for each row
    of weights.
    """
    sums = np.tensordot(weights, counts, 1)
    return np.diff(sums[..., 0] / np.where(sums[..., 1] > 0, sums[..., 1], np.nan))[..., 0]
