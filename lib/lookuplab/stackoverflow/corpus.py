"""Snippets, each a description and its code, in one schema: what is looked up (paper, Section 4.1).

``{id, description, code, source, licence}`` a line of JSON. SO-DS, StaQC and CoNaLa come as nokia/codesearch published
them (Heyman and Van Cutsem 2020): other field names, the same content. Queries are ``{query, relevant_ids}`` a line.
"""

import ast
import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lookuplab import paths
from lookuplab.errors import UserError

MINI = paths.MINI / "stackoverflow"
PUBLISHED = {"so-ds": "so-ds", "staqc": "staqc", "conala": "conala"}  # name -> its download in data/sources.toml
LICENCE = "CC BY-SA, as Stack Overflow"  # of snippets that name none in the published files


@dataclass(frozen=True)
class Snippet:
    """A description in natural language and the code that does it; where it comes from, and under which licence."""

    id: str
    description: str
    code: str
    source: str
    licence: str


@dataclass(frozen=True)
class Query:
    """A question whose relevant snippets are known."""

    id: str
    text: str
    relevant: tuple[str, ...]


def load(name: str | Path) -> list[Snippet]:
    """The snippets of a corpus by name, or of a file or folder of one's own.

    "mini" holds the docstring examples that prompts may show; "mini-retrieval" also those of the held-out objects,
    which answer the retrieval queries and would give away the problems of the mini benchmark. "so-ds", "staqc" and
    "conala" must have been fetched. Raises UserError for an unknown name, a corpus that is not there, and as ``read``.
    """
    if name == "mini":
        return read(MINI / "snippets.jsonl.gz")
    if name == "mini-retrieval":
        return read(MINI / "snippets.jsonl.gz") + read(MINI / "held_out.jsonl.gz")
    if name in PUBLISHED:
        return read(_downloaded(PUBLISHED[name], "snippets"), licence=LICENCE)
    if not (file := paths.located(name)).exists():
        names = ", ".join(("mini", "mini-retrieval", *PUBLISHED))
        raise UserError(f"no snippet corpus {str(name)!r}: name one of {names}, a JSON Lines file, or a folder of .py "
                        "files")
    return read(file)


def queries(name: str | Path, split: str = "test") -> list[Query]:
    """The queries of a corpus by name ("mini", "so-ds", "staqc", "conala"; split "valid" or "test"), or of a file.

    Equal questions are one query with all of their snippets, as in nokia/codesearch. The mini corpus answers "valid"
    from "mini" and "test" from "mini-retrieval". Raises UserError as ``load``, and for a line without a relevant id.
    """
    if name == "mini":
        file = MINI / f"queries_{split}.jsonl.gz"
    elif name in PUBLISHED:
        file = _downloaded(PUBLISHED[name], split)
    else:
        file = paths.located(name)
    relevant: dict[str, list[str]] = {}
    for number, record in records(file):
        text, ids = record.get("query"), record.get("relevant_ids")
        if not (isinstance(text, str) and text.strip() and isinstance(ids, list) and ids):
            raise UserError(f"{file}: line {number} is no query; it needs `query` and a list `relevant_ids`")
        relevant.setdefault(text, []).extend(str(one) for one in ids)
    return [Query(str(number), text, tuple(dict.fromkeys(ids))) for number, (text, ids) in enumerate(relevant.items())]


def read(path: Path, licence: str = "") -> list[Snippet]:
    """Snippets of a JSON Lines file (.jsonl, .jsonl.gz), or of a folder of .py files: its functions with a docstring.

    ``licence`` is that of snippets that name none. Raises UserError for a line without code or description, for an id
    that occurs twice, and for a place without any snippet.
    """
    found = list(_functions(path, licence)) if path.is_dir() else [
        _snippet(path, number, record, licence) for number, record in records(path)]
    if not found:
        raise UserError(f"{path}: no snippet; a folder needs .py files with functions that have a docstring")
    seen: set[str] = set()
    for snippet in found:
        if snippet.id in seen:
            raise UserError(f"{path}: two snippets have the id {snippet.id!r}; ids must differ")
        seen.add(snippet.id)
    return found


def write(path: Path, records: list[Mapping]) -> None:
    """JSON Lines, compressed, the same bytes for the same records."""
    text = "".join(json.dumps(dict(record), ensure_ascii=False) + "\n" for record in records)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def records(file: Path) -> Iterator[tuple[int, dict]]:
    """(line number, object) of a JSON Lines file, .gz or not. Raises UserError with the line that is none."""
    try:
        with (gzip.open if file.suffix == ".gz" else open)(file, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    record = json.loads(line)
                    if not isinstance(record, dict):
                        raise UserError(f"{file}: line {number} is no JSON object")
                    yield number, record
    except json.JSONDecodeError as error:
        raise UserError(f"{file}: line {number} is no JSON ({error.msg})") from None
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from None


def _snippet(file: Path, number: int, record: dict, licence: str) -> Snippet:
    for field in ("id", "description", "code"):
        value = record.get(field)
        if not (isinstance(value, str) and value.strip() or field == "id" and isinstance(value, int)):
            raise UserError(f"{file}: line {number} has no {field}; a snippet needs id, description and code")
    source = str(record.get("source") or record.get("attribution") or file.name)
    return Snippet(str(record["id"]), record["description"], record["code"], source, record.get("licence", licence))


def _functions(folder: Path, licence: str) -> Iterator[Snippet]:
    """A snippet for each function with a docstring: its first paragraph, and the function without it."""
    for file in sorted(folder.rglob("*.py")):
        try:
            text = file.read_text(encoding="utf-8")
            tree = ast.parse(text)
        except (OSError, ValueError, SyntaxError):
            continue  # no Python of this version: nothing that could be shown
        place = file.relative_to(folder).as_posix()
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (doc := ast.get_docstring(node)):
                node.body = node.body[1:] or [ast.Pass()]
                description = " ".join(doc.split("\n\n")[0].split())
                yield Snippet(f"{place}:{node.lineno}", description, ast.unparse(node), place, licence)


def _downloaded(corpus: str, part: str) -> Path:
    """Where a file of a published corpus lies. Raises UserError, which says how to get it, where it is not there."""
    folder = paths.DOWNLOADS / f"{corpus}-{part}"
    files = sorted(folder.glob("*.jsonl.gz")) if folder.is_dir() else []
    if not files:
        raise UserError(f"{corpus}-{part} is not there: `lookuplab data get {corpus}-{part}`")
    return files[0]
