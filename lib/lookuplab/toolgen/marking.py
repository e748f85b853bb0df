"""Algorithm 1: where in a function would the completion tool have offered the next identifier?
(Section III-B) And what it makes of many functions: the augmented corpus, its statistics, which
identifiers are offered, how the variants differ.

The paper's ISBUILTIN is stated by one example; Figure 4 leaves ``self`` unmarked as well. Here:
``__x__``, the names of ``builtins`` unless they stand behind a dot, ``self`` and ``cls``. The tool
sees the *incomplete* function (Section II-B, and the state of Algorithm 2): the file up to the
caret, then what follows the function in the file.

Rows are those of the tidy schema. Their intervals resample whole repositories; with few of them
they say how much a number hangs on single ones, not what other repositories would give.
"""

import ast
import builtins
import gzip
import hashlib
import json
import keyword
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from lookuplab.cluster import Cluster, check_seen, kept
from lookuplab.errors import UserError
from lookuplab.models.store import AnswerStore
from lookuplab.scoring.rates import average, rate, row
from lookuplab.toolgen.analysers import key, repository_digest
from lookuplab.toolgen.functions import Function, Token, column_of
from lookuplab.toolgen.jedi_tool import LOST, VERSION, JediTool
from lookuplab.toolgen.pairs import MARK, Pair, corpus_lines

VARIANTS = ("paper", "package")
MARKING_VERSION = 1  # raise it whenever a function would get other marks by the same answers
_NO_FUNCTIONS = {"copyright", "credits", "exit", "license", "quit"}  # of the prompt alone
BUILTINS = frozenset(name for name in dir(builtins) if name.isidentifier()) - _NO_FUNCTIONS
RECEIVERS = frozenset({"self", "cls"})
PLACES = (
    "behind self.",
    "behind another dot",
    "keyword argument",
    "name that is read",
    "name that is bound",
    "in an import",
    "in the signature",
    "no identifier",
)


class Marks(AnswerStore):
    """Key -> what ``mark`` found, in ``marks.sqlite`` beside the completion store."""

    name = "marks"


def candidates(function: Function, variant: str = "paper") -> Iterator[Token]:
    """The tokens before which the tool is asked. The package asks in the signature too, and before
    literals.
    """
    previous = ""
    for token in function.tokens:
        wanted = not (token.text.startswith("__") and token.text.endswith("__"))
        if variant == "package":
            skipped = BUILTINS | {"self"} | set(keyword.kwlist)
            wanted &= token.text not in skipped and token.text[0] not in "()[]{}:;,.+-*/%=<>!@&|^~"
        else:
            hidden = previous != "." and token.text in RECEIVERS | BUILTINS
            wanted &= token.is_name and token.line >= function.body_line and not hidden
        if wanted:
            yield token
        previous = token.text


def buffer_at(lines: list[str], function: Function, token: Token, variant: str = "paper") -> str:
    """The unsaved file with the function up to ``token``. ``lines`` are the whole file's.

    On a blank indented line, and in some unfinished brackets, Jedi takes the caret to stand outside
    the function, and offers no local name; a dummy name behind the caret puts it inside. The
    package has none, and so never marks a local name at a statement's start.
    """
    before = lines[token.line - 1][: token.column]
    dummy = "_\n" if variant == "paper" else "\n"
    return "".join([*lines[: token.line - 1], before, dummy, *lines[function.end_line :]])


def mark(function: Function, tool: JediTool, variant: str = "paper") -> dict[str, Any]:
    """Ask at every candidate, mark where its exact name is offered.

    ``positions``: [line, column] in the file of every mark; ``asked``: how many questions;
    ``failures``: reason -> how many of them failed, which marks nothing.
    """
    positions, failures, lines = [], Counter(), function.lines()
    tokens = list(candidates(function, variant))
    for token in tokens:
        at = buffer_at(lines, function, token, variant), token.line, token.column
        answer = tool.complete(function.root, function.file, *at, token.text)
        if answer.failure:
            failures[answer.failure] += 1
        elif token.text in (answer.inserted if variant == "package" else answer.identifiers):
            positions.append([token.line, token.column])
    return {"positions": positions, "asked": len(tokens), "failures": dict(failures)}


def augmented(function: Function, positions: Sequence[Sequence[int]]) -> Pair:
    """The pair of docstring and augmented function: MARK before each marked token."""

    def with_marks(text: str, first: int) -> str:
        lines = text.split("\n")
        for line, column in sorted(positions, reverse=True):
            if first <= line < first + len(lines):
                at = column - len(function.indent) * (line not in function.kept)
                lines[line - first] = lines[line - first][:at] + MARK + lines[line - first][at:]
        return "\n".join(lines)

    signature = with_marks(function.signature, function.line)
    body = with_marks(function.body, function.body_line)
    return Pair(function.id, function.docstring, signature, body)


