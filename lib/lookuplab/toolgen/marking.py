"""Algorithm 1: where in a function would the completion tool have offered the next identifier? (Section III-B)

The paper's ISBUILTIN is stated by one example; Figure 4 leaves ``self`` unmarked as well. Here: ``__x__``, the names of
``builtins`` unless they stand behind a dot, ``self`` and ``cls``. The tool sees the *incomplete* function (Section
II-B, and the state of Algorithm 2): the file up to the caret, then what follows the function in the file.
"""

import builtins
import keyword
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from lookuplab.toolgen.functions import Function, Token
from lookuplab.toolgen.jedi_tool import JediTool, Worker

MARK = "<COMP>"
VARIANTS = ("paper", "package")
_NO_FUNCTIONS = {"copyright", "credits", "exit", "license", "quit"}  # set by the site module, for the prompt
BUILTINS = frozenset(name for name in dir(builtins) if name.isidentifier()) - _NO_FUNCTIONS
_OPERATORS = frozenset("()[]{}:;,.+-*/%=<>!@&|^~")
RECEIVERS = frozenset({"self", "cls"})


@dataclass(frozen=True)
class Marked:
    """A function with the (line, column) in its file of every mark, the number of questions and the failed ones."""

    function: Function
    marks: tuple[tuple[int, int], ...]
    asked: int
    failures: Counter

    @property
    def signature(self) -> str:
        """The signature with marks (the package's variant alone sets any)."""
        return self._with_marks(self.function.signature, self.function.line)

    @property
    def body(self) -> str:
        """The body with MARK before each marked token."""
        return self._with_marks(self.function.body, self.function.body_line)

    def _with_marks(self, text: str, first: int) -> str:
        lines = text.split("\n")
        for line, column in sorted(self.marks, reverse=True):
            if first <= line < first + len(lines):
                at = column if line in self.function.kept else column - len(self.function.indent)
                lines[line - first] = lines[line - first][:at] + MARK + lines[line - first][at:]
        return "\n".join(lines)


def candidates(function: Function, variant: str = "paper") -> Iterator[Token]:
    """The tokens before which the tool is asked. The package asks in the signature too, and before literals."""
    previous = ""
    for token in function.tokens:
        if variant == "package":
            skipped = BUILTINS | {"self"} | set(keyword.kwlist)
            wanted = token.text not in skipped and not _dunder(token.text) and token.text[0] not in _OPERATORS
        else:
            hidden = token.text in RECEIVERS or token.text in BUILTINS
            wanted = token.is_name and token.line >= function.body_line and not _dunder(token.text)
            wanted = wanted and (previous == "." or not hidden)
        if wanted:
            yield token
        previous = token.text


def buffer_at(lines: list[str], function: Function, token: Token, variant: str = "paper") -> str:
    """The unsaved file with the function up to ``token``. ``lines`` are the whole file's, with their line ends.

    On a blank indented line, and in some unfinished brackets, Jedi takes the caret to stand outside the function, and
    offers no local name; a dummy name behind the caret puts it inside. The package has none, and so never marks a local
    name at a statement's start.
    """
    before = lines[token.line - 1][:token.column]
    dummy = "_" if variant == "paper" else ""
    return "".join([*lines[:token.line - 1], before, dummy, "\n", *lines[function.end_line:]])


def mark(function: Function, lines: list[str], tool: JediTool | Worker, variant: str = "paper") -> Marked:
    """Ask at every candidate, mark where its exact name is offered. A failed call marks nothing and is counted."""
    marks, failures, asked = [], Counter(), 0
    for token in candidates(function, variant):
        text = buffer_at(lines, function, token, variant)
        answer = tool.complete(function.root, function.file, text, token.line, token.column, token.text)
        asked += 1
        if answer.failure:
            failures[answer.failure] += 1
        elif token.text in (answer.inserted if variant == "package" else answer.identifiers):
            marks.append((token.line, token.column))
    return Marked(function, tuple(marks), asked, failures)


def _dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
