"""Where the tool is asked: the caret behind an unfinished function, in its file as an editor would hold it."""

import io
import keyword
import re

from lookuplab.errors import UserError
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.jedi_tool import LOST, Answer, JediTool, Worker
from lookuplab.toolgen.insertion import read_source

_VALUES = {"True", "False", "None"}
_LEXEME = re.compile(r"""
    (?P<comment> \#[^\n]*)
  | [rbuf]{0,2} (?: \"{3} (?: \\. | [^\\] )*? (?: \"{3} | (?P<open1> \Z) )
                  | '{3} (?: \\. | [^\\] )*? (?: '{3} | (?P<open2> \Z) )
                  | \" (?: \\. | [^\\"\n] )* (?: [\"\n] | (?P<open3> \Z) )
                  | ' (?: \\. | [^\\'\n] )* (?: ['\n] | (?P<open4> \Z) ) )
  | (?P<number> \.?\d (?: [eE][+-] | [\w.] )*)
  | (?P<name> \w+)
  | (?P<blank> [\s\\]+)
  | (?P<other> .)
""", re.VERBOSE | re.DOTALL | re.IGNORECASE)


def unsaved(lines: list[str], function: Function, written: str, kind: str, variant: str = "paper"
            ) -> tuple[str, int, int]:
    """The file's text with what has been ``written`` in the place of ``function`` (Algorithm 2, INSERT), and the caret
    behind that: its line from 1, its column from 0 in characters.

    ``lines`` are the whole file's. ``written`` has no marks and is not indented as the file is; a decoder-only model
    (``kind``, see ``pairs.KINDS``) writes a body, an encoder-decoder model a ``def``. A body stands behind signature
    and docstring as they are in the file, and so does that of a ``def`` whose signature is the function's own: the user
    has written the docstring, and Algorithm 1 sees it too. Any other ``def``, finished or not, stands for itself.
    Decorators stay. As in ``marking.buffer_at``, a dummy name behind the caret keeps it inside of the function, and the
    package has none.
    """
    head = function.body_line - 1
    if kind == "encoder-decoder":
        whole, written = written, written.removeprefix(function.signature + "\n")
        head = head if len(written) < len(whole) else function.line - 1
    *above, current = (function.indent + line for line in written.split("\n"))
    dummy = "_" if variant == "paper" else ""
    text = [*lines[:head], *(line + "\n" for line in above), current + dummy + "\n", *lines[function.end_line:]]
    return "".join(text), head + len(above) + 1, len(current)


def ask(tool: JediTool | Worker, function: Function, written: str, kind: str, variant: str = "paper",
        wanted: str | None = None) -> Answer:
    """TOOL-COMPLETE behind what has been ``written`` of a function (see ``unsaved``); ``wanted`` as in the tool.

    A question that was lost is asked once more. Raises UserError if it is lost again: a busy machine must not change an
    answer.
    """
    lines = list(io.StringIO(read_source(function.root / function.file), newline="\n"))
    text, line, column = unsaved(lines, function, written, kind, variant)
    for _ in range(2):
        answer = tool.complete(function.root, function.file, text, line, column, wanted)
        if answer.failure not in LOST:
            return answer
    raise UserError(f"{function.id}: a question to Jedi {answer.failure} twice; finished functions are kept: run it "
                    "again, with less other work on this machine")


def suggestions(answer: Answer, trigger: str | None = "mark") -> tuple[str, ...]:
    """The identifiers among the completions, no keywords (Section II-B). Where marks are the trigger, no ``__x__``
    either: Algorithm 1 marks none, and Figure 1's 68 suggestions are those without builtin attributes."""
    return tuple(name for name in answer.identifiers if not keyword.iskeyword(name)
                 and (trigger == "dot" or not (name.startswith("__") and name.endswith("__"))))


def behind_a_dot(text: str) -> bool:
    """Whether code ends in an attribute that is begun: a dot behind an expression, and perhaps letters behind the dot.

    Not inside strings (f-strings are strings) and comments, behind numbers, or in ``from . import``.
    """
    found = re.search(r"\.([^\W\d]\w*)?\Z", text)
    return found is not None and _ends_in_expression(text[:found.start()])


def _ends_in_expression(text: str) -> bool:
    last = None
    for lexeme in _LEXEME.finditer(text):
        if lexeme.lastgroup not in ("blank", "comment"):
            last = lexeme
        elif lexeme.lastgroup == "comment" and lexeme.end() == len(text):
            return False
    if last is None or last.lastgroup == "number" or (last.lastgroup or "").startswith("open"):
        return False
    if last.lastgroup == "name":
        return last.group() in _VALUES or not keyword.iskeyword(last.group())
    return last.lastgroup is None or last.group() in (")", "]", "}")
