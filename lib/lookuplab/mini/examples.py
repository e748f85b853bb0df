"""Docstring examples that can become a problem, cut to what one line needs, and the calls that they make."""

import ast
import builtins
import contextlib
import doctest
import inspect
import keyword
import pydoc
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType

from lookuplab.mini.docstrings import Documented, bound, documented, names
from lookuplab.mini.packages import held_out_example

LIBRARIES = {
    "Pandas": "pandas",
    "Numpy": "numpy",
    "Scipy": "scipy",
    "Sklearn": "sklearn",
}  # as DS-1000 names them
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
    """The outermost call (or attribute) of an expression.

    ``name`` is the callable as the source writes it, without its receiver: the source of the object that it belongs to,
    "" for a function. ``arguments`` are (parameter or "", source), ``places`` their character ranges in ``source``.
    ``parameters`` maps the callable's parameters to their defaults, ``document`` is its docstring.
    """

    source: str
    name: str
    receiver: str
    summary: str
    arguments: tuple[tuple[str, str], ...]
    places: tuple[tuple[int, int], ...]
    parameters: Mapping[str, object]
    document: str


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
            named = isinstance(node, ast.Assign) and [type(part) for part in node.targets] == [
                ast.Name
            ]
            if named or isinstance(node, ast.Expr) and one.want:
                target = ast.get_source_segment(one.source, node.value)
                lines = needed(before, node.value)
                if fits(item.name, node.value, target, lines) and not LEFT_OUT.search(one.source):
                    imports = tuple(line for line in lines if re.match(r"import |from ", line))
                    setup = tuple(line for line in lines if line not in imports)
                    yield Example(item.name, library, number, imports, setup, target)
            if not isinstance(node, ast.Expr) or not one.want:
                before.append((node, ast.get_source_segment(one.source, node)))


def fits(name: str, node: ast.expr, target: str, lines: list[str]) -> bool:
    """Whether an expression of the docstring of ``name`` is a short call or attribute that uses the object."""
    text = "\n".join([*lines, target])
    try:
        read = names(ast.parse(text), ast.Load) | names(ast.parse(text), ast.Store)
        ast.parse(target, mode="eval")
    except SyntaxError:  # lines that only parentheses around them hold together
        return False
    imports = [line for line in lines if re.match(r"import |from ", line)]
    seen = text if isinstance(pydoc.locate(name), type) else target  # of a class, any method
    return (
        isinstance(node, ast.Call | ast.Attribute)
        and not target.startswith("print(")
        and bool(re.search(rf"\b{re.escape(name.rpartition('.')[2])}\b", seen))
        and not LEFT_OUT.search(text)
        and "result" not in read
        and len(target) <= LONGEST_TARGET
        and sum(len(line) for line in lines if line not in imports) <= LONGEST_SETUP
    )


def needed(before: list[tuple[ast.stmt, str]], target: ast.expr) -> list[str]:
    """Sources of the statements that a value depends on, imports first, in their order."""
    known = set(dir(builtins))
    wanted, imports, others = names(target, ast.Load) - known, [], []
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
    found = getattr(node, "value", None)
    while isinstance(found, ast.Call | ast.Attribute | ast.Subscript) and isinstance(
        node, ast.Expr
    ):
        found = found.func if isinstance(found, ast.Call) else found.value
    return found.id if isinstance(found, ast.Name) and isinstance(node, ast.Expr) else ""


def call(source: str, known: dict) -> Call:
    """The call that ``source`` is, resolved in the namespace ``known``. Raises ValueError for one without a documented
    callable.
    """
    node = ast.parse(source, mode="eval").body
    called = node.func if isinstance(node, ast.Call) else node
    if not isinstance(called, ast.Name | ast.Attribute):
        raise ValueError
    owner, receiver = None, ""
    if isinstance(called, ast.Attribute):
        owner = eval(ast.unparse(called.value), dict(known))
        if not isinstance(owner, ModuleType):
            receiver = ast.get_source_segment(source, called.value)
    found = eval(ast.unparse(called), dict(known))
    document = _document(called, owner, found)
    if (
        not (summary := summary_of(document))
        or called is node
        and (not receiver or callable(found))
    ):
        raise ValueError  # also a constant of a module, or a method that is not called
    parameters = parameters_of(found) if called is not node else {}
    positional = [name for name in parameters if not name.startswith("*")]
    given = getattr(node, "args", [])
    arguments = [*zip([*positional, *[""] * len(given)], given, strict=False)]
    arguments += [(pair.arg, pair.value) for pair in getattr(node, "keywords", ())]
    if any(name is None or isinstance(argument, ast.Starred) for name, argument in arguments):
        raise ValueError
    places = tuple(place(source, argument) for _, argument in arguments)
    texts = tuple(
        (name, source[slice(*at)]) for (name, _), at in zip(arguments, places, strict=True)
    )
    name = called.attr if receiver else ast.get_source_segment(source, called)
    return Call(source, name, receiver, summary, texts, places, parameters, document)


