"""A generated function in its file, in place of the reference.

Functions are found by ``ast``. Decorators precede the `def` and are kept. All text has "\\n" line
ends, so that lines are counted as Python does.
"""

import ast
import re
import textwrap
import tokenize
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from lookuplab.errors import UserError
from lookuplab.toolgen.tokens import tokens

DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef
UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)  # what ast.parse raises


class Location(NamedTuple):
    """Where a function is in its file: 1-based lines, all inclusive, and its parts as written
    there.

    ``header`` is the text from `def` to the last line before the ``body``, ``signature`` the same
    without the
    ``docstring``. ``indent`` is that of the `def` line, ``body_indent`` that of the body.
    """

    name: str
    line: int
    end_line: int
    indent: str
    body_indent: str
    header: str
    body: str
    body_line: int
    signature: str
    docstring: str


def read_source(path: Path) -> str:
    """A file's text in its declared encoding, with "\\n" line ends; raises UserError if it cannot
    be read.
    """
    try:
        with tokenize.open(path) as stream:
            return stream.read()
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}") from None


@lru_cache(maxsize=1024)  # every model's predictions are put into the same places
def location_of(text: str, line: int) -> Location:
    """The function whose `def` is on ``line``. Raises UserError if there is none or the file does
    not parse.
    """
    try:
        node = _functions(text).get(line)
    except UNPARSABLE as error:
        raise UserError(f"the file does not parse: {error}") from None
    if node is None:
        raise UserError(
            f"no function starts on line {line}; give the line of its `def`, not of a decorator"
        )
    lines, first = text.split("\n"), node.body[0]
    start = min(each.lineno for each in (first, *getattr(first, "decorator_list", ())))
    row, indent = lines[start - 1], _indent(lines[line - 1])
    column = column_of(row, first.col_offset)
    docstring = ast.get_docstring(node, clean=False)
    if row[:column].strip():  # def f(): return 1
        inner, body_line = indent + "    ", start
        header = signature = [*lines[line - 1 : start - 1], row[:column].rstrip()]
        body = [inner + row[column:], *lines[start : last_line(node)]]
    else:
        inner, body_line = _indent(row), start if docstring is None else last_line(first) + 1
        header, body = lines[line - 1 : body_line - 1], lines[body_line - 1 : last_line(node)]
        signature = lines[line - 1 : start - 1]
    parts = "\n".join(header), "\n".join(body), body_line, "\n".join(signature), docstring or ""
    return Location(node.name, line, last_line(node), indent, inner, *parts)


def last_line(node: ast.stmt) -> int:
    """The last line of a parsed statement, which always has one."""
    return node.end_lineno or node.lineno


def column_of(line: str, byte_column: int) -> int:
    """The character column of ``ast``'s column, which counts UTF-8 bytes."""
    return len(line.encode()[:byte_column].decode(errors="replace"))


@lru_cache(maxsize=32)  # all functions of a file are located in a row
def _functions(text: str) -> dict[int, DEFINITIONS]:
    """The functions of a file by the line of their `def`."""
    nodes = ast.walk(ast.parse(text))
    return {one.lineno: one for one in nodes if isinstance(one, DEFINITIONS)}


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def function_of(location: Location, prediction: str) -> tuple[str, str]:
    """(whole function, body) of a prediction, indented to fit its place.

    A prediction is a whole function if it begins with the `def` of that name, or if it is one
    unindented `def` of a different name; anything before the `def` is cut off, because decorators
    are already in the file. Any other prediction is the body that follows signature and docstring.
    Nothing is stripped at the end.
    """
    prediction = re.sub("\r\n?", "\n", prediction)
    blank = r"[^\S\n]"
    begin = rf"(?:async{blank}+)?def"
    other = rf"{begin}\b.*(?:\n(?:[ \t)].*)?)*\Z"
    start = rf"(?:{blank}*(?:@.*)?\n)*(?={blank}*{begin}{blank}+{location.name}\b|{other})"
    whole = re.match(start, prediction)
    if whole is None:
        body = indented(prediction, location.body_indent)
        return f"{location.header}\n{body}", body
    function = indented(prediction[whole.end() :], location.indent)
    try:
        return function, location_of(indented(function, ""), 1).body
    except UserError:  # it does not parse
        return function, function.partition("\n")[2]


def indented(text: str, indent: str) -> str:
    """``text`` moved so that its first line has ``indent``; the inside of multi-line strings stays
    where it is.
    """
    lines = text.split("\n")
    old = _indent(next(filter(str.strip, lines), ""))
    if old == indent:
        return text
    inside: set[int] = set()  # 0-based numbers of the lines that begin within a string
    code = textwrap.dedent(text)
    with suppress(SyntaxError):  # the strings before the error are known
        for kind, start, end in tokens(code):
            if kind == "string":
                first = code.count("\n", 0, start) + 1
                inside.update(range(first, first + code.count("\n", start, end)))
    for number, line in enumerate(lines):
        if not line.strip() or number in inside:
            continue
        if line.startswith(old):
            lines[number] = indent + line[len(old) :]
        elif not indent:  # further left than the first line: as far left as the place allows
            lines[number] = line.lstrip()
    return "\n".join(lines)


class Inserted(NamedTuple):
    """A file's text with a generated function in it, and the 1-based inclusive lines of that
    function.
    """

    text: str
    line: int
    end_line: int


def insert(text: str, location: Location, prediction: str) -> Inserted:
    """``text`` with the function at ``location`` replaced by a prediction (see ``function_of``)."""
    new = function_of(location, prediction)[0].split("\n")
    lines = text.split("\n")
    lines[location.line - 1 : location.end_line] = new
    return Inserted("\n".join(lines), location.line, location.line + len(new) - 1)
