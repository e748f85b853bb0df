"""Runs CloudAPIBench as a conversation with a served model that may look up documentation.

The model gets one tool, ``lookup(query)``, which searches the kit's index of operations. The model
may call this tool at most ``max_calls`` times and then writes the API call, which is judged as in
the other notebooks. The endpoint must be OpenAI-compatible and accept ``tools``.

Each turn is an answer in the completion store. The key of a turn contains the whole conversation so
far, so an answered turn is never requested again, and a killed run loses only the turns in flight.

The server's replies are not trusted. A call is invalid if it names another tool, or if its
arguments are not ``{"query": "some text"}``. An invalid call counts as a call and is answered by an
error message. Each request contains the model's earlier calls. An invalid call is repeated there
without its arguments, and under the name ``lookup`` if the tool's name has forbidden characters.
Calls beyond the allowed number are ignored. After the last allowed call, requests have
``tool_choice: none``; if the model calls the tool all the same, the text that it wrote in this turn
is its answer. The ids of calls are made here, not taken from the server.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pandas import DataFrame

from lookuplab import benchmark
from lookuplab.cloudapi.bench import CloudApiBench, Documents
from lookuplab.cloudapi.dag import Passes, retrieved_documents
from lookuplab.cloudapi.policies import (
    Rows,
    class_rows,
    outcome,
    sampled_hits,
    triggered,
)
from lookuplab.cloudapi.prompts import docstring
from lookuplab.cloudapi.specs import texts_of
from lookuplab.cloudapi.tasks import ApiTask
from lookuplab.errors import UserError
from lookuplab.models import Completion, Decoding, Prompt, complete
from lookuplab.models.completions import visible
from lookuplab.models.names import is_remote, split_options
from lookuplab.models.remote import RemoteModel, content_text
from lookuplab.paths import canonical

# Increase VERSION after a change to how conversations are sent or how replies are read, because the
# stored answers then no longer fit. The keys of stored answers contain VERSION.
VERSION = 1
LOOKUP = {
    "type": "function",
    "function": {
        "name": "lookup",
        "description": "Search the reference documentation of cloud APIs. Returns the API methods "
        "that fit best, with their arguments.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": "what to look for: a service, a method's name, words",
                }
            },
            "required": ["query"],
        },
    },
}
REFUSAL = 'error: the only tool is lookup, and its arguments are {"query": "some text"}'
LONGEST = 1_000  # characters of a query; the rest is cut off
MOST = 100  # calls in one turn; further calls are ignored
# the reasons that servers give for the end of a turn that calls a tool
CALLING = ("tool_calls", "function_call")
POLICIES = ("base", "dag", "dag_index_lookup")  # the policies that need no log-probabilities
# (task, query) -> ids of the documents that the tool finds
Lookup = Callable[[ApiTask, str], Sequence[str]]


class Turns(RemoteModel):
    """A model whose answer to a prompt is the next turn of a conversation.

    A prompt's text is ``{"messages", "tools"}`` as JSON, in which ``tools`` is auto, none or null
    (no tools). An answer's text is ``{"text", "calls"}`` as JSON. Each call is ``[name,
    arguments]``, as the server sent it. An answer's ``record`` is the number of tokens written.
    """

    def __init__(self, name: str) -> None:
        place, options = split_options(name)
        if not is_remote(place):
            raise UserError(f"{name}: give an endpoint, http://HOST:PORT/v1#MODEL or openai:MODEL")
        try:
            super().__init__(place, **options | {"chat": True, "logprobs": False})
        except TypeError as error:
            raise UserError(f"model {name}: {error} (options: docs/own.md)") from None

    @property
    def identity(self) -> dict[str, str]:
        return super().identity | {"tools": canonical([LOOKUP, VERSION])}

    def _answer(self, prompt: Prompt, sample: int, decoding: Decoding) -> Completion:
        asked = json.loads(prompt.text)
        fields = {
            "model": self.name,
            "messages": asked["messages"],
            "max_tokens": decoding.max_new_tokens,
            "temperature": 0.0,
        }
        if asked["tools"]:
            fields |= {"tools": [LOOKUP], "tool_choice": asked["tools"]}
        choice, usage = self._ask(fields | self.extra)
        message = choice["message"]
        text = content_text(message.get("content"))
        calls = [sent(call["function"]) for call in (message.get("tool_calls") or [])[:MOST]]
        reason = choice.get("finish_reason")
        # a turn that has calls but no text is not empty, so "call" stands in for its text
        finish = "stop" if reason in CALLING else self._finish(reason, text or "call" * len(calls))
        read, new = (count(usage.get(f"{kind}_tokens")) for kind in ("prompt", "completion"))
        reply = canonical({"text": text, "calls": calls})
        return Completion(prompt.id, sample, reply, (), (), None, finish, read, record=new)


def sent(function: dict[str, Any]) -> list[str]:
    """Return [name, arguments] of a call as texts of limited length, whatever types the server
    sent.
    """
    both = function.get("name"), function.get("arguments")
    texts = (one if isinstance(one, str) else canonical(one) for one in both)
    return [content_text(text)[: 4 * LONGEST] for text in texts]


def count(number: object) -> int:
    """Return the number of tokens that a server reports, or 0 if it is not an integer."""
    return number if isinstance(number, int) else 0


def query_of(name: str, arguments: str) -> str | None:
    """Return the query of a call, or None if it calls another tool or its arguments are invalid."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    match given:
        case {"query": str(query)} if name == "lookup" and query.strip():
            return content_text(query).strip()[:LONGEST]
    return None


