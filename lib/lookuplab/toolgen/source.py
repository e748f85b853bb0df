"""Finds the tokens of Python code, finds functions in a file, and puts a generated function in the
place of the original.

The tokens are those of Python 3.11, whichever Python runs the kit. Broken code has tokens, too.
Functions are located with ``ast``. Decorators precede the `def` and are kept. All texts have "\\n"
line ends, so that line numbers agree with Python's.
"""

import ast
import keyword
import re
import sys
import textwrap
import tokenize
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import parso
from parso.python.token import PythonTokenTypes
from parso.python.tokenize import tokenize as parso_tokens
from parso.tree import Leaf

from lookuplab.errors import UNPARSABLE, UserError
from lookuplab.models.completions import LIST_MARKER, blocks, code_of, visible
from lookuplab.paths import is_special

# 1. Tokens

DEEPEST = 1600  # parso reads code only up to this depth of nesting (``_cut_deep_nesting``)
# Matches DEEPEST nested operators, as in ``not not not x``. Brackets are counted when they open and
# close, but operators have no closing token, so a pattern looks for DEEPEST of them in a row.
CHAIN = re.compile(
    rf"(?:(?:[-+~]|not\b|await\b|lambda\b[^:\n]{{,200}}:|\b\w+ if \w+ else)[ \t]*){{{DEEPEST}}}"
)
# Matches one token and the blanks before it. Text other than strings, comments, brackets and line
# ends is matched in long pieces of several words. The group "endless" is the beginning of a string
# in triple quotes that is never closed. The group "broken" is any other string that goes on after a
# backslash at the end of a line but is never closed.
TOKEN = re.compile(
    r"""[ \f\t]*(?:
    (?P<comment>\#[^\r\n]*)
    |(?P<string>(?i:[bfru]|br|fr|rb|rf)?(?:
        (?P<long>\'{3}|"{3})(?s:[^\\]|\\.)*?(?P=long)
        |(?P<short>[\'"])(?!(?P=short){2})(?:\\(?:\r?\n|.)|(?!(?P=short))[^\n\\])*(?P=short)))
    |(?P<endless>(?i:[bfru]|br|fr|rb|rf)?(?:\'{3}|"{3}))
    |(?P<broken>[\'"](?:(?:[^\n\\]|\\.)*\\\r?\n)+.*\n?)
    |(?P<newline>\r?\n)
    |(?P<joined>\\\r?\n)
    |(?P<opened>[(\[{])
    |(?P<closed>[)\]}])
    |(?P<other>[^\s\'"\#\\()\[\]{}]+(?:[ ]+[^\s\'"\#\\()\[\]{}]+)*|(?s:.))
    )""",
    re.VERBOSE,
)