def _document(called: ast.expr, owner: object, found: object) -> str:
    """The docstring of a function or property; for an attribute that the class describes, that description."""
    if isinstance(called, ast.Name) or isinstance(owner, ModuleType):
        return inspect.getdoc(found) or ""
    static = inspect.getattr_static(type(owner), called.attr, None)
    if inspect.isdatadescriptor(static):
        return inspect.getdoc(static) or ""
    if static is None:
        text = inspect.getdoc(type(owner)) or ""
        described = re.search(rf"^{called.attr} *:[^\n]*\n((?: +[^\n]*\n?)+)", text, re.M)
        return inspect.cleandoc(described[1]) if described else ""
    return inspect.getdoc(found) or ""


def summary_of(document: str) -> str:
    """First paragraph of a docstring as one line without markup; a leading signature is passed over."""
    for paragraph in re.split(r"\n\s*\n", document.strip()):
        text = " ".join(paragraph.split())
        if text and not re.match(r"[\w.]+\(.*\)$", text) and not text.startswith(".. "):
            text = re.sub(r":[\w:]+:`~?([^`<]*?)(?: <[^`]*>)?`", r"\1", text)
            text = re.sub(r"`+([^`]*)`+_*", r"\1", text)
            no_prose = text.startswith(("Parameters", "-", "=", ">>>"))
            return "" if no_prose or len(text) > LONGEST_SUMMARY else text
    return ""


def parameters_of(found: object) -> dict[str, object]:
    """Parameter -> default, by the signature; none for a callable that tells none."""
    with contextlib.suppress(TypeError, ValueError):
        parameters = inspect.signature(found).parameters.values()
        stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        return {stars.get(p.kind, "") + p.name: p.default for p in parameters if p.name != "self"}
    return {}


def options_of(document: str, parameter: str) -> list[str]:
    """The strings that a numpydoc parameter may take: ``mode : {'full', 'same'}``."""
    line = rf"^ *(?:\w+, *)*{re.escape(parameter)}(?:, *\w+)* *: *[^\n]*?\{{([^}}]*)\}}"
    found = re.search(line, document, re.M)
    return re.findall(r"['\"]([\w-]+)['\"]", found[1]) if found else []


def place(source: str, node: ast.expr) -> tuple[int, int]:
    """Character range of a node in ASCII source."""
    lines = source.splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    return starts[node.lineno - 1] + node.col_offset, starts[
        node.end_lineno - 1
    ] + node.end_col_offset


def replaced(source: str, changes: list[tuple[tuple[int, int], str]]) -> str:
    """``source`` with other text in the given ranges, which do not overlap."""
    for (begin, end), text in sorted(changes, reverse=True):
        source = source[:begin] + text + source[end:]
    return source


def lifted(source: str, found: Call) -> tuple[str, list[str]]:
    """The expression over variables, and the assignments that make them, where it was written over constants.

    Displays and constructed values among receiver and arguments become variables, named after their parameter; where
    there is none of them, the first argument does.
    """
    node = ast.parse(source, mode="eval").body
    taken = names(node, ast.Load)
    owner = getattr(node, "func", node)
    parts = [("data", owner.value)] if found.receiver else []
    given = [*getattr(node, "args", ()), *(pair.value for pair in getattr(node, "keywords", ()))]
    parts += [(name, part) for (name, _), part in zip(found.arguments, given, strict=True)]
    large = [
        one
        for one in parts
        if isinstance(one[1], ast.List | ast.Tuple | ast.Dict | ast.Set | ast.Call)
    ]
    changes, lines = [], []
    for name, part in large or parts[:1]:
        used = {*taken, *keyword.kwlist, *dir(builtins)}
        if name in used or not name.isidentifier():
            name = next(n for n in ("data", "values", "other", "third", "fourth") if n not in taken)
        taken.add(name)
        at = place(source, part)
        lines.append(f"{name} = {source[slice(*at)]}")
        changes.append((at, name))
    return replaced(source, changes), lines