@dataclass
class Talk:
    """The conversation about one task.

    ``calls`` has the query of each call, or None for an invalid call. ``over`` means that the model
    has given its ``answer``. ``endless`` means that the model also called the tool in the turn of
    its answer, although no call was left. ``read`` and ``new`` are the numbers of tokens read and
    written in all ``turns``.
    """

    task: ApiTask
    messages: list[dict[str, Any]]
    max_calls: int
    calls: list[str | None] = field(default_factory=list)
    answer: Completion = field(init=False)
    over: bool = False
    endless: bool = False
    turns: int = 0
    read: int = 0
    new: int = 0

    def prompt(self) -> Prompt:
        may = "auto" if len(self.calls) < self.max_calls else "none"
        asked = {"messages": self.messages, "tools": may if self.max_calls else None}
        return Prompt(self.task.id, canonical(asked))

    def take(self, turn: Completion, show: Callable[[ApiTask, str], str]) -> None:
        """Process the model's next turn: its answer, or calls to the tool. ``show`` returns the
        tool's reply to a valid query about a task.
        """
        reply = json.loads(turn.text)
        self.turns += 1
        self.read += turn.prompt_tokens
        self.new += count(turn.record)
        calls = reply["calls"][: self.max_calls - len(self.calls)]
        if not calls:
            self.over = True
            self.endless = bool(reply["calls"])
            self.answer = replace(turn, text=reply["text"], prompt_tokens=self.read)
            return
        made, answers = [], []
        for name, arguments in calls:
            query = query_of(name, arguments)
            id = f"lookup{len(self.calls):03}"
            self.calls.append(query)
            name = name if re.fullmatch(r"[\w-]{1,64}", name, re.ASCII) else "lookup"
            again = canonical({} if query is None else {"query": query})
            function = {"name": name, "arguments": again}
            made.append({"id": id, "type": "function", "function": function})
            told = REFUSAL if query is None else show(self.task, query)
            answers.append({"role": "tool", "tool_call_id": id, "content": told})
        spoken = visible(reply["text"])
        self.messages += [{"role": "assistant", "content": spoken, "tool_calls": made}, *answers]


def lookup(bench: CloudApiBench, k: int, hits: dict[str, bool] | None = None) -> Lookup:
    """Return the tool's search function. For the words of a query, it returns the ids of the k
    documents that BM25 ranks best.

    ``hits`` maps a task's id to whether the tool finds the right document, whatever the query; the
    right document is then inserted into BM25's results or removed from them, as in
    ``dag.retrieved_documents``. Without ``hits``, BM25's results are returned as they are.
    """

    def found(task: ApiTask, query: str) -> Sequence[str]:
        name = " ".join(re.findall(r"\w+", query))
        # the query takes the place of the API's name that a model wrote in a first pass
        shown = retrieved_documents([task], DataFrame({"name": [name]}), k, False, bench.index)
        is_hit = shown.found[0] if hits is None else hits[task.id]
        return (shown.hit if is_hit else shown.miss)[task.id]

    return found


def conversations(
    model: Turns, bench: CloudApiBench, find: Lookup | None, max_calls: int, **options: Any
) -> DataFrame:
    """Hold a conversation about each task. Return the frame of ``benchmark.judged``, in the order
    of the tasks.

    Further columns are ``calls``, ``errors`` (invalid calls), ``cut`` (all calls were used up),
    ``endless``, ``empty`` (no visible answer), ``turns``, ``prompt_tokens`` and ``new_tokens`` over
    all turns, and ``queries``. Without ``find``, the model gets no tool. ``options`` are those of
    ``models.complete``. Raises UserError if ``max_calls`` is below 1 and there is a tool.
    """
    if max_calls < 1 and find:
        raise UserError(f"max_calls is {max_calls}: give at least 1")
    bench = bench.for_model(model)
    texts = texts_of(bench.design, bench.index)
    talks = []
    for task in bench.tasks:
        prompt = bench.prompt(task)
        given = ("system", prompt.system), ("user", prompt.text)
        messages = [{"role": role, "content": content} for role, content in given]
        talks.append(Talk(task, messages, max_calls if find else 0))

    def show(task: ApiTask, query: str) -> str:
        specs = [bench.index.by_id[api] for api in find(task, query)]
        return docstring(specs, bench.design, texts)

    decoding = Decoding(bench.max_new_tokens)
    while asking := [talk for talk in talks if not talk.over]:
        prompts = [talk.prompt() for talk in asking]
        for talk, turn in zip(asking, complete(model, prompts, decoding, **options), strict=True):
            talk.take(turn, show)
    pairs = [(talk.task, talk.answer) for talk in talks]
    named = benchmark.Asked(model.name, "with the tool" if find else "")
    return benchmark.judged(bench, pairs, [named] * len(pairs)).assign(
        model=model.name,
        calls=[len(talk.calls) for talk in talks],
        errors=[talk.calls.count(None) for talk in talks],
        cut=[0 < talk.max_calls <= len(talk.calls) for talk in talks],
        endless=[talk.endless for talk in talks],
        empty=[not visible(talk.answer.text).strip() for talk in talks],
        turns=[talk.turns for talk in talks],
        new_tokens=[talk.new for talk in talks],
        queries=[talk.calls for talk in talks],
    )


