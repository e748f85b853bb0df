"""Computes numbers on the models' calls to the tool: how many there were, what the tool offered,
and which calls remain if the tool is called only where the mark (the token that calls the tool) has
at least a given probability.

Rows are dictionaries like those of ``scoring.rates.row``.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pandas as pd

from lookuplab.models import Completion
from lookuplab.scoring.calibration import auroc_interval
from lookuplab.scoring.rates import (
    Rows,
    average,
    averages,
    bare_row,
    of_change,
    of_number,
    rate,
    row,
)
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.generation import Generations, Question, ToolUse
from lookuplab.toolgen.rules import NEVER, PAPER_RULES, Rules
from lookuplab.toolgen.similarity import identifiers
from lookuplab_notebooks.toolgen.table_rows import METRICS, Metric, metric_rows, repository_rows

CALLS = Metric("calls_per_function", "calls", column="calls", kind=of_number, change=of_number)
EQUAL = (  # metric, its column, and the column by which that column is divided
    ("succrate_equal_calls_points", "passed", ""),
    ("depcov_equal_calls_points", "covered", "dependencies"),
)
COLUMNS = "id repository probability failure names chosen offered right".split()
Written = Mapping[tuple[str, str], Generations]  # (model, condition) -> answers


def asked_questions(completion: Completion) -> list[Question]:
    """Return the calls to the tool during one completion, from the completion's ``record``."""
    return [Question(**fields) for fields in cast("Rows", completion.record)]


def questions_of(made: Generations) -> pd.DataFrame:
    """Return one row for each call to the tool, as recorded during generation. The columns are:

    - ``id`` and ``repository`` of the function
    - ``probability`` of the token that triggered the call
    - ``failure`` of the call, or ""
    - ``names``: how many suggestions begin with the part of the name that was already written
    - ``chosen``: the name that the answer has after the call, or ""
    - ``offered``: whether the tool offered the chosen name. It is also true if the call did not
      constrain the answer: then no suggestion begins with the part already written, or none that
      does can be written in the model's tokens. A name that the token limit cuts off counts as
      offered if it is the beginning of an offered name.
    - ``right``: whether the original's body contains the chosen name anywhere. Positions cannot be
      compared once the answer and the original differ.
    """
    rows = []
    for function in made.model.functions:
        completion = made.completions.get(function.id)
        original = identifiers(function.body)
        if completion is None:
            continue
        for question in asked_questions(completion):
            start = len("".join(completion.tokens[: question.step + 1]))
            rest = _word(completion.text[start:])
            chosen = question.begun + rest
            begun = [name for name in question.offered if name.startswith(question.begun)]
            names = list(map(_word, begun))  # without the = of ``name=``
            is_cut = start + len(rest) == len(completion.text)
            if is_cut and completion.finish_reason == "length":
                is_offered = any(name.startswith(chosen) for name in names)
            else:
                is_offered = chosen in names
            sure = math.exp(completion.token_logprobs[question.step])
            offered = is_offered or not question.choices
            right = chosen in original
            of_tool = question.failure, len(names), chosen, offered, right
            rows.append((function.id, function.repository, sure, *of_tool))
    return pd.DataFrame(rows, columns=COLUMNS)


def _word(text: str) -> str:
    """Return the word at the beginning of ``text``, or ""."""
    return re.split(r"\W", text, maxsplit=1)[0]


def call_rows(written: Written) -> Rows:
    """Return, for each (model, condition) that used the tool, how often it was called.

    The metrics are:

    - ``calls``: the number of calls in all functions
    - ``calls_per_function``, with an interval over repositories
    - ``not_offered_calls``: the number of calls after which the answer has a name that the tool did
      not offer; ``n`` is the number of all calls
    - ``failed_calls``: the number of calls that got no answer; ``n`` is the number of all calls
    """
    rows = []
    for key, functions, questions in _with_tool(written):
        frame = pd.DataFrame([(one.id, one.repository) for one in functions], columns=COLUMNS[:2])
        mean = average(with_calls(frame, questions).calls, frame.repository)
        total = len(questions)
        failed = (questions.failure != "").sum()
        rows += [
            bare_row(*key, "calls", total, len(functions)),
            row(*key, "calls_per_function", mean),
            bare_row(*key, "not_offered_calls", total - questions.offered.sum(), total),
            bare_row(*key, "failed_calls", failed, total),
        ]
    return rows


def offer_rows(written: Written) -> Rows:
    """Return, for each (model, condition) that used the tool, what the tool offered.

    ``answered_percent`` is the percentage of calls at which at least one name could be chosen.
    ``names_per_call`` is the mean number of names at these calls. Both have intervals over
    repositories.
    """
    rows = []
    for key, _, questions in _with_tool(written):
        if len(questions):
            share = rate(questions.names > 0, questions.repository)
            rows.append(row(*key, "answered_percent", share.percent()))
        if len(some := questions[questions.names > 0]):
            rows.append(row(*key, "names_per_call", average(some.names, some.repository)))
    return rows


def _with_tool(
    written: Written,
) -> list[tuple[tuple[str, str], Sequence[Function], pd.DataFrame]]:
    return [
        (key, made.model.functions, questions_of(made))
        for key, made in written.items()
        if made.model.use.trigger
    ]


