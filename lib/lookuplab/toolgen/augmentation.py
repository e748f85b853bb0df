"""What Algorithm 1 makes of given functions: the paper's statistics, which identifiers the tool offers, the variants.

Rows are dictionaries of the tidy schema: condition, metric, value, ci_low, ci_high, n. Intervals resample whole
repositories; with few of them they say how much a number hangs on single ones, not what other repositories would give.
"""

import ast
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from lookuplab import paths, python_sources
from lookuplab.paths import write_lines
from lookuplab.errors import UserError
from lookuplab.scoring.rates import average, rate
from lookuplab.toolgen import jedi_kept, jedi_tool, jedi_worker, marking, marks
from lookuplab.toolgen.corpus import load, mark_into
from lookuplab.toolgen.files import column_of
from lookuplab.toolgen.functions import Function, Token
from lookuplab.toolgen.generation import content_hash
from lookuplab.toolgen.marking import RECEIVERS, candidates

PLACES = ("behind self.", "behind another dot", "keyword argument", "name that is read", "name that is bound",
          "in an import", "in the signature", "no identifier")
MEANS = {"docstring_tokens": "docstring_tokens", "function_tokens": "function_tokens", "marks_per_function": "marks"}


def marked(functions: Sequence[Function], variant: str = "paper", workers: int | None = None,
           folder: Path | None = None, progress: bool = True) -> list[dict[str, Any]]:
    """The functions' records (see ``corpus``), in their order.

    Kept in a file under ``folder`` (default: below ``paths.RUNS``), so that a second run asks only for functions with
    a failed call; its name stands for the functions, the content of their repositories, Jedi, what it reads and what
    asks it. Raises UserError where a call timed out or crashed.
    """
    file = (folder or paths.RUNS / "toolgen" / "marked") / f"{variant}-{_key(functions)}.jsonl"
    kept = load(file)
    if any(record["failures"] for record in kept):
        write_lines(file, (json.dumps(one, ensure_ascii=False) for one in kept if not one["failures"]))
    records = mark_into(functions, file, variant=variant, workers=workers)
    made = {one["id"]: one for one in tqdm(records, f"marking ({variant})", len(functions), unit=" functions",
                                           disable=not progress)}
    if lost := [id for id, one in made.items() if set(one["failures"]) & set(jedi_tool.LOST)]:
        raise UserError(f"{len(lost)} functions have questions to Jedi that timed out or crashed, first {lost[0]}; the "
                        "others are kept: run it again, with less other work on this machine")
    return [made[one.id] for one in functions]


def corpus_records(file: Path) -> list[dict[str, Any]]:
    """What ``statistics_rows`` needs, from a marked corpus (``corpus.build``) or, in a ``.gz``, from its marks alone
    (``marks.save``). Raises UserError for a file that holds neither."""
    if file.suffix != ".gz":
        return load(file)
    saved = marks.load(file)
    return [{"repository": id.partition("/")[0], "marks": len(one["marks"]),
             "docstring_tokens": one["docstring_tokens"], "function_tokens": one["function_tokens"]}
            for id, one in saved.items()]


def statistics_rows(records: Sequence[Mapping[str, Any]], condition: str) -> list[dict[str, Any]]:
    """The paper's five numbers (Sections IV-B and IV-C): counts, and means a function with intervals."""
    repositories = [record["repository"] for record in records]
    rows = [{"condition": condition, "metric": "functions", "value": len(records)},
            {"condition": condition, "metric": "repositories", "value": len(set(repositories))}]
    return rows + [_row(condition, metric, average([record[field] for record in records], repositories))
                   for metric, field in MEANS.items() if records]


