"""Splits Python code into tokens. The tokens are those of Python 3.11, whichever Python runs the
kit. Broken code has tokens, too.
"""

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

DEEPEST = 1600  # parso reads code only up to this depth of nesting (``_cut``)
# Matches DEEPEST operators, each nested in the one before. Operators have no closing token that
# could be counted, as brackets do.
CHAIN = re.compile(
    rf"(?:(?:[-+~]|not\b|await\b|lambda\b[^:\n]*:|\w+ if \w+ else)[ \t]*){{{DEEPEST}}}"
)
# Matches blanks and one token. Text other than strings, comments, brackets and line ends is matched
# in long pieces, each of several words.
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
    them, whichever Python runs. Kinds are the names of the groups in TOKEN, "blank", "indent" and
    "dedent". An f-string is one "string". Reading continues after most errors in the code.

    The kind of a line end is "newline" if it ends a statement, "joined" after a backslash, and
    otherwise "blank". Raises SyntaxError where tokenize raises an error: for a string or bracket
    that is never closed, for a backslash at the end of the text, and for a dedent to an indentation
    that was not there before.
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
    """Return ``text`` without the comments that contain ``word``; with "", without all comments.
    Comments after an error in the code (see ``tokens``) stay.
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
    """The text of one token, and the line and column where it begins in its file."""

    line: int
    column: int
    text: str


def whole_tokens(text: str, line: int) -> list[Token]:
    """Return the tokens of a text that begins on ``line`` of its file. Comments and white space are
    left out, and an f-string is one token.
    """

    rows = text.split("\n")
    found = []
    begins: list[tuple[int, int]] = []  # where the open f-strings begin, the outermost first
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


def _tree(text: str) -> BaseNode:
    """Return parso's syntax tree of a text, of which deeply nested parts are cut off (``_cut``)."""
    text = _cut(text)
    limit = sys.getrecursionlimit()
    # after an error, parso searches recursively for the last leaf of what it has read, so it needs
    # a recursion limit that grows with the text
    sys.setrecursionlimit(limit + 2 * len(text))
    try:
        return parso.parse(text, version="3.11")
    finally:
        sys.setrecursionlimit(limit)


@lru_cache(maxsize=8)
def leaves(text: str) -> tuple[Leaf, ...]:
    """Return the leaves of parso's syntax tree, which are the tokens of a text, in order. Parso
    does not stop at an error, and generated functions often end with one.
    """
    found = [_tree(text).get_first_leaf()]
    while (leaf := found[-1].get_next_leaf()) is not None:
        found.append(leaf)
    return tuple(found)


def is_name(leaf: Leaf) -> bool:
    """Return whether the token is an identifier. The type of the leaf cannot decide this, because
    in broken code parso gives some keywords the type of a name.
    """
    return leaf.value.isidentifier() and not keyword.iskeyword(leaf.value)
