"""Docstring examples that can become a problem, cut to what one line needs, and the calls that they make."""

import ast
import builtins
import doctest
import inspect
import keyword
import pydoc
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from types import ModuleType

from lookuplab.mini.docstrings import MARKUP, Documented, bound, documented, names, plain
from lookuplab.mini.packages import held_out_example

# As DS-1000 names them
LIBRARIES = {"Pandas": "pandas", "Numpy": "numpy", "Scipy": "scipy", "Sklearn": "sklearn"}
LEFT_OUT = re.compile(
    r"\brandom\b|\brng\b|\bseed\b|shuffle|\.sample\(|\.rvs\(|"  # another value each time
    r"\bopen\(|\bread_|\bto_(csv|json|pickle|excel|hdf|sql|parquet|clipboard)\b|\bfetch_|save|loadtxt|"  # files
    r"memmap|genfromtxt|tempfile|tofile|fromfile|http|\bload\(|load_files|urlopen|"
    r"\bplt\b|matplotlib|\.plot\b|\bpyarrow\b|\bpa\.|doctest:\s*\+SKIP|[^\x00-\x7f]"
)
ALIASES = {"np": "import numpy as np", "pd": "import pandas as pd"}  # used without being imported
LONGEST_SETUP, LONGEST_TARGET, LONGEST_SUMMARY = 700, 160, 300  # characters


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


@dataclass(frozen=True)
class Call:
    """The outermost call (or attribute) of the expression ``source``.

    ``name`` is the callable as the source writes it, without its ``receiver``, the object that it belongs to (None for
    a function). ``arguments`` are (parameter or "", expression). ``parameters`` maps the callable's parameters to their
    defaults, ``document`` is its docstring and ``summary`` what that says first.
    """

    source: str
    name: str
    receiver: ast.expr | None
    arguments: tuple[tuple[str, ast.expr], ...]
    parameters: Mapping[str, object]
    document: str
    summary: str

    def text(self, node: ast.expr) -> str:
        return ast.get_source_segment(self.source, node)


def objects(library: str, held_out: bool) -> list[Documented]:
    """Objects with examples, all names of which are held out from the mini models and the snippets, or none."""
    return [
        item
        for item in documented(LIBRARIES[library])
        if ">>>" in item.text
        and not {"random", "datasets", "plotting", "plot"} & set(item.name.split("."))
        and all(held_out_example(name) == held_out for name in item.names)
    ]


def examples(item: Documented, library: str) -> Iterator[Example]:
    """Every example of an object that can be a problem."""
    try:
        parsed = doctest.DocTestParser().get_examples(item.text)
        bodies = [ast.parse(one.source).body for one in parsed]
    except (ValueError, SyntaxError):
        return
    before: list[tuple[ast.stmt, str]] = []
    for number, (one, body) in enumerate(zip(parsed, bodies, strict=True)):
        for node in body:
            shown = isinstance(node, ast.Expr) and one.want
            named = isinstance(node, ast.Assign) and isinstance(node.targets[-1], ast.Name)
            if shown or named and len(node.targets) == 1:
                target, lines = ast.get_source_segment(one.source, node.value), needed(before, node)
                imports = tuple(line for line in lines if re.match(r"import |from ", line))
                setup = tuple(line for line in lines if line not in imports)
                example = Example(item.name, library, number, imports, setup, target)
                if fits(example, node.value) and not LEFT_OUT.search(one.source):
                    yield example
            if not shown:
                before.append((node, ast.get_source_segment(one.source, node)))


def fits(example: Example, node: ast.expr) -> bool:
    """Whether an expression is a short call or attribute that uses the object of its docstring."""
    text = "\n".join([*example.imports, *example.setup, example.target])
    try:
        used = names(ast.parse(text))
        ast.parse(example.target, mode="eval")
    except SyntaxError:  # lines that only parentheses around them hold together
        return False
    of_class = isinstance(pydoc.locate(example.object), type)  # any of its methods will do
    last = re.escape(example.object.rpartition(".")[2])
    return (
        isinstance(node, ast.Call | ast.Attribute)
        and not example.target.startswith("print(")
        and bool(re.search(rf"\b{last}\b", text if of_class else example.target))
        and not LEFT_OUT.search(text)
        and "result" not in used
        and len(example.target) <= LONGEST_TARGET
        and sum(map(len, example.setup)) <= LONGEST_SETUP
    )


def needed(before: list[tuple[ast.stmt, str]], last: ast.Assign | ast.Expr) -> list[str]:
    """Sources of the statements that the value of the last one depends on, imports first, in their order."""
    known = set(dir(builtins))
    wanted, imports, others = names(last.value, ast.Load) - known, [], []
    for node, source in reversed(before):
        made = bound(node) | {root(node)}
        if made & wanted:
            read = names(node, ast.Load) - known
            whole = isinstance(node, ast.Assign | ast.Import | ast.ImportFrom) and not read & made
            wanted = (wanted - made if whole else wanted) | read
            imported = isinstance(node, ast.Import | ast.ImportFrom)
            (imports if imported else others).insert(0, source)
    implied = [ALIASES[name] for name in sorted(wanted & set(ALIASES))]
    return [*dict.fromkeys([*implied, *imports]), *others]


