"""Fenced blocks in a model's answer, as in CommonMark (0.31, Section 4.5): opened by three or more
backticks or tildes and any words, closed by a line of at least as many.

Two further forms that models write count as blocks here, too: a fence that opens after words in its
line, and one that closes after code in its last line.
"""

import re
from itertools import takewhile
from typing import NamedTuple

_BLOCK = re.compile(
    r"(?P<fence>`{3,}|(?m:^)[ \t>]*(?P<tildes>~{3,}))(?P<info>(?(tildes)[^\n]|[^`\n])*)(?:\n|\Z)"
    r"(?P<code>.*?)(?:(?m:^)[ \t>]*(?:(?(tildes)(?P=tildes)|(?P=fence)))[`~]*[ \t]*(?m:$)|\Z)",
    re.DOTALL,
)
_QUOTED = re.compile(r"(?: {0,3}> ?)*")  # Section 5.1
_MARGIN = re.compile(r"[ \t]*(?:(?:[-*+]|\d+[.)])[ \t]+)?(?=```|~~~)")
PYTHON = {"python", "python3", "py", "py3", "ipython", "ipython3", "sage", "cython"}
NOT_CODE = {"bash", "sh", "shell", "zsh", "console", "text", "txt", "plaintext", "output"}


class Block(NamedTuple):
    """The start of a block in the answer, and the start and end of its code."""

    begin: int
    start: int
    end: int


def code_of(answer: str, block: Block) -> str:
    """Return a block's code without the indentation of its fence, which may stand in a list or a
    quotation.
    """
    line = answer[answer.rfind("\n", 0, block.begin) + 1 : block.start]
    code = answer[block.start : block.end]
    if quoted := _quoted(line):
        line = line[len(quoted) :]
        first, *rows = code.split("\n")
        # the quotation, and so the block, ends at the first line without its sign
        rows = [*takewhile(lambda row: row.lstrip().startswith(">") or not row, rows)]
        marks = rf"(?: {{0,3}}> ?){{0,{quoted.count('>')}}}"
        code = "\n".join([first, *(re.sub(rf"\A{marks}", "", row) for row in rows)])
    margin = _MARGIN.match(line)
    width = len(margin[0]) if margin else 0
    return re.sub(rf"(?m)^[ \t]{{0,{width}}}", "", code)


def _quoted(line: str) -> str:
    """Return the signs of quotations with which a line begins."""
    found = _QUOTED.match(line)
    return found[0] if found and ">" in found[0] else ""


def blocks(answer: str) -> list[Block]:
    """Return the blocks that may be the requested code, in their order. If several contain code,
    only those of Python are returned; without any of Python, all except shell sessions, output and
    plain text.

    A block that was cut off extends to the end of the answer.
    """
    found = []
    for match in _BLOCK.finditer(answer):
        start, end = match.span("code")
        within = match["code"].find(match["tildes"] or match["fence"])
        end = end if within < 0 else start + within
        line = answer[answer.rfind("\n", 0, match.end("fence")) + 1 :]
        start = min(end, start + len(_quoted(answer[start:end]) if _quoted(line) else ""))
        language = re.sub(r"[{}.]|language-", " ", match["info"]).lower().split()[:1]
        found.append((Block(match.start(), start, end), "".join(language)))
    filled = [one for one in found if answer[one[0].start : one[0].end].strip()]
    python = [one for one in filled if one[1] in PYTHON]
    other = [one for one in filled if one[1] not in NOT_CODE]
    return [block for block, _ in python or other or filled]
