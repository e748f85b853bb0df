"""Which docstring examples can become a problem: those of held-out objects, cut to what one line needs."""

import ast
import builtins
import doctest
import pydoc
import re
from collections.abc import Iterator
from dataclasses import dataclass

from lookuplab.mini.docstrings import Documented, documented
from lookuplab.mini.packages import held_out_example

LIBRARIES = {"Pandas": "pandas", "Numpy": "numpy", "Scipy": "scipy", "Sklearn": "sklearn"}  # DS-1000's name -> package
PASSED_OVER = frozenset("random datasets plotting plot".split())  # parts of names
LEFT_OUT = (  # what a statement says -> why the example is left out
    (re.compile(r"\brandom\b|\brng\b|\bseed\b|shuffle|\.sample\(|\.rvs\("), "random"),
    (re.compile(r"\bopen\(|\bread_|\bto_(csv|json|pickle|excel|hdf|sql|parquet|clipboard)\b|\bfetch_|save|loadtxt"
                r"|memmap|genfromtxt|tempfile|tofile|fromfile|http|\bload\(|load_files|urlopen"),
     "needs files or network"),
    (re.compile(r"\bplt\b|matplotlib|\.plot\b"), "plots"),
    (re.compile(r"\bpyarrow\b|\bpa\."), "needs another package"),
    (re.compile(r"doctest:\s*\+SKIP"), "the documentation skips it"),
    (re.compile(r"[^\x00-\x7f]"), "not ASCII"),
)
ALIASES = {"np": "import numpy as np", "pd": "import pandas as pd"}  # what docstrings use without importing it
LENGTHS = {"set-up": 700, "expression": 160}  # characters


@dataclass(frozen=True)
class Example:
    """One expression of a docstring and the statements that it needs.

    ``object`` is the public name of the documented object and ``number`` the place among the docstring's examples.
    """

    object: str
    library: str
    number: int
    imports: tuple[str, ...]
    setup: tuple[str, ...]
    target: str

    @property
    def id(self) -> str:
        return f"{self.object}#{self.number}"


def held_out_objects(library: str) -> list[Documented]:
    """Objects with examples, every name of which is held out: neither the mini models nor the snippets show them."""
    return [item for item in documented(LIBRARIES[library]) if ">>>" in item.text
            and not PASSED_OVER & set(item.name.split(".")) and all(map(held_out_example, item.names))]


def examples(item: Documented, library: str) -> Iterator[Example | str]:
    """Every example of an object that makes a value, or why it cannot be a problem."""
    try:
        parsed = doctest.DocTestParser().get_examples(item.text)
        nodes = [(ast.parse(example.source).body, example) for example in parsed]
    except (ValueError, SyntaxError):
        yield "does not parse"
        return
    before: list[tuple[ast.stmt, str]] = []
    for number, (body, example) in enumerate(nodes):
        for node in body:
            source = ast.get_source_segment(example.source, node)
            target = _value(node)
            if target is not None and (example.want or isinstance(node, ast.Assign)):
                yield _example(item.name, library, number, before, target, example.source)
            if not isinstance(node, ast.Expr) or not example.want:
                before.append((node, source))


def _value(node: ast.stmt) -> ast.expr | None:
    """The expression whose value a statement shows or names."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.value
    return node.value if isinstance(node, ast.Expr) else None


def _example(name: str, library: str, number: int, before: list[tuple[ast.stmt, str]], target: ast.expr,
             whole: str) -> Example | str:
    """The example with its set-up, or the reason why it is none."""
    source = ast.get_source_segment(whole, target)
    last = name.rpartition(".")[2]
    if isinstance(target, ast.Call) and getattr(target.func, "id", "") == "print":
        return "only prints"
    if not isinstance(target, ast.Call | ast.Attribute):
        return "no call or attribute"
    if "\n" in source and not _parses(source):
        return "needs parentheses around its lines"
    needed = _needed(before, target)
    text = "\n".join([*needed, source])
    seen = text if isinstance(pydoc.locate(name), type) else source  # of a class, any method may be asked for
    if not re.search(rf"\b{re.escape(last)}\b", seen):
        return "does not use the object that it documents"
    for pattern, reason in LEFT_OUT:
        if pattern.search(text) or pattern.search(whole):
            return reason
    imports = tuple(line for line in needed if re.match(r"import |from ", line))
    setup = tuple(line for line in needed if line not in imports)
    if len(source) > LENGTHS["expression"] or sum(map(len, setup)) > LENGTHS["set-up"]:
        return "too long"
    names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    if "result" in names:
        return "uses the name result"
    return Example(name, library, number, imports, setup, source)


def _parses(source: str) -> bool:
    try:
        return bool(ast.parse(source, mode="eval"))
    except SyntaxError:
        return False


def _needed(before: list[tuple[ast.stmt, str]], target: ast.expr) -> list[str]:
    """Sources of the statements that a value depends on, imports first, in their order."""
    names, kept = _loaded(target), []
    for node, source in reversed(before):
        bound = _bound(node)
        if bound & names:
            if isinstance(node, ast.Assign | ast.Import | ast.ImportFrom) and not _loaded(node) & bound:
                names -= bound
            names |= _loaded(node)
            kept.insert(0, (node, source))
    implied = [ALIASES[name] for name in sorted(names & set(ALIASES))]
    lines = {False: [], True: implied}
    for node, source in kept:
        lines[isinstance(node, ast.Import | ast.ImportFrom)].append(source)
    return [*dict.fromkeys(lines[True]), *lines[False]]


def _loaded(node: ast.AST) -> set[str]:
    """Names that a piece of code reads."""
    read = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
    return read - set(dir(builtins))


def _bound(node: ast.stmt) -> set[str]:
    """Names that a statement makes or whose object it changes."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    made = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        made.add(node.name)
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    if isinstance(node, ast.Expr):  # x.sort(): may change x
        targets = [node.value.func] if isinstance(node.value, ast.Call) else []
    for target in targets:
        while isinstance(target, ast.Attribute | ast.Subscript | ast.Call):
            target = target.func if isinstance(target, ast.Call) else target.value
        if isinstance(target, ast.Name):
            made.add(target.id)
    return made
