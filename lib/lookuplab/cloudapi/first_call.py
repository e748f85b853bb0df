"""What a model is asked to write, and where that ends: the first call after ``client.``, found while it is written.

Instruction-tuned models are told so by Listing 1 and answer in backticks; base models never see any of this.

CloudAPIBench's prompts end in ``client.``, so a completion begins with the rest of a dotted name. ``FirstCall`` reads
it as it comes, aware of brackets, comments, line continuations and strings, and says when the call is complete or has
become impossible. It finds the *extent* of the call only: whether what lies inside compiles is for the reader to judge
(``compile``). An f-string is a string here, as it is for Python 3.11; the quotes of one that holds them again in a
replacement field (Python 3.12) end it.
"""

import re

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
_GAP = r"(?:[ \t\f]|\\(?:\n|\Z))*+"  # blanks and continued lines: all that may stand between the parts of a name
_NAME = rf"[^\W\d]\w*+{_GAP}"
_HEAD = re.compile(rf"{_GAP}(?P<name>{_NAME}(?:\.{_GAP}(?:{_NAME}|\Z))*+)?+")
# What stands between two brackets. ``\Z``: it may go on in the text that is still to come.
_CODE = re.compile(
    r"""(?: [^"'\#\\()\[\]{}] | \#[^\n]*+ | \\(?:\n|\Z)
    | "{3}(?:[^\\]|\\(?:.|\Z))*?(?:"{3}|\Z) | "(?!"")(?:[^"\\\n]|\\(?:.|\Z))*+(?:"|\Z)
    | '{3}(?:[^\\]|\\(?:.|\Z))*?(?:'{3}|\Z) | '(?!'')(?:[^'\\\n]|\\(?:.|\Z))*+(?:'|\Z) )*+""",
    re.DOTALL | re.VERBOSE,
)


class FirstCall:
    """Reads on with ``feed`` until ``over``.

    ``start``, ``paren`` and ``end`` are offsets into all that was fed: ``text[start:paren]`` is the dotted name as
    written, ``text[start:end]`` the whole call. ``end`` is None until the call is complete. ``impossible`` turns True
    when no continuation could make the text begin with a call (a newline before ``(``, a bracket that does not match,
    a line break inside a plain string ...).
    """

    name = "first_call"  # in the keys of stored answers
    # Where an endpoint, which knows no rules, may end too.
    stop = ("\n\n", "\ndef ", "\nclass ", "\nimport ")

    def __init__(self) -> None:
        self.start: int | None = None
        self.paren: int | None = None
        self.end: int | None = None
        self.impossible = False
        self._text = ""
        self._at = 0  # behind the last bracket
        self._pending: list[str] = []  # the brackets that are to close

    @property
    def over(self) -> bool:
        """True when more text cannot change the answer."""
        return self.impossible or self.end is not None

    def feed(self, chunk: str) -> bool:
        """Read on; returns ``over``. Text after the end of the call is ignored."""
        if not self.over:
            self._text += chunk
            self._scan(self._text.replace("\r\n", "\r ").replace("\r", "\n"))  # of equal length
        return self.over

    def _scan(self, text: str) -> None:
        if self.paren is None:
            head = _HEAD.match(text)
            self.start = head.start("name") if head["name"] else None
            self._at = head.end()
            if self.start is not None and text[self._at :].startswith("("):
                self.paren = self._at
            self.impossible = self.paren is None and self._at < len(text)
        while self.paren is not None and not self.over:
            at = _CODE.match(text, self._at).end()
            if at == len(text):
                return
            bracket, self._at = text[at], at + 1
            if bracket in CLOSING:
                self._pending.append(CLOSING[bracket])
            elif bracket != self._pending.pop():  # also a quote or a backslash that cannot go on
                self.impossible = True
            elif not self._pending:
                self.end = self._at


def first_call(text: str) -> FirstCall:
    """The scanner after the whole text; ``end`` is None where there is no complete first call."""
    scanner = FirstCall()
    scanner.feed(text)
    return scanner


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
