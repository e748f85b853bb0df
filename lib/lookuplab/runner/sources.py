"""What a notebook's numbers depend on in the checkout: the modules that it imports, and theirs, found without running.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import lookuplab
from lookuplab.runner.notebooks import Notebook, code_cells

PACKAGE = Path(lookuplab.__file__).parent
# Notebooks begin each of their artifacts with its paper and name; a picture of another artifact may come with one's own
_BEGIN = re.compile(r"""Artifact\.begin\(\s*["']([\w-]+)["'],\s*["']([\w-]+)["']""")
_MAGIC = re.compile(r"^\s*[%!].*$", re.MULTILINE)


def code(notebook: Notebook) -> str:
    """The source of its code cells."""
    return "\n".join(source for _, source in code_cells(notebook.path))


def artifacts(notebook: Notebook) -> list[str]:
    """``paper/artifact`` of everything that the notebook saves, its main artifact first."""
    found = dict.fromkeys(f"{paper}/{name}" for paper, name in _BEGIN.findall(code(notebook)))
    return sorted(found, key=lambda artifact: artifact != notebook.id)


def modules(notebook: Notebook) -> set[Path]:
    """The files of this library that the notebook's code imports, directly or through others."""
    found: set[Path] = set()
    waiting = list(_files(imported(notebook)))
    while waiting:
        if (file := waiting.pop()) not in found:
            found.add(file)
            waiting += _imports_of(file)
    return found


def imported(notebook: Notebook) -> Iterator[str]:
    """Dotted names of the notebook's own imports: of ``from a import b`` both ``a`` and ``a.b``, one of them a module.
    """
    return _names(_MAGIC.sub("", code(notebook)))


@cache
def _imports_of(file: Path) -> tuple[Path, ...]:
    return tuple(_files(_names(file.read_text(encoding="utf-8"))))


def _names(source: str) -> Iterator[str]:
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:  # a notebook of one's own may hold anything
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))


def _files(names: Iterable[str]) -> Iterator[Path]:
    """The file of each module of this library, and of the packages that it lies in."""
    for name in names:
        first, *parts = name.split(".")
        for end in range(len(parts) + 1) if first == "lookuplab" else ():
            place = PACKAGE.joinpath(*parts[:end])
            for file in (place / "__init__.py", place.with_suffix(".py")):
                if file.is_file():
                    yield file
