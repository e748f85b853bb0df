"""What the tool was asked and what the model chose, read off finished answers, and checked against the tool.

Nothing here knows how the answers were decoded, and answers from the store have their calls as well.
"""

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tqdm import tqdm

from lookuplab.models.tokens import UNFINISHED
from lookuplab.models.types import Completion
from lookuplab.toolgen.caret import ask, behind_a_dot, suggestions
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.jedi_tool import JediTool
from lookuplab.toolgen.tool_use import ToolUse, Vocabulary


@dataclass(frozen=True)
class Call:
    """One question: ``before`` is the function's text up to the caret, without marks, ``chosen`` the name that the
    answer has there, "" for none. ``cut``: the answer's end may have cut it off."""

    before: str
    chosen: str
    cut: bool = False


def calls(completion: Completion, trigger: str | None, vocabulary: Vocabulary) -> Iterator[Call]:
    """The questions of an answer, in order, found in its tokens and its text alone."""
    text, before, within = completion.text, "", False
    for token, piece in zip(completion.token_ids, completion.tokens, strict=True):
        before += piece
        within = not piece and (within or UNFINISHED in vocabulary.piece(token))  # a character is not complete
        marked = trigger == "mark" and token == vocabulary.mark
        dotted = trigger == "dot" and re.search(r"\.\w*\Z", piece) and behind_a_dot(before)
        if dotted or marked and not within:
            begun = re.search(r"\w*\Z", before)[0]
            name = begun + re.match(r"\w*", text[len(before):])[0]
            end = len(before) - len(begun) + len(name)
            yield Call(before, name, end == len(text) and completion.finish_reason == "length")


@dataclass(frozen=True)
class NotOffered:
    """A name that was chosen where the tool offers others only."""

    function: Function
    call: Call
    offered: tuple[str, ...]


def not_offered(asked: Iterable[tuple[Function, Call]], tool: JediTool, kind: str, use: ToolUse,
                progress: bool = True) -> list[NotOffered]:
    """Ask the tool once more at every call; the chosen names that its answers lack.

    A call is no exception where no suggestion begins like what was written already: there the row was free.
    """
    def exception(item: tuple[Function, Call]) -> NotOffered | None:
        function, call = item
        offered = suggestions(ask(tool, function, call.before, kind, use.variant), use.trigger)
        begun = re.search(r"\w*\Z", call.before)[0]
        fitting = [name for name in offered if name.startswith(begun)]
        fine = call.chosen in fitting or not fitting or (
            call.cut and any(name.startswith(call.chosen) for name in fitting))
        return None if fine else NotOffered(function, call, offered)

    asked = list(asked)
    with ThreadPoolExecutor(len(tool.workers)) as threads:
        found = tqdm(threads.map(exception, asked), "checking suggestions", len(asked), disable=not progress)
        return [one for one in found if one is not None]
