"""Reads the corpus of snippets from which examples are retrieved. A snippet is a description and
the code that it describes (paper, Section 4.1).

A file has one JSON object ``{id, description, code, source, licence}`` per line. SO-DS, StaQC and
CoNaLa are read as published by nokia/codesearch (Heyman and Van Cutsem 2020); their files have the
field ``attribution`` in place of ``source``. Files of queries have one ``{query, relevant_ids}``
per line.
"""

import ast
import os
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lookuplab import paths
from lookuplab.errors import UNPARSABLE, UserError
from lookuplab.python_sources import python_files
from lookuplab.work import say

CORPUS_FOLDER = paths.MINI / "stackoverflow"
PUBLISHED = ("so-ds", "staqc", "conala")  # names of downloads in data/sources.toml


@dataclass(frozen=True)
class Snippet:
    """A description in natural language and the code that it describes, with source and licence."""

    id: str
    description: str
    code: str
    source: str = ""
    licence: str = ""


@dataclass(frozen=True)
class Query:
    """A question whose relevant snippets are known. ``relevant`` and ``hidden`` are ids of
    snippets. The hidden snippets are left out when snippets are ranked for this question.
    """

    id: str
    text: str
    relevant: tuple[str, ...]
    hidden: tuple[str, ...] = ()


def load_snippets(name: str | Path) -> list[Snippet]:
    """Return the snippets of a named corpus, of a JSON Lines file (.jsonl, .jsonl.gz), or of a
    folder of .py files, in which each function with a docstring is a snippet.

    "mini" contains docstring examples of four libraries. "so-ds", "staqc" and "conala" must have
    been downloaded. Raises UserError for a missing corpus, for a line without code or description,
    and for a duplicate id.
    """
    (path,) = files(name)
    snippets = list(_functions(path) if path.is_dir() else _snippets(path))
    ids = {snippet.id for snippet in snippets}
    if not ids or len(ids) < len(snippets):
        raise UserError(
            f"{name}: {len(snippets)} snippets with {len(ids)} ids; ids must differ, and a folder "
            "needs .py files with functions that have a docstring"
        )
    return snippets


def files(name: str | Path, part: str = "snippets") -> list[Path]:
    """Return a list of one path: the file (or folder) of a corpus's snippets, or the file of its
    queries. ``part`` is "snippets", or the split of the queries, "valid" or "test".

    Raises UserError if the file is missing; the message says how to get it.
    """
    if name == "mini":
        return [CORPUS_FOLDER / f"{part if part == 'snippets' else f'queries_{part}'}.jsonl.gz"]
    if name in PUBLISHED:
        if found := sorted((paths.DOWNLOADS / f"{name}-{part}").glob("*.jsonl.gz")):
            return found[:1]
        raise UserError(f"{name}-{part} is missing: run `lookuplab data get {name}-{part}`")
    if not (place := paths.located(name)).exists():
        raise UserError(
            f"no snippet corpus {str(name)!r}: name one of mini, {', '.join(PUBLISHED)}, a JSON "
            "Lines file, or a folder of .py files"
        )
    return [place]


def queries(name: str | Path, split: str = "") -> list[Query]:
    """Return the queries of one split ("valid" or "test") of a named corpus ("mini", "so-ds",
    "staqc" or "conala"), or the queries in a file.

    If ``split`` is "", all queries in the file are returned. Otherwise a hash of the question puts
    a quarter of the file's queries into "valid" and the others into "test". Equal questions are
    merged into one query with the relevant ids of all of them, as in nokia/codesearch. Raises
    UserError if the file is missing or empty, or if a line has no question or no relevant id.
    """
    (file,) = files(name, split)
    relevant: dict[str, dict[str, None]] = defaultdict(dict)
    for number, record in paths.json_lines(file):
        text, ids = record.get("query"), record.get("relevant_ids")
        if not (
            isinstance(text, str)
            and text.strip()
            and isinstance(ids, list)
            and ids
            and all(isinstance(id, int | str) for id in ids)
        ):
            raise UserError(
                f"{file}: line {number} is not a query; it needs `query` and a list `relevant_ids`"
            )
        relevant[text] |= dict.fromkeys(map(str, ids))
    if not relevant:
        raise UserError(f"{file} has no queries")
    every = [Query(str(at), text, tuple(ids)) for at, (text, ids) in enumerate(relevant.items())]
    if not split or name in ("mini", *PUBLISHED):
        return every
    # "4": a quarter of all hashes begin with 0, 1, 2 or 3
    return [one for one in every if (paths.hashed(one.text) < "4") == (split == "valid")]


def answerable(queries: Sequence[Query], snippets: Collection[Snippet]) -> list[Query]:
    """Return the queries that have a relevant snippet in the corpus. Relevant ids that are missing
    from the corpus are removed, because no ranker can find them. A warning counts the missing ids
    and names three.

    Raises UserError if no query is left.
    """
    known = {snippet.id for snippet in snippets}
    every = {id: None for query in queries for id in query.relevant}
    missing = [id for id in every if id not in known]
    kept = [
        replace(one, relevant=(*(id for id in one.relevant if id in known),)) for one in queries
    ]
    left = [query for query in kept if query.relevant]
    if missing:
        message = (
            f"queries: {len(missing)} of {len(every)} relevant ids are not in the corpus "
            f"({', '.join(missing[:3])}{', ...' * (len(missing) > 3)})"
        )
        if not left:
            raise UserError(f"{message}: are they for another corpus?")
        say(f"warning: {message}; left out: {len(queries) - len(left)} of {len(queries)} queries")
    return left


def _snippets(file: Path) -> Iterator[Snippet]:
    for number, record in paths.json_lines(file):
        id, description, code = (record.get(name, "") for name in ("id", "description", "code"))
        # str() would turn a null into the word "None", which then looks like a description
        texts = isinstance(description, str) and isinstance(code, str) and isinstance(id, int | str)
        if not (texts and str(id).strip() and description.strip() and code.strip()):
            raise UserError(f"{file}: line {number}: a snippet needs id, description and code")
        source = record.get("source") or record.get("attribution") or file.name
        if isinstance(source, list):  # SO-DS lists several addresses; the last is the question's
            source = source[-1]
        yield Snippet(str(id), description, code, str(source), record.get("licence", ""))


def _functions(folder: Path) -> Iterator[Snippet]:
    """Yield a snippet for each function with a docstring: the docstring's first paragraph, and the
    function without its docstring.
    """
    unread = 0
    for file in python_files(folder):
        place = os.fsencode(file.relative_to(folder)).decode("utf-8", "backslashreplace")
        snippets = []
        try:
            for node in ast.walk(ast.parse(paths.source_text(file))):
                if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    continue
                if doc := ast.get_docstring(node):
                    node.body = node.body[1:] or [ast.Pass()]
                    text = " ".join(doc.split("\n\n")[0].split())
                    id = f"{place}:{node.lineno}"
                    snippets.append(Snippet(id, text, ast.unparse(node), place))
        except (OSError, *UNPARSABLE):
            unread += 1  # an example that this Python cannot parse would not help a model
            continue
        yield from snippets
    if unread:
        print(f"{folder}: files that do not parse, left out: {unread}", file=sys.stderr)
