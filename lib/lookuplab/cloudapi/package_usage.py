"""How often a package's APIs occur in code: the counterpart of ``usage`` for provider ``python``.

A file is specific to a package when it imports it or lies in a folder of its name. ``count_name`` is the paper's count
(A.2, steps 3 and 5): calls and definitions of the API's name in such files, so APIs of equal name share it.
``count_bound`` counts calls that lead to the API itself as far as the file shows: through an import, under any of the
API's names, or on an object that a variable was constructed as (a variable has one meaning in a file, its last before
the call). It is a lower bound.
"""

import ast
import re
import warnings
from collections import Counter
from functools import lru_cache

from lookuplab.cloudapi.code_sources import SourceFile
from lookuplab.cloudapi.frequency import IMPORT, Counts
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec
from lookuplab.cloudapi.usage import CALL

PROVIDER = "python"


@lru_cache(maxsize=65_536)
def _resolved(index: ApiIndex, path: str) -> ApiSpec | None:
    """The API that a dotted path leads to: the longest client in it, and what the client calls the rest."""
    parts = path.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        client = ".".join(parts[:cut])
        if index.has(PROVIDER, client):
            if spec := index.methods(PROVIDER, client).get(".".join(parts[cut:])):
                return spec
    return None


@lru_cache(maxsize=2)
def _packages(index: ApiIndex) -> tuple[str, ...]:
    """The top-level names of all packages in the index."""
    return tuple(sorted({spec.service.partition(".")[0] for spec in index.specs if spec.provider == PROVIDER}))


@lru_cache(maxsize=2)
def _specific(index: ApiIndex) -> tuple[re.Pattern, re.Pattern]:
    names = "|".join(map(re.escape, _packages(index)))
    return re.compile(IMPORT.format(names), re.MULTILINE), re.compile(rf"(?:^|/)(?:{names})(?:/|\.py$)")


@lru_cache(maxsize=2)
def _names(index: ApiIndex) -> frozenset[str]:
    return frozenset(spec.name for spec in index.specs if spec.provider == PROVIDER and spec.operation)


def count_file(file: SourceFile, index: ApiIndex) -> Counts:
    """The counts of one file, for ``frequency.count``."""
    imported, in_path = _specific(index)
    if not imported.search(file.text) and not in_path.search(file.path.replace("\\", "/")):
        return Counts(files=Counter(["other"]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(file.text)
        reader = _Reader(index)
        reader.visit(tree)
        named, bound, parsed = reader.names, reader.bound, True
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        named = Counter(name for name in CALL.findall(file.text) if name in _names(index))
        bound, parsed = Counter(), False
    return Counts(Counter({(PROVIDER, name): times for name, times in named.items()}), bound,
                  Counter([PROVIDER, *([] if parsed else ["unparsed"])]))


class _Reader(ast.NodeVisitor):
    """Walks a file in the order of its text. ``_meaning``: variable -> the dotted path it stands for, an object that
    was constructed standing for its class."""

    def __init__(self, index: ApiIndex):
        self.names: Counter[str] = Counter()
        self.bound: Counter[tuple[str, str, str, str]] = Counter()
        self._index, self._known, self._packages = index, _names(index), _packages(index)
        self._meaning: dict[str, str] = {}

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            if top in self._packages:
                self._meaning[alias.asname or top] = alias.name if alias.asname else top

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module and not node.level and node.module.partition(".")[0] in self._packages:
            for alias in node.names:
                self._meaning[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self._count(node.name)
        self.generic_visit(node)

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        made = self._api(node.value.func) if isinstance(node.value, ast.Call) else None
        for target in node.targets:
            if isinstance(target, ast.Name):
                self._meaning.pop(target.id, None)
                if made and self._index.has(PROVIDER, f"{made.client}.{made.name}"):  # a class
                    self._meaning[target.id] = f"{made.client}.{made.name}"
            else:
                self.visit(target)

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        self._count(function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", ""))
        if spec := self._api(function):
            self.bound[spec.provider, spec.service, spec.client, spec.name] += 1
        self.generic_visit(node)

    def _api(self, function: ast.expr) -> ApiSpec | None:
        """The API that a called expression leads to, if that shows in this file."""
        parts = []
        while isinstance(function, ast.Attribute):
            parts.append(function.attr)
            function = function.value
        if not isinstance(function, ast.Name) or function.id not in self._meaning:
            return None
        return _resolved(self._index, ".".join([self._meaning[function.id], *reversed(parts)]))

    def _count(self, name: str) -> None:
        if name in self._known:
            self.names[name] += 1
