"""Reads sentences and runnable examples from the docstrings of installed libraries.

Docstrings are read from imported objects and not from source code, because compiled functions and
pandas' templates have a complete docstring only after the import. The first half of this module
is for the corpus of snippets (``snippets``). The second half is for the problems (``problems``): it
finds expressions in the docstrings' examples, with the statements that each expression needs, and
describes the call in an expression.
"""

import ast
import builtins
import doctest
import inspect
import pydoc
import re
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from types import ModuleType
from typing import Any

from recipes import tables
from recipes.cloudapi.reading import PRIVATE, public_modules
from recipes.mini.packages import example_split
from recipes.prose import first_paragraph, prose_sentences

# names of modules that are not for users; some parts of numpy and scipy are for building and tests
NOT_PUBLIC = rf"{PRIVATE}|externals|testing|testutils|f2py|distutils|setup"
# name -> the import that docstrings take for granted, such as np -> import numpy as np
IMPLIED_IMPORTS = tables("mini/problems.yaml")["implied"]
UNREPEATABLE = re.compile(
    # code that gives a different value each time it runs
    r"\brandom\b|\brng\b|\bseed\b|shuffle|\.sample\(|\.rvs\(|"
    # code that draws plots, reads or writes files, needs a further package, or is not ASCII
    r"\bopen\(|\bread_|\bto_(csv|json|pickle|excel|hdf|sql|parquet|clipboard)\b|\bfetch_|save|loadtxt|"
    r"memmap|genfromtxt|tempfile|tofile|fromfile|http|\bload\(|load_files|urlopen|"
    r"\bplt\b|matplotlib|\.plot\b|\bpyarrow\b|\bpa\.|doctest:\s*\+SKIP|[^\x00-\x7f]"
)
LONGEST_SETUP, LONGEST_TARGET = 700, 160  # in characters


@dataclass(frozen=True)
class Documented:
    """A docstring of a library. ``text`` is the docstring without indentation, and ``names`` are
    the public objects that have this docstring, shortest name first.
    """

    names: tuple[str, ...]
    text: str

    @property
    def name(self) -> str:
        return self.names[0]


def documented(package: str) -> list[Documented]:
    """Return the docstrings of an installed package's public objects, each docstring once, in the
    order of the objects' names.

    Modules, private names, tests and imports from other packages are left out.
    """
    names = defaultdict(set)
    with warnings.catch_warnings(action="ignore"):  # reading a deprecated name may warn
        for module in public_modules(package, NOT_PUBLIC):
            for name in getattr(module, "__all__", None) or vars(module):
                value = inspect.getattr_static(module, name, None)
                # a ufunc has no __module__, but its class does
                home = str(getattr(value, "__module__", None) or type(value).__module__)
                if name.startswith("_") or home.partition(".")[0] != package:
                    continue
                members = vars(value) if isinstance(value, type) else {}
                inner = {f".{part}": one for part, one in members.items() if part[0] != "_"}
                for key, found in {"": value, **inner}.items():
                    if callable(found) or hasattr(found, "__get__"):
                        names[inspect.getdoc(found) or ""].add(f"{module.__name__}.{name}{key}")
    found = [
        Documented(tuple(sorted(keys, key=lambda key: (key.count("."), len(key), key))), text)
        for text, keys in names.items()
        if text.strip()
    ]
    return sorted(found, key=lambda each: each.name)


def sections(text: str) -> dict[str, str]:
    """Return {heading in lower case: text} of the sections of a numpydoc docstring. The key "" has
    the text before the first heading.
    """
    parts = re.split(r"^(\w[\w -]*)\n[-=]{3,} *$", text, flags=re.M)
    headings = ["", *(name.strip().lower() for name in parts[1::2])]
    return dict(zip(headings, parts[::2], strict=True))


def sessions(text: str) -> list[tuple[str, str]]:
    """Return a pair (lead, code) for each stretch of ``>>>`` code between prose. The lead is the
    first sentence of the paragraph before the code, or "" if there is none.

    Each piece of code can run by itself: it begins with the imports that the libraries' docstrings
    take for granted, and with the earlier statements that define its names. Outputs are dropped.
    The result is empty if any code in the text does not parse.
    """
    found = []
    before: list[str] = []
    code = []
    lead = ""
    try:
        for part in [*doctest.DocTestParser().parse(text), "end"]:
            if isinstance(part, doctest.Example):
                source = re.sub(r"[ \t]*# *doctest:.*$", "", part.source, flags=re.M)
                code.append(source.rstrip("\n"))
            elif part.strip():
                if code:
                    found.append((lead, _self_contained(before, code)))
                    before = [*before, *code]
                    code = []
                last = re.split(r"\n\s*\n", part.strip())[-1]
                lead = next(iter(prose_sentences(last.replace("::", "."))), "")
    except (ValueError, SyntaxError):
        return []
    return found


