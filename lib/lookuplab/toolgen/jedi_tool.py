"""Implements the completion tool (paper, Section II-B). Jedi runs in worker processes and completes
names at the end of an unfinished function. Jedi sees the function inside its file, as in an editor
with unsaved changes.

If a call takes too long (``analysers.LIMIT``), hangs or crashes, its process ends and the failure
is counted. The next call gets a new process.
"""

import functools
import keyword
import re
from itertools import dropwhile
from pathlib import Path

from lookuplab.models.tokens import Lost
from lookuplab.paths import folder_hash
from lookuplab.python_sources import python_files
from lookuplab.toolgen.analysers import WorkerLost, ask_worker, blames_machine
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.jedi_worker import ToolAnswer, completions
from lookuplab.toolgen.pairs import ModelKind, writes_def
from lookuplab.toolgen.rules import PAPER_RULES, Rules
from lookuplab.work import processors

TOOL_VERSION = 3  # increase it whenever the same question would get a different answer
# how many answers to ``complete`` without ``wanted`` are cached; runs with other models or
# thresholds often need the same answers
REMEMBERED = 5_000
# Matches one token of Python code. The groups "comment" and "open..." match only if the comment or
# the string goes on to the end of the text. A complete string sets no group.
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
    """The paper's TOOL-COMPLETE. Several threads may use one JediTool at the same time.

    Lists of all completions (``complete`` without ``wanted``) and the repositories' digests are
    cached, so a repository must not change while a JediTool is in use.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or processors()
        self._full_answer = functools.lru_cache(REMEMBERED)(ask_worker)
        # cached, because every model and condition needs the same digests
        self.content_digest = functools.cache(content_digest)

    def complete(
        self, root: Path, file: str, text: str, line: int, column: int, wanted: str | None = None
    ) -> ToolAnswer:
        """Return the completions at a caret in an unsaved buffer.

        ``text`` replaces the content of ``file`` under ``root``. ``line`` counts from 1, ``column``
        from 0 in characters. If a name is ``wanted``, only this name is looked up, which is many
        times faster. The answer then contains the name if and only if the list of all completions
        would; it may contain other names as well. If Jedi gives no answer, the result has a
        ``failure``.
        """
        question = completions, root, file, text, line, column
        try:
            return self._full_answer(*question) if wanted is None else ask_worker(*question, wanted)
        except WorkerLost as lost:
            return ToolAnswer(failure=str(lost))


def content_digest(root: Path) -> str:
    """Return a digest of a repository's Python files, because the tool reads only these files."""
    return folder_hash(root, python_files(root), "content")[:32]


def unsaved_file(
    lines: list[str], function: Function, written: str, kind: ModelKind, rules: Rules = PAPER_RULES
) -> tuple[str, int, int]:
    """Return (text, line, column): the file's text with ``written`` in the place of ``function``
    (Algorithm 2, INSERT), and the position of the caret after ``written``. The line counts from 1,
    the column from 0 in characters.

    ``lines`` are the lines of the whole file. ``written`` is a body or a ``def``
    (``pairs.writes_def``), without marks and without the indentation that the ``def`` has in the
    file. A body is put after the signature and the docstring in the file. If ``written`` is a
    ``def`` with the function's own signature, only its body is put there. The docstring thus stays
    in the file, as it does when the function is marked (Algorithm 1). Any other ``def``, finished
    or not, replaces the signature and the docstring, too. Decorators are kept.
    """
    head = function.body_line - 1
    signature = function.signature + "\n"
    if writes_def(kind, rules):
        if not written.startswith(signature):
            head = function.line - 1
        written = written.removeprefix(signature)
    new = [function.indent + line for line in written.split("\n")]
    text = unfinished_file("".join(lines[:head]) + "\n".join(new), lines, function, rules)
    return text, head + len(new), len(new[-1])


def unfinished_file(before: str, lines: list[str], function: Function, rules: Rules) -> str:
    """Return the text of the unsaved file: the text ``before`` the caret, then the part of the file
    after the function, without the blank lines at its beginning.

    On a blank indented line, and in some unfinished brackets, Jedi thinks that the caret is outside
    the function, and offers no local names. A dummy name after the caret prevents this. The
    packages insert none, so their tool never offers a local name at the start of a statement.
    """
    dummy = "" if rules.is_package else "_"
    # parso would parse the next statement again if blank lines preceded it
    return "".join([before, dummy, "\n", *dropwhile(str.isspace, lines[function.end_line :])])


def ask_tool(
    tool: JediTool, function: Function, written: str, kind: ModelKind, rules: Rules = PAPER_RULES
) -> ToolAnswer:
    """Return the tool's completions at the end of ``written``, the text of a function so far (see
    ``unsaved_file``).

    Raises Lost if Jedi gives no answer because of a fault of the machine, which must not change
    what a model writes. If Jedi itself fails on this code, the result has a ``failure`` instead.
    """
    unsaved = unsaved_file(function.lines(), function, written, kind, rules)
    answer = tool.complete(function.root, function.file, *unsaved)
    if blames_machine(answer.failure):
        raise Lost(f"{function.id}: a question to Jedi was lost twice ({answer.failure})")
    return answer


def is_dunder(name: str) -> bool:
    """Return whether a name has the form ``__x__``, like the attributes that every object has."""
    return name.startswith("__") and name.endswith("__")


def suggestions(answer: ToolAnswer, trigger: str | None = "mark") -> tuple[str, ...]:
    """Return the identifiers among the completions, without keywords (Section II-B).

    Names of the form ``__x__`` are left out as well, unless the trigger is "dot": Algorithm 1 marks
    no such name, and the 68 suggestions in Figure 1 do not include builtin attributes.
    """
    return tuple(
        name
        for name in answer.identifiers
        if not keyword.iskeyword(name) and (trigger == "dot" or not is_dunder(name))
    )


def ends_after_dot(text: str) -> bool:
    """Return whether code ends in an unfinished attribute: a dot after an expression, possibly
    followed by letters.

    The result is False inside strings (including f-strings) and comments, for a dot that follows a
    number, and in ``from . import``.
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
