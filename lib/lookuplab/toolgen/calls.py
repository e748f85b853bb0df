"""What the tool was asked and what the model chose, read off finished answers, and checked against the tool.

Nothing here knows how the answers were decoded, and answers from the store have their calls as well.
"""

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from tqdm import tqdm

from lookuplab.models.tokens import UNFINISHED
from lookuplab.models.types import Completion
from lookuplab.toolgen.caret import ask, behind_a_dot, suggestions
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.jedi_tool import JediTool
from lookuplab.toolgen.tool_use import ToolUse, Vocabulary


@dataclass(frozen=True)
class Call:
    """One question: ``before`` is the function's text up to the caret, without marks, ``token`` the token that asked,
    ``chosen`` the name that the answer has there, "" for none. ``cut``: the answer's end may have cut it off. ``step``:
    which token of the answer asked, from 0."""

    before: str
    token: int
    chosen: str
    cut: bool = False
    step: int = 0

    @property
    def begun(self) -> str:
        """What of the name was written before the tool was asked."""
        return re.search(r"\w*\Z", self.before)[0]


def calls(completion: Completion, trigger: str | None, vocabulary: Vocabulary) -> Iterator[Call]:
    """The questions of an answer, in order, found in its tokens and its text alone."""
    text, before, within = completion.text, "", False
    for step, (token, piece) in enumerate(zip(completion.token_ids, completion.tokens, strict=True)):
        before += piece
        within = not piece and (within or UNFINISHED in vocabulary.piece(token))  # a character is not complete
        marked = trigger == "mark" and token == vocabulary.mark
        dotted = trigger == "dot" and re.search(r"\.\w*\Z", piece) and behind_a_dot(before)
        if dotted or marked and not within:
            rest = re.match(r"\w*", text[len(before):])[0]
            cut = completion.finish_reason == "length" and len(before) + len(rest) == len(text)
            call = Call(before, token, "", cut, step)
            yield replace(call, chosen=call.begun + rest)


@dataclass(frozen=True)
class NotOffered:
    """A name that was chosen where the tool offers others only."""

    function: Function
    call: Call
    offered: tuple[str, ...]


def not_offered(asked: Iterable[tuple[Function, Call]], tool: JediTool, kind: str, use: ToolUse, vocabulary: Vocabulary,
                progress: bool = True) -> list[NotOffered]:
    """The chosen names that Jedi's answers lack, asked at every call as it stands in the finished text.

    What the tool remembers is not asked again. A call is no exception where no suggestion begins like what was written
    already, or none can be spelled in the model's tokens: there the row was free.
    """
    def answer(item: tuple[Function, Call]) -> tuple[str, ...]:
        function, call = item
        return suggestions(ask(tool, function, call.before, kind, use.variant), use.trigger)

    asked = list(asked)
    with ThreadPoolExecutor(len(tool.workers)) as threads:
        answers = tqdm(threads.map(answer, asked), "checking suggestions", len(asked), disable=not progress)
        return [NotOffered(function, call, offered) for (function, call), offered in zip(asked, answers, strict=True)
                if not _is_offered(call, offered) and vocabulary.trie(call.token, offered, call.begun)]


def _is_offered(call: Call, offered: tuple[str, ...]) -> bool:
    return call.chosen in offered or call.cut and any(name.startswith(call.chosen) for name in offered)