@dataclass(frozen=True)
class Results:
    """A model's answers in single turns and at the end of conversations. ``passes`` has the answers
    in single turns, as ``dag.passes`` returns them. ``agent`` is the frame of ``conversations``.
    ``hits``, (tasks,) booleans, says for which tasks the tool and every policy find the right
    document.
    """

    passes: Passes
    agent: DataFrame
    hits: np.ndarray


def ask(
    model: Turns,
    bench: CloudApiBench,
    precision: float | None,
    max_calls: int,
    k: int = 1,
    seed: int = 0,
    **options: Any,
) -> Results:
    """Run all tasks in four ways: without a document, with the right document, with a wrong
    document, and as a conversation in which the model may call the tool.

    ``precision`` is the percentage of tasks whose right document is found.
    ``policies.sampled_hits`` draws these tasks. With None, BM25's own results are used.
    """

    def one_turn(documents: Documents | None) -> DataFrame:
        return conversations(model, replace(bench, documents=documents), None, 0, **options)

    first = one_turn(None)
    shown = retrieved_documents(bench.tasks, first, k, index=bench.index)
    both = one_turn(shown.hit), one_turn(shown.miss)
    if precision is None:
        hits = shown.found
        find = lookup(bench, k)
    else:
        hits = sampled_hits(first, precision, seed)
        find = lookup(bench, k, dict(zip(first.id, map(bool, hits), strict=True)))
    agent = conversations(model, bench, find, max_calls, **options)
    return Results(Passes(k, first, *both, shown.found), agent, hits)


def agent_rows(asked: Results) -> Rows:
    """Return rows that compare the conversation (``agent``) with policies.

    The conditions are base, dag, dag_index_lookup, ``asked`` and ``agent``, each by class.
    ``asked`` is a policy of single turns: if the model called the tool in the conversation about a
    task, the policy puts documentation above the prompt of this task.

    Each condition has ``valid_percent``, ``valid_change_points`` from base, ``triggered_percent``,
    ``turns_per_task`` and ``tokens_per_task`` (read and written). The condition ``agent`` also has
    ``calls_per_task`` and the percentages of tasks with an invalid call (``error_percent``), with
    all calls used up (``cut_percent``), with a call after the last allowed call
    (``endless_percent``) and with an empty answer (``empty_percent``).
    ``valid_above_random_points`` compares the agent with a policy of single turns that shows
    documentation for equally many tasks, chosen at random: the agent's validity minus the policy's.
    """
    p = asked.passes
    agent = asked.agent
    hits = asked.hits
    called = agent.calls.to_numpy() > 0
    masks = {policy: triggered(p.first, policy) for policy in POLICIES} | {"asked": called}
    ways = {
        name: {
            "valid_percent": outcome(p, mask, hits),
            "triggered_percent": mask,
            "turns_per_task": 1 + mask,
            "tokens_per_task": tokens(p.first) + np.where(mask, outcome(p, True, hits, tokens), 0),
        }
        for name, mask in masks.items()
    }
    gain = outcome(p, True, hits) - p.first.valid
    valid = agent.valid.to_numpy(dtype=float)
    ways["agent"] = {
        "valid_percent": valid,
        "valid_above_random_points": valid - (p.first.valid + called.mean() * gain),
        "triggered_percent": called,
        "calls_per_task": agent.calls,
        "turns_per_task": agent.turns,
        "tokens_per_task": tokens(agent),
        "error_percent": agent.errors > 0,
        **{f"{name}_percent": agent[name] for name in ("cut", "endless", "empty")},
    }
    rows = []
    for name, numbers in ways.items():
        change = {"valid_change_points": numbers["valid_percent"] - p.first.valid}
        rows += class_rows(p.first, name, numbers | change)
    return rows


def tokens(frame: DataFrame) -> Any:
    """Return the number of tokens read and written for each task, (tasks,). It is NaN if the server
    does not report it.
    """
    total = frame.prompt_tokens + frame.new_tokens
    return total.where(total > 0)