def root(node: ast.stmt) -> str:
    """The variable whose method a statement calls: ``x.sort()`` may change x."""
    found = node.value if isinstance(node, ast.Expr) else None
    while isinstance(found, ast.Call | ast.Attribute | ast.Subscript):
        found = found.func if isinstance(found, ast.Call) else found.value
    return found.id if isinstance(found, ast.Name) else ""


def call(source: str, known: dict) -> Call:
    """The call that ``source`` is, resolved in the namespace ``known``. Raises ValueError for one without a documented
    callable.
    """
    node = ast.parse(source, mode="eval").body
    called = getattr(node, "func", node)
    if not isinstance(called, ast.Name | ast.Attribute):
        raise ValueError
    found, owner, receiver = eval(ast.unparse(called), dict(known)), None, None
    if isinstance(called, ast.Attribute):
        owner = eval(ast.unparse(called.value), dict(known))
        receiver = None if isinstance(owner, ModuleType) else called.value
    document = described(called, owner, found)
    summary, parameters = summary_of(document), {}
    if called is node:
        if not receiver or callable(found):
            raise ValueError  # a constant of a module, or a method that is not called
    else:
        with suppress(TypeError, ValueError):  # a callable that tells no signature
            parameters = inspect.signature(found).parameters
    defaults = {
        name: one.default
        for name, one in parameters.items()
        if name != "self" and not one.kind.name.startswith("VAR_")
    }
    given = getattr(node, "args", [])
    arguments = [*zip([*defaults, *[""] * len(given)], given, strict=False)]
    arguments += [(pair.arg, pair.value) for pair in getattr(node, "keywords", ())]
    starred = any(name is None or isinstance(one, ast.Starred) for name, one in arguments)
    if starred or not summary:
        raise ValueError
    name = called.attr if receiver else ast.unparse(called)
    return Call(source, name, receiver, tuple(arguments), defaults, document, summary)


def described(called: ast.expr, owner: object, found: object) -> str:
    """The docstring of a function or property; for an attribute that the class describes, that description."""
    if isinstance(called, ast.Attribute) and not isinstance(owner, ModuleType):
        static = inspect.getattr_static(type(owner), called.attr, None)
        if inspect.isdatadescriptor(static):
            return inspect.getdoc(static) or ""
        if static is None:
            text = inspect.getdoc(type(owner)) or ""
            part = re.search(rf"^{called.attr} *:[^\n]*\n((?: +[^\n]*\n?)+)", text, re.M)
            return inspect.cleandoc(part[1]) if part else ""
    return inspect.getdoc(found) or ""


def summary_of(document: str) -> str:
    """First paragraph of a docstring as one line without markup; a leading signature is passed over."""
    for paragraph in re.split(r"\n\s*\n", document.strip()):
        text = " ".join(paragraph.split())
        if text and not re.match(r"[\w.]+\(.*\)$", text) and not text.startswith(".. "):
            text = plain(text, MARKUP[:2])
            no_prose = text.startswith(("Parameters", "-", "=", ">>>"))
            return "" if no_prose or len(text) > LONGEST_SUMMARY else text
    return ""


def options_of(document: str, parameter: str) -> list[str]:
    """The strings that a numpydoc parameter may take: ``mode : {'full', 'same'}``."""
    line = rf"^ *(?:\w+, *)*{re.escape(parameter)}(?:, *\w+)* *: *[^\n]*?\{{([^}}]*)\}}"
    found = re.search(line, document, re.M)
    return re.findall(r"['\"]([\w-]+)['\"]", found[1]) if found else []


def replaced(source: str, changes: Iterable[tuple[ast.expr, str]]) -> str:
    """ASCII ``source`` with other text in the place of some of its nodes, which do not overlap."""
    starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    for node, text in sorted(changes, key=lambda one: (-one[0].lineno, -one[0].col_offset)):
        end = starts[node.end_lineno - 1] + node.end_col_offset
        source = source[: starts[node.lineno - 1] + node.col_offset] + text + source[end:]
    return source


def lifted(found: Call) -> tuple[str, list[str]]:
    """The expression over variables, and the assignments that make them, where it was written over constants.

    Displays and constructed values among receiver and arguments become variables, named after their parameter; where
    there is none of them, the first argument does.
    """
    parts = [("data", found.receiver)] * bool(found.receiver) + [*found.arguments]
    kinds = ast.List | ast.Tuple | ast.Dict | ast.Set | ast.Call
    taken, changes = names(ast.parse(found.source), ast.Load), []
    for name, node in [one for one in parts if isinstance(one[1], kinds)] or parts[:1]:
        if name in {*taken, *keyword.kwlist, *dir(builtins)} or not name.isidentifier():
            name = next(n for n in ("data", "values", "other", "third", "fourth") if n not in taken)
        taken.add(name)
        changes.append((node, name))
    lines = [f"{name} = {found.text(node)}" for node, name in changes]
    return replaced(found.source, changes), lines
