"""A repository's Python files: found, read and parsed, with a reason for each that is left out."""

import ast
import io
import os
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lookuplab import paths, python_sources
from lookuplab.errors import UserError
from lookuplab.toolgen.filters import Filters


@dataclass(frozen=True)
class Repository:
    """A folder of Python files. ``root`` is where paths begin, and is no part of any id."""

    name: str
    root: Path


@dataclass(frozen=True)
class Parsed:
    """One file: text with ``\\n`` line ends, its syntax tree and its tokens."""

    text: str
    lines: list[str]
    tree: ast.Module
    tokens: list[tokenize.TokenInfo]


class LeftOut(Exception):
    """A file that is not used; the message is the reason under which it is counted."""


def locate(name: str) -> Repository:
    """The folder at path ``name``, or the package of that import name among the stated sources, see
    ``python_sources``. Raises UserError where neither is."""
    folder = paths.located(name) if "/" in name else Path(name)
    if folder.is_dir():
        return Repository(folder.resolve().name, folder.resolve())
    package = python_sources.folder() / name
    if not (name.isidentifier() and package.is_dir()):
        raise UserError(f"{name!r} is neither a folder nor a package among the sources of {python_sources.PINS.name}; "
                        "give the path of its folder")
    return Repository(name, package.resolve())


def locate_all(names: Iterable[str]) -> list[Repository]:
    """``locate`` for several; ``FOLDER/*`` stands for the folders in it, sorted, without hidden ones."""
    found = []
    for name in names:
        if name.endswith("/*"):
            folder = paths.located(name.removesuffix("/*"))
            inside = sorted(place for place in folder.glob("[!.]*") if place.is_dir())
            if not inside:
                raise UserError(f"{name!r} names no folder: put the repositories there, one folder each")
            found += [Repository(place.name, place.resolve()) for place in inside]
        else:
            found.append(locate(name))
    return found


def python_files(root: Path, left_out: dict[str, int]) -> list[Path]:
    """Every ``*.py`` under ``root`` in sorted order. Links are counted, not followed: they may lead in a circle."""
    found = []
    for folder, subfolders, names in os.walk(root):
        here = Path(folder)
        for name in [name for name in subfolders if (here / name).is_symlink()]:
            left_out["folder: a link"] += 1
            subfolders.remove(name)
        for name in [name for name in subfolders if name.startswith(".")]:
            left_out["folder: hidden"] += 1
            subfolders.remove(name)
        for path in (here / name for name in names if name.endswith(".py")):
            if path.is_symlink() or not path.is_file():
                left_out["file: a link or no regular file"] += 1
            else:
                found.append(path)
    return sorted(found)


def parse(path: Path, filters: Filters) -> Parsed:
    """Read and parse one file. Raises LeftOut, and nothing else, for whatever stands in the way."""
    text = _read(path, filters)
    lines = list(_lines(text))
    if len(lines) > filters.max_file_lines:
        raise LeftOut(f"file: more than {filters.max_file_lines} lines")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what other people's string escapes deserve is not our reader's concern
            tree = ast.parse(text)
        tokens = list(tokenize.generate_tokens(io.StringIO(text, newline="\n").readline))
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
        raise LeftOut("file: does not parse") from None
    return Parsed(text, lines, tree, tokens)


def _read(path: Path, filters: Filters) -> str:
    try:
        if path.stat().st_size > filters.max_bytes:
            raise LeftOut(f"file: more than {filters.max_bytes} bytes")
        content = path.read_bytes()
    except OSError:
        raise LeftOut("file: cannot be read") from None
    if b"\0" in content:
        raise LeftOut("file: binary")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
    except (SyntaxError, LookupError, UnicodeDecodeError):
        raise LeftOut("file: encoding cannot be read") from None
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _lines(text: str) -> Iterator[str]:
    """Lines with their ends. Only ``\\n`` ends one: str.splitlines would also split at form feeds inside a line."""
    return iter(io.StringIO(text, newline="\n"))


def column_of(line: str, byte_column: int) -> int:
    """The character column of ``ast``'s column, which counts UTF-8 bytes."""
    return len(line.encode()[:byte_column].decode(errors="replace"))