def tokens(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of the tokens in a text, as the tokenize module of Python 3.11 finds
    them, whichever Python runs. A kind is "blank", "indent", "dedent" or the name of a group in
    TOKEN. An f-string is one "string". Reading continues after most errors in the code.

    The kind of a line end is "newline" if it ends a statement, "joined" after a backslash, and
    otherwise "blank". Raises SyntaxError where tokenize raises an error: for a string or bracket
    that is never closed, for a backslash at the end of the text, and for a dedent to an indentation
    that no earlier line has.
    """
    at = 0
    kind = ""
    depth = 0
    columns = [0]
    begins = True
    while match := TOKEN.match(text, at):
        kind = str(match.lastgroup)  # each alternative has a name
        start, end = match.span(kind)
        # blank lines and lines with only a comment do not change the indentation
        if begins and kind not in ("comment", "newline"):
            begins = False
            column = len(text[at:start].rpartition("\f")[2].expandtabs())
            if column > columns[-1]:
                columns.append(column)
                yield "indent", at, start
            while column < columns[-1]:
                columns.pop()
                yield "dedent", start, start
            if column > columns[-1]:
                raise SyntaxError("an indentation that was not there before")
        if kind == "endless":
            break
        if kind == "newline":
            kind = "blank" if begins or depth > 0 else kind
            begins = depth == 0
        depth += {"opened": 1, "closed": -1}.get(kind, 0)
        yield kind, start, end
        at = end
    if depth or kind in ("endless", "joined"):
        raise SyntaxError("the text ends within a token or a statement")


def cut_comments(text: str, word: str = "") -> str:
    """Return ``text`` without the comments that contain ``word``. If ``word`` is "", all comments
    are removed. Comments after the place where ``tokens`` raises SyntaxError stay.
    """
    return _change(text, "comment", lambda comment: "" if word in comment else comment)


def _join_strings(text: str) -> str:
    """Return ``text`` with a blank in place of each line break inside a string, so that a pattern
    sees only the lines on which code begins. Strings after the place where ``tokens`` raises
    SyntaxError do not change.
    """
    return _change(text, "string", lambda string: string.replace("\n", " "))


def _change(text: str, changed: str, change: Callable[[str], str]) -> str:
    """Return ``text`` with each token of the kind ``changed`` replaced by ``change(token)``, up to
    the place where ``tokens`` raises SyntaxError.
    """
    kept = []
    at = 0
    with suppress(SyntaxError):
        for kind, start, end in tokens(text):
            if kind == changed:
                kept += [text[at:start], change(text[start:end])]
                at = end
    return "".join([*kept, text[at:]])


class Token(NamedTuple):
    """The text of one token, and the line (from 1) and column (from 0) where the token begins."""

    line: int
    column: int
    text: str


def whole_tokens(text: str, line: int) -> list[Token]:
    """Return the tokens of a text that begins on ``line`` of its file. Comments and white space are
    left out, and an f-string is one token.
    """
    found: list[Token] = []
    opened = 0  # how many f-strings contain the token
    for kind, code, (row, column), prefix in parso_tokens(text, version_info=(3, 11)):
        if opened:
            found[-1] = found[-1]._replace(text=found[-1].text + prefix + code)
        elif code := code.strip():
            found.append(Token(row + line - 1, column, code))
        opened += (kind == PythonTokenTypes.FSTRING_START) - (kind == PythonTokenTypes.FSTRING_END)
    return found


def _cut_deep_nesting(text: str) -> str:
    """Return a text up to the place where its nesting becomes deeper than DEEPEST, because parso's
    time grows with the square of the depth. (Python itself accepts only 200 levels of brackets.)
    """
    depth = 0
    ends = [len(text)]
    for bracket in re.finditer(r"[(\[{]|[)\]}]", text):
        depth = depth + 1 if bracket[0] in "([{" else max(0, depth - 1)
        if depth > DEEPEST:
            ends.append(bracket.start())
            break
    ends += [found.end() for found in CHAIN.finditer(text)][:1]
    return text[: min(ends)]


@lru_cache(maxsize=8)
def leaves(text: str) -> tuple[Leaf, ...]:
    """Return the tokens of a text in order, as the leaves of parso's syntax tree. Parso is used
    because it does not stop at an error, and generated functions often end with an error. The text
    is first cut off where its nesting becomes too deep (``_cut_deep_nesting``).
    """
    text = _cut_deep_nesting(text)
    limit = sys.getrecursionlimit()
    # after an error, parso searches recursively for the last leaf of what it has read; the depth of
    # this recursion may grow with the text
    sys.setrecursionlimit(limit + 2 * len(text))
    try:
        stack: list[Any] = [parso.parse(text, version="3.11")]
    finally:
        sys.setrecursionlimit(limit)
    found = []
    # parso's own ``get_next_leaf`` searches a list for each leaf, which takes quadratic time
    while stack:
        node = stack.pop()
        if isinstance(node, Leaf):
            found.append(node)
        else:
            stack += reversed(node.children)
    return tuple(found)


@lru_cache(maxsize=4096)  # every model's answer is compared with the same references
def code_tokens(text: str) -> list[str]:
    """Return all tokens of a text, which may be broken code, without line ends and other white
    space.
    """
    return [leaf.value for leaf in leaves(text) if leaf.value.strip()]


def is_name(text: str) -> bool:
    """Return whether a token's text is an identifier. The type of a leaf does not say so, because
    parso gives some keywords in broken code the type of a name.
    """
    return text.isidentifier() and not keyword.iskeyword(text)


def is_identifier(leaf: Leaf) -> bool:
    """Return whether a leaf is an identifier. In ``f"{x!r} to {y:d}"``, only x and y are."""
    kinds = {leaf.type, leaf.parent and leaf.parent.type}
    return is_name(leaf.value) and kinds.isdisjoint(("fstring_string", "fstring_conversion"))


def names_of_match(text: str) -> set[str]:
    """Return the names that the patterns of ``match`` statements define, and the words ``match``
    and ``case``, which parso takes for names. Return an empty set if there is no such statement or
    if the text does not parse.
    """
    found: set[str] = set()
    with suppress(UserError):
        for node in ast.walk(syntax_tree(reindent(text, ""))):
            if isinstance(node, ast.pattern):
                # the only texts in a pattern's fields are the names that it defines
                found |= {
                    "match",
                    "case",
                    *(one for one in vars(node).values() if isinstance(one, str)),
                }
    return found


# 2. The place of a function

DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef
BLANK = r"[^\S\n]"
# matches unindented lines of prose: they begin with a capital letter and contain no sign of code
PROSE_LINES = r"(?m:^(?:[A-Z][^=()\[\]{}@#\n]*)?(?:\n|\Z))+"


class Location(NamedTuple):
    """The place of a function in its file, and the text of the function's parts.

    The function goes from ``line``, which has the `def`, to ``end_line``; its body begins on
    ``body_line``. Lines count from 1, and ``end_line`` is included. ``header`` is the text from
    `def` to the last line before the ``body``; ``signature`` is the header without the
    ``docstring``. ``indent`` is the indentation of the `def` line, ``body_indent`` the indentation
    of the body. All texts have the indentation that they have in the file. Code that begins after
    the signature or the docstring, on the same line, is moved to a line of its own in ``body``.
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
    """Return a file's text, decoded from the encoding that the file declares, with "\\n" line ends.
    Raises UserError if the file cannot be read.
    """
    if is_special(path):
        raise UserError(f"cannot read {path}: it is a pipe, socket or device")
    try:
        with tokenize.open(path) as stream:
            return stream.read()
    except (OSError, SyntaxError, LookupError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}") from None


def syntax_tree(text: str) -> ast.Module:
    """Return the syntax tree of a text. Raises UserError if the text does not parse."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about string escapes in other people's code
        try:
            return ast.parse(text)
        except UNPARSABLE as error:
            raise UserError(f"the file does not parse: {error}") from None


@lru_cache(maxsize=1024)  # the predictions of all models are inserted at the same locations
def location_of(text: str, line: int) -> Location:
    """Return the location of the function whose `def` is on ``line`` of a file's ``text``. Raises
    UserError if the text does not parse or no function begins on this line.
    """
    node = _functions(text).get(line)
    if node is None:
        raise UserError(
            f"no function starts on line {line}; give the line of its `def`, not of a decorator"
        )
    lines = text.split("\n")
    end, _ = end_of(node, lines)
    first, *rest = node.body
    start = min(each.lineno for each in (first, *getattr(first, "decorator_list", ())))
    indent = _indent(lines[line - 1])
    inner = _indent(lines[start - 1])
    docstring = ast.get_docstring(node, clean=False)
    last = start - 1  # the last line of the header
    moved = None  # the first statement of the body, if it is on the last line of the header
    if first.col_offset > len(inner):  # a one-line function, such as def f(): return 1
        inner = indent + "    "
        last, moved = start, first
    elif docstring is not None:
        last, _ = end_of(first, lines)
        moved = next((each for each in rest if each.lineno == last), None)
    header = lines[line - 1 : last]
    body = lines[last:end]
    if moved:
        column = column_of(header[-1], moved.col_offset)
        body.insert(0, inner + header[-1][column:])
        header[-1] = header[-1][:column].rstrip("; \t")
    signature = header if moved is first else lines[line - 1 : start - 1]
    body_line = last if moved else last + 1
    parts = "\n".join(header), "\n".join(body), body_line, "\n".join(signature), docstring or ""
    return Location(node.name, line, end, indent, inner, *parts)


def end_of(node: ast.stmt, lines: Sequence[str]) -> tuple[int, int]:
    """Return (line, column) of the end of a parsed statement: its last line, and the column after
    its last character.
    """
    line, column = cast("tuple[int, int]", (node.end_lineno, node.end_col_offset))
    return line, column_of(lines[line - 1], column)


def column_of(line: str, byte_column: int) -> int:
    """Convert a column of ``ast``, which counts UTF-8 bytes, to a column that counts characters."""
    return len(line.encode()[:byte_column].decode(errors="replace"))


@lru_cache(maxsize=32)  # the functions of one file are located one after the other
def _functions(text: str) -> dict[int, DEFINITIONS]:
    """Return {line of the `def`: syntax tree of the function} for the text of a file."""
    nodes = ast.walk(syntax_tree(text))
    return {node.lineno: node for node in nodes if isinstance(node, DEFINITIONS)}


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


# 3. A generated function in place of the original


def _place_code(location: Location, text: str, shift: str | None = None) -> tuple[str, str]:
    """Return (whole function, body) of a ``text`` that is only code (see ``insert``)."""
    begin = rf"(?:async{BLANK}+)?def"
    # a `def` of any name, if each later line is blank, is indented, or begins with ")"
    other = rf"{begin}\b.*(?:\n(?:[ \t)].*)?)*\Z"
    # blank lines and decorators before a whole function
    start = rf"(?:{BLANK}*(?:@.*)?\n)*(?={BLANK}*{begin}{BLANK}+{location.name}\b|{other})"
    whole = re.match(start, text)
    if whole is None:
        body = reindent(text, location.body_indent) if shift is None else reindent(text, shift, "")
        return f"{location.header}\n{body}", body
    text = text[whole.end() :]
    if shift is None:
        function = reindent(text, location.indent)
    else:
        function = location.indent + reindent(text, shift, "").lstrip()
    try:
        return function, location_of(reindent(function, ""), 1).body
    except UserError:  # the function does not parse
        return function, function.partition("\n")[2]


def _code_candidates(location: Location, answer: str) -> Iterator[str]:
    """Yield candidates for the code in an answer. The caller uses the first candidate that parses
    in the place of the original function.

    Two texts are tried: first the whole answer, unless it begins with a fence; then the fenced
    block (``completions.blocks``) that has a `def` of the original's name, or the last block if no
    block has one. Each text gives these candidates:

    - The text without changes.
    - Each `def` of the original's name, up to the last line that is indented deeper than the `def`
      and is not only a comment.
    - The text without unindented prose at its beginning and end.
    - If the first line of this shorter text is not indented: the shorter text with its first line
      indented like the least indented of its other lines.
    """
    name = rf"(?:async[ \t]+)?def[ \t]+{location.name}\b"
    fenced = [code_of(answer, block) for block in blocks(answer)]
    fenced.sort(key=lambda block: bool(re.search(name, block)))
    opening = rf"\s*{LIST_MARKER}(?:```|~~~)"
    texts = [] if re.match(opening, answer) else [answer]
    for text in texts + fenced[-1:]:
        # a comment may have any indentation, but belongs to the function only if more code follows
        whole = rf"^(?<!overload\n)([ \t]*){name}.*(?:(?:\n[ \t]*(?:#.*)?)*\n\1[ \t)\]}}].*)*\s*"
        found = re.finditer(whole, _join_strings(text), re.M)
        functions = [text[function.start() : function.end()] for function in found]
        is_whole = re.match(rf"\s*{name}", text) or not _is_module(location, text)
        yield from [text, *functions] if is_whole else [*functions, text]
        # removes the prose at the beginning and at the end of the text; a pattern for prose that
        # must end at \Z would take quadratic time
        bare = re.sub(
            PROSE_LINES,
            lambda run: run[0] * (run.start() > 0 and run.end() < len(run.string)),
            text,
        )
        if re.match(opening, bare):  # `~~~python` would parse, as an expression
            continue
        yield bare
        first, _, rest = bare.lstrip("\n").partition("\n")
        indents = [_indent(line) for line in rest.split("\n") if line.strip()]
        if indents and not first[:1].isspace():
            yield f"{min(indents, key=len)}{first}\n{rest}"


def _is_module(location: Location, text: str) -> bool:
    """Return whether a text is a module, and not the body of the function at ``location``. A body
    returns or yields something, or reads a parameter. A module may call its functions on its own
    variables.
    """
    try:
        statements = syntax_tree(reindent(text, "")).body
    except UserError:
        return False
    run = [
        node
        for statement in statements
        if not isinstance(statement, DEFINITIONS | ast.ClassDef)
        for node in ast.walk(statement)
    ]
    # whether a name is read or assigned where it first occurs
    uses = {node.id: type(node.ctx) for node in reversed(run) if isinstance(node, ast.Name)}
    read = {uses.get(name) for name in code_tokens(location.signature)[3:]}
    return ast.Load not in read and {*map(type, run)}.isdisjoint((ast.Return, ast.Yield))


def _parses(function: str) -> bool:
    try:
        return bool(syntax_tree(reindent(function, "")))
    except UserError:
        return False


def is_empty(body: str) -> bool:
    """Return whether a body does nothing. Such a body is blank or has only `pass`, `...`, `return`,
    `return None`, strings or other constants, and comments.
    """
    # the constant 0 keeps the function valid if the body is blank
    code = f"def f():\n    0\n{reindent(body, '    ')}"
    try:
        statements = syntax_tree(code).body[0].body  # type: ignore[attr-defined]
    except UserError:
        return False
    return all(map(_is_nothing, statements))


def _is_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(ast.Constant()) | ast.Return(None | ast.Constant(None)):
            return True
    return False


def reindent(text: str, indent: str, old: str | None = None) -> str:
    """Return ``text`` in which ``indent`` replaces the indentation ``old`` at the beginning of the
    lines. By default, ``old`` is the indentation of the first line that is not blank. Lines that
    begin inside a string do not change.
    """
    lines = text.split("\n")
    if old is None:
        old = _indent(next(filter(str.strip, lines), ""))
    if old == indent:
        return text
    # Python ignores form feeds at the beginning of a line, and not every line has them
    old = old.lstrip("\f")
    inside: set[int] = set()  # 0-based numbers of the lines that begin inside a string
    code = textwrap.dedent(text)
    with suppress(SyntaxError):  # strings after an error are not found, so their lines may change
        for kind, start, end in tokens(code):
            if kind == "string":
                first = code.count("\n", 0, start) + 1
                inside.update(range(first, first + code.count("\n", start, end)))
    for number, line in enumerate(lines):
        if not line.strip() or number in inside:
            continue
        line = line.lstrip("\f")
        if line.startswith(old):
            lines[number] = indent + line[len(old) :]
        elif not indent:  # the line has less indentation than ``old``, so it loses all of it
            lines[number] = line.lstrip()
    return "\n".join(lines)


class Inserted(NamedTuple):
    """The ``text`` of a file in which a generated function replaces the original. The function is
    on the lines ``line`` to ``end_line``, which count from 1 and are both included. ``whole`` and
    ``body`` are the function and its body, with their comments, indented for the place of the
    original.
    """

    text: str
    line: int
    end_line: int
    whole: str
    body: str


def insert(text: str, location: Location, prediction: str, shift: str | None = None) -> Inserted:
    """Return ``text`` with the function at ``location`` replaced by a prediction.

    A prediction is a whole function if it begins with a `def` of the original's name, or if it
    consists of one unindented `def` of a different name. Decorators before the `def` are cut off,
    because the file already has the original's decorators. Any other prediction is a body; the
    original's signature and docstring are put before it. White space at the end of a prediction is
    kept.

    By default, the prediction may contain text other than code. Reasoning is removed
    (``completions.visible``), and the code is extracted (``_code_candidates``). If ``shift`` is
    given (by the rules of a replication package), nothing is extracted: ``shift`` is put before
    every line, and broken indentation stays broken.

    Comments for pylint in the prediction are removed, so that an answer cannot silence pylint. Such
    comments in the file stay, even if they are between the original's signature and body.
    """
    prediction = re.sub("\r\n?", "\n", prediction)
    # Python ignores a form feed that begins a line, and a BOM that begins a file
    prediction = re.sub(r"(?m)^[\ufeff\f]+", "", prediction)
    found = None
    if shift is None:
        placed = (
            _place_code(location, code) for code in _code_candidates(location, visible(prediction))
        )
        found = next((new for new in placed if _parses(new[0])), None)
    whole, body = found or _place_code(location, prediction, shift)
    head = f"{location.header}\n" if whole.startswith(f"{location.header}\n") else ""
    function = head + cut_comments(whole[len(head) :], "pylint:")
    lines = text.split("\n")
    lines[location.line - 1 : location.end_line] = function.split("\n")
    end = location.line + function.count("\n")
    return Inserted("\n".join(lines), location.line, end, whole, body)
