"""One answer step by step: tokens, marks, suggestions, what the trie allowed, what was chosen."""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lookuplab.models.complete import Store
from lookuplab.models.local import LocalModel
from lookuplab.models.tokens import encode
from lookuplab.models.types import Completion, Decoding
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.generation import DECODING, ToolModel, generate
from lookuplab.toolgen.jedi_tool import JediTool
from lookuplab.toolgen.tool_use import ToolUse


@dataclass(frozen=True)
class Step:
    """One token of an answer: its id, what it spells, and its probability under the free model.

    ``asked`` says that the tool was asked behind this token, ``offered`` are the names of its answer. ``allowed`` are
    the tokens that could stand here, as text, and None where all could; those that only end a name are left out, and
    ``may_end`` says whether there were any. ``forced``: a single one could, and the model was not asked.
    """

    token: int
    text: str
    probability: float
    mark: bool
    asked: bool
    offered: tuple[str, ...]
    allowed: tuple[str, ...] | None
    may_end: bool
    forced: bool


def trace(model: LocalModel, function: Function, tool: JediTool, use: ToolUse = ToolUse(),
          decoding: Decoding = DECODING, store: Store = False) -> list[Step]:
    """The steps of ``generate``'s answer for one function; [] if its prompt does not fit. Asks the tool again."""
    (done,) = generate(model, [function], tool, use, decoding, store, progress=False)
    return list(_steps(ToolModel(model, [function], tool, use), done.completion)) if done.completion else []


def _steps(tooled: ToolModel, answer: Completion) -> Iterator[Step]:
    (function,), vocabulary = tooled.functions, tooled.vocabulary
    before = []
    if tooled.kind == "decoder":
        (before,) = encode(vocabulary.tokenizer, [tooled.prompts()[0].text], True, True)
    with ThreadPoolExecutor(1) as threads:
        rule, forced, ends = tooled.constraint(function, before, threads), 0, set(vocabulary.names.breaks.tolist())
        for token, piece, logprob in zip(answer.token_ids, answer.tokens, answer.token_logprobs, strict=True):
            ids = rule.allowed()
            ids = None if ids is None else ids.tolist()
            rule.push(token, logprob, ids is not None)
            rule.allowed()  # waits for the answer, where the tool was asked
            yield Step(token, piece, math.exp(logprob), token == vocabulary.mark, rule.asked,
                       rule.offered if rule.asked else (),
                       None if ids is None else tuple(vocabulary.piece(i) for i in ids if i not in ends),
                       bool(ends.intersection(ids or ())), forced > 0)
            forced = max(forced - 1, 0) or len(rule.forced())
