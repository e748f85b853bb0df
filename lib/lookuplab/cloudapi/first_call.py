"""Finds the first call in a completion, and ends a completion during generation when its first call
ends.

CloudAPIBench's prompts end in ``client.``, so a completion begins with the rest of a dotted name.
``FirstCall`` reads the completion as it arrives. It follows brackets, comments, line continuations
and strings, and ends the answer when the call is complete or has become impossible. ``call_extent``
applies this rule to a whole text. Chat models write the call in backticks, as Listing 1 demands;
``strip_backticks`` removes the backticks first.

Only the *extent* of the call is found; the caller must check whether the call is valid Python.
F-strings are treated as plain strings, as in Python 3.11: a quote of the same kind inside a
replacement field (allowed from Python 3.12) ends the string.
"""

import re
from functools import lru_cache
from typing import ClassVar, NamedTuple

from lookuplab.models.completions import THINKING_ENDS, blocks, visible

# The instructions are quoted from the paper. In our copy of the paper, the listing ends without the
# example's input and output: it only repeats "As an example you will be given a code input. And you
# should return your output as". The example here is therefore ours. It looks like one of the
# benchmark's tasks.
LISTING_1 = """\
You are code completion model. You generate code starting from the end of the prompt given to \
you. \
You will give your output surrounded by backticks.
Notably, the prompt requires you to complete an API invocation. Complete the API invocation and \
stop there. \
Do not write any code other than the single API invocation.
As an example you will be given a code input:
```
import boto3

# Create a client for the translation service
client = boto3.client("translate")

# Translate the greeting from English into German
response = client.
```
And you should return your output as:
```
translate_text(Text="Good morning", SourceLanguageCode="en", TargetLanguageCode="de")
```
"""

# backticks at the beginning of an answer, and the code up to the same backticks or the answer's end
INLINE = re.compile(r"\A\s*(?P<ticks>`+)(?P<code>.*?)(?:(?P=ticks)|\s*\Z)", re.DOTALL)
# code between backticks within a line
QUOTED = re.compile(r"(?P<ticks>`+)(?P<code>[^`\n]+)(?P=ticks)")
CLOSING = {"(": ")", "[": "]", "{": "}"}
# blanks and line continuations, which may stand between the parts of a name
_GAP = r"(?P<wait>\\\Z)|[ \t\f]|\\\n"
# A finite automaton: {state: pattern of what may come next}. The name of the group that matches is
# the next state, with two exceptions. After the group "bracket" the state stays the same. The group
# "wait" matches the beginning of something whose rest has not arrived, such as the first of three
# quotes.
_READ = {
    "before": rf"{_GAP}|(?P<name>[^\W\d])",
    "name": r"(?P<wait>\\\Z)|\w+|(?P<after>[ \t\f]|\\\n)|(?P<before>\.)|(?P<code>\()",
    "after": rf"{_GAP}|(?P<before>\.)|(?P<code>\()",
    "code": r"""[^"'#\\()\[\]{}]+|\\\n|(?P<bracket>[()\[\]{}])|(?P<comment>\#)"""
    r"""|(?P<wait>(?:\\|"{1,2}|'{1,2})\Z)|(?P<doubles>"{3})|(?P<double>")"""
    r"""|(?P<singles>'{3})|(?P<single>')""",
    "comment": r"[^\n]+|(?P<code>\n)",
    "double": r'(?P<wait>\\\Z)|[^"\\\n]+|\\.|(?P<code>")',
    "single": r"(?P<wait>\\\Z)|[^'\\\n]+|\\.|(?P<code>')",
    "doubles": r'(?P<wait>(?:\\|"{1,2})\Z)|[^"\\]+|\\.|(?P<code>"{3})|"',
    "singles": r"(?P<wait>(?:\\|'{1,2})\Z)|[^'\\]+|\\.|(?P<code>'{3})|'",
}
_NEXT = {place: re.compile(pattern, re.DOTALL) for place, pattern in _READ.items()}


