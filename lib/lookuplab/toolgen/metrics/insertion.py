"""A generated function in its file, in the place of the reference.

Everything is found by ``ast``: the `def` that starts on a line, its end, the docstring and the first line behind it.
Decorators stand before the `def` and stay. All text has "\\n" line ends, so that lines are counted as Python does.
"""

import ast
import functools
import io
import re
import textwrap
import tokenize
from dataclasses import dataclass
from pathlib import Path

from lookuplab.errors import UserError

DEFINITION = re.compile(r"\s*(?:async\s+)?def\s+(\w+)")


@dataclass(frozen=True)
class Place:
    """Where a function stands in its file: 1-based lines, all inclusive, and its parts as written there.

    ``header`` is the text from `def` to the last line before the body, docstring included; ``signature`` and
    ``docstring`` are its two parts. ``indent`` is that of the `def` line, ``body_indent`` that of the body.
    """

    name: str
    line: int
    end_line: int
    indent: str
    body_indent: str
    signature: str
    docstring: str
    body: str
    body_line: int

    @property
    def header(self) -> str:
        return "\n".join(part for part in (self.signature, self.docstring) if part)


def read_source(path: Path) -> str:
    """A file's text by its declared encoding, line ends as "\\n"; raises UserError where that is impossible."""
    try:
        with tokenize.open(path) as stream:
            return stream.read()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except (SyntaxError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}") from None


def locate(text: str, line: int) -> Place:
    """The function whose `def` stands on ``line``. Raises UserError: no such function, a file that does not parse."""
    try:
        node = _functions(text).get(line)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(f"the file does not parse: {error}") from None
    if node is not None:
        return _place(node, text.split("\n"))
    raise UserError(f"no function starts on line {line}; the line of its `def` is meant, not of a decorator")


@functools.lru_cache(maxsize=32)
def _functions(text: str) -> dict[int, ast.FunctionDef | ast.AsyncFunctionDef]:
    """Line of the `def` -> the first function found there; a file is asked for all its functions in a row."""
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {node.lineno: node for node in reversed(found)}


def _place(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> Place:
    indent = re.match(r"\s*", lines[node.lineno - 1]).group()
    first = node.body[0]
    documented = ast.get_docstring(node, clean=False) is not None
    start = first.lineno  # a decorated function or class as first statement starts with its decorators
    if getattr(first, "decorator_list", None):
        start = min(decorator.lineno for decorator in first.decorator_list)
    if start == node.lineno or _shares_a_line(node, lines, start):  # def f(): return 1
        column = len(lines[start - 1].encode()[:first.col_offset].decode())
        signature = "\n".join([*lines[node.lineno - 1:start - 1], lines[start - 1][:column].rstrip()])
        body = "\n".join([lines[start - 1][column:], *lines[start:node.end_lineno]])
        return Place(node.name, node.lineno, node.end_lineno, indent, indent + "    ", signature, "",
                     indent + "    " + body, start)
    body_indent = re.match(r"\s*", lines[start - 1]).group()
    behind = first.end_lineno if documented else start - 1
    before = start - 1 if documented else behind
    parts = (lines[node.lineno - 1:before], lines[before:behind], lines[behind:node.end_lineno])
    texts = ("\n".join(part) for part in parts)
    return Place(node.name, node.lineno, node.end_lineno, indent, body_indent, *texts, behind + 1)


def _shares_a_line(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str], start: int) -> bool:
    """Whether the body begins on the signature's last line."""
    return bool(lines[start - 1].encode()[:node.body[0].col_offset].decode().strip()) and not getattr(
        node.body[0], "decorator_list", None)


def function_of(place: Place, prediction: str) -> tuple[str, str]:
    """(whole function, body) of a prediction, indented as its place wants it.

    A prediction is either the whole function, which begins with the `def` of that name (what stands before that `def`
    is cut off: a decorator is in the file already), or the body behind signature and docstring. Nothing is stripped
    behind it.
    """
    prediction = prediction.replace("\r\n", "\n").replace("\r", "\n")
    lines = prediction.split("\n")
    start = next((number for number, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("@")), 0)
    definition = DEFINITION.match(lines[start])
    if definition is None or definition.group(1) != place.name:
        body = indented(prediction, place.body_indent)
        return f"{place.header}\n{body}", body
    whole = indented("\n".join(lines[start:]), place.indent)
    return whole, _body(whole)


def _body(function: str) -> str:
    """The text behind signature and docstring; of a function that does not parse, all behind the `def` line."""
    try:
        return locate(dedented(function), 1).body
    except UserError:
        return function.partition("\n")[2]


def dedented(function: str) -> str:
    """A function moved to the margin, as ``ast`` wants it."""
    return indented(function, "")


def indented(text: str, indent: str) -> str:
    """``text`` moved so that its first line has ``indent``; the inside of multi-line strings stays where it is."""
    lines = text.split("\n")
    first = next((line for line in lines if line.strip()), "")
    old = re.match(r"\s*", first).group()
    fixed = _inside_strings(textwrap.dedent(text) if text.strip() else "", len(lines))
    moved = []
    for number, line in enumerate(lines):
        if not line.strip() or number in fixed:
            moved.append(line)
        elif line.startswith(old):
            moved.append(indent + line[len(old):])
        else:  # further left than the first line: as far left as the place allows
            moved.append(line if indent else line.lstrip())
    return "\n".join(moved)


def _inside_strings(text: str, count: int) -> set[int]:
    """0-based numbers of the lines that begin within a string; those up to an error, where the text has one."""
    inside: set[int] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.STRING:
                inside.update(range(token.start[0], min(token.end[0], count)))
    except (tokenize.TokenError, SyntaxError):
        pass
    return inside


@dataclass(frozen=True)
class Inserted:
    """A file's text with a generated function in it, and the 1-based inclusive lines of that function."""

    text: str
    line: int
    end_line: int


def insert(text: str, place: Place, prediction: str) -> Inserted:
    """``text`` with the function at ``place`` replaced by a prediction (see ``function_of``)."""
    function, _ = function_of(place, prediction)
    lines, new = text.split("\n"), function.split("\n")
    together = [*lines[:place.line - 1], *new, *lines[place.end_line:]]
    return Inserted("\n".join(together), place.line, place.line + len(new) - 1)
