"""One contract for every benchmark: tasks, a task's prompt, the judgement of a completion, and the
cluster that a task belongs to.

A fourth paper is one class with these four and its notebooks (docs/fourth_paper.md). ``evaluate``
asks a model all tasks of any benchmark and gives one tidy frame; ``rate_rows`` turns such a frame
into numbers with intervals; ``lookuplab score`` judges completions that were generated elsewhere.
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Generic, Protocol, Self, TypeVar

import pandas as pd
from pandas.api.types import is_bool_dtype

from lookuplab.errors import UserError, check_choice
from lookuplab.models import Completion, Decoding, Model, Prompt, complete
from lookuplab.scoring.rates import average, rate, row


class HasId(Protocol):
    """All that is asked of a task."""

    @property
    def id(self) -> str | int: ...


TaskT = TypeVar("TaskT", bound=HasId)
Pairs = Sequence[tuple[TaskT, Completion]]


class Benchmark(ABC, Generic[TaskT]):
    """What a paper asks a model, and how it judges the completions.

    tasks: each with an ``id`` of its own. decoding: how completions are generated, with the rule
        that ends them. measures: the columns of ``judge`` that tables show; None means every
        boolean one. by: the column by whose values tables part them.
    """

    tasks: Sequence[TaskT]
    decoding: Decoding = Decoding()
    measures: Sequence[str] | None = None
    by: str = ""

    @abstractmethod
    def prompt(self, task: TaskT) -> Prompt:
        """Return what a model reads; the prompt's id is the task's."""

    @abstractmethod
    def judge(self, task: TaskT, completion: Completion) -> dict[str, Any]:
        """Return {column: value} for one completion: booleans for what is right or wrong, numbers
        for what is measured, texts for what explains. The columns are the same for all completions.
        """

    def cluster(self, task: TaskT) -> str:
        """Return tasks of one cluster (the same API, problem or repository) succeed and fail
        together, so intervals count clusters. By default each task is its own.
        """
        return str(task.id)

    def line(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a line of a file to judge with its task's ``id`` and the ``completion``. By
        default it has them; answers that others published may name them otherwise.
        """
        return record

    def judge_all(self, pairs: Pairs[TaskT]) -> list[dict[str, Any]]:
        """``judge`` for many completions, in their order; override it where many are judged faster
        than one after the other (a pool of sandboxes, analysers that stay warm, a Dask cluster).
        """
        judgements = []
        for task, completion in pairs:
            try:
                judgements.append(self.judge(task, completion))
            except UserError:  # it says what to do
                raise
            except Exception as error:
                name = type(error).__name__
                raise UserError(f"judging task {task.id!r}: {name}: {error}") from error
        return judgements

    def for_model(self, model: Model) -> Self:  # noqa: ARG002
        """Return this benchmark as it is put to one model: a chat model may need an instruction and
        have its code cut out of the answer, a small one a shorter prompt. By default no different.
        """
        return self


def completions_of(
    model: Model, benchmark: Benchmark[TaskT], **options: Any
) -> list[tuple[TaskT, Completion]]:
    """Return each task with its completions, ``benchmark.decoding.n`` of them, in the order of the
    tasks.

    ``options`` (``store``, ``progress``) are those of ``models.complete``.
    Raises UserError if there is no task, and whatever ``complete`` raises.
    """
    if not len(benchmark.tasks):
        raise UserError("there is no task to ask: check the parameters that choose tasks")
    tasks = {str(task.id): task for task in benchmark.tasks}
    prompts = [benchmark.prompt(task) for task in benchmark.tasks]
    for prompt, id in zip(prompts, tasks, strict=False):
        if prompt.id != id:
            raise UserError(f"the prompt of task {id!r} has another id, {prompt.id!r}")
    completions = complete(model, prompts, benchmark.decoding, **options)
    return [(tasks[completion.id], completion) for completion in completions]


def judged(benchmark: Benchmark[TaskT], pairs: Pairs[TaskT]) -> pd.DataFrame:
    """Return one row for each completion: ``id``, ``cluster``, ``sample``, ``completion`` (its
    text), ``finish_reason``, and the columns of the benchmark's judgement.

    Raises UserError if a judgement is no dict, or has a column of one of these names.
    """
    rows = []
    for (task, completion), columns in zip(pairs, benchmark.judge_all(pairs), strict=True):
        row = {
            "id": task.id,
            "cluster": benchmark.cluster(task),
            "sample": completion.sample,
            "completion": completion.text,
            "finish_reason": completion.finish_reason,
        }
        if not isinstance(columns, dict) or row.keys() & columns.keys():
            raise UserError(
                f"judge must give a dict of columns other than {', '.join(row)}; "
                f"for task {task.id!r} it gave {columns!r:.200}"
            )
        rows.append(row | columns)
    return pd.DataFrame(rows)


def evaluate(model: Model, benchmark: Benchmark[TaskT], **options: Any) -> pd.DataFrame:
    """Ask the model every task and judge its completions: the frame of ``judged``, in the order of
    the tasks and samples, with the model's name in the first column, ``model``.

    ``options`` are those of ``models.complete``, as in ``completions_of``.
    """
    suited = benchmark.for_model(model)
    frame = judged(suited, completions_of(model, suited, **options))
    frame.insert(0, "model", model.name)
    return frame


def rate_rows(
    frame: pd.DataFrame, columns: Iterable[str] | None = None, by: str = ""
) -> list[dict[str, Any]]:
    """Return numbers with 95% intervals, clustered, as rows of an artifact, from frames of
    ``evaluate``.

    A column of booleans becomes ``<column>_percent``, another one of numbers its mean,
    ``<column>``; by default, all columns of booleans. Missing values are left out of their number.
    The condition is "all" or, with ``by``, also each value of that column, in the order in which
    they appear.
    """
    if columns is None:
        columns = [name for name in frame if _is_boolean(frame[name])]
    names = list(columns)
    if not names:
        raise UserError("no column is boolean: name the columns to show (Benchmark.measures)")
    for name in (*names, *filter(None, [by])):
        check_choice("a column of the judgement", name, list(frame))
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
    """Return whether all values are booleans but for the missing ones."""
    return bool(is_bool_dtype(column.dropna().infer_objects())) and bool(column.notna().any())


def written(id: str | int, text: str, sample: int = 0) -> Completion:
    """Return a completion that was generated elsewhere: nothing but its text is known."""
    return Completion(str(id), sample, text, (), (), None, "unknown", 0)


def load_benchmark(name: str) -> Benchmark[Any]:
    """Return the benchmark that ``module:Class`` makes without arguments. Raises UserError if there
    is no such class.
    """
    module, _, attribute = name.partition(":")
    try:
        benchmark = getattr(importlib.import_module(module), attribute)()
    except (ImportError, AttributeError, TypeError) as error:
        advice = " (is its folder in PYTHONPATH?)" if isinstance(error, ImportError) else ""
        raise UserError(f"no benchmark {name}: {error}{advice}") from None
    if not isinstance(benchmark, Benchmark):
        raise UserError(f"{name} is no lookuplab.benchmark.Benchmark")
    ids = [str(task.id) for task in getattr(benchmark, "tasks", ())]
    if not ids or len(ids) > len(set(ids)):
        raise UserError(f"{name} must have tasks, each with an id of its own")
    return benchmark
