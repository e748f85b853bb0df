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
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

NOT_PUBLIC = re.compile(r"^(_.*|tests?|conftest|externals|testing|testutils|f2py|distutils|setup)$")
IMPORTS = {"np": "import numpy as np", "numpy": "import numpy", "pd": "import pandas as pd", "scipy": "import scipy",
           "sp": "import scipy as sp", "plt": "import matplotlib.pyplot as plt"}  # that docstrings take for granted
_DIRECTIVE = re.compile(r"[ \t]*# *doctest:.*$", re.M)
_HEADING = re.compile(r"^(\w[\w -]*)\n[-=]{3,} *$", re.M)
_SENTENCE = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!cf\.)\s+(?=[A-Z])")
_NO_PROSE = re.compile(r">>>|^\.\. |:math:|::|^[=+-]{3}", re.M)
_MARKUP = ((re.compile(r":[\w:+-]+:`~?([^`<]*?)(?:\s*<[^>]*>)?`"), r"\1"), (re.compile(r"`+([^`]*)`+_*"), r"\1"),
           (re.compile(r"\s*\[\w+\]_"), ""), (re.compile(r"\*{1,2}([\w ]+)\*{1,2}"), r"\1"))


@dataclass(frozen=True)
class Documented:
    """Public objects of a library that share a docstring: their names, shortest first, and the text unindented."""

    names: tuple[str, ...]
    text: str

    @property
    def name(self) -> str:
        return self.names[0]


@dataclass(frozen=True)
class Example:
    """One example of a docstring: the sentence that leads to it ("" where there is none) and its code."""

    lead: str
    code: str


def documented(package: str) -> list[Documented]:
    """The public objects of an installed package that have a docstring, each docstring once, in the order of names.

    Modules, private names, tests and what a module merely imports from another package are left out.
    """
    names: dict[str, set[str]] = {}
    for module in _modules(package):
        public = [name for name in getattr(module, "__all__", None) or vars(module) if not name.startswith("_")]
        for name in public:
            value = inspect.getattr_static(module, name, None)
            if not isinstance(value, ModuleType) and _home(value).partition(".")[0] == package:
                _remember(names, f"{module.__name__}.{name}", value)
    found = [Documented(tuple(sorted(keys, key=_length)), text) for text, keys in names.items()]
    return sorted(found, key=lambda each: each.name)


def _length(name: str) -> tuple[int, int, str]:
    return name.count("."), len(name), name


def _modules(package: str) -> Iterator[ModuleType]:
    """A package and all its public modules that can be imported, in the order of their names."""
    queue = [package]
    while queue:
        name = queue.pop()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = importlib.import_module(name)
        except Exception:  # an optional dependency, a removed module: each library has its own exception for it
            continue
        yield module
        inner = [found.name for found in pkgutil.iter_modules(getattr(module, "__path__", ()))]
        queue += [f"{name}.{part}" for part in sorted(inner, reverse=True) if not NOT_PUBLIC.match(part)]


def _home(value: object) -> str:
    """The module that defines a value: a ufunc names none, but its class does."""
    return str(getattr(value, "__module__", None) or type(value).__module__)


def _remember(names: dict[str, set[str]], name: str, value: object) -> None:
    """Enter a name under the value's docstring, and those of a class's own methods and properties under theirs."""
    members = vars(value).items() if isinstance(value, type) else ()
    for key, found in [(name, value), *((f"{name}.{part}", inner) for part, inner in members if part[0] != "_")]:
        text = inspect.getdoc(found) if callable(found) or hasattr(found, "__get__") else None
        if isinstance(text, str) and text.strip():
            names.setdefault(text, set()).add(key)


def sections(text: str) -> dict[str, str]:
    """The sections of a numpydoc docstring: lower-case heading -> text; "" is what stands before the first."""
    parts = _HEADING.split(text)
    return {"": parts[0], **{name.strip().lower(): body for name, body in zip(parts[1::2], parts[2::2])}}


def sentences(text: str) -> list[str]:
    """The sentences of the prose paragraphs of a text, without markup; lists, tables, code and directives are left out.

    A sentence has 4 to 40 words, begins with a letter and holds no formula.
    """
    found = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        prose = "\n" not in paragraph or not re.search(r"^\s+\S", paragraph, re.M)
        if prose and re.match(r"[A-Za-z`:]", paragraph) and not _NO_PROSE.search(paragraph):
            found += [plain(sentence) for sentence in _SENTENCE.split(" ".join(paragraph.split()))]
    return [one for one in found if 4 <= len(one.split()) <= 40 and re.match("[A-Za-z]", one) and one.isascii()]


def plain(text: str) -> str:
    """Text without reStructuredText markup: roles, quotes, emphasis, references."""
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


def examples(text: str) -> list[Example]:
    """The examples of a docstring's ``>>>`` sessions, one for each stretch of code between prose.

    Each is made to stand alone: the earlier statements that define its names come first, as do the imports that the
    libraries' docstrings take for granted. Outputs are dropped. A session that does not parse gives nothing.
    """
    found, before, lead, code = [], [], "", []
    try:
        for part in [*doctest.DocTestParser().parse(text), "end"]:
            if isinstance(part, doctest.Example):
                code.append(_DIRECTIVE.sub("", part.source).rstrip("\n"))
            elif part.strip():
                if code:
                    found.append(Example(lead, _alone(before, code)))
                    before, code = [*before, *code], []
                lead = next(iter(sentences(re.split(r"\n\s*\n", part.strip())[-1].replace("::", "."))), "")
    except (ValueError, SyntaxError):
        return []
    return found


def _alone(before: list[str], code: list[str]) -> str:
    """``code`` behind those of the earlier statements that bind what it reads, and the imports that it needs."""
    needed: set[str] = set()
    kept: list[str] = []
    for statement in reversed([*before, *code]):
        if len(kept) < len(code) or needed & _bound(statement):
            kept.append(statement)
            needed = (needed - _bound(statement)) | _names(statement, ast.Load)
    return "\n".join([*(IMPORTS[name] for name in sorted(needed) if name in IMPORTS), *reversed(kept)])


def _names(statement: str, context: type) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(statement)) if isinstance(node, ast.Name)
            and isinstance(node.ctx, context)}


def _bound(statement: str) -> set[str]:
    """The names that a statement binds: assigned, imported, defined; a changed element counts for its variable."""
    found = _names(statement, ast.Store)
    for node in ast.walk(ast.parse(statement)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            found |= {inner.id for inner in ast.walk(node.value) if isinstance(inner, ast.Name)}
    return found