def marked(
    functions: Sequence[Function],
    variant: str = "paper",
    workers: int | None = None,
    store: Path | str | None = None,
    cluster: Cluster | None = None,
    strict: bool = True,
) -> list[dict[str, Any]]:
    """The functions' records in a marked corpus (Section III-B), in their order.

    What was marked is kept in ``store`` (a file, ":memory:", or None for the one beside the completion store), file by
    file, so that a run that was killed goes on, until the repository changes. ``cluster`` marks on its workers.
    Functions with a question that timed out or crashed are not kept; ``strict`` raises UserError where there are any,
    as a busy machine must not change a number. Raises UserError for two functions of one id.
    """
    digests = {root: repository_digest(root) for root in {one.root for one in functions}}
    versions = {"variant": variant, "tool": VERSION, "marking": MARKING_VERSION}
    keys = {one.id: key("marks", digests[one.root], id=one.id, **versions) for one in functions}
    if len(keys) < len(functions):
        raise UserError("two repositories have one name, so that ids collide; rename one folder")
    with Marks(store) as opened:
        found = opened.get(keys.values())
        missing = [one for one in functions if keys[one.id] not in found]
        bar = tqdm(total=len(missing), desc=f"marking ({variant})", unit=" functions", delay=1)
        with bar:
            for new in _by_file(missing, variant, workers, cluster):
                for id, marks in new:
                    found[keys[id]] = marks
                    if not LOST & set(marks["failures"]):
                        opened.put(keys[id], marks)
                bar.update(len(new))
    records = [_record(one, variant, found[keys[one.id]]) for one in functions]
    lost = [record["id"] for record in records if LOST & set(record["failures"])]
    if lost and strict:
        raise UserError(
            f"{len(lost)} functions have questions to Jedi that timed out or crashed, first "
            f"{lost[0]}; the others are kept: run it again, with less other work on this machine"
        )
    return records


def _by_file(
    functions: Sequence[Function], variant: str, workers: int | None, cluster: Cluster | None
) -> Iterator[list[tuple[str, dict]]]:
    """(id, marks) of the functions of one file after the other, as they are done."""
    files = groupby(functions, key=lambda one: (one.root, one.file))
    tasks = [(list(group), variant) for _, group in files]
    if cluster is not None:
        yield from (found for _, found in cluster.map(_mark_file, tasks))
        return
    with JediTool(workers) as tool, ThreadPoolExecutor(tool.workers) as threads:
        try:
            waiting = [threads.submit(_mark_file, task, tool) for task in tasks]
            yield from (done.result() for done in as_completed(waiting))
        finally:
            threads.shutdown(cancel_futures=True)


def _mark_file(
    task: tuple[list[Function], str], tool: JediTool | None = None
) -> list[tuple[str, dict]]:
    """The functions of one file, on a worker of a cluster by that worker's own tool."""
    functions, variant = task
    check_seen(functions[0].root)
    return [(one.id, mark(one, tool or kept(JediTool, 1), variant)) for one in functions]


def _record(function: Function, variant: str, marks: dict[str, Any]) -> dict[str, Any]:
    pair = augmented(function, marks["positions"])
    own = ("id", "repository", "file", "line", "docstring", "signature", "body", "source")
    return {
        **{name: getattr(function, name) for name in own},
        "code": code_hash(function.source),
        "marked_signature": pair.signature,
        "marked_body": pair.body,
        "variant": variant,
        **marks,
        "marks": len(marks["positions"]),
        "docstring_tokens": len(function.docstring.split()),
        "function_tokens": len(function.tokens),
    }


