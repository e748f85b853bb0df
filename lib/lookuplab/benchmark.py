"""Defines what every benchmark provides: its tasks, the prompt and the cluster of each task, and
the judgement of a completion.

To add a fourth paper, write a class with these four parts, and notebooks that use the class
(docs/fourth_paper.md). ``evaluate`` gives a model all tasks of a benchmark and returns one data
frame. ``rate_rows`` turns such a frame into numbers with intervals. ``lookuplab score`` judges
completions that were generated elsewhere.
"""

import gzip
import importlib
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import pandas as pd
from pandas.api.types import is_bool, is_bool_dtype, is_numeric_dtype

from lookuplab.errors import UserError, check_choice
from lookuplab.models import Completion, Decoding, Model, Prompt, complete
from lookuplab.models.store import JUDGED, log_file
from lookuplab.scoring.rates import average, rate, row
from lookuplab.work import say


class HasId(Protocol):
    """Declares the one attribute that every task needs."""

    @property
    def id(self) -> str | int: ...


TaskT = TypeVar("TaskT", bound=HasId)
Pairs = Sequence[tuple[TaskT, Completion]]
# the columns that ``judged`` adds to the columns of the benchmark's ``judge``
KEPT = ("id", "cluster", "sample", "completion", "finish_reason")
OFFERED = 50  # if Jedi offers more names than this at once, `lookuplab view` shows only this many

# Matches a special token that an answer spells out, such as <|endoftext|>. Some tokenizers write
# U+FF5C instead of "|". </s> and similar tokens match only at the end of an answer, because code
# may contain them in a string.
SPECIAL = re.compile(
    r"<[|\uff5c][^\s<>|\uff5c]{1,30}[|\uff5c]>|<extra_id_\d+>|<(?:/s|eos|pad|end_of_turn)>\s*\Z"
)


class Asked(NamedTuple):
    """Says which ``model`` gave an answer, and how the model was asked. ``condition`` says in a few
    words how it was asked; `lookuplab view` shows these words after those that
    ``Benchmark.condition`` returns. ``prompt`` is the text that the model read; None stands for the
    text of ``Benchmark.prompt``.
    """

    model: str = ""
    condition: str = ""
    prompt: str | None = None


class Benchmark(ABC, Generic[TaskT]):
    """The base class of all benchmarks. A benchmark has the tasks that a paper gives to a model. It
    judges the completions as the paper does.

    Each of ``tasks`` has a unique ``id``. ``decoding`` says how completions are generated and which
    rule ends them. ``measures`` are the columns of ``judge`` that tables show; None means every
    boolean column. ``by`` is the column by which tables are split, such as "frequency"; "" means
    that they are not split.
    """

    tasks: Sequence[TaskT]
    decoding: Decoding = Decoding()
    measures: Sequence[str] | None = None
    by: str = ""

    @abstractmethod
    def prompt(self, task: TaskT) -> Prompt:
        """Return what the model reads for a task. The prompt's id is the task's id."""

    @abstractmethod
    def judge(self, task: TaskT, completion: Completion) -> dict[str, Any]:
        """Return {column: value} for one completion. A boolean says whether the completion is right
        in some respect, a number is a measurement, and a text is an explanation. The columns must
        be the same for all completions.
        """

    def cluster(self, task: TaskT) -> str:
        """Return the label of the task's cluster. Intervals take into account that tasks of one
        cluster (the same API, problem or repository) succeed or fail together. By default each task
        is a cluster of its own.
        """
        return str(task.id)

    def condition(self, task: TaskT) -> str:  # noqa: ARG002
        """Return a few words that say how the model is asked for this task. `lookuplab view`
        filters and compares answers by these words. The default, "", is for benchmarks that ask
        the model in the same way for every task.
        """
        return ""

    def judge_all(self, pairs: Pairs[TaskT]) -> Iterable[dict[str, Any]]:
        """Judge many completions. Yield what ``judge`` returns for each completion, in the same
        order, so that a wrong judgement is found before the next completion is judged. Override
        this method if many completions can be judged faster than one at a time: in a pool of
        sandboxes, with analysers that keep running, or on a Dask cluster.
        """
        for task, completion in pairs:
            try:
                yield self.judge(task, completion)
            except UserError:  # its message already says what to do
                raise
            # SystemExit: the judge may run an answer that calls exit()
            except (Exception, SystemExit) as error:
                raise UserError(
                    f"judging task {task.id!r}: {type(error).__name__}: {error}"
                ) from error

    def for_model(self, model: Model) -> Self:  # noqa: ARG002
        """Return this benchmark, adapted to one model. For example, a chat model may need an
        instruction, and the code may have to be cut out of its answers; a small model may need
        shorter prompts. By default nothing changes.
        """
        return self