def with_threshold(threshold: float, rules: Rules = PAPER_RULES) -> ToolUse:
    """Return a ToolUse that calls the tool only if the mark has at least the probability
    ``threshold`` (``lsp_conf`` in the replication package).

    With a threshold of 1 or more, the tool is never called.
    """
    probability = threshold if threshold < 1 else NEVER
    return ToolUse("mark", replace(rules, min_mark_probability=probability))


def with_calls(frame: pd.DataFrame, questions: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of functions with the column ``calls``: how often the tool was called for each
    function. ``questions`` come from ``questions_of``.
    """
    return frame.assign(calls=frame.id.map(questions.id.value_counts()).fillna(0))


def equal_calls_rows(
    model: str, marks: Mapping[str, pd.DataFrame], doubts: Sequence[pd.DataFrame]
) -> Rows:
    """Compare two rules for calling the tool, so that both make equally many calls. One rule calls
    the tool where the model writes the mark. The other rule calls the tool where the model is in
    doubt (``doubt.Doubt``). Return the difference of the success rates and the difference of the
    coverages, mark minus doubt, paired by function.

    ``marks`` maps a condition to its frame with ``calls``. ``doubts`` has a frame for each of
    several thresholds of doubt. All frames have the same functions in the same order. The mark's
    number of calls usually lies between the numbers of two neighbouring thresholds. Doubt is then a
    mixture of both: its value for a function is a weighted mean of the values at the two
    thresholds, with weights that make the mean number of calls equal to the mark's. Intervals treat
    the weights as fixed. A condition that never calls the tool, or calls it more often than any
    threshold, has no row.
    """
    rows = []
    doubts = sorted(doubts, key=lambda frame: frame.calls.mean())
    for name, frame in marks.items():
        calls = frame.calls.mean()
        for low, high in pairwise(doubts):
            if not low.calls.mean() < calls <= high.calls.mean():
                continue
            share = (calls - low.calls.mean()) / (high.calls.mean() - low.calls.mean())
            for metric, part, whole in EQUAL:
                of_mark, below, above = (_parts(each, part) for each in (frame, low, high))
                change = of_mark - (below + share * (above - below))
                counted = np.isfinite(change)
                wholes = _parts(frame, whole)[counted, None] if whole else None
                [number] = averages(
                    change[counted, None], frame.cluster[counted], wholes, of_change
                )
                rows.append(row(model, f"{name} - doubt", metric, number.percent()))
    return rows


def _parts(frame: pd.DataFrame, column: str) -> Any:
    return frame[column].to_numpy(dtype=float)


def threshold_rows(
    model: str, frames: Mapping[float, pd.DataFrame], questions: Mapping[float, pd.DataFrame]
) -> Rows:
    """Return the rows of Table III for one model at each threshold. Further rows have
    ``editsim_percent``, ``calls_per_function`` and ``calls_percent``, the number of calls as a
    percentage of the number at the first threshold.

    ``frames`` come from ``evaluation.judged_all``, and ``questions`` from ``questions_of``. The
    condition is ``gate_<threshold>``, or ``gate_<threshold> - gate_<first threshold>`` for changes
    from the first threshold, over the same functions.
    """
    names = {threshold: f"gate_{threshold:g}" for threshold in frames}
    tables = {
        (model, names[threshold]): with_calls(frame, questions[threshold])
        for threshold, frame in frames.items()
    }
    base = next(iter(names.values()))
    metrics = [METRICS["editsim_percent"], CALLS]
    rows = repository_rows(tables, base)
    total = len(next(iter(questions.values())))
    for threshold, name in names.items():
        rows += metric_rows({(model, name): tables[model, name]}, metrics)
        if total:
            share = 100 * len(questions[threshold]) / total
            rows.append(bare_row(model, name, "calls_percent", share, total))
    rows += [each for each in metric_rows(tables, metrics, base) if " - " in each["condition"]]
    return [each for each in rows if "_relative_" not in each["metric"]]


def removal_rows(model: str, questions: pd.DataFrame, thresholds: Sequence[float]) -> Rows:
    """Return how many calls to the tool each threshold would keep, in answers that were generated
    without a threshold.

    Of the calls after which the right name was written, a threshold keeps ``kept_right_percent``;
    of the other calls, ``kept_wrong_percent``. ``right_percent`` is the percentage of right
    names among the kept calls. In the condition ``marks``, ``auroc`` is the probability that the
    mark of a random right call is more probable than the mark of a random wrong call.

    These numbers are exact up to the first call that a threshold removes from an answer. Later
    calls might be different, because without that call the answer might have continued differently.
    """
    rows = []
    right = questions.right.astype(bool)
    for threshold in thresholds:
        kept = (questions.probability >= threshold) & (threshold < 1)
        shares = {"kept_right": kept[right], "kept_wrong": kept[~right], "right": right[kept]}
        for name, flags in shares.items():
            if len(flags):
                share = rate(flags, questions.repository[flags.index]).percent()
                rows.append(row(model, f"gate_{threshold:g}", f"{name}_percent", share))
    auroc = auroc_interval(right, questions.probability, questions.repository)
    if not math.isnan(auroc.value):
        rows.append(row(model, "marks", "auroc", auroc))
    return rows
