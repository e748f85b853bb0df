"""The tokens of Python code, under every Python as 3.11 reads them: an f-string is one token, and
broken code is read on.
"""

import re
import tokenize
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

# One token after blanks; what is no string, comment, bracket or end of a line is taken in long
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
    """(kind, start, end) of the tokens of Python 3.11's tokenize, under any Python: it reads on in
    broken code, and an f-string is a string.

    What ends a statement is a "newline", any other end of a line "blank" or "joined". Raises
    SyntaxError where tokenize
    does: at a string or a bracket without an end, at the end of the text, and at an indentation
    that was not there before.
    """
    at, kind, depth, columns, begins = 0, "", 0, [0], True
    while match := TOKEN.match(text, at):
        kind = str(match.lastgroup)  # each alternative has a name
        start, end = match.span(kind)
        if begins and kind not in ("comment", "newline"):
            begins, column = False, len(text[at:start].rpartition("\f")[2].expandtabs())
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
            kind, begins = "blank" if begins or depth > 0 else kind, depth == 0
        depth += (kind == "opened") - (kind == "closed")
        yield kind, start, end
        at = end
    if depth or kind in ("endless", "joined"):
        raise SyntaxError("the text ends within a token or a statement")


def cut_comments(text: str, is_cut: Callable[[int, int], bool]) -> str:
    """``text`` without those comments for whose start and end ``is_cut`` is true; what follows an
    error (see ``tokens``) stays.
    """
    kept, at = [], 0
    with suppress(SyntaxError):
        for kind, start, end in tokens(text):
            if kind == "comment" and is_cut(start, end):
                kept.append(text[at:start])
                at = end
    return "".join([*kept, text[at:]])


def whole_tokens(lines: Sequence[str]) -> list[tokenize.TokenInfo]:
    """The tokens of a file that parses. Since Python 3.12 tokenize takes f-strings apart; here each
    is a string.
    """
    found, begun = [], []
    for token in tokenize.generate_tokens(iter(lines).__next__):
        kind = tokenize.tok_name[token.type]
        if kind == "FSTRING_START":
            begun.append(token.start)
        elif kind == "FSTRING_END":
            (row, column), (last, end) = start, _ = begun.pop(), token.end
            text = "".join([*lines[row - 1 : last - 1], lines[last - 1][:end]])[column:]
            token = token._replace(type=tokenize.STRING, string=text, start=start)
        if not begun:
            found.append(token)
    return found