def by_repository(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Marks a function in each repository, rows of the tidy schema; functions are the resampled units here."""
    rows = []
    for name in dict.fromkeys(record["repository"] for record in records):
        counts = [record["marks"] for record in records if record["repository"] == name]
        rows.append(_row(f"evaluation/{name}", "marks_per_function", average(counts, range(len(counts)))))
    return pd.DataFrame(rows)


def asked(functions: Sequence[Function], records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row for each token at which the tool was asked: id, repository, line, column, name, place (one of PLACES),
    offered. Functions with a failed call are left out: of them it is not known what the tool would have offered."""
    rows = []
    for function, record in zip(functions, records, strict=True):
        if not record["failures"]:
            known, kinds = {tuple(place) for place in record["positions"]}, places(function)
            rows += [(function.id, function.repository, t.line, t.column, t.text, kinds[t], (t.line, t.column) in known)
                     for t in candidates(function, record["variant"])]
    return pd.DataFrame(rows, columns=["id", "repository", "line", "column", "name", "place", "offered"])


def offered_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The share of identifiers that the tool offers, in all and by place; from ``asked``."""
    parts = {"all": frame, **{place: frame[frame.place == place] for place in PLACES}}
    return [_row(f"evaluation/{name}", "offered_percent", rate(part.offered, part.repository).percent())
            for name, part in parts.items() if len(part)]


def variant_rows(paper: Sequence[Mapping[str, Any]], package: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The package's marks a function, and how many more there are than the paper's on the same functions."""
    repositories = [record["repository"] for record in paper]
    theirs = [record["marks"] for record in package]
    more = [record["marks"] - ours["marks"] for ours, record in zip(paper, package, strict=True)]
    return [_row("evaluation/package", "marks_per_function", average(theirs, repositories)),
            _row("evaluation/package - paper", "marks_per_function_change", average(more, repositories))]


def only_one(functions: Sequence[Function], paper: Sequence[Mapping[str, Any]], package: Sequence[Mapping[str, Any]]
             ) -> pd.DataFrame:
    """Marks that both variants set or one of them alone: counts by place, columns both, paper only, package only."""
    counted = []
    for function, ours, theirs in zip(functions, paper, package, strict=True):
        one, other = ({tuple(place) for place in record["positions"]} for record in (ours, theirs))
        for token, place in places(function).items():
            at = (token.line, token.column)
            if at in one | other:
                counted.append((place, "both" if at in one & other else "paper only" if at in one else "package only"))
    frame = pd.DataFrame(counted, columns=["place", "set by"])
    return pd.crosstab(frame["place"], frame["set by"]).reindex(
        index=[name for name in PLACES if name in set(frame["place"])],
        columns=["both", "paper only", "package only"], fill_value=0)


def places(function: Function) -> dict[Token, str]:
    """Where each token of a function stands: one of PLACES. A name is bound where it is no expression that is read."""
    keywords, read, imports = _positions(function)
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
        else:
            place = ("keyword argument" if at in keywords else "name that is read" if at in read
                     else "name that is bound")
        found[token] = place
        before = [before[1], token.text]
    return found


def _positions(function: Function) -> tuple[set[tuple[int, int]], set[tuple[int, int]], set[int]]:
    """(line, column) in the file of keyword arguments and of names that are read; the lines of import statements."""
    lines = function.source.split("\n")

    def place(node: ast.expr | ast.keyword) -> tuple[int, int]:
        number = function.line + node.lineno - 1
        cut = 0 if number in function.kept else len(function.indent)
        return number, column_of(lines[node.lineno - 1], node.col_offset) + cut

    nodes = list(ast.walk(ast.parse(function.source)))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    return ({place(node) for node in nodes if isinstance(node, ast.keyword) and node.arg},
            {place(node) for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)},
            {function.line + number - 1 for node in imports for number in range(node.lineno, node.end_lineno + 1)})


def _row(condition: str, metric: str, found: Any) -> dict[str, Any]:
    return {"condition": condition, "metric": metric, "value": found.value, "ci_low": found.low,
            "ci_high": found.high, "n": found.n}


def _key(functions: Sequence[Function]) -> str:
    modules = (marking, jedi_tool, jedi_worker, jedi_kept)
    code = [Path(module.__file__).read_text(encoding="utf-8") for module in modules]
    contents = {root: content_hash(root) for root in {function.root for function in functions}}
    placed = [f"{function.id} in {contents[function.root]}" for function in functions]
    read = python_sources.identity("jedi", "parso")
    return hashlib.sha256("\0".join([read, *code, *placed]).encode()).hexdigest()[:16]