def completions_of(
    model: Model, benchmark: Benchmark[TaskT], **options: Any
) -> list[tuple[TaskT, Completion]]:
    """Let the model complete the prompts of all tasks. Return (task, completion) pairs in the order
    of the tasks, with ``benchmark.decoding.n`` pairs for each task.

    ``options`` (``store``, ``progress``) are passed to ``models.complete``. Raises UserError if
    there are no tasks, or if a prompt's id is not its task's id. Errors of ``complete`` are raised,
    too.
    """
    if not len(benchmark.tasks):
        raise UserError("no tasks are selected: check the parameters that select tasks")
    tasks = {str(task.id): task for task in benchmark.tasks}
    prompts = [benchmark.prompt(task) for task in benchmark.tasks]
    for prompt, id in zip(prompts, tasks, strict=False):
        if prompt.id != id:
            raise UserError(f"the prompt of task {id!r} has a different id, {prompt.id!r}")
    completions = complete(model, prompts, benchmark.decoding, **options)
    return [(tasks[completion.id], completion) for completion in completions]


def judged(
    benchmark: Benchmark[TaskT], pairs: Pairs[TaskT], asked: Sequence[Asked] = ()
) -> pd.DataFrame:
    """Return one row for each completion: ``id``, ``cluster``, ``sample``, ``completion`` (its
    text), ``finish_reason``, and the columns of the benchmark's judgement.

    In a notebook that the kit runs, the rows are also written to a file for `lookuplab view`
    (``append_judged``), with the model and the condition that ``asked`` gives for each pair. If
    completions contain special tokens, a warning is printed. Raises UserError if a judgement is not
    a dict that can be written as JSON, has a column ``model`` or a column with one of the names
    above, or lacks a column that another judgement has. Also raises UserError for a cluster that is
    not a text.
    """
    if special := [task.id for task, completion in pairs if SPECIAL.search(completion.text)]:
        say(
            f"warning: {len(special)} of {len(pairs)} answers contain a special token such as "
            f"<|endoftext|> and are judged with it (the first: task {special[0]}): generate them "
            "again without special tokens, or cut these tokens off"
        )
    rows: list[dict[str, Any]] = []
    for (task, completion), columns in zip(pairs, benchmark.judge_all(pairs), strict=True):
        row = {
            "id": task.id,
            "cluster": benchmark.cluster(task),
            "sample": completion.sample,
            "completion": completion.text,
            "finish_reason": completion.finish_reason,
        }
        try:
            columns = {
                name: value.item() if isinstance(value, np.generic) else value
                for name, value in columns.items()
            }
            json.dumps(columns, ensure_ascii=False).encode()
            hash(columns.get(benchmark.by))  # raises TypeError for a list
            is_valid = (
                not columns.keys() & {"model", *row}
                and (not rows or rows[0].keys() == {*row, *columns})
                and isinstance(row["cluster"], str)
            )
        except (AttributeError, TypeError, ValueError):
            is_valid = False
        if not is_valid:
            raise UserError(
                f"judge must return a dict of columns other than {', '.join(row)}, model, and the "
                "same columns for all completions, each a boolean, number, text, null or list, "
                f"and cluster a text; for task {task.id!r} they returned {columns!r:.200} and "
                f"{row['cluster']!r}"
            )
        rows.append(row | columns)
    if file := log_file(JUDGED):
        append_judged(file, benchmark, pairs, rows, asked)
    return pd.DataFrame(rows)


def append_judged(
    file: Path,
    benchmark: Benchmark[TaskT],
    pairs: Pairs[TaskT],
    rows: Sequence[dict[str, Any]],
    asked: Sequence[Asked],
) -> None:
    """Append judged answers to a compressed file of JSON lines. Each line has one answer, and
    everything that a reader needs to understand the verdict.

    Among the fields of a line are the ``prompt``; the answer's ``tokens``; ``sure``, the
    probability of each token in percent; ``offers``, the names that a tool offered (see
    ``offer_fields``); the ``class`` of the task; ``right``, the value of the benchmark's first
    measure that is a boolean; and ``columns``, the columns of the judgement.
    """
    flags = [name for row in rows for name in row if is_bool(row[name])]
    measure = next((name for name in benchmark.measures or flags if name in flags), "")
    unnamed = [Asked()] * len(rows)
    with gzip.open(file, "at", 1, encoding="utf-8") as log:
        for (task, completion), row, names in zip(pairs, rows, asked or unnamed, strict=True):
            right = row.get(measure)
            columns = {name: value for name, value in row.items() if name not in KEPT}
            logprobs = completion.token_logprobs or ()
            questions = completion.record if isinstance(completion.record, list | tuple) else ()
            prompt = benchmark.prompt(task).text if names.prompt is None else names.prompt
            line = {
                "model": names.model,
                "condition": ", ".join(filter(None, [benchmark.condition(task), names.condition])),
                "class": str(row.get(benchmark.by, "")),
                "right": bool(right) if is_bool(right) else None,
                "prompt": prompt,
                **{name: row[name] for name in KEPT},
                "tokens": completion.tokens if logprobs else (),
                "sure": [round(100 * math.exp(min(0.0, each))) for each in logprobs],
                "offers": [offer_fields(completion, question) for question in questions],
                "columns": columns,
            }
            log.write(json.dumps(line, default=str) + "\n")


