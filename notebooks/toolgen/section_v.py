"""Computes numbers of Section V beyond Tables II and III: the errors that the tool prevents, how
many bodies fail only because of false alarms, the errors of unfinished answers, and the
difference between the tool's gain in dependency coverage and its gain in the success rate.

Frames are as in ``table_rows``. Rows are dictionaries like those of ``scoring.rates.row``. If a row
is about one model of the paper, its condition is the name of that model.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from lookuplab import paths
from lookuplab.scoring.rates import Array, Rows, jackknife, rate, row
from lookuplab.toolgen.generation import Generations
from lookuplab_notebooks.toolgen.table_rows import (
    METRICS,
    Corpus,
    Frames,
    Metric,
    metric_rows,
    ratio,
)

ERRORS = {"syntax_error": "E0001", "undefined_variable": "E0602", "no_member": "E1101"}


def error_rows(frames: Frames) -> Rows:
    """Return, for each of ERRORS, the percentage of functions in which pylint finds that error
    (``no_member_percent`` and so on), and its paired changes from ``base``.
    """
    with_errors = {
        key: frame.assign(
            **{
                name: frame.failures.str.contains(message).where(frame.passed.notna())
                for name, message in ERRORS.items()
            }
        )
        for key, frame in frames.items()
    }
    metrics = [Metric(f"{name}_percent", "errors", column=name) for name in ERRORS]
    return metric_rows(with_errors, metrics)


def alarm_rows(frames: Frames, members: Path | str = "") -> Rows:
    """Return ``false_alarm_percent``: of all failing functions, the percentage that fails only
    because of false alarms.

    An alarm is false if pylint says the same about the original function. An alarm about a missing
    member is also false if the member does exist when the code runs. The file ``members`` lists
    such alarms (data/mini/toolgen/members.json). The percentage is a lower bound, because for some
    members it could not be checked whether they exist.
    """
    known = json.loads(paths.located(members).read_text("utf-8"))["exist"] if members else []
    failing = pd.concat([frame[frame.passed.eq(False)] for frame in frames.values()])
    if failing.empty:
        return []
    alone = [
        all(
            [name, words] in [[one[0], one[2]] for one in own] or [file, words] in known
            for name, _, words in messages
        )
        for file, messages, own in zip(
            failing.id.str.partition(":")[0],
            failing.messages,
            failing.reference_messages,
            strict=True,
        )
    ]
    return [row("all", "all", "false_alarm_percent", rate(alone, failing.cluster).percent())]


def ending_rows(
    frames: Frames, made: Mapping[tuple[str, str], Generations], roles: Mapping[str, str]
) -> Rows:
    """Return, for each ToolGen model, ``unfinished_percent``: the percentage of its answers that
    reach the token limit before they end. Also return ``syntax_error_percent``: the percentage with
    a syntax error among the unfinished answers (``ROLE/unfinished``) and the finished ones
    (``ROLE/finished``).

    ``made`` maps (model, condition) to the answers, and ``roles`` maps a model to the name of the
    paper's model.
    """
    rows = []
    for model, role in roles.items():
        if (frame := frames.get((model, "toolgen"))) is None:
            continue
        ends = {id: one.finish_reason for id, one in made[model, "toolgen"].completions.items()}
        is_cut = frame.id.map(ends) == "length"
        cut = rate(is_cut, frame.cluster).percent()
        rows.append(row(model, role, "unfinished_percent", cut))
        for name, part in (("unfinished", frame[is_cut]), ("finished", frame[~is_cut])):
            if len(part):
                broken = part.failures.str.contains(ERRORS["syntax_error"])
                share = rate(broken, part.cluster).percent()
                rows.append(row(model, f"{role}/{name}", "syntax_error_percent", share))
    return rows


def gain_rows(frames: Frames, roles: Mapping[str, str]) -> Rows:
    """Return ``gain_difference_points``: ToolGen's relative gain in dependency coverage minus its
    relative gain in the success rate. A relative gain is in percent of the base model's value.
    """
    rows = []
    for model, role in roles.items():
        both = [frames[key] for key in ((model, "base"), (model, "toolgen")) if key in frames]
        if len(both) == 2:
            coverage_and_success = METRICS["depcov_percent"], METRICS["succrate_percent"]
            counts = [
                [one.counted(Corpus(frame)) for frame in both] for one in coverage_and_success
            ]

            def difference(weights: Array, counts: Array = np.moveaxis(counts, 2, 0)) -> Array:
                # the sums have the shape (..., metric, condition, numerator/denominator)
                gains = ratio(ratio(np.tensordot(weights, counts, 1))[..., ::-1])
                return -np.diff(gains)

            (number,) = jackknife(difference, both[0].cluster)
            if not np.isnan(number.value):
                rows.append(row(model, role, "gain_difference_points", number.percent()))
    return rows
