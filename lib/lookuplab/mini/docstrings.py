"""What the docstrings of installed libraries say: sentences about an object, and its examples as runnable code.

Read from the imported objects, not from the source, because compiled functions and pandas' templates have a docstring
only there.
"""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType

NOT_PUBLIC = re.compile(r"^(_.*|tests?|conftest|externals|testing|testutils|f2py|distutils|setup)$")
IMPORTS = {  # that docstrings take for granted
    "np": "import numpy as np",
    "numpy": "import numpy",
    "pd": "import pandas as pd",
    "scipy": "import scipy",
    "sp": "import scipy as sp",
    "plt": "import matplotlib.pyplot as plt",
}
SENTENCE = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!cf\.)\s+(?=[A-Z])")
NO_PROSE = re.compile(r">>>|^\.\. |:math:|::|^[=+-]{3}", re.M)
MARKUP = (
    (r":[\w:+-]+:`~?([^`<]*?)(?:\s*<[^>]*>)?`", r"\1"),
    (r"`+([^`]*)`+_*", r"\1"),
    (r"\s*\[\w+\]_", ""),
    (r"\*{1,2}([\w ]+)\*{1,2}", r"\1"),
)


@dataclass(frozen=True)
class Documented:
    """Public objects of a library that share a docstring: their names, shortest first, and the text unindented."""

    names: tuple[str, ...]
    text: str

    @property
    def name(self) -> str:
        return self.names[0]


def documented(package: str) -> list[Documented]:
    """The public objects of an installed package that have a docstring, each docstring once, in the order of names.

    Modules, private names, tests and what a module merely imports from another package are left out.
    """
    names: dict[str, set[str]] = defaultdict(set)
    for module in _modules(package):
        for name in getattr(module, "__all__", None) or vars(module):
            value = inspect.getattr_static(module, name, None)
            # a ufunc names no module, but its class does
            home = str(getattr(value, "__module__", None) or type(value).__module__)
            if name.startswith("_") or home.partition(".")[0] != package:
                continue
            members = vars(value) if isinstance(value, type) else {}
            inner = {f".{part}": one for part, one in members.items() if part[0] != "_"}
            for key, found in {"": value, **inner}.items():
                if callable(found) or hasattr(found, "__get__"):
                    names[inspect.getdoc(found)].add(f"{module.__name__}.{name}{key}")
    found = [
        Documented(tuple(sorted(keys, key=lambda key: (key.count("."), len(key), key))), text)
        for text, keys in names.items()
        if text and text.strip()
    ]
    return sorted(found, key=lambda each: each.name)


def _modules(name: str) -> Iterator[ModuleType]:
    """A package and all its public modules that can be imported."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = importlib.import_module(name)
    except Exception:  # an optional dependency, a removed module: each has its own exception
        return
    yield module
    for inner in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if not NOT_PUBLIC.match(inner.name):
            yield from _modules(f"{name}.{inner.name}")


def sections(text: str) -> dict[str, str]:
    """The sections of a numpydoc docstring: lower-case heading -> text; "" is what stands before the first."""
    parts = re.split(r"^(\w[\w -]*)\n[-=]{3,} *$", text, flags=re.M)
    headings = [name.strip().lower() for name in parts[1::2]]
    return {"": parts[0], **dict(zip(headings, parts[2::2], strict=True))}


def sentences(text: str) -> list[str]:
    """The sentences of the prose paragraphs of a text, without markup, lists, tables, code and directives.

    A sentence has 4 to 40 words, begins with a letter and holds no formula.
    """
    found = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        prose = "\n" not in paragraph or not re.search(r"^\s+\S", paragraph, re.M)
        if prose and re.match(r"[A-Za-z`:]", paragraph) and not NO_PROSE.search(paragraph):
            found += [plain(one) for one in SENTENCE.split(" ".join(paragraph.split()))]
    return [
        one for one in found if 4 <= len(one.split()) <= 40 and one[0].isalpha() and one.isascii()
    ]


def plain(text: str, markup: Iterable[tuple[str, str]] = MARKUP) -> str:
    """Text on one line without reStructuredText markup: roles, quotes, references, emphasis."""
    for pattern, replacement in markup:
        text = re.sub(pattern, replacement, text)
    return " ".join(text.split())


def examples(text: str) -> list[tuple[str, str]]:
    """The examples of a docstring's ``>>>`` sessions, one for each stretch of code between prose: the sentence that
    leads to it ("" where there is none), and its code.

    Each is made to stand alone: the earlier statements that define its names come first, as do the imports that the
    libraries' docstrings take for granted. Outputs are dropped. A session that does not parse gives nothing.
    """
    found, before, lead, code = [], [], "", []
    try:
        for part in [*doctest.DocTestParser().parse(text), "end"]:
            if isinstance(part, doctest.Example):
                source = re.sub(r"[ \t]*# *doctest:.*$", "", part.source, flags=re.M)
                code.append(source.rstrip("\n"))
            elif part.strip():
                if code:
                    found.append((lead, _alone(before, code)))
                    before, code = [*before, *code], []
                last = re.split(r"\n\s*\n", part.strip())[-1]
                lead = next(iter(sentences(last.replace("::", "."))), "")
    except (ValueError, SyntaxError):
        return []
    return found


def _alone(before: list[str], code: list[str]) -> str:
    """``code`` behind those of the earlier statements that bind what it reads, and the imports that it needs."""
    needed: set[str] = set()
    kept: list[str] = []
    for statement in reversed([*before, *code]):
        tree = ast.parse(statement)
        if len(kept) < len(code) or needed & bound(tree):
            kept.append(statement)
            needed = (needed - bound(tree)) | names(tree, ast.Load)
    return "\n".join([*(IMPORTS[name] for name in sorted(needed & set(IMPORTS))), *reversed(kept)])


def names(tree: ast.AST, context: type = ast.expr_context) -> set[str]:
    """The names in a piece of code, or those that it reads (``ast.Load``) or binds by assignment (``ast.Store``)."""
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {node.id for node in found if isinstance(node.ctx, context)}


def bound(tree: ast.AST) -> set[str]:
    """The names that a piece of code binds: assigned, imported, defined; a changed element counts for its variable."""
    found = names(tree, ast.Store)
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=imported) | ast.ImportFrom(names=imported):
                found |= {(one.asname or one.name).partition(".")[0] for one in imported}
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Subscript() | ast.Attribute() if isinstance(node.ctx, ast.Store):
                found |= names(node.value)
    return found
