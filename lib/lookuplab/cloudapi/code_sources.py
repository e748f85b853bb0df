"""Python files from wherever code is kept: a folder, JSON Lines, or a hub data set, one at a time."""

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lookuplab.errors import UserError

TEXT_FIELDS = ("content", "text", "code")
PATH_FIELDS = ("path", "file_path", "filepath", "max_stars_repo_path", "filename", "file_name")
REPOSITORY_FIELDS = ("repo_name", "max_stars_repo_name", "repo", "repository")
LANGUAGE_FIELDS = ("language", "lang", "programming_language")


@dataclass(frozen=True)
class SourceFile:
    """One file of code. ``path`` includes the repository's name where the source gives one."""

    path: str
    text: str


def source_files(source: str, split: str = "train", text_field: str | None = None) -> Iterator[SourceFile]:
    """The Python files of ``source``, streamed.

    ``source`` is a folder with ``.py`` files, a ``.py`` or ``.jsonl(.gz)`` file, a folder with ``.parquet`` or
    ``.jsonl(.gz)`` files, or the name of a data set on the Hugging Face hub (``owner/name`` or
    ``owner/name:configuration``). Raises UserError for a source that is none of these.
    """
    place = Path(source)
    if place.is_dir():
        scripts = sorted(place.rglob("*.py"))
        yield from map(_read, scripts, [place] * len(scripts)) if scripts else _local_rows(place, split, text_field)
    elif place.suffix == ".py" and place.exists():
        yield _read(place, place.parent)
    elif place.name.endswith((".jsonl", ".jsonl.gz")) and place.exists():
        yield from _json_lines(place, text_field)
    elif place.exists():
        raise UserError(f"{source} is neither a folder nor a .py or .jsonl(.gz) file")
    else:
        yield from _hub_rows(source, split, text_field)


def known_number(source: str) -> int | None:
    """How many files there are, where it takes no reading to tell: in a folder with ``.py`` files."""
    place = Path(source)
    return sum(1 for _ in place.rglob("*.py")) or None if place.is_dir() else None


def _read(script: Path, root: Path) -> SourceFile:
    text = script.read_bytes().decode("utf-8", errors="replace") if script.is_file() else ""
    return SourceFile(str(script.relative_to(root)), text)


def _json_lines(path: Path, text_field: str | None) -> Iterator[SourceFile]:
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
        try:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield from _from_row(json.loads(line), f"{path}, line {number}", text_field)
        except (ValueError, EOFError, OSError) as error:  # broken JSON, bad UTF-8, a broken archive
            raise UserError(f"{path}, at line {number}: not JSON Lines: {error}") from None


def _local_rows(folder: Path, split: str, text_field: str | None) -> Iterator[SourceFile]:
    kinds = {"parquet": "*.parquet", "json": "*.jsonl*"}
    for builder, pattern in kinds.items():
        files = sorted(map(str, folder.rglob(pattern)))
        if files:
            yield from _rows(builder, text_field, str(folder), data_files={split: files}, split=split)
            return
    raise UserError(f"{folder} has no .py, .parquet or .jsonl(.gz) files")


def _hub_rows(source: str, split: str, text_field: str | None) -> Iterator[SourceFile]:
    name, _, configuration = source.partition(":")
    if name.count("/") != 1 or source.startswith((".", "/", "~")):
        raise UserError(f"{source} does not exist; name a folder, a .jsonl(.gz) file or a hub data set (owner/name)")
    yield from _rows(name, text_field, source, name=configuration or None, split=split)


def _rows(builder: str, text_field: str | None, source: str, **options) -> Iterator[SourceFile]:
    import datasets
    from huggingface_hub.utils import logging

    logging.set_verbosity_error()  # its retries would bury the one line below
    try:
        rows = datasets.load_dataset(builder, streaming=True, **options)
        for number, row in enumerate(rows, 1):
            yield from _from_row(row, f"{source}, row {number}", text_field)
    except UserError:
        raise
    except Exception as error:  # the library raises a dozen types: no network, no such data set, gated, broken file
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(f"cannot read the data set {source}: {reason.rstrip('.')}; check its files or, for one on the "
                        "hub, its name, the network and your rights (`hf auth login`)") from None


def _from_row(row: object, place: str, text_field: str | None) -> Iterator[SourceFile]:
    """Nothing for another language or an empty file; raises UserError for a row without text."""
    if not isinstance(row, Mapping):
        raise UserError(f"{place}: not an object with fields")
    fields = (text_field,) if text_field else TEXT_FIELDS
    field = next((name for name in fields if name in row), None)
    if field is None:
        raise UserError(f"{place}: no field {' or '.join(fields)}; it has {', '.join(map(str, row))}")
    if str(_first(row, LANGUAGE_FIELDS) or "python").lower() in ("python", "py") and row[field]:
        parts = (_first(row, REPOSITORY_FIELDS), _first(row, PATH_FIELDS))
        yield SourceFile("/".join(str(part) for part in parts if part), str(row[field]))


def _first(row: Mapping, fields: tuple[str, ...]) -> object:
    return next((row[field] for field in fields if row.get(field)), None)
