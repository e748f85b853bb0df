"""A gate on the mark (the replication package's ``lsp_conf``): what becomes of the answers, and which calls it removes.

Rows are those of ``toolgen.tables``. Conditions are ``gate_<number>``, and ``gate_<number> - gate_<first>`` for what
changes from the first gate, over the same functions. A gate of 1 or more stands for "never".
"""

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from lookuplab.scoring.calibration import auroc_interval
from lookuplab.scoring.paired import paired_difference
from lookuplab.scoring.rates import Rate, average, estimate, rate
from lookuplab.scoring.rows import row
from lookuplab.toolgen.generation import Generations
from lookuplab.toolgen.similarity import identifiers
from lookuplab.toolgen.tables import BASE, repository_rows
from lookuplab.toolgen.tool_use import NEVER, ToolUse

COLUMNS = ["id", "repository", "probability", "chosen", "right"]


def gated(gate: float, variant: str = "paper") -> ToolUse:
    """The variant's rules with another gate."""
    return ToolUse("mark", variant, gate if gate < 1 else NEVER)


def gate_rows(model: str, frames: Mapping[float, pd.DataFrame], written: Mapping[float, Generations]) -> list[dict]:
    """One model's Table III at each gate, with ``editsim_percent``, ``calls_per_function`` and ``calls_percent`` of
    those at the first gate; frames as of ``evaluation.judged_all``, answers as of ``generation.generate``."""
    first, *others = frames
    names = {gate: f"gate_{gate:g}" for gate in frames}
    known = repository_rows({(model, BASE if gate == first else names[gate]): frame for gate, frame in frames.items()})
    rows = [each | {"condition": _named(each["condition"], names[first])} for each in known
            if "_relative_" not in each["metric"]]
    counts = {gate: [len(one.calls) for one in written[gate]] for gate in frames}
    for gate, frame in frames.items():
        where = frame.repository
        rows.append(row(model, names[gate], "editsim_percent", estimate(frame.edit_similarity, where).percent()))
        rows.append(row(model, names[gate], "calls_per_function", average(counts[gate], where)))
        if sum(counts[first]):
            share = Rate(100 * sum(counts[gate]) / sum(counts[first]), math.nan, math.nan, sum(counts[first]))
            rows.append(row(model, names[gate], "calls_percent", share))
    for gate in others:
        where, condition = frames[gate].repository, f"{names[gate]} - {names[first]}"
        similarity = paired_difference(frames[first].edit_similarity, frames[gate].edit_similarity, where)
        rows.append(row(model, condition, "editsim_change_points", similarity.percent()))
        calls = paired_difference(counts[first], counts[gate], where)
        rows.append(row(model, condition, "calls_per_function_change", calls))
    return rows


def marks(written: Generations) -> pd.DataFrame:
    """One row for each call: how probable the mark was, and the name that was chosen. ``right``: the original's body
    has that name, wherever; where in it the answer stands cannot be said once the two differ."""
    rows = []
    for one in written:
        wanted = set(identifiers(one.function.body))
        rows += [{"id": one.function.id, "repository": one.function.repository, "chosen": call.chosen,
                  "probability": math.exp(one.completion.token_logprobs[call.step]), "right": call.chosen in wanted}
                 for call in one.calls]
    return pd.DataFrame(rows, columns=COLUMNS)


def removal_rows(model: str, calls: pd.DataFrame, gates: Sequence[float]) -> list[dict]:
    """What each gate leaves of the ``marks`` of ungated answers: ``kept_right_percent`` and ``kept_wrong_percent`` of
    the calls with such names, ``right_percent`` of the calls that are kept. And, under ``marks``, ``auroc``: how often a
    right call's mark is more probable than a wrong one's.

    Exact for the first call that a gate removes from an answer; behind it the answer might have gone on otherwise.
    """
    rows = []
    for gate in gates:
        kept = calls.probability >= (gate if gate < 1 else NEVER)
        for metric, flags in (("kept_right_percent", kept[calls.right]), ("kept_wrong_percent", kept[~calls.right]),
                              ("right_percent", calls.right[kept])):
            if len(flags):
                share = rate(flags, calls.repository[flags.index]).percent()
                rows.append(row(model, f"gate_{gate:g}", metric, share))
    if calls.right.any() and not calls.right.all():
        rows.append(row(model, "marks", "auroc", auroc_interval(calls.right, calls.probability, calls.repository)))
    return rows


def _named(condition: str, first: str) -> str:
    """The condition of ``repository_rows`` in which ``base`` stood for the first gate."""
    return first if condition == BASE else condition.replace(f" - {BASE}", f" - {first}")
