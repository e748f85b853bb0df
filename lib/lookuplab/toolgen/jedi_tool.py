"""The completion tool (paper, Section II-B): Jedi in worker processes, at the end of an unfinished
function, in its file as an editor would hold it.

A call that takes too long (``analysers.LIMIT``), hangs or crashes loses its process and is counted.
The next call gets a new process.
"""

import functools
import keyword
import re
from pathlib import Path

from lookuplab.models.constraint import Lost
from lookuplab.paths import folder_hash
from lookuplab.python_sources import python_files
from lookuplab.toolgen.analysers import ITS_OWN, WorkerLost, ask_worker
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.jedi_worker import ToolAnswer, completions
from lookuplab.toolgen.pairs import ModelKind, writes_def
from lookuplab.toolgen.rules import PAPER_RULES, Rules
from lookuplab.work.resources import processors

TOOL_VERSION = 3  # increase it whenever the same question would get a different answer
REMEMBERED = 5_000  # cached full answers; different thresholds and models have the same questions
_LEXEME = re.compile(
    r"""
    (?P<comment> \#[^\n]*\Z)
  | [rbuf]{0,2} (?: \"{3} (?: \\. | [^\\] )*? (?: \"{3} | (?P<open1> \Z) )
                  | '{3} (?: \\. | [^\\] )*? (?: '{3} | (?P<open2> \Z) )
                  | \" (?: \\. | [^\\"\n] )* (?: [\"\n] | (?P<open3> \Z) )
                  | ' (?: \\. | [^\\'\n] )* (?: ['\n] | (?P<open4> \Z) ) )
  | (?P<number> \.?\d (?: [eE][+-] | [\w.] )*)
  | (?P<name> \w+)
  | (?P<blank> (?: [\s\\] | \#[^\n]*\n )+)
  | (?P<other> .)
""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


class JediTool:
    """The tool of the paper's TOOL-COMPLETE, for several threads at once.

    Full answers are cached, so a repository must not change while its tool is in use.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or processors()
        self._full = functools.lru_cache(REMEMBERED)(ask_worker)

    def complete(
        self, root: Path, file: str, text: str, line: int, column: int, wanted: str | None = None
    ) -> ToolAnswer:
        """Return the completions at a caret in an unsaved buffer.

        ``text`` replaces the content of ``file`` under ``root``. ``line`` counts from 1, ``column``
        from 0 in characters. With ``wanted`` only that name is looked up, which is many times
        faster: the answer contains it if and only if the full answer does. It may contain other
        names.
        """
        question = completions, root, file, text, line, column
        try:
            return self._full(*question) if wanted is None else ask_worker(*question, wanted)
        except WorkerLost as lost:
            return ToolAnswer(failure=str(lost))


def content(root: Path) -> str:
    """Return a digest of the files of a repository that the tool reads."""
    states = [(file, file.stat()) for file in python_files(root)]
    changes = tuple(
        (file, state.st_size, state.st_mtime_ns, state.st_ino) for file, state in states
    )
    return _content(root, changes)


@functools.lru_cache(REMEMBERED)  # a notebook needs it again for each model and condition
def _content(root: Path, changes: tuple[tuple[Path, int, int, int], ...]) -> str:
    return folder_hash(root, (file for file, *_ in changes), "content")[:32]


def unsaved(
    lines: list[str], function: Function, written: str, kind: ModelKind, rules: Rules = PAPER_RULES
) -> tuple[str, int, int]:
    """Return the file's text with ``written`` in the place of ``function`` (Algorithm 2, INSERT),
    and the caret after it: its line from 1, its column from 0 in characters.

    ``lines`` are those of the whole file. ``written`` has no marks and is not indented as in the
    file; it is a body or a ``def`` (``pairs.writes_def``). A body follows signature and docstring
    as they are in the file, and so does the body of a ``def`` with the function's own signature:
    the user has written the docstring, and Algorithm 1 sees it, too. Any other ``def``, finished or
    not, replaces the function. Decorators are kept.
    """
    head = function.body_line - 1
    own = function.signature + "\n"
    if writes_def(kind, rules):
        if not written.startswith(own):
            head = function.line - 1
        written = written.removeprefix(own)
    new = [function.indent + line for line in written.split("\n")]
    text = cut_off("".join(lines[:head]) + "\n".join(new), lines, function, rules)
    return text, head + len(new), len(new[-1])


def cut_off(before: str, lines: list[str], function: Function, rules: Rules) -> str:
    """Return the unsaved file: the text ``before`` the caret, then the part of the file after the
    function.

    On a blank indented line, and in some unfinished brackets, Jedi takes the caret to be outside
    the function and offers no local name; a dummy name after the caret puts it inside. The package
    has no dummy, and so never offers a local name at the start of a statement.
    """
    dummy = "" if rules.is_package else "_"
    return "".join([before, dummy, "\n", *lines[function.end_line :]])


def ask_tool(
    tool: JediTool, function: Function, written: str, kind: ModelKind, rules: Rules = PAPER_RULES
) -> ToolAnswer:
    """Return the tool's answer after the part of a function that is ``written`` so far (see
    ``unsaved``).

    Raises Lost for a question that is lost twice, unless Jedi itself fails on this code: a machine
    must not change an answer.
    """
    place = unsaved(function.lines(), function, written, kind, rules)
    answer = tool.complete(function.root, function.file, *place)
    if answer.failure and not answer.failure.startswith(ITS_OWN):
        raise Lost(f"{function.id}: a question to Jedi was lost twice ({answer.failure})")
    return answer


def is_dunder(name: str) -> bool:
    """Return whether a name has the form ``__x__``, like the attributes that every object has."""
    return name.startswith("__") and name.endswith("__")


def suggestions(answer: ToolAnswer, trigger: str | None = "mark") -> tuple[str, ...]:
    """Return the identifiers among the completions, without keywords (Section II-B).

    If marks are the trigger, ``__x__`` is excluded as well: Algorithm 1 marks no such name, and
    Figure 1's 68 suggestions are those without builtin attributes.
    """
    return tuple(
        name
        for name in answer.identifiers
        if not keyword.iskeyword(name) and (trigger == "dot" or not is_dunder(name))
    )


def behind_a_dot(text: str) -> bool:
    """Return whether code ends in an unfinished attribute: a dot after an expression, possibly
    followed by letters.

    The result is False inside strings (including f-strings) and comments, after numbers, and in
    ``from . import``.
    """
    found = re.search(r"\.([^\W\d]\w*)?\Z", text)
    kind: str | None = ""
    value = ""
    for lexeme in _LEXEME.finditer(text, 0, found.start()) if found else ():
        if lexeme.lastgroup != "blank":
            kind = lexeme.lastgroup
            value = lexeme.group()
    if kind == "name":
        return value in ("True", "False", "None") or not keyword.iskeyword(value)
    return kind is None or value in (")", "]", "}")