def save(records: Sequence[Mapping[str, Any]], file: Path) -> None:
    """Write the marks of a corpus without its code, which is other people's and stands in their
    packages anyway: one JSON line a function, the same bytes every time.
    """
    names = ("id", "code", "asked", "failures", "docstring_tokens", "function_tokens")
    lines = [
        json.dumps({name: one[name] for name in names} | {"marks": one["positions"]}) + "\n"
        for one in sorted(records, key=lambda one: one["id"])
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


def load(file: Path) -> list[dict[str, Any]]:
    """Of each function of a marked corpus, or of saved marks (``.gz``): ``id``, ``repository``,
    ``code``, ``positions``, ``marks``, ``docstring_tokens`` and ``function_tokens``. Raises
    UserError for another file.
    """
    found = corpus_lines(file, ["id", "code", "marks", *_MEANS])
    for one in found:
        one.setdefault("positions", one["marks"])
        one |= {"repository": one["id"].partition("/")[0], "marks": len(one["positions"])}
    return found


def lay_over(functions: Sequence[Function], saved: Sequence[Mapping[str, Any]]) -> list[Pair]:
    """The augmented functions by marks that were saved, in order, without those that had none or
    were other code when they were marked.
    """
    known = {(one["id"], one["code"]): one["positions"] for one in saved}
    return [
        augmented(one, known[at])
        for one in functions
        if (at := (one.id, code_hash(one.source))) in known
    ]


def code_hash(source: str) -> str:
    """Sixteen digits of a function's sha256."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def statistics_rows(records: Sequence[Mapping[str, Any]], condition: str) -> list[dict[str, Any]]:
    """The paper's five numbers (Sections IV-B and IV-C): counts, and means a function. The paper
    does not say which tokens it counts; ours are Python's, and a docstring's are its words.
    """
    frame = pd.DataFrame(records, columns=["repository", *_MEANS])
    counts = {"functions": len(frame), "repositories": frame.repository.nunique()}
    rows = [{"condition": condition, "metric": name, "value": n} for name, n in counts.items()]
    means = _MEANS if records else {}
    return rows + [
        row("", condition, name, average(frame[field], frame.repository))
        for field, name in means.items()
    ]


_MEANS = {
    "docstring_tokens": "docstring_tokens",
    "function_tokens": "function_tokens",
    "marks": "marks_per_function",
}


def by_repository(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Marks a function in each repository; functions are the resampled units here."""
    counts = pd.DataFrame(records).groupby("repository", sort=False).marks
    return pd.DataFrame(
        row("", f"evaluation/{name}", "marks_per_function", average(marks, range(len(marks))))
        for name, marks in counts
    )


def variant_rows(
    paper: Sequence[Mapping[str, Any]], package: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The package's marks a function, and how many more there are than the paper's on the same
    functions.
    """
    ours, theirs = pd.DataFrame(paper), pd.DataFrame(package).marks
    mean, more = (average(marks, ours.repository) for marks in (theirs, theirs - ours.marks))
    return [
        row("", "evaluation/package", "marks_per_function", mean),
        row("", "evaluation/package - paper", "marks_per_function_change", more),
    ]


def asked(functions: Sequence[Function], records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row for each token at which the tool was asked: id, repository, line, column, name, place
    (one of PLACES), offered. Functions with a failed call are left out: of them it is not known
    what the tool would have offered.
    """
    rows = [
        {
            "id": one.id,
            "repository": one.repository,
            "line": token.line,
            "column": token.column,
            "name": token.text,
            "place": kinds[token],
            "offered": [token.line, token.column] in record["positions"],
        }
        for one, record in zip(functions, records, strict=True)
        if not record["failures"]
        for kinds in [places(one)]
        for token in candidates(one, record["variant"])
    ]
    return pd.DataFrame(rows)


def offered_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The share of identifiers that the tool offers, in all and by place; from ``asked``."""
    parts = {"all": frame} | dict(iter(frame.groupby("place")))
    rates = {
        name: rate(parts[name].offered, parts[name].repository)
        for name in ("all", *PLACES)
        if name in parts
    }
    return [
        row("", f"evaluation/{name}", "offered_percent", one.percent())
        for name, one in rates.items()
    ]


def places(function: Function) -> dict[Token, str]:
    """Where each token of a function stands: one of PLACES. A name is bound where it is no
    expression that is read.
    """
    lines, keywords, read, imports = function.lines(), set(), set(), set()
    for node in ast.walk(ast.parse("".join(lines))):
        match node:
            case ast.Import() | ast.ImportFrom():
                imports.update(range(node.lineno, node.end_lineno + 1))
            case ast.keyword(arg=str()) | ast.Name(ctx=ast.Load() | ast.Del()):
                at = node.lineno, column_of(lines[node.lineno - 1], node.col_offset)
                (keywords if isinstance(node, ast.keyword) else read).add(at)
    found, before = {}, ["", ""]
    for token in function.tokens:
        at = (token.line, token.column)
        if token.line < function.body_line:
            place = "in the signature"
        elif not token.is_name:
            place = "no identifier"
        elif token.line in imports:
            place = "in an import"
        elif before[1] == ".":
            place = "behind self." if before[0] in RECEIVERS else "behind another dot"
        elif at in keywords:
            place = "keyword argument"
        else:
            place = "name that is read" if at in read else "name that is bound"
        found[token] = place
        before = [before[1], token.text]
    return found
