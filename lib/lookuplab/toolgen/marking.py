"""Implements Algorithm 1 (Section III-B), which marks each place in a function where the completion
tool would have offered the next identifier.

The marked functions are the augmented corpus. From the marks, one can also compute the statistics
of the corpus and the share of identifiers that the tool offers, and compare the paper's rules with
those of its two replication packages ("the packages" below; see ``rules``).

The paper defines ISBUILTIN by one example only; Figure 4 leaves ``self`` unmarked as well. Here a
name is builtin if it has the form ``__x__``. It is also builtin if it does not follow a dot and is
``self``, ``cls`` or one of Python's ``builtins``. The tool sees the *incomplete* function, as in
Section II-B and during Algorithm 2: the file up to the caret, then the part of the file after the
function.

The packages' rules are taken from the code of the packages. A fixed list of words
(``NEVER_MARKED``) is never marked. Before any other word or literal of the body, the tool is
called, and the word is marked if it is exactly the text that a completion would insert. The
packages' texts have no comments and no blank lines. Two steps of the packages are not needed here.
First, the packages mark signatures, too, but remove these marks before use; here the tool is not
called in signatures. Second, the packages mark the words of the list, too, and remove these marks
later; here a word of the list never gets a mark.
"""

import builtins
import functools
import json
import keyword
from collections import Counter
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from lookuplab.errors import UserError
from lookuplab.paths import hashed, write_lines
from lookuplab.toolgen.analysers import (
    JudgementStore,
    answer_all,
    joined_reasons,
    judgement_key,
    repository_digest,
)
from lookuplab.toolgen.functions import Function, without_comments
from lookuplab.toolgen.jedi_tool import TOOL_VERSION, JediTool, is_dunder, unfinished_file
from lookuplab.toolgen.pairs import Pair, corpus_records
from lookuplab.toolgen.rules import MARK, PAPER_RULES, Rules
from lookuplab.toolgen.source import Token, is_name
from lookuplab.work import Workers

# these names do not count as builtin, because Python adds them only for interactive use
_INTERACTIVE_NAMES = {"copyright", "credits", "exit", "license", "quit"}
BUILTINS = frozenset(name for name in dir(builtins) if name.isidentifier()) - _INTERACTIVE_NAMES
RECEIVERS = frozenset({"self", "cls"})
# {rules by which functions are marked: version of the marking}. The version is a part of the keys
# of stored marks. Increase it whenever the same answers of the tool would give a function different
# marks. The two packages share a version, because they mark the same words.
MARKING_VERSIONS = {"paper": 1, "package": 2}
# the words that the replication packages never mark
NEVER_MARKED = frozenset(keyword.kwlist) | set(
    """abs all any ascii bin bool bytearray bytes callable chr classmethod compile complex delattr
    dict dir divmod enumerate eval exec filter float format frozenset getattr globals hasattr
    hash help hex id input int isinstance issubclass iter len list locals map max memoryview min
    next object oct open ord pow print property range repr reversed round self set setattr slice
    sorted staticmethod str sum super tuple type vars zip
    __annotations__ __class__ __delattr__ __dict__ __dir__ __doc__ __eq__ __format__
    __getattribute__ __getstate__ __hash__ __init__ __init_subclass__ __module__ __ne__ __new__
    __reduce__ __reduce_ex__ __repr__ __setattr__ __setstate__ __sizeof__ __slots__ __str__
    ArithmeticError AssertionError AttributeError EOFError FloatingPointError GeneratorExit
    ImportError IndentationError IndexError KeyError KeyboardInterrupt MemoryError NameError
    NotImplementedError OSError OverflowError ReferenceError RuntimeError StopIteration
    SyntaxError SystemError SystemExit TabError TypeError UnboundLocalError UnicodeDecodeError
    UnicodeEncodeError UnicodeError UnicodeTranslateError ValueError ZeroDivisionError
    """.split()
)
Record = dict[str, Any]  # one function of a marked corpus, with the fields of ``_record``
Marking = dict[str, Any]  # the result of ``find_marks`` for one function


class Marks(JudgementStore):
    """The store of marks, {key: result of ``find_marks``}. By default it is the file
    ``marks.sqlite`` in the folder of the completion store.
    """

    name = "marks"


def candidates(function: Function, rules: Rules = PAPER_RULES) -> Iterator[Token]:
    """Yield the candidates for a mark: the tokens of the body before which the tool is called. By
    the paper's rules, the candidates are the identifiers that are not builtin.
    """
    previous = ""
    for token in function.tokens:
        text = token.text
        if rules.is_package:
            is_candidate = text not in NEVER_MARKED and text[0] not in "()[]{}:;,.+-*/%=<>!@&|^~"
        else:
            is_builtin = previous != "." and text in RECEIVERS | BUILTINS
            is_candidate = is_name(text) and not is_builtin and not is_dunder(text)
        if is_candidate and token.line >= function.body_line:
            yield token
        previous = text


def buffer_at(
    lines: list[str], function: Function, token: Token, rules: Rules = PAPER_RULES
) -> str:
    """Return the text of the unsaved file if the function is written only up to ``token`` (see
    ``unfinished_file``). ``lines`` are the lines of the whole file.
    """
    before = "".join(lines[: token.line - 1]) + lines[token.line - 1][: token.column]
    return unfinished_file(before, lines, function, rules)