def _self_contained(before: list[str], code: list[str]) -> str:
    """Return the statements ``code``, preceded by the statements that they need: the implied
    imports, and the statements of ``before`` that bind a name which a later statement reads.
    """
    needed: set[str] = set()
    kept: list[str] = []
    for statement in reversed([*before, *code]):
        tree = ast.parse(statement)
        if len(kept) < len(code) or needed & bound(tree):
            kept.append(statement)
            needed = (needed - bound(tree)) | names(tree, ast.Load)
    implied = [IMPLIED_IMPORTS[name] for name in sorted(needed & IMPLIED_IMPORTS.keys())]
    return "\n".join([*implied, *reversed(kept)])


def names(tree: ast.AST, context: type = ast.expr_context) -> set[str]:
    """Return the names in a piece of code: all, only those that it reads (``context=ast.Load``), or
    only those that it assigns (``context=ast.Store``).
    """
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {node.id for node in found if isinstance(node.ctx, context)}


def bound(tree: ast.AST) -> set[str]:
    """Return the names that a piece of code binds by assignment, import or definition. A variable
    whose element or attribute is assigned counts as bound: ``x`` in ``x[0] = 1``.
    """
    found = names(tree, ast.Store)
    for node in ast.walk(tree):
        match node:
            case ast.alias():
                found.add((node.asname or node.name).partition(".")[0])
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Subscript(ctx=ast.Store()) | ast.Attribute(ctx=ast.Store()):
                found |= names(node.value)
    return found


@dataclass(frozen=True)
class DocExample:
    """An expression (``target``) in a docstring, and the statements that it needs: ``imports`` and
    other statements (``setup``).

    ``object`` is the public name of the documented object. ``number`` says in which of the
    docstring's ``>>>`` examples the expression is, counted from 0.
    """

    object: str
    number: int
    imports: tuple[str, ...]
    setup: tuple[str, ...]
    target: str

    @property
    def id(self) -> str:
        return f"{self.object}#{self.number}"


def examples_of(library: str) -> list[DocExample]:
    """Return every example that can become a problem, from the docstrings of those objects whose
    names are all in the split "test" (``packages.example_split``).
    """
    return [
        example
        for item in documented(library)
        if {"random", "datasets", "plotting", "plot"}.isdisjoint(item.name.split("."))
        and all(example_split(name) == "test" for name in item.names)
        for example in examples(item)
    ]


def examples(item: Documented) -> Iterator[DocExample]:
    """Yield the examples in a docstring that can become a problem. These are expressions whose
    value the docstring shows, or assigns to a variable.
    """
    try:
        parsed = doctest.DocTestParser().get_examples(item.text)
        bodies = [ast.parse(one.source).body for one in parsed]
    except (ValueError, SyntaxError):
        return
    before: list[tuple[ast.stmt, str]] = []
    for number, (one, body) in enumerate(zip(parsed, bodies, strict=True)):
        for node in body:
            shown = isinstance(node, ast.Expr) and one.want
            assigned = isinstance(node, ast.Assign) and [*map(type, node.targets)] == [ast.Name]
            if isinstance(node, ast.Expr | ast.Assign) and (shown or assigned):
                imports, setup = needed(before, node)
                target = ast.get_source_segment(one.source, node.value) or ""
                example = DocExample(item.name, number, imports, setup, target)
                if fits(example, node.value) and not UNREPEATABLE.search(one.source):
                    yield example
            # we assume that an expression whose value is shown changes no variable
            if not shown:
                before.append((node, ast.get_source_segment(one.source, node) or ""))


