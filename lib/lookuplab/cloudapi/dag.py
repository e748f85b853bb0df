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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from pandas import DataFrame

from lookuplab.cloudapi.first_call import (
    LISTING_1,
    FirstCall,
    code_span,
    first_call,
    strip_backticks,
)
from lookuplab.cloudapi.prompts import DESIGNS, docstring
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, load_documentation, load_index
from lookuplab.cloudapi.tasks import Task
from lookuplab.cloudapi.validity import FIRST_NAME, NONEXISTENT, judge
from lookuplab.errors import UserError, check_choice
from lookuplab.models import Completion, Decoding, Model, Prompt, complete
from lookuplab.retrieval.rankers import Bm25, identifier_words

DESIGN = "description_specification"  # Section 3.2 adopts it for all that follows
# Task id -> ids of the APIs whose documentation precedes the prompt.
Shown = Mapping[str, Sequence[str]]

# 1. Look up. The index has all operations, "identified using keys prepared similarly as the
# queries" (Section 3.1).


def key_terms(place: ApiSpec | Task, name: str | None, service: bool = True) -> list[str]:
    """The terms by which an API is found: its service, the words of its client, its name and the
    words of its name.

    Index entries and queries are made in the same way. For a query, ``place`` is the task, whose
    prompt names service and client, and ``name`` is what the model called first (None or NaN if it
    called nothing). Without ``service`` only the name is used, which many APIs may share.
    """
    found = [place.service.lower(), *identifier_words(place.client, "joined")] if service else []
    if isinstance(name, str):
        found += [name.lower(), *identifier_words(name, "joined")]
    return found


@cache
def api_ranker(index: ApiIndex) -> Bm25:
    """BM25 over the keys of all operations of the index."""
    return Bm25({spec.id: key_terms(spec, spec.name) for spec in index.operations}, words=list)


@cache
def _ranked(index: ApiIndex, terms: tuple[str, ...], k: int) -> list[str]:
    """The ids of the best k operations; many tasks and models ask for the same."""
    return [api for api, _ in api_ranker(index).top(terms, k)]


