"""What a model is asked to write, and where that ends: the first call after ``client.``, found while it is written.

Instruction-tuned models are told so by Listing 1 and answer in backticks; base models never see any of this.

CloudAPIBench's prompts end in ``client.``, so a completion begins with the rest of a dotted name. ``FirstCall`` reads
it one character at a time, aware of brackets, comments, line continuations and every kind of Python string, and says
when the call is complete or has become impossible. It finds the *extent* of the call only: whether what lies inside
compiles is for the reader to judge (``compile``). f-strings are read as Python 3.12 does (PEP 701: the same quote may
come back inside a replacement field), which agrees with 3.11 on everything that 3.11 accepts.
"""

import re
from dataclasses import dataclass

# The first two paragraphs are the paper's words. The end of the listing, an input and the output that is wanted for
# it, cannot be read in the text that we have of the paper (it repeats "As an example you will be given a code input.
# And you should return your output as"), so the example below is ours, in the form of the benchmark's tasks.
LISTING_1 = """\
You are code completion model. You generate code starting from the end of the prompt given to you. \
You will give your output surrounded by backticks.
Notably, the prompt requires you to complete an API invocation. Complete the API invocation and stop there. \
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

FENCE = re.compile(r"```[ \t]*[\w+#.-]*[ \t]*\n(?P<code>.*?)(?:\n[ \t]*```|```|\Z)", re.DOTALL)
INLINE = re.compile(r"\A\s*(?P<ticks>`+)(?P<code>.*?)(?:(?P=ticks)|\s*\Z)", re.DOTALL)
CLOSING = {"(": ")", "[": "]", "{": "}"}
FIELD = "field"  # the frame of an f-string's replacement field; "}" closes it as it closes a brace
STRING_PREFIXES = {"r", "b", "u", "f", "br", "rb", "fr", "rf"}


@dataclass
class _String:
    """One open string literal (or the format specification of a replacement field of it)."""

    quote: str
    is_f: bool
    is_raw: bool
    quotes_seen: int = (
        1  # of the opening quotes while they are read, then of a possible closing triple
    )
    opening: bool = True
    triple: bool = False
    is_format_spec: bool = False
    pending: str = ""  # what was read of "{{", of an escape, of \N{...}


class FirstCall:
    """Incremental scanner. ``feed`` it text until ``over``; ``feed`` returns ``over``.

    ``start``, ``paren`` and ``end`` are offsets into all that was fed: ``text[start:paren]`` is the dotted name as
    written, ``text[start:end]`` the whole call. ``end`` is None until the call is complete. ``impossible`` turns True
    when no continuation could make the text begin with a call (a newline before ``(``, a bracket that does not match,
    a line break inside a plain string ...).
    """

    name = "first_call"  # in the keys of stored answers
    stop = (
        "\n\n",
        "\ndef ",
        "\nclass ",
        "\nimport ",
    )  # where an endpoint, which knows no rules, may end too

    def __init__(self) -> None:
        self.start: int | None = None
        self.paren: int | None = None
        self.end: int | None = None
        self.impossible = False
        self._at = 0
        self._last = ""
        self._state = self._before_name
        self._stack: list[str | _String] = []
        self._word = ""  # the identifier that is being read: a possible string prefix
        self._in_comment = False
        self._after_backslash = False

    @property
    def over(self) -> bool:
        """True when more text cannot change the answer."""
        return self.impossible or self.end is not None

    def feed(self, chunk: str) -> bool:
        """Read on. Text after the end of the call is ignored."""
        for char in chunk:
            if self.over:
                break
            if not (char == "\n" and self._last == "\r"):  # "\r\n" is one line break
                self._step("\n" if char == "\r" else char)
            self._last = char
            self._at += 1
        return self.over

    def _step(self, char: str) -> None:
        if not self._after_backslash:
            self._state(char)
        elif char == "\n":
            self._after_backslash = False
        else:
            self.impossible = True  # outside of strings a backslash can only end a line

    # The head: a dotted name up to its "(".

    def _before_name(self, char: str) -> None:
        if char.isidentifier():
            self.start = self._at if self.start is None else self.start
            self._state = self._in_name
        else:
            self._gap(char)

    def _in_name(self, char: str) -> None:
        if not ("a" + char).isidentifier():
            self._state = self._after_name
            self._after_name(char)

    def _after_name(self, char: str) -> None:
        if char == "(":
            self.paren = self._at
            self._stack.append(")")
            self._state = self._in_arguments
        elif char == ".":
            self._state = self._before_name
        else:
            self._gap(char)

    def _gap(self, char: str) -> None:
        """Between the parts of the name only blanks and a continued line may stand."""
        if char == "\\":
            self._after_backslash = True
        elif char not in " \t\f":
            self.impossible = True

    # The arguments: code, comments and strings, nested.

    def _in_arguments(self, char: str) -> None:
        top = self._stack[-1]
        if isinstance(top, _String):
            self._in_string(top, char)
        elif self._in_comment:
            self._in_comment = char != "\n"
        else:
            self._in_code(top, char)

    def _in_code(self, top: str, char: str) -> None:
        word, self._word = self._word, ""
        if ("a" + char).isidentifier():
            self._word = word + char
        elif char in "\"'":
            prefix = word.lower() if word.lower() in STRING_PREFIXES else ""
            self._stack.append(_String(char, is_f="f" in prefix, is_raw="r" in prefix))
        elif char in CLOSING:
            self._stack.append(CLOSING[char])
        elif char in ")]}":
            self._close(top, char)
        elif char == "#":
            self._in_comment = True
        elif char == "\\":
            self._after_backslash = True
        elif char == ":" and top == FIELD:
            around = next(frame for frame in reversed(self._stack) if isinstance(frame, _String))
            spec = _String(
                around.quote, True, around.is_raw, 0, False, around.triple, is_format_spec=True
            )
            self._stack.append(spec)

    def _close(self, top: str, char: str) -> None:
        if char != ("}" if top == FIELD else top):
            self.impossible = True
            return
        self._stack.pop()
        if not self._stack:
            self.end = self._at + 1

    # Strings.

    def _in_string(self, string: _String, char: str) -> None:
        if string.opening and self._opens(string, char):
            return
        if string.pending and self._resolves(string, char):
            return
        if char == string.quote:
            self._quote(string)
            return
        string.quotes_seen = 0
        if char == "\n" and not string.triple:
            self.impossible = True
        elif char == "\\" or (char == "{" and string.is_f):
            string.pending = char
            if string.is_format_spec and char == "{":  # "{{" is no escape there
                self._open_field(string)
        elif char == "}" and string.is_format_spec:
            self._stack.pop()  # the format specification ...
            self._stack.pop()  # ... and its field

    def _opens(self, string: _String, char: str) -> bool:
        """Read the opening quotes; True when the character belongs to them or follows an empty string."""
        if char == string.quote:
            string.quotes_seen += 1
            if string.quotes_seen == 3:
                string.triple, string.opening, string.quotes_seen = True, False, 0
            return True
        string.opening = False
        if string.quotes_seen == 2:  # "" was an empty string; this character is code again
            self._stack.pop()
            self._in_arguments(char)
            return True
        string.quotes_seen = 0
        return False

    def _resolves(self, string: _String, char: str) -> bool:
        r"""Decide what began with "{", "\" or "\N"; True when the character is used up by that."""
        pending, string.pending = string.pending, ""
        if pending == "{":
            if char != "{":
                self._open_field(string)
                self._in_arguments(char)
            return True
        if pending == "\\":
            if char == "N" and string.is_f and not string.is_raw:
                string.pending = "\\N"
            return not (string.is_f and char in "{}")  # f"\{x}" still opens a field
        if pending == "\\N" and char == "{":
            string.pending = "\\N{"
            return True
        if pending == "\\N{" and char not in "}\n" + string.quote:
            string.pending = pending
            return True
        return pending == "\\N{" and char == "}"

    def _open_field(self, string: _String) -> None:
        string.pending = ""
        self._stack.append(FIELD)

    def _quote(self, string: _String) -> None:
        if not string.triple:
            if string.is_format_spec:
                self.impossible = True  # the string would end inside its own field
            else:
                self._stack.pop()
            return
        string.quotes_seen += 1
        if string.quotes_seen == 3 and not string.is_format_spec:
            self._stack.pop()


def first_call(text: str) -> FirstCall:
    """The scanner after the whole text; ``end`` is None where there is no complete first call."""
    scanner = FirstCall()
    scanner.feed(text)
    return scanner


def first_call_end(text: str) -> int | None:
    """Offset just behind the first call's closing parenthesis, or None (no call, unterminated, impossible)."""
    return first_call(text).end


def strip_backticks(text: str) -> str:
    """The code in a chat model's answer: the first fenced block, else what an answer of backticks surrounds.

    A fence that the length limit left open counts to the end. Text without either comes back as it is. Use it on
    answers of chat models only: in code of a base model backticks are part of the code.
    """
    return text[slice(*code_span(text))]


def code_span(text: str) -> tuple[int, int]:
    """Where the code that ``strip_backticks`` takes begins and ends; the words before it may hold the same call."""
    found = FENCE.search(text) or INLINE.match(text)
    return found.span("code") if found else (0, len(text))
