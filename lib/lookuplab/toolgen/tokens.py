"""The tokens of Python code: as Python 3.11 reads them, under any Python, also of broken code."""

import keyword
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

import parso
from parso.python.token import PythonTokenTypes
from parso.python.tokenize import tokenize
from parso.tree import BaseNode, Leaf
from parso.utils import parse_version_string

DEEPEST = 1600
# operators without a closing end, one within the other
CHAIN = re.compile(
    rf"(?:(?:[-+~]|not\b|await\b|lambda\b[^:\n]*:|\w+ if \w+ else)[ \t]*){{{DEEPEST}}}"
)
# One token after blanks. Text other than strings, comments, brackets and line ends is taken in long
# pieces.
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
    """Yield (kind, start, end) of the tokens of Python 3.11's tokenize, under any Python. Broken
    code is read on, and an f-string is a string.

    The end of a statement is a "newline", any other end of a line is "blank" or "joined". Raises
    SyntaxError like tokenize: at a string or a bracket without an end, at the end of the text, and
    at a dedent to an unknown indentation.
    """
    at = 0
    kind = ""
    depth = 0
    columns = [0]
    begins = True
    while match := TOKEN.match(text, at):
        kind = str(match.lastgroup)  # each alternative has a name
        start, end = match.span(kind)
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
    """Return ``text`` without the comments that contain ``word``. After an error (see ``tokens``),
    comments stay.
    """
    kept = []
    at = 0
    with suppress(SyntaxError):
        for kind, start, end in tokens(text):
            if kind == "comment" and word in text[start:end]:
                kept.append(text[at:start])
                at = end
    return "".join([*kept, text[at:]])


class Token(NamedTuple):
    """One token, and where it begins in its file."""

    line: int
    column: int
    text: str


def whole_tokens(text: str, line: int) -> list[Token]:
    """Return the tokens of code, without comments. The code begins on ``line`` of its file. An
    f-string is one token.
    """

    rows = text.split("\n")
    found = []
    begins: list[tuple[int, int]] = []  # of f-strings, the outermost first
    for kind, code, start, _ in tokenize(text, version_info=parse_version_string("3.11")):
        if kind == PythonTokenTypes.FSTRING_START:
            begins.append(start)
        elif kind == PythonTokenTypes.FSTRING_END:
            (row, column), end = begins.pop(), start[1] + len(code)
            if not begins:
                lines = [*rows[row - 1 : start[0] - 1], rows[start[0] - 1][:end]]
                lines[0] = lines[0][column:]
                found.append(Token(row + line - 1, column, "\n".join(lines)))
        elif not begins and (code := code.strip()):
            found.append(Token(start[0] + line - 1, start[1], code))
    return found


def _cut(text: str) -> str:
    """Return a text up to the place where it is nested deeper than DEEPEST, for parso's time is
    quadratic in the depth. Python itself reads 200 levels of brackets.
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


def _tree(text: str) -> BaseNode:
    """Return parso's tree of a text, up to a depth of DEEPEST."""
    text = _cut(text)
    limit = sys.getrecursionlimit()
    # behind an error, it looks for the last leaf of what it has read, level by level
    sys.setrecursionlimit(limit + 2 * len(text))
    try:
        return parso.parse(text, version="3.11")
    finally:
        sys.setrecursionlimit(limit)


@lru_cache(maxsize=8)
def leaves(text: str) -> tuple[Leaf, ...]:
    """Return parso's tokens of a text, in order. Parso does not stop at an error, in which
    generated functions often end.
    """
    found = [_tree(text).get_first_leaf()]
    while (leaf := found[-1].get_next_leaf()) is not None:
        found.append(leaf)
    return tuple(found)


def is_name(leaf: Leaf) -> bool:
    """Return whether the token is an identifier. In broken code, parso calls some keywords
    names.
    """
    return leaf.value.isidentifier() and not keyword.iskeyword(leaf.value)
