"""The ablations of Sections 3 and 4 as they read: each point of a figure, each policy of a table, asks the model anew.

``dag.passes`` and ``policies`` get the same numbers from three passes. This module exists to show that: equal values,
and what either way costs.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import TypeVar

import numpy as np
import pandas as pd

from lookuplab.cloudapi.benchmark import Task
from lookuplab.cloudapi.dag import Passes, Shown, ask, documents
from lookuplab.cloudapi.policies import PRECISION, THRESHOLD, outcome, sampled_hits, triggered
from lookuplab.cloudapi.specs import ApiIndex, load_index
from lookuplab.errors import UserError
from lookuplab.models.store import CompletionStore
from lookuplab.models.types import Model
from lookuplab.scoring.rows import bare_row

T = TypeVar("T")
TABLES = {"table_2": ("base", "dag", "dag_index_lookup"), "table_3": ("base", "dag", "dag_plus_plus")}


@dataclass(frozen=True)
class Point:
    """One number of a figure or table: a policy whose retriever shows ``k`` documents, the target's among them for
    ``precision`` percent of the tasks."""

    artifact: str
    policy: str = "dag"
    precision: float = PRECISION
    threshold: float = THRESHOLD
    k: int = 1


@dataclass(frozen=True)
class Cost:
    """What was spent: ``prompts`` answered (equal ones once), ``forward_passes`` of whole batches, tokens read and
    written, and ``seconds`` with all that surrounds the model (retrieval, judging)."""

    prompts: int = 0
    forward_passes: int = 0
    prompt_tokens: int = 0
    new_tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*(ours + theirs for ours, theirs in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class Run:
    """One point, generated: (tasks,) booleans ``valid``, and what the first and the second pass cost."""

    valid: np.ndarray
    first: Cost
    second: Cost


def points(precisions: Sequence[float], thresholds: Sequence[float], retrievals: Sequence[int]) -> list[Point]:
    """Every point of Figures 7a, 9b and 7b and every policy of Tables 2 and 3."""
    return [*(Point("figure_7a", precision=x) for x in precisions),
            *(Point("figure_9b", "dag_confidence", threshold=float(threshold)) for threshold in thresholds),
            *(Point(table, policy) for table, policies in TABLES.items() for policy in policies),
            *(Point("figure_7b", k=k) for k in retrievals)]


def pipeline(model: Model, tasks: Sequence[Task], point: Point, seed: int = 0, max_new_tokens: int = 256,
             index: ApiIndex | None = None) -> Run:
    """Figure 4 from its beginning: ask, decide, retrieve, ask again. Nothing is kept from one point to the next."""
    options = {"max_new_tokens": max_new_tokens, "index": index or load_index()}

    def second(store: CompletionStore) -> np.ndarray:
        retrieve = triggered(first, point.policy, point.threshold)
        valid = first.valid.to_numpy(dtype=bool, copy=True)
        if retrieve.any():
            again = [task for task, chosen in zip(tasks, retrieve, strict=True) if chosen]
            hits = sampled_hits(first, point.precision, seed)[retrieve]
            shown = sampled_documents(again, first[retrieve], hits, point.k, options["index"])
            valid[retrieve] = ask(model, again, shown, store=store, **options).valid.to_numpy(dtype=bool)
        return valid

    first, first_cost = metered(model, lambda store: ask(model, tasks, store=store, **options))
    valid, second_cost = metered(model, second)
    return Run(valid, first_cost, second_cost)


def sampled_documents(tasks: Sequence[Task], first: pd.DataFrame, hits: np.ndarray, k: int = 1,
                      index: ApiIndex | None = None) -> Shown:
    """{task id: k API ids}, with an acceptable target among them where ``hits`` (tasks,) says so, else without."""
    with_target, without, _ = documents(tasks, first, k, index=index)
    return {task.id: (with_target if hit else without)[task.id] for task, hit in zip(tasks, hits, strict=True)}


def selected(passes: Passes, point: Point, seed: int = 0) -> np.ndarray:
    """The same point from passes with the same k, (tasks,) booleans: nothing is generated."""
    retrieve = triggered(passes.first, point.policy, point.threshold)
    return outcome(passes, retrieve, sampled_hits(passes.first, point.precision, seed)) == 1


def metered(model: Model, run: Callable[[CompletionStore], T], store: CompletionStore | None = None) -> tuple[T, Cost]:
    """What ``run`` returns, and its cost; it is given ``store``, or an empty one in memory.

    UserError for a model that counts no work (an endpoint).
    """
    if not hasattr(model, "work"):
        raise UserError(f"{model.name} does not count its forward passes; use a local model")
    if store is None:
        with CompletionStore(":memory:") as empty:
            return metered(model, run, empty)
    before, known, began = replace(model.work), len(store), time.perf_counter()
    result = run(store)
    return result, Cost(len(store) - known, model.work.passes - before.passes,
                        model.work.prompt_tokens - before.prompt_tokens, model.work.new_tokens - before.new_tokens,
                        time.perf_counter() - began)


def cost_rows(model: str, condition: str, cost: Cost, kit: Cost, n: int) -> list[dict]:
    """A cost as rows of the tidy schema: each count, and ``<count>_ratio``, how many times the ``kit``'s it is.

    A count that the kit does not have (0) has no ratio.
    """
    rows = []
    for field in fields(Cost):
        spent, least = getattr(cost, field.name), getattr(kit, field.name)
        values = {field.name: spent} | ({f"{field.name}_ratio": spent / least} if least else {})
        rows += [bare_row(model, condition, metric, value, n) for metric, value in values.items()]
    return rows