def find_marks(function: Function, tool: JediTool, rules: Rules = PAPER_RULES) -> Marking:
    """Call the tool before every candidate in a function. A candidate gets a mark if the tool
    offers exactly the candidate's text.

    Return a dictionary with ``positions``, the [line, column] of every mark in the file; ``asked``,
    the number of calls; and ``failures``, {reason: number of failed calls}. A failed call gives no
    mark.
    """
    lines = function.lines()
    tokens = list(candidates(function, rules))
    positions = []
    failures = Counter[str]()
    for token in tokens:
        text = buffer_at(lines, function, token, rules)
        answer = tool.complete(function.root, function.file, text, *token)
        if answer.failure:
            failures[answer.failure] += 1
        elif token.text in (answer.inserted if rules.is_package else answer.identifiers):
            positions.append([token.line, token.column])
    return {"positions": positions, "asked": len(tokens), "failures": dict(failures)}


def augmented(
    function: Function, positions: Sequence[Sequence[int]], rules: Rules = PAPER_RULES
) -> Pair:
    """Return the pair of docstring and augmented function. The ``positions`` are [line, column] in
    the file; MARK is put before the token at each position.
    """
    signature = function.signature
    plain = function.body.split("\n")
    file = function.lines()
    lines = plain[:]
    # from the last mark to the first, so that the columns of the other marks stay valid
    for line, column in sorted(map(tuple, positions), reverse=True):
        number = line - function.body_line
        # subtract the indentation, which the file's line has and the body's line lacks
        column -= file[line - 1].index(plain[number])
        lines[number] = lines[number][:column] + MARK + lines[number][column:]
    body = "\n".join(lines)
    if rules.is_package:
        signature, body = without_comments(signature), without_comments(body)
    return Pair(function.id, function.docstring, signature, body, rules)


def marked_records(
    functions: Sequence[Function],
    rules: Rules = PAPER_RULES,
    workers: int | None = None,
    store: Path | str | None = None,
    cluster: Workers | None = None,
    strict: bool = True,
) -> list[Record]:
    """Return the records of a marked corpus (Section III-B), one for each function, in the order of
    ``functions``.

    Marks are cached in ``store`` until the repository changes. If Jedi did not answer a question
    about a function, the function's marks are not cached. ``store`` is a file, ":memory:", or None
    for a file in the folder of the completion store. ``workers``, ``cluster`` and ``strict`` are
    passed to ``analysers.answer_all``.
    """
    digest = functools.cache(repository_digest)
    marker = "package" if rules.is_package else "paper"
    versions = {"variant": marker, "tool": TOOL_VERSION, "marking": MARKING_VERSIONS[marker]}
    keys = {
        function.id: judgement_key("marks", function.id, digest(function.root), **versions)
        for function in functions
    }
    questions = {
        keys[function.id]: (function.root, function.file, rules, function) for function in functions
    }
    marks, _ = answer_all(Marks(store), questions, _marks, strict, workers, cluster)
    return [_record(function, rules, marks[keys[function.id]]) for function in functions]


def _marks(_: Path, __: str, rules: Rules, function: Function) -> tuple[Marking, str]:
    marks = find_marks(function, JediTool(), rules)
    return marks, joined_reasons(marks["failures"])


def _record(function: Function, rules: Rules, marks: Marking) -> Record:
    """Return the record of one function in a marked corpus."""
    pair = augmented(function, marks["positions"], rules)
    own = "id repository file line docstring signature body source".split()
    return {
        **{name: getattr(function, name) for name in own},
        "code": code_hash(function.source),
        "marked_signature": pair.signature,
        "marked_body": pair.body,
        "variant": str(rules),
        **marks,
        "marks": len(marks["positions"]),
        "docstring_tokens": len(function.docstring.split()),
        "function_tokens": len(function.tokens),
    }


def write_marks(records: Sequence[Record], file: Path) -> None:
    """Write the marks of a corpus to a file. The code of the functions is left out, because it
    belongs to the authors of the marked packages, and everybody can get it from these packages.

    The file has one line of JSON per function. The same records always give the same bytes.
    """
    names = "id code asked failures docstring_tokens function_tokens".split()
    lines = (
        json.dumps({name: record[name] for name in names} | {"marks": record["positions"]})
        for record in sorted(records, key=itemgetter("id"))
    )
    write_lines(file, lines)


def read_marks(file: Path) -> list[Record]:
    """Return the records in a file. The file is either a marked corpus or a file of
    ``write_marks``, and may be compressed (``.gz``).

    Each record has ``id``, ``repository``, ``code`` (the hash from ``code_hash``), ``positions``,
    ``marks`` (the number of positions), ``docstring_tokens`` and ``function_tokens``. Raises
    UserError for any other file.
    """
    corpus = corpus_records(file, "id code marks docstring_tokens function_tokens".split())
    for record in corpus:
        # a file of ``write_marks`` has no field "positions"; its field "marks" has the positions
        positions = record.setdefault("positions", record["marks"])
        if not isinstance(positions, list) or not all(map(_is_place, positions)):
            raise UserError(
                f"{file}: {record['id']}: marks must be [line, column], not {positions!r:.40}"
            )
        record |= {"repository": record["id"].partition("/")[0], "marks": len(positions)}
    return corpus


def _is_place(position: Any) -> bool:
    match position:
        case [int(), int()]:
            return True
    return False


def apply_marks(functions: Sequence[Function], marks: Sequence[Record]) -> list[Pair]:
    """Return the augmented pairs of those ``functions`` that have saved marks, in the order of
    ``functions``. ``marks`` are records of ``read_marks``. A function is left out if it has no
    saved marks, or if its code has changed since they were saved.
    """
    positions = {(record["id"], record["code"]): record["positions"] for record in marks}
    return [
        augmented(function, positions[known])
        for function in functions
        if (known := (function.id, code_hash(function.source))) in positions
    ]


def code_hash(source: str) -> str:
    """Return the first sixteen hexadecimal digits of the SHA-256 of a function's source."""
    return hashed(source)[:16]
