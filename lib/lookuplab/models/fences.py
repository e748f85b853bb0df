"""Finds fenced code blocks in a model's answer, as in CommonMark (0.31, Section 4.5). A line of
three or more backticks or tildes, perhaps followed by words, opens a block. A line of at least as
many of them closes it.

Two more forms that models write count as blocks: the opening fence may follow words in its line,
and the closing fence may follow code in its line.
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
    """Return a block's code. If the block is indented, or part of a list or a quotation, the
    indentation and the quotation's signs are removed.
    """
    line = answer[answer.rfind("\n", 0, block.begin) + 1 : block.start]
    code = answer[block.start : block.end]
    if quoted := _quoted(line):
        line = line[len(quoted) :]
        first, *rows = code.split("\n")
        # the quotation, and with it the block, ends at the first line without a ">"
        rows = [*takewhile(lambda row: row.lstrip().startswith(">") or not row, rows)]
        marks = rf"(?: {{0,3}}> ?){{0,{quoted.count('>')}}}"
        code = "\n".join([first, *(re.sub(rf"\A{marks}", "", row) for row in rows)])
    margin = _MARGIN.match(line)
    width = len(margin[0]) if margin else 0
    return re.sub(rf"(?m)^[ \t]{{0,{width}}}", "", code)


def _quoted(line: str) -> str:
    """Return the signs of quotations (``> > ``) with which a line begins, or ""."""
    found = _QUOTED.match(line)
    return found[0] if found and ">" in found[0] else ""


def blocks(answer: str) -> list[Block]:
    """Return the blocks that may be the requested code, in the order of the answer. Empty blocks
    are left out. If some blocks are labelled as Python, only these are returned; otherwise all
    blocks except shell sessions, output and plain text, or all if there are no others.

    A block without a closing fence extends to the end of the answer.
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
