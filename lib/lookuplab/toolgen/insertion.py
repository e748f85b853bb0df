"""Inserts a generated function into its file, in place of the reference.

Functions are found by ``ast``. Decorators precede the `def` and are kept. All text has "\\n" line
ends, so that lines are counted as Python does.
"""

import ast
import re
import textwrap
import tokenize
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from lookuplab.errors import UNPARSABLE, UserError
from lookuplab.models.fences import blocks, code_of
from lookuplab.paths import is_special
from lookuplab.toolgen.tokens import cut_comments, tokens

DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef
BLANK = r"[^\S\n]"
# unindented lines that begin with a capital letter and contain no sign of code
PROSE_LINES = r"(?m:^(?:[A-Z][^=()\[\]{}@#\n]*)?(?:\n|\Z))+"


class Location(NamedTuple):
    """The place of a function in its file, as 1-based lines, all inclusive, and its parts as
    written there.

    ``header`` is the text from `def` to the last line before the ``body``, ``signature`` the same
    without the ``docstring``. ``indent`` is that of the `def` line, ``body_indent`` that of the
    body.
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
    """Return a file's text in its declared encoding, with "\\n" line ends; raises UserError if it
    cannot be read.
    """
    if is_special(path):
        raise UserError(f"cannot read {path}: it is a pipe, socket or device")
    try:
        with tokenize.open(path) as stream:
            return stream.read()
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}") from None


@lru_cache(maxsize=1024)  # predictions of all models are inserted at the same places
def location_of(text: str, line: int) -> Location:
    """Return the function whose `def` is on ``line``. Raises UserError if there is none or the file
    does not parse.
    """
    try:
        node = _functions(text).get(line)
    except UNPARSABLE as error:
        raise UserError(f"the file does not parse: {error}") from None
    if node is None:
        raise UserError(
            f"no function starts on line {line}; give the line of its `def`, not of a decorator"
        )
    lines = text.split("\n")
    first = node.body[0]
    start = min(each.lineno for each in (first, *getattr(first, "decorator_list", ())))
    row = lines[start - 1]
    indent = _indent(lines[line - 1])
    column = column_of(row, first.col_offset)
    docstring = ast.get_docstring(node, clean=False)
    if row[:column].strip():  # a one-line function, such as def f(): return 1
        inner = indent + "    "
        body_line = start
        header = signature = [*lines[line - 1 : start - 1], row[:column].rstrip()]
        body = [inner + row[column:], *lines[start : last_line(node)]]
    else:
        inner = _indent(row)
        body_line = start if docstring is None else last_line(first) + 1
        header = lines[line - 1 : body_line - 1]
        body = lines[body_line - 1 : last_line(node)]
        signature = lines[line - 1 : start - 1]
    parts = "\n".join(header), "\n".join(body), body_line, "\n".join(signature), docstring or ""
    return Location(node.name, line, last_line(node), indent, inner, *parts)


def last_line(node: ast.stmt) -> int:
    """Return the last line of a parsed statement, which always has one."""
    return node.end_lineno or node.lineno


def column_of(line: str, byte_column: int) -> int:
    """Return the column in characters for a column of ``ast``, which counts UTF-8 bytes."""
    return len(line.encode()[:byte_column].decode(errors="replace"))


@lru_cache(maxsize=32)  # all functions of a file are located in a row
def _functions(text: str) -> dict[int, DEFINITIONS]:
    """Return {line of the `def`: function} for a file."""
    nodes = ast.walk(ast.parse(text))
    return {node.lineno: node for node in nodes if isinstance(node, DEFINITIONS)}


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def function_of(location: Location, prediction: str, shift: str | None = None) -> tuple[str, str]:
    """Return (whole function, body) of a prediction, indented for its place.

    A prediction is a whole function if it begins with the `def` of that name, or if it is one
    unindented `def` of a different name. Anything before the `def` is cut off, because decorators
    are already in the file. Any other prediction is the body that follows signature and docstring.
    Nothing is stripped at the end.

    By default, the code is first ``_extracted`` from an answer that may contain other text. With
    ``shift``, as in the replication package, it is not: ``shift`` is put before every line, and
    broken indentation stays broken.
    """
    prediction = re.sub("\r\n?", "\n", prediction)
    if shift is not None:
        return _placed(location, prediction, shift)
    return next(
        (
            new
            for text in _extracted(location, prediction)
            if _parses((new := _placed(location, text))[0])
        ),
        _placed(location, prediction),
    )


def _placed(location: Location, text: str, shift: str | None = None) -> tuple[str, str]:
    begin = rf"(?:async{BLANK}+)?def"
    other = rf"{begin}\b.*(?:\n(?:[ \t)].*)?)*\Z"
    start = rf"(?:{BLANK}*(?:@.*)?\n)*(?={BLANK}*{begin}{BLANK}+{location.name}\b|{other})"
    whole = re.match(start, text)
    if whole is None:
        body = indented(text, location.body_indent) if shift is None else indented(text, shift, "")
        return f"{location.header}\n{body}", body
    text = text[whole.end() :]
    if shift is None:
        function = indented(text, location.indent)
    else:
        function = location.indent + indented(text, shift, "").lstrip()
    try:
        return function, location_of(indented(function, ""), 1).body
    except UserError:  # the function does not parse
        return function, function.partition("\n")[2]


def _extracted(location: Location, answer: str) -> Iterator[str]:
    """Yield candidates for the code in an answer; the first that parses at its place is used.

    - The answer without changes, unless it begins with a fence.
    - The fenced block (``fences.blocks``) that has the `def` of that name, else the last block.
    - The part from the `def` of that name to the end of its block; or a body without the unindented
      prose around it.
    - The same with the first line, if it has lost its indentation, indented like the least indented
      of the other lines.
    """
    name = rf"(?:async[ \t]+)?def[ \t]+{location.name}\b"
    fenced = [code_of(answer, block) for block in blocks(answer)]
    fenced.sort(key=lambda block: bool(re.search(name, block)))
    texts = [] if re.match(r"\s*(```|~~~)", answer) else [answer]
    for text in texts + fenced[-1:]:
        yield text
        for whole in re.finditer(rf"^([ \t]*){name}.*(?:\n(?:\1[ \t)\]}}].*|[ \t]*))*", text, re.M):
            yield whole[0]
        yield (bare := re.sub(rf"\A{PROSE_LINES}|{PROSE_LINES}\Z", "", text))
        first, _, rest = bare.lstrip("\n").partition("\n")
        indents = [_indent(line) for line in rest.split("\n") if line.strip()]
        if indents and not first[:1].isspace():
            yield f"{min(indents, key=len)}{first}\n{rest}"


def _parses(function: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about string escapes
        try:
            return bool(ast.parse(indented(function, "")))
        except UNPARSABLE:
            return False


def is_empty(body: str) -> bool:
    """Return whether a body does nothing: `pass`, `...`, `return`, `return None`, a docstring,
    comments, nothing at all.
    """
    code = f"def f():\n    0\n{indented(body, '    ')}"
    try:
        statements = ast.parse(code).body[0].body  # type: ignore[attr-defined]
    except UNPARSABLE:
        return False
    return all(map(_is_nothing, statements))


def _is_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(ast.Constant()) | ast.Return(None | ast.Constant(None)):
            return True
    return False


def indented(text: str, indent: str, old: str | None = None) -> str:
    """Return ``text`` with ``indent`` in place of the indentation ``old``, by default that of its
    first line. Lines inside multi-line strings do not move.
    """
    lines = text.split("\n")
    if old is None:
        old = _indent(next(filter(str.strip, lines), ""))
    if old == indent:
        return text
    inside: set[int] = set()  # 0-based numbers of the lines that begin within a string
    code = textwrap.dedent(text)
    with suppress(SyntaxError):  # after an error, the strings before it are known
        for kind, start, end in tokens(code):
            if kind == "string":
                first = code.count("\n", 0, start) + 1
                inside.update(range(first, first + code.count("\n", start, end)))
    for number, line in enumerate(lines):
        if not line.strip() or number in inside:
            continue
        if line.startswith(old):
            lines[number] = indent + line[len(old) :]
        elif not indent:  # a line further left than ``old``: as far left as possible
            lines[number] = line.lstrip()
    return "\n".join(lines)


class Inserted(NamedTuple):
    """A file's text with a generated function in it, the 1-based inclusive lines of that function,
    and the function and its body as generated (see ``function_of``).
    """

    text: str
    line: int
    end_line: int
    whole: str
    body: str


def insert(text: str, location: Location, prediction: str, shift: str | None = None) -> Inserted:
    """Return ``text`` with the function at ``location`` replaced by a prediction (see
    ``function_of``).

    Comments for pylint in the prediction are left out, so that an answer cannot silence its judge.
    Those of the file, also in the function's own signature, stay.
    """
    whole, body = function_of(location, prediction, shift)
    head = f"{location.header}\n" if whole.startswith(f"{location.header}\n") else ""
    function = head + cut_comments(whole[len(head) :], "pylint:")
    lines = text.split("\n")
    lines[location.line - 1 : location.end_line] = function.split("\n")
    end = location.line + function.count("\n")
    return Inserted("\n".join(lines), location.line, end, whole, body)
