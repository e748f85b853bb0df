"""Implements documentation augmented generation (DAG): generate, look up the API that was invoked,
generate again (paper, Section 3.1 and Figure 4).

In the second pass the model sees documentation and the original prompt, but not its first attempt.
Whatever the retriever's precision, the threshold or the policy, a task has one of three prompts:
without documentation (``first``), with documents that contain the target (``hit``) or with
documents that do not (``miss``). Only these three passes are ever generated; ``cloudapi.policies``
selects among them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from pandas import DataFrame

from lookuplab.benchmark import evaluate
from lookuplab.cloudapi.bench import CloudApiBench, Documents
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, load_index
from lookuplab.cloudapi.tasks import ApiTask
from lookuplab.errors import UserError
from lookuplab.models import Model
from lookuplab.retrieval.rankers import Bm25, identifier_words

# The retriever is BM25 over all API operations. In the paper, the operations are "identified using
# keys prepared similarly as the queries" (Section 3.1).


def key_terms(api: ApiSpec | ApiTask, name: str | None, service: bool = True) -> list[str]:
    """Return the terms by which BM25 finds an API: the service, the words of the client's name, the
    API's name, and the words of the API's name. Index keys and queries are made in the same way.

    For an index key, ``api`` is the API's specification. For a query, ``api`` is the task, whose
    prompt names the service and the client; ``name`` is the API that the model invoked in the first
    pass (None or NaN if it invoked none). If ``service`` is False, only the API's name is used.
    Many APIs may have the same name.
    """
    terms = [api.service.lower(), *identifier_words(api.client, "joined")] if service else []
    if isinstance(name, str):
        terms += [name.lower(), *identifier_words(name, "joined")]
    return terms


@cache
def api_ranker(index: ApiIndex) -> Bm25:
    """Return a BM25 ranker over the keys of all operations of the index."""
    return Bm25({spec.id: key_terms(spec, spec.name) for spec in index.operations}, words=str.split)


class Retrieval(NamedTuple):
    """The k documents to show for each task. ``hit`` has the documents for a retriever that finds
    an API that the task accepts, ``miss`` the documents for a retriever that finds none.

    ``found`` has (tasks,) booleans that say whether BM25's own first k documents include an API
    that the task accepts.
    """

    hit: Documents
    miss: Documents
    found: np.ndarray


def retrieved_documents(
    tasks: Sequence[ApiTask],
    first: DataFrame,
    k: int = 1,
    service: bool = True,
    index: ApiIndex | None = None,
) -> Retrieval:
    """Return the documents that the paper's retriever of configurable precision shows (Section
    3.1).

    At "x% precision@k", this retriever returns k documents of BM25, and "the target API's
    documentation is included x% of the time". A *hit* is the first k documents of BM25; if none of
    them is about an acceptable API, the task's target replaces the last one. A *miss* is the first
    k documents about APIs that are not acceptable. A retriever of any precision shows a mixture of
    hits and misses.

    ``first`` is the frame of the first pass over the same tasks. The API that the model invoked
    there becomes the query. Raises UserError if k is below 1, or if the index is too small for k
    documents about APIs that are not acceptable.
    """
    index = index or load_index()
    most = max(len(task.targets) for task in tasks)
    if not 1 <= k <= len(index.operations) - most:
        raise UserError(
            f"k is {k}; it must be from 1 to {len(index.operations) - most} for this index"
        )
    named = zip(tasks, first.name, strict=True)
    queries = {task.id: " ".join(key_terms(task, name, service)) for task, name in named}
    # a task has at most ``most`` acceptable APIs, so at least k of these k + ``most`` documents are
    # about other APIs
    ranked = api_ranker(index).rank(queries, k + most)
    hits = {}
    misses = {}
    found = []
    for task in tasks:
        others = [api for api in ranked[task.id] if api not in task.targets]
        top = ranked[task.id][:k]
        misses[task.id] = tuple(others[:k])
        # the two lists differ if and only if the first k documents include an acceptable API
        found.append(top != others[:k])
        hits[task.id] = tuple(top if found[-1] else [*top[:-1], task.target])
    return Retrieval(hits, misses, np.array(found))


def oracle(tasks: Sequence[ApiTask]) -> Documents:
    """Return the documents that an oracle shows: for each task, only the documentation of its
    target. This is the control of Figure 6.
    """
    return {task.id: (task.target,) for task in tasks}


@dataclass(frozen=True)
class Passes:
    """The three passes: ``first`` without documents, ``hit`` and ``miss`` with ``k`` documents per
    task. All three are frames of ``evaluate``, with one row per task, in the same order. A policy
    selects one of the passes for each task.

    ``retrieved`` has (tasks,) booleans that say whether BM25's own first ``k`` documents include an
    acceptable API. If so, BM25's documents are the same as in ``hit``, otherwise the same as in
    ``miss``. Real retrieval is therefore a selection among these passes, too.
    """

    k: int
    first: DataFrame
    hit: DataFrame
    miss: DataFrame
    retrieved: np.ndarray


def passes(
    model: Model, bench: CloudApiBench, k: int = 1, *, service: bool = True, **options: Any
) -> Passes:
    """Run the first pass, without documents. Then run two passes with ``k`` documents per task:
    ``hit``, in which an acceptable API is among the documents, and ``miss``, in which none is.
    ``options`` are those of ``models.complete``.

    The retriever's query is the name of the API that the model called in the first pass. If
    ``service`` is True, the query also names the service and the client. The prompt shows the
    documents in the order of their rank. Raises UserError for k below 1.
    """
    first = evaluate(model, bench, **options)
    shown = retrieved_documents(bench.tasks, first, k, service, bench.index)
    query = "" if service else "found by the name alone"
    hit = evaluate(model, replace(bench, documents=shown.hit), query, **options)
    miss = evaluate(model, replace(bench, documents=shown.miss), query, **options)
    return Passes(k, first, hit, miss, shown.found)
