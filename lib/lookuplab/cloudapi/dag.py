"""Documentation augmented generation: ask, look up what was invoked, ask again (paper, Section 3.1
and Figure 4).

In the second pass the model sees documentation and the original prompt, but not its first attempt.
Whatever the retriever's precision, the threshold or the policy, a task is answered in one of three
ways: without documentation (``first``), with documents that contain the target (``hit``) or with
documents that do not (``miss``). Only these three passes are ever generated; ``cloudapi.policies``
selects among them.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, Self

import numpy as np
from pandas import DataFrame

from lookuplab.benchmark import Benchmark, evaluate
from lookuplab.cloudapi.first_call import (
    LISTING_1,
    FirstCall,
    code_span,
    first_call,
    strip_backticks,
)
from lookuplab.cloudapi.prompts import DESIGNS, docstring
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, load_documentation, load_index
from lookuplab.cloudapi.tasks import ApiTask
from lookuplab.cloudapi.validity import FIRST_NAME, NONEXISTENT, judge_call
from lookuplab.errors import UserError, check_choice
from lookuplab.models import Completion, Decoding, Model, Prompt
from lookuplab.retrieval.rankers import Bm25, identifier_words

DESIGN = "description_specification"  # Section 3.2 adopts it for all that follows
# Task id -> ids of the APIs whose documentation precedes the prompt.
Shown = Mapping[str, Sequence[str]]

# 1. Look up. The index has all operations, "identified using keys prepared similarly as the
# queries" (Section 3.1).


def key_terms(place: ApiSpec | ApiTask, name: str | None, service: bool = True) -> list[str]:
    """The terms by which an API is found: its service, the words of its client, its name and the
    words of its name.

    Index entries and queries are made in the same way. For a query, ``place`` is the task, whose
    prompt names service and client, and ``name`` is what the model called first (None or NaN if it
    called nothing). Without ``service`` only the name is used, which many APIs may share.
    """
    terms = [place.service.lower(), *identifier_words(place.client, "joined")] if service else []
    if isinstance(name, str):
        terms += [name.lower(), *identifier_words(name, "joined")]
    return terms


@cache
def api_ranker(index: ApiIndex) -> Bm25:
    """BM25 over the keys of all operations of the index."""
    return Bm25({spec.id: key_terms(spec, spec.name) for spec in index.operations}, words=str.split)


@cache
def _ranked(index: ApiIndex, terms: str, k: int) -> list[str]:
    """The ids of the best k operations; many tasks and models ask for the same."""
    return [api for api, _ in api_ranker(index).top(terms, k)]


def documents(
    tasks: Sequence[ApiTask],
    first: DataFrame,
    k: int = 1,
    service: bool = True,
    index: ApiIndex | None = None,
) -> tuple[Shown, Shown, np.ndarray]:
    """What a retriever of configurable precision shows (Section 3.1).

    For "x% precision@k" it returns k documents of BM25, and "the target API's documentation is
    included x% of the time". A *hit* is the top k; if it contains no acceptable API, the API asked
    for takes the last place. A *miss* is the top k of the APIs that are not acceptable. Any x is a
    mixture of the two.

    ``first`` is the first pass over the same tasks; the API that it invoked is the query. Returns
    the hits and the misses, each as {task id: k API ids}, and ``Passes.retrieved``: for each task,
    whether BM25 alone found a target. Raises UserError if the index does not have k documents.
    """
    index, most = index or load_index(), max(len(task.targets) for task in tasks)
    if not 1 <= k <= len(index.operations) - most:
        raise UserError(
            f"k is {k}: the index of {len(index.operations)} APIs cannot give that many"
        )
    hits, misses, retrieved = {}, {}, []
    for task, name in zip(tasks, first.name, strict=True):
        ranked = _ranked(index, " ".join(key_terms(task, name, service)), k + most)
        others = [api for api in ranked if api not in task.targets]
        top, misses[task.id] = ranked[:k], tuple(others[:k])
        retrieved.append(top != others[:k])
        hits[task.id] = tuple(top if retrieved[-1] else [*top[:-1], task.target])
    return hits, misses, np.array(retrieved)


def oracle(tasks: Sequence[ApiTask]) -> Shown:
    """The API asked for and nothing else: the control that is always right (Figure 6)."""
    return {task.id: (task.target,) for task in tasks}


def random_documents(tasks: Sequence[ApiTask], k: int, seed: int = 0) -> Shown:
    """k different APIs drawn from the whole index, none acceptable: the control that is always
    wrong.

    Each task has its own seed, so a task's documents are the same in every subset of the tasks, and
    the documents for a smaller k are the first ones for a larger k.
    """
    ids, shown = sorted(api_ranker(load_index()).ids), {}
    for task in tasks:
        generator = random.Random(f"{seed} {task.id}")
        drawn: list[str] = []
        while len(drawn) < k:
            api = generator.choice(ids)
            if api not in (*task.targets, *drawn):
                drawn.append(api)
        shown[task.id] = tuple(drawn)
    return shown


# 2. API invocation confidence: how sure a model was of the API's name (Section 4.2 and Figure 8).
# The paper takes the minimum probability over the name's tokens; mean, product and the last token
# are its ablation. The minimum is not normalised by length: a name of many tokens has more chances
# to contain an uncertain one.

AGGREGATES: dict[str, Callable[[list[float]], float]] = {
    "minimum": min,
    "mean": lambda probabilities: math.fsum(probabilities) / len(probabilities),
    "product": math.prod,
    "last": lambda probabilities: probabilities[-1],
}


def shown_tokens(
    completion: Completion, code: str | None = None, after: int = 0
) -> list[tuple[str, float, bool]]:
    """The API name's tokens and up to ``after`` more: (piece, probability, whether it counts), as
    in Figure 8.

    Empty if no API is named. A dotted name counts as a whole. A token that is only "(" does not
    count; one that ends the name and opens the call, such as ``t(``, does. ``code`` is the part of
    the completion that is judged: for chat models the text inside the backticks, by default the
    whole completion.
    """
    written = "".join(completion.tokens)
    code = written if code is None else code
    call, name = first_call(code), FIRST_NAME.match(code)
    if call.start is not None and call.paren is not None:
        # blanks before the "(" are not part of the name
        start, stop = call.start, len(code[: call.paren].rstrip(" \t\f\\\n\r"))
    elif name:
        start, stop = name.span(1)
    else:
        return []
    offset = 0 if code == written else code_span(written)[0]
    shown, end = [], 0
    for piece, logprob in zip(completion.tokens, completion.token_logprobs or (), strict=True):
        begin, end = end, end + len(piece)
        if end > offset + start:
            shown.append((piece, math.exp(logprob), begin < offset + stop))
    of_name = sum(counts for *_, counts in shown)
    # no end-of-text after the name
    return [token for token in shown[: of_name + after] if token[0] or token[2]]


def confidence(completion: Completion, code: str | None = None) -> dict[str, float]:
    """All aggregates by name, each from 0 to 1; NaN without log-probabilities.

    0 if no API is named, so any threshold above 0 triggers retrieval.
    """
    if completion.token_logprobs is None:
        return dict.fromkeys(AGGREGATES, math.nan)
    probabilities = [probability for _, probability, _ in shown_tokens(completion, code)] or [0.0]
    return {name: min(1.0, of(probabilities)) for name, of in AGGREGATES.items()}


# 3. Ask.


@dataclass
class CloudApiBench(Benchmark[ApiTask]):
    """CloudAPIBench, or the tasks and the index of a package: one greedy completion per task, up to
    the first call (Section 2.3), judged by ``validity.judge_call``. Intervals are clustered by API.

    documents: {task id: ids of the APIs whose documentation stands above the prompt}, in one of the
        ``DESIGNS``; None shows none. constrained (not in the paper): the invoked name must be one
        of the client's operations (``models.constraint``). chat: Listing 1 asks for a call in
        backticks, which are then removed; ``for_model`` sets it.
    """

    tasks: Sequence[ApiTask]
    documents: Shown | None = None
    design: str = DESIGN
    index: ApiIndex = field(default_factory=load_index)
    max_new_tokens: int = 256
    constrained: bool = False
    chat: bool = False

    measures = ("valid", "valid_closed")
    by = "frequency"

    def __post_init__(self) -> None:
        check_choice("augmentation design", self.design, DESIGNS)

    @property
    def decoding(self) -> Decoding:  # type: ignore[override]
        """Greedy, up to the first call. A chat answer opens with backticks or words, at which that
        rule would stop at once. With documents, a prompt that is too long loses its beginning.
        """
        rule = None if self.chat else FirstCall
        cut: Literal["left"] | None = None if self.documents is None else "left"
        return Decoding(self.max_new_tokens, stop_rule=rule, truncation=cut)

    def for_model(self, model: Model) -> Self:
        return replace(self, chat=bool(model.chat))

    def prompt(self, task: ApiTask) -> Prompt:
        text = task.prompt
        if self.documents is not None:
            specs = [self.index.by_id[api] for api in self.documents[task.id]]
            full = load_documentation(self.index.documentation) if self.design == "full" else None
            text = docstring(specs, self.design, full) + text
        names = operations(task, self.index) if self.constrained else None
        return Prompt(task.id, text, LISTING_1 if self.chat else None, names)

    def code(self, completion: Completion) -> str:
        """The part of a completion that is judged."""
        return strip_backticks(completion.text) if self.chat else completion.text

    def judge(self, task: ApiTask, completion: Completion) -> dict[str, Any]:
        """``provider``, ``frequency``; the fields of ``validity.CallJudgement``, and ``exists``:
        the client has a method of the invoked name; the confidences ``minimum, mean, product,
        last``; and ``prompt_tokens``, ``prompt_dropped`` and ``new_tokens``.
        """
        code = self.code(completion)
        place = task.provider, task.client, task.service
        judgement = judge_call(code, task.targets, self.index, *place)
        return {
            "provider": task.provider,
            "frequency": task.frequency,
            **vars(judgement),
            "exists": judgement.category != NONEXISTENT,
            **confidence(completion, code),
            "prompt_tokens": completion.prompt_tokens,
            "prompt_dropped": completion.prompt_dropped,
            "new_tokens": len(completion.tokens),
        }

    def cluster(self, task: ApiTask) -> str:
        return task.target


def operations(task: ApiTask, index: ApiIndex) -> tuple[str, ...]:
    """The names of all API operations of the client that the task's prompt creates, sorted."""
    methods = index.methods(task.provider, task.client, task.service)
    return tuple(sorted(name for name, spec in methods.items() if spec.operation))


@dataclass(frozen=True)
class Passes:
    """What every policy with ``k`` documents selects from: frames of ``evaluate``, one row per
    task, in the same order.

    ``retrieved``: (tasks,) booleans, whether BM25 by itself has an acceptable target among its
    first ``k``. If so, its documents are those of ``hit``, otherwise those of ``miss``: real
    retrieval, too, is a selection among these passes.
    """

    k: int
    first: DataFrame
    hit: DataFrame
    miss: DataFrame
    retrieved: np.ndarray


def passes(
    model: Model, bench: CloudApiBench, k: int = 1, *, service: bool = True, **options: Any
) -> Passes:
    """The first, hit and miss passes with ``k`` documents each; ``options`` are those of
    ``models.complete``.

    ``service``: whether the retriever's query names the service as well as the API that the model
    invoked first. Documents are in the order of their rank. Raises UserError for k below 1.
    """
    first = evaluate(model, bench, **options)
    *shown, retrieved = documents(bench.tasks, first, k, service, bench.index)
    hit, miss = (evaluate(model, replace(bench, documents=ids), **options) for ids in shown)
    return Passes(k, first, hit, miss, retrieved)
