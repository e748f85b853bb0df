"""Finds fenced code blocks in a model's answer, as CommonMark defines them (0.31, Section 4.5). A
line of three or more backticks or tildes, perhaps followed by words, opens a block. A line with at
least as many of the same character closes the block.

Models also write two forms that CommonMark does not allow: words before the opening fence in the
same line, and code before the closing fence in the same line. Both are accepted.
"""

import re
from itertools import takewhile
from typing import NamedTuple

# the opening fence, the rest of its line, the code, and the closing fence or the end of the answer
_BLOCK = re.compile(
    r"(?P<fence>`{3,}|(?m:^)[ \t>]*(?P<tildes>~{3,}))(?P<info>(?(tildes)[^\n]|[^`\n])*)(?:\n|\Z)"
    r"(?P<code>.*?)(?:(?m:^)[ \t>]*(?:(?(tildes)(?P=tildes)|(?P=fence)))[`~]*[ \t]*(?m:$)|\Z)",
    re.DOTALL,
)
_QUOTED = re.compile(r"(?: {0,3}> ?)*")  # blockquote markers (Section 5.1)
# the indentation, and perhaps the marker of a list item, before an opening fence
_MARGIN = re.compile(r"[ \t]*(?:(?:[-*+]|\d+[.)])[ \t]+)?(?=```|~~~)")
# labels after an opening fence
PYTHON = {"python", "python3", "py", "py3", "ipython", "ipython3", "sage", "cython"}
NOT_CODE = {"bash", "sh", "shell", "zsh", "console", "text", "txt", "plaintext", "output"}


class Block(NamedTuple):
    """The positions in an answer where a block begins, and where the code in it starts and ends."""

    begin: int
    start: int
    end: int


def code_of(answer: str, block: Block) -> str:
    """Return the code in a block. If the block is indented, or is part of a list or a blockquote,
    the indentation and the blockquote markers (``>``) are removed from each line.
    """
    line = answer[answer.rfind("\n", 0, block.begin) + 1 : block.start]
    code = answer[block.start : block.end]
    if quoted := _quoted(line):
        line = line[len(quoted) :]
        first, *rows = code.split("\n")
        # the blockquote ends at the first line without a ">", and so does the block
        rows = [*takewhile(lambda row: row.lstrip().startswith(">") or not row, rows)]
        marks = rf"(?: {{0,3}}> ?){{0,{quoted.count('>')}}}"
        code = "\n".join([first, *(re.sub(rf"\A{marks}", "", row) for row in rows)])
    margin = _MARGIN.match(line)
    width = len(margin[0]) if margin else 0
    return re.sub(rf"(?m)^[ \t]{{0,{width}}}", "", code)


def _quoted(line: str) -> str:
    """Return the blockquote markers (``> > ``) at the beginning of a line, or "" if it has none."""
    found = _QUOTED.match(line)
    return found[0] if found and ">" in found[0] else ""


def blocks(answer: str) -> list[Block]:
    """Return the blocks that may be the requested code, in the order of the answer. If any blocks
    are labelled as Python, only these are returned. Otherwise, blocks that are labelled as shell
    sessions, output or plain text are left out, unless there are no others. Empty blocks are always
    left out.

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