def offer_fields(completion: Completion, question: dict[str, Any]) -> tuple[Any, ...]:
    """Return what a tool answered to one ``question``, which was asked while the model wrote the
    completion.

    The result is a tuple of five: the index of the token after which the tool was queried; the
    number of names that the tool offered; at most ``OFFERED`` of these names; the reason why the
    tool failed, if it did; and the offered name that the model wrote next, or "" if the model wrote
    none of the offered names. The list of names begins with the name that the model wrote.
    """
    offered = question["offered"]
    after = "".join(completion.tokens[question["step"] + 1 :])
    # ``begun`` is the part of a name that the model had already written before the query
    fitting = [name for name in offered if after.startswith(name.removeprefix(question["begun"]))]
    # choose the longest name, because one name may be the beginning of another
    taken = max(fitting, key=len, default="")
    names = sorted(offered, key=lambda name: name != taken)[:OFFERED]
    return question["step"], len(offered), names, question["failure"], taken


def evaluate(
    model: Model, benchmark: Benchmark[TaskT], condition: str = "", **options: Any
) -> pd.DataFrame:
    """Give the model every task, judge the completions, and return the data frame from ``judged``,
    in the order of tasks and samples. The first column, ``model``, has the model's name.

    ``condition`` says how the model is asked; `lookuplab view` shows it after the words that
    ``Benchmark.condition`` returns. ``options`` are passed to ``models.complete``.
    """
    suited = benchmark.for_model(model)
    pairs = completions_of(model, suited, **options)
    frame = judged(suited, pairs, [Asked(model.name, condition)] * len(pairs))
    frame.insert(0, "model", model.name)
    return frame


def rate_rows(
    frame: pd.DataFrame, columns: Iterable[str] | None = None, by: str = ""
) -> list[dict[str, Any]]:
    """Return percentages and means with clustered 95% intervals, as rows for ``Artifact.save``.
    ``frame`` has the rows from ``evaluate`` for one or several models.

    A column of booleans gives the metric ``<column>_percent``. A column of numbers gives the metric
    ``<column>``, which is the column's mean. By default, all columns of booleans are used. Missing
    values are left out. The rows over all tasks have the condition "all". If ``by`` names a column,
    each value in that column is a condition with rows of its own, in the order of first occurrence.
    """
    if columns is None:
        columns = [name for name in frame if _is_boolean(frame[name])]
    names = list(columns)
    if not names:
        raise UserError("no column is boolean: name the columns to show (Benchmark.measures)")
    for name in (*names, *filter(None, [by])):
        check_choice("a column of the judgement", name, list(frame))
    for name in names:
        values = frame[name].dropna()
        # pandas would read the text "2" as a number
        if len(values) and not is_numeric_dtype(values.infer_objects()):
            raise UserError(f"the measure {name!r} has values that are not booleans or numbers")
    rows = []
    for model, of_model in frame.groupby("model", sort=False):
        parts = [*of_model.groupby(by, sort=False)] if by else []
        for condition, part in [*parts, ("all", of_model)]:
            for name in names:
                judged_part = part[part[name].notna()]
                values = judged_part[name]
                clusters = judged_part.cluster
                if values.empty:
                    continue
                if _is_boolean(frame[name]):
                    number = rate(values, clusters).percent()
                    metric = f"{name}_percent"
                else:
                    number = average(values, clusters)
                    metric = name
                rows.append(row(str(model), str(condition), metric, number))
    return rows


def _is_boolean(column: pd.Series) -> bool:
    """Return whether the column has at least one boolean, and no values besides booleans and
    missing values.
    """
    return bool(is_bool_dtype(column.dropna().infer_objects())) and bool(column.notna().any())


def written(id: str | int, text: str, sample: int = 0) -> Completion:
    """Return a Completion, without tokens, for a text that was generated elsewhere."""
    return Completion(str(id), sample, text, (), (), None, "unknown", 0)


def load_benchmark(name: str) -> Benchmark[Any]:
    """Return an instance of the benchmark class ``name``, given as ``module:Class``. The class is
    called without arguments. Raises UserError if the class cannot be imported, if it is not a
    subclass of Benchmark, if it has no tasks, or if two of its tasks have the same id.
    """
    module, _, attribute = name.partition(":")
    try:
        kind = getattr(importlib.import_module(module), attribute)
        if not (isinstance(kind, type) and issubclass(kind, Benchmark)):
            # checked before the call, so that only a subclass of Benchmark is ever called
            raise UserError(f"{name} is not a lookuplab.benchmark.Benchmark")
        benchmark = kind()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        advice = " (is its folder in PYTHONPATH?)" if isinstance(error, ImportError) else ""
        raise UserError(f"no benchmark {name}: {error}{advice}") from None
    ids = [str(task.id) for task in getattr(benchmark, "tasks", ())]
    if not ids or len(ids) > len(set(ids)):
        raise UserError(f"{name} must have tasks, each with a unique id")
    return benchmark