class CallExtent(NamedTuple):
    """The extent of the first call in a text: ``text[start:paren]`` is the call's dotted name as
    written, ``text[start:end]`` the whole call.

    A position is None if the text does not reach it. ``impossible`` means that no continuation can
    turn the text into a call (a newline before ``(``, a bracket that does not match, a line break
    inside a plain string ...).
    """

    start: int | None
    paren: int | None = None
    end: int | None = None
    impossible: bool = False

    @property
    def over(self) -> bool:
        """Return True if no further text can change the result."""
        return self.impossible or self.end is not None


@lru_cache(maxsize=10_000)  # judgement and confidence need the same call, and models repeat answers
def call_extent(text: str) -> CallExtent:
    """Return the extent of the first call in a text, even if the call is incomplete. Text after the
    end of the call is ignored.
    """
    rule = FirstCall()
    rule.feed(text)
    return rule.found


class FirstCall:
    """The rule that ends an answer after its first call. ``feed`` reads the answer piece by piece
    and returns whether the answer is over. ``found`` is the extent of the call so far. The time for
    reading is linear in the length of the answer.
    """

    name: ClassVar[str] = "first_call"  # a part of the keys of stored answers
    # stop strings for endpoints, which cannot apply this rule
    stop = ("\n\n", "\ndef ", "\nclass ", "\nimport ")

    def __init__(self) -> None:
        self.found = CallExtent(None)
        self._place = "before"
        # the last characters, whose meaning depends on the characters that come next
        self._waiting = ""
        self._read = 0  # number of characters before ``_waiting``
        self._pending: list[str] = []  # the closing brackets that are still missing
        self._returned = False  # whether the last character was a carriage return

    def feed(self, piece: str) -> bool:
        """Read more text and return whether the answer is ``over``."""
        if self.found.over or not piece:
            return self.found.over
        ends = piece.endswith("\r")
        # this is the second half of a line break (CR LF) that was split over two pieces
        if self._returned and piece.startswith("\n"):
            piece = " " + piece[1:]
        self._returned = ends
        # line breaks become "\n"; the length stays the same, so that positions stay valid
        text = self._waiting + piece.replace("\r\n", "\r ").replace("\r", "\n")
        at = 0
        while at < len(text) and not self.found.over:
            step = _NEXT[self._place].match(text, at)
            kind = step and step.lastgroup
            if kind == "wait":
                break
            here = self._read + at
            if step is None:
                self.found = self.found._replace(impossible=True)
            elif kind == "bracket":
                self._bracket(text[at], here)
            elif kind:
                self._place = kind
            if kind == "name" and self.found.start is None:
                self.found = CallExtent(here)
            elif kind == "code" and self.found.paren is None:
                self.found = CallExtent(self.found.start, here)
                self._pending = [")"]
            at = step.end() if step else at
        self._waiting = text[at:]
        self._read += at
        return self.found.over

    def _bracket(self, bracket: str, at: int) -> None:
        if bracket in CLOSING:
            self._pending.append(CLOSING[bracket])
        elif bracket != self._pending.pop():
            self.found = self.found._replace(impossible=True)
        elif not self._pending:
            self.found = self.found._replace(end=at + 1)


def strip_backticks(text: str) -> str:
    """Return the code in a chat model's answer. Reasoning before the answer is skipped. The code is
    the last fenced block (``completions.blocks``). If there is none, but the answer begins with
    backticks, the code is the text between them. Otherwise, the code is the last text between
    backticks.

    If the length limit cut off the closing backticks, the code extends to the end. An answer
    without backticks is returned as it is. Use this function only for answers of chat models: in
    the output of a base model, backticks are part of the code.
    """
    return text[slice(*code_span(text))]


def code_span(text: str) -> tuple[int, int]:
    """Return the positions (start, end) in ``text`` of the code that ``strip_backticks`` returns.
    ``text.find(code)`` could be wrong, because words before the code may contain the same call.
    """
    answer = visible(text)
    # the answer is the beginning of the text after the reasoning, and may occur in later reasoning
    begin = text.rindex(THINKING_ENDS.split(text)[-1])
    if found := blocks(answer):
        start, end = found[-1].start, found[-1].end
        # the line break before the closing fence does not belong to the code
        end -= answer[start:end].endswith("\n")
    else:
        quotes = [*QUOTED.finditer(answer)]
        code = INLINE.match(answer) or (quotes[-1] if quotes else None)
        start, end = code.span("code") if code else (0, len(answer))
    return begin + start, begin + end