def needed(
    before: list[tuple[ast.stmt, str]], last: ast.Assign | ast.Expr
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (imports, other statements): the sources of those statements in ``before`` on which
    the value of the statement ``last`` depends, in their order.
    """
    known = set(dir(builtins))
    wanted = names(last.value, ast.Load)
    imports: list[str] = []
    others: list[str] = []
    for node, source in reversed(before):
        # an expression such as ``x.sort()`` may change the variable x
        changed = re.findall(r"^\w+", source) if isinstance(node, ast.Expr) else ()
        if made := wanted & bound(node).union(changed) - known:
            imported = isinstance(node, ast.Import | ast.ImportFrom)
            if imported or isinstance(node, ast.Assign):
                wanted -= made
            wanted |= names(node, ast.Load)
            (imports if imported else others).insert(0, source)
    implied = [IMPLIED_IMPORTS[name] for name in ("np", "pd") if name in wanted]
    return (*implied, *imports), tuple(others)


def fits(example: DocExample, node: ast.expr) -> bool:
    """Return whether an expression can become a problem: it is a short call or attribute that uses
    the documented object, and gives the same value each time.
    """
    text = "\n".join([*example.imports, *example.setup, example.target])
    try:
        used = names(ast.parse(text))
    except SyntaxError:  # the expression spans lines and needs parentheses to stand alone
        return False
    # For a documented class, the expression may call a method of an instance. The name of the class
    # is then in the set-up, which makes the instance.
    of_class = isinstance(pydoc.locate(example.object), type)
    last = re.escape(example.object.rpartition(".")[2])
    return (
        isinstance(node, ast.Call | ast.Attribute)
        and not example.target.startswith("print(")
        and bool(re.search(rf"\b{last}\b", text if of_class else example.target))
        and not UNREPEATABLE.search(text)
        and "result" not in used  # the answer is assigned to ``result``
        and len(example.target) <= LONGEST_TARGET
        and sum(map(len, example.setup)) <= LONGEST_SETUP
    )


@dataclass(frozen=True)
class Call:
    """The outermost call (or attribute) of the expression ``source``.

    ``name`` is the callable as written in the source, without its ``receiver``. The receiver is the
    object whose method is called, and None for a function. ``arguments`` are pairs (parameter,
    expression); the parameter is "" if it is unknown. ``parameters`` maps the callable's parameters
    to their defaults. ``document`` is the callable's docstring, and ``summary`` is the first
    paragraph of this docstring.
    """

    source: str
    name: str
    receiver: ast.expr | None
    arguments: tuple[tuple[str, ast.expr], ...]
    parameters: Mapping[str, object]
    document: str
    summary: str

    @property
    def parts(self) -> dict[ast.expr, str]:
        """Return {node: source} for the receiver, if there is one, and for each argument."""
        found = [*filter(None, [self.receiver]), *(node for _, node in self.arguments)]
        return {node: ast.get_source_segment(self.source, node) or "" for node in found}


def call(source: str, known: dict[str, Any]) -> Call:
    """Return the outermost call (or attribute) in ``source``, with its callable looked up in the
    namespace ``known``.

    Raises ValueError if the callable is not documented or is the result of another call, if the
    call has unpacked arguments (``*`` or ``**``), and if ``source`` is only a module's constant or
    a method that is not called.
    """
    node = ast.parse(source, mode="eval").body
    called = getattr(node, "func", node)
    if not isinstance(called, ast.Name | ast.Attribute):
        raise ValueError("the callable is the result of another call")
    name = ast.unparse(called)
    receiver = None
    found = eval(name, known)
    document = inspect.getdoc(found) or ""
    if isinstance(called, ast.Attribute):
        owner = eval(ast.unparse(called.value), known)
        if not isinstance(owner, ModuleType):
            name = called.attr
            receiver = called.value
            document = described(type(owner), name, document)
    if called is node and (not receiver or callable(found)):
        raise ValueError("a constant of a module, or a method that is not called")
    parameters: Mapping[str, inspect.Parameter] = {}
    with suppress(TypeError, ValueError):  # Python knows no signature of some compiled callables
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
    if starred or not (summary := first_paragraph(document)):
        raise ValueError("arguments that cannot be told apart, or no documentation")
    return Call(source, name, receiver, tuple(arguments), defaults, document, summary)


def described(owner: type, name: str, document: str) -> str:
    """Return the documentation of an attribute of the class ``owner``: for a property, its
    docstring; for an attribute that the class does not define, its description in the docstring of
    the class; and for any other attribute, ``document``.
    """
    static = inspect.getattr_static(owner, name, None)
    if inspect.isdatadescriptor(static):
        return inspect.getdoc(static) or ""
    if static is None:
        text = inspect.getdoc(owner) or ""
        part = re.search(rf"^{name} *:[^\n]*\n((?: +[^\n]*\n?)+)", text, re.M)
        return inspect.cleandoc(part[1]) if part else ""
    return document


def options_of(document: str, parameter: str) -> list[str]:
    """Return the strings that a numpydoc docstring allows for a parameter: ``["full", "same"]`` if
    it has the line ``mode : {'full', 'same'}``.
    """
    line = rf"^ *(?:\w+, *)*{re.escape(parameter)}(?:, *\w+)* *: *[^\n]*?\{{([^}}]*)\}}"
    found = re.search(line, document, re.M)
    return re.findall(r"['\"]([\w-]+)['\"]", found[1]) if found else []


def replaced(source: str, changes: Iterable[tuple[ast.expr, str]]) -> str:
    """Return ``source`` with some of its nodes replaced. ``changes`` are pairs (node, new text).
    The source must be ASCII, and the nodes must not overlap.
    """
    starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    for node, text in sorted(
        changes, key=lambda change: (-change[0].lineno, -change[0].col_offset)
    ):
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        source = source[: starts[node.lineno - 1] + node.col_offset] + text + source[end:]
    return source


def lifted(found: Call) -> tuple[str, list[str]]:
    """Replace constants in an expression by variables. Return the new expression and the
    assignments to these variables.

    A receiver or an argument becomes a variable if it is a list, a tuple, a dictionary, a set or a
    call. If none is, the receiver becomes a variable, or the first argument if there is no
    receiver. The variables have general names, such as ``data``, which do not tell a model the name
    of a parameter.
    """
    kinds = ast.List | ast.Tuple | ast.Dict | ast.Set | ast.Call
    taken = names(ast.parse(found.source), ast.Load)
    free = (name for name in ("data", "values", "other", "third", "fourth") if name not in taken)
    lifted = [node for node in found.parts if isinstance(node, kinds)] or [*found.parts][:1]
    changes = [(node, next(free)) for node in lifted]
    lines = [f"{name} = {found.parts[node]}" for node, name in changes]
    return replaced(found.source, changes), lines
