"""Documentation augmented generation: ask, look up what was invoked, ask again (paper, Section 3.1 and Figure 4).

The second time the model sees documentation and the original prompt, not its first attempt. Whatever the retriever's
precision, threshold or policy: a task is answered without documentation (``first``), with documents that contain the
target (``hit``) or with documents that do not (``miss``). These three passes are all that is ever generated;
``cloudapi.policies`` selects among them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lookuplab.cloudapi import retrieval
from lookuplab.cloudapi.augmentation import augment
from lookuplab.cloudapi.benchmark import Task
from lookuplab.cloudapi.confidence import AGGREGATES, confidence
from lookuplab.cloudapi.results import answers, judged
from lookuplab.cloudapi.specs import ApiIndex, load_documentation, load_index
from lookuplab.cloudapi.validity import NONEXISTENT, provider_names
from lookuplab.models.types import Model
from lookuplab.retrieval import check_k
from lookuplab.retrieval.metrics import success_at
from lookuplab.retrieval.precision import hit, miss

DESIGN = "description_specification"  # Section 3.2 adopts it for all that follows
Shown = Mapping[str, Sequence[str]]  # task id -> ids of the APIs whose documentation stands before the prompt


@dataclass(frozen=True)
class Passes:
    """What every policy with ``k`` documents selects from: frames of ``ask``, one row a task, in the same order.

    ``retrieved``: (tasks,) booleans, whether BM25 left alone has an acceptable target among its first ``k``. Then its
    documents are those of ``hit``, else those of ``miss``: real retrieval, too, is a selection.
    """

    k: int
    first: pd.DataFrame
    hit: pd.DataFrame
    miss: pd.DataFrame
    retrieved: np.ndarray


def documented(tasks: Sequence[Task], shown: Shown, design: str = DESIGN,
               index: ApiIndex | None = None) -> list[Task]:
    """The tasks with the documentation of the APIs ``shown`` {task id: API ids} before their prompts."""
    index = index or load_index()
    full = load_documentation(index.documentation) if design == "full" else None
    return [replace(task, prompt=augment(task.prompt, [index.by_id[api] for api in shown[task.id]], design, full))
            for task in tasks]


def ask(model: Model, tasks: Sequence[Task], shown: Shown | None = None, design: str = DESIGN,
        *, max_new_tokens: int = 256, store=None, index: ApiIndex | None = None, requires_confidence: bool = False,
        constrained_below: float | None = None) -> pd.DataFrame:
    """One greedy pass over the tasks, with the documentation of the APIs ``shown`` {task id: API ids} before each.

    One row a task, in the order given: ``validity_table``'s columns and ``model``; ``exists`` (the invoked name is one
    of the client's) and ``exists_anywhere`` (of any client of the provider); the confidences ``minimum, mean, product,
    last`` (NaN from an endpoint without log-probabilities, or UserError if they are required); ``prompt_tokens``,
    ``new_tokens`` and ``prompt_dropped``: with documentation, a prompt beyond the context loses its beginning.

    ``constrained_below`` is not the paper's: the invoked name must be one of the client's operations wherever the
    model, while it writes the name, is less sure than that (1: everywhere; None: nowhere). See ``models.constraint``.
    """
    index = index or load_index()
    prompts, truncation = (tasks, None) if shown is None else (documented(tasks, shown, design, index), "left")
    choices = None if constrained_below is None else {task.id: operations(task, index) for task in tasks}
    answered = answers(model, prompts, max_new_tokens, store, truncation, requires_confidence, choices,
                       1.0 if constrained_below is None else constrained_below)
    table = judged(model.name, [replace(done, text=code) for done, code in answered], tasks, index)
    table["exists"] = table.category != NONEXISTENT
    table["exists_anywhere"] = [name in provider_names(index, provider)
                                for name, provider in zip(table.name, table.provider, strict=True)]
    unknown = dict.fromkeys(AGGREGATES, float("nan"))
    more = [(unknown if done.token_logprobs is None else confidence(done, code))
            | {"prompt_tokens": done.prompt_tokens, "new_tokens": len(done.tokens),
               "prompt_dropped": done.prompt_dropped}
            for done, code in answered]
    return table.join(pd.DataFrame(more))


def operations(task: Task, index: ApiIndex) -> tuple[str, ...]:
    """The names of all API operations of the client that the task's prompt creates, sorted."""
    methods = index.methods(task.provider, task.client, task.service)
    return tuple(sorted({spec.name for spec in methods.values() if spec.operation}))


def passes(model: Model, tasks: Sequence[Task], k: int = 1, design: str = DESIGN, *, service: bool = True,
           max_new_tokens: int = 256, store=None, index: ApiIndex | None = None,
           requires_confidence: bool = False) -> Passes:
    """First, hit and miss pass of ``k`` documents each (``retrieval.precision`` says which).

    ``service``: whether the retriever's query names the service beside the API that the model invoked first. Documents
    stand in the order of their rank. UserError for k below 1 and an index without a task's target.
    """
    index = index or load_index()
    check_k(k)  # here, and not when the first pass has been paid for
    retrieval.check_targets(tasks, index)
    options = {"max_new_tokens": max_new_tokens, "store": store, "index": index}
    first = ask(model, tasks, requires_confidence=requires_confidence, **options)
    hits, misses, retrieved = documents(tasks, first, k, service, index)
    return Passes(k, first, ask(model, tasks, hits, design, **options), ask(model, tasks, misses, design, **options),
                  retrieved)


def documents(tasks: Sequence[Task], first: pd.DataFrame, k: int = 1, service: bool = True,
              index: ApiIndex | None = None) -> tuple[Shown, Shown, np.ndarray]:
    """The documents of hit and miss, {task id: k API ids} each, and ``Passes.retrieved``: what the passes are shown.

    ``first`` is the first pass over the same tasks; what it invoked is searched for. Errors as ``passes``.
    """
    index = index or load_index()
    targets = {task.id: task.targets for task in tasks}
    depth = k + max(len(acceptable) for acceptable in targets.values())
    ranked = retrieval.retrieve(tasks, dict(zip(first.task, first.name)), depth, service, index)
    hits = {task: hit(ranked[task], acceptable, k) for task, acceptable in targets.items()}
    misses = {task: miss(ranked[task], acceptable, k) for task, acceptable in targets.items()}
    return hits, misses, success_at(ranked, targets, k)