def documents(
    tasks: Sequence[Task],
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
        ranked = _ranked(index, tuple(key_terms(task, name, service)), k + most)
        others = [api for api in ranked if api not in task.targets]
        top, misses[task.id] = ranked[:k], tuple(others[:k])
        retrieved.append(top != others[:k])
        hits[task.id] = tuple(top if retrieved[-1] else [*top[:-1], task.target])
    return hits, misses, np.array(retrieved)


def oracle(tasks: Sequence[Task]) -> Shown:
    """The API asked for and nothing else: the control that is always right (Section 3.2, Figure 6)."""
    return {task.id: (task.target,) for task in tasks}


def random_documents(tasks: Sequence[Task], k: int, seed: int = 0) -> Shown:
    """k different APIs drawn from the whole index, none acceptable: the control that is always
    wrong.

    Each task has its own seed, so a task's documents are the same in every subset of the tasks, and
    the documents for a smaller k are the first ones for a larger k.
    """
    ids, shown = sorted(api_ranker(load_index()).ids), {}
    for task in tasks:
        generator, drawn = random.Random(f"{seed} {task.id}"), []
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

AGGREGATES = {
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
    found, named = first_call(code), FIRST_NAME.match(code)
    if found.paren is not None:  # blanks before the "(" are not part of the name
        start, stop = found.start, len(code[: found.paren].rstrip(" \t\f\\\n\r"))
    elif named:
        start, stop = named.span(1)
    else:
        return []
    offset = 0 if code == written else code_span(written)[0]
    shown, end = [], 0
    for piece, logprob in zip(completion.tokens, completion.token_logprobs, strict=True):
        begin, end = end, end + len(piece)
        if end > offset + start:
            shown.append((piece, math.exp(logprob), begin < offset + stop))
    named = sum(counts for *_, counts in shown)
    # no end-of-text after the name
    return [token for token in shown[: named + after] if token[0] or token[2]]


def confidence(completion: Completion, code: str | None = None) -> dict[str, float]:
    """All aggregates by name, each from 0 to 1; NaN without log-probabilities.

    0 if no API is named, so any threshold above 0 triggers retrieval.
    """
    if completion.token_logprobs is None:
        return dict.fromkeys(AGGREGATES, math.nan)
    probabilities = [probability for _, probability, _ in shown_tokens(completion, code)] or [0.0]
    return {name: min(1.0, of(probabilities)) for name, of in AGGREGATES.items()}


# 3. Ask.


def answers(
    model: Model,
    tasks: Sequence[Task],
    max_new_tokens: int = 256,
    *,
    truncation: str | None = None,
    choices: Mapping[str, tuple[str, ...]] | None = None,
    **options,
) -> list[tuple[Completion, str]]:
    """Each task's greedy completion up to the first call (Section 2.3), and the code in it that is
    judged.

    The two differ for chat models, which Listing 1 instructs to answer in backticks. ``truncation``
    is as in
    ``Decoding``; ``choices``, {task id: names}, restricts the APIs that may be invoked (by default,
    any); ``options`` (``store``, ``requires_logprobs``) are those of ``complete``.
    """
    check_some(tasks)
    # a chat answer opens with backticks or words, at which the rule would stop at once
    chat = bool(getattr(model, "chat", None))
    rule, system = (None, LISTING_1) if chat else (FirstCall, None)
    decoding = Decoding(max_new_tokens, stop_rule=rule, truncation=truncation)
    prompts = [Prompt(task.id, task.prompt, system, (choices or {}).get(task.id)) for task in tasks]
    found = complete(model, prompts, decoding, **options)
    return [(done, strip_backticks(done.text) if chat else done.text) for done in found]


def check_some(tasks: Sequence[Task] | DataFrame) -> None:
    """Raises UserError if no task is left."""
    if not len(tasks):
        raise UserError(
            "there is no task to ask: check the parameters that choose tasks (limit, frequency)"
        )


def documented(
    tasks: Sequence[Task], shown: Shown, design: str = DESIGN, index: ApiIndex | None = None
) -> list[Task]:
    """The tasks with documentation before their prompts: that of the APIs ``shown``, {task id: API
    ids}.
    """
    index = index or load_index()
    full = load_documentation(index.documentation) if design == "full" else None
    found = []
    for task in tasks:
        above = docstring([index.by_id[api] for api in shown[task.id]], design, full)
        found.append(replace(task, prompt=above + task.prompt))
    return found


def operations(task: Task, index: ApiIndex) -> tuple[str, ...]:
    """The names of all API operations of the client that the task's prompt creates, sorted."""
    methods = index.methods(task.provider, task.client, task.service)
    return tuple(sorted(name for name, spec in methods.items() if spec.operation))


def ask(
    model: Model,
    tasks: Sequence[Task],
    shown: Shown | None = None,
    design: str = DESIGN,
    *,
    index: ApiIndex | None = None,
    constrained: bool = False,
    **options,
) -> DataFrame:
    """One greedy pass over the tasks, if ``shown`` is given with the documentation of its APIs
    before each prompt.

    ``shown`` is {task id: API ids}; ``options`` (``max_new_tokens``, ``store``,
    ``requires_logprobs``) are those of
    ``answers``.

    Returns one row per task, in the order given: ``model, task, frequency, api`` (the target, by
    which intervals are clustered); the fields of ``validity.Judgement`` and ``exists`` (the client
    has a method of the invoked name); the confidences ``minimum, mean, product, last`` (NaN from an
    endpoint without log-probabilities, or UserError if they are required); ``prompt_tokens``,
    ``new_tokens`` and ``prompt_dropped``: with documentation, a prompt longer than the context
    loses its beginning.

    ``constrained`` is not in the paper: the invoked name must be one of the client's operations
    (``models.constraint``).
    """
    check_choice("augmentation design", design, DESIGNS)  # before anything is asked
    index, prompts = index or load_index(), tasks
    if shown is not None:
        prompts, options["truncation"] = documented(tasks, shown, design, index), "left"
    if constrained:
        options["choices"] = {task.id: operations(task, index) for task in tasks}
    rows = []
    for task, (done, code) in zip(tasks, answers(model, prompts, **options), strict=True):
        found = judge(code, task.targets, index, task.provider, task.client, task.service)
        rows.append(
            {
                "model": model.name,
                "task": task.id,
                "api": task.target,
                "frequency": task.frequency,
                **vars(found),
                "exists": found.category != NONEXISTENT,
                **confidence(done, code),
                "prompt_tokens": done.prompt_tokens,
                "prompt_dropped": done.prompt_dropped,
                "new_tokens": len(done.tokens),
            }
        )
    return DataFrame(rows)


@dataclass(frozen=True)
class Passes:
    """What every policy with ``k`` documents selects from: frames of ``ask``, one row per task, in
    the same order.

    ``retrieved``: (tasks,) booleans, whether BM25 by itself has an acceptable target among its
    first ``k``. If so, its documents are those of ``hit``, otherwise those of ``miss``: real
    retrieval, too, is a selection among these passes.
    """

    k: int
    first: DataFrame
    hit: DataFrame
    miss: DataFrame
    retrieved: np.ndarray

    def __post_init__(self) -> None:
        check_some(self.first)


def passes(
    model: Model, tasks: Sequence[Task], k: int = 1, *, service: bool = True, **options
) -> Passes:
    """The first, hit and miss passes with ``k`` documents each; ``options`` are those of ``ask``.

    ``service``: whether the retriever's query names the service as well as the API that the model
    invoked first. Documents are in the order of their rank. Raises UserError for k below 1.
    """
    first = ask(model, tasks, **options)
    *shown, retrieved = documents(tasks, first, k, service, options.get("index"))
    hit, miss = (ask(model, tasks, one, **options) for one in shown)
    return Passes(k, first, hit, miss, retrieved)
