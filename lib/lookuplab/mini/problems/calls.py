"""What a target expression asks for, in words: the callable's summary and what it is given."""

import ast
import builtins
import inspect
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

SUMMARY = 300  # characters of a summary at most


@dataclass(frozen=True)
class Call:
    """The outermost call (or attribute) of an expression.

    ``name`` is the callable as the source writes it, without its receiver. ``receiver`` is the source of the object
    that it belongs to, empty for a function. ``arguments`` are (parameter or "", source), ``places`` their character
    ranges in ``source``. ``parameters`` maps the callable's parameters to their defaults.
    """

    source: str
    name: str
    receiver: str
    summary: str
    arguments: tuple[tuple[str, str], ...]
    places: tuple[tuple[int, int], ...]
    parameters: Mapping[str, object]
    document: str


def read(source: str, names: dict) -> Call | None:
    """The call that ``source`` is, resolved in the namespace ``names``; None for one without a documented callable."""
    node = ast.parse(source, mode="eval").body
    called = node.func if isinstance(node, ast.Call) else node
    if not isinstance(called, ast.Name | ast.Attribute):
        return None
    owner = eval(ast.unparse(called.value), dict(names)) if isinstance(called, ast.Attribute) else None
    receiver = "" if owner is None or isinstance(owner, ModuleType) else ast.get_source_segment(source, called.value)
    if isinstance(node, ast.Attribute) and (not receiver or callable(getattr(owner, node.attr))):
        return None  # a constant of a module, or a method that is not called
    document = _document(called, owner, names)
    summary = summary_of(document)
    if not summary:
        return None
    found = eval(ast.unparse(called), dict(names))
    parameters = parameters_of(found, document) if isinstance(node, ast.Call) else {}
    positional = [name for name in parameters if not name.startswith("*")]
    arguments, places = [], []
    for position, argument in enumerate(getattr(node, "args", ())):
        if isinstance(argument, ast.Starred):
            return None
        arguments.append((positional[position] if position < len(positional) else "", argument))
    arguments += [(pair.arg, pair.value) for pair in getattr(node, "keywords", ())]
    if any(name is None for name, _ in arguments):
        return None
    places = tuple(place(source, argument) for _, argument in arguments)
    texts = tuple((name, source[slice(*at)]) for (name, _), at in zip(arguments, places, strict=True))
    name = ast.get_source_segment(source, called) if not receiver else called.attr
    return Call(source, name, receiver, summary, texts, places, parameters, document)


def _document(called: ast.expr, owner: object, names: dict) -> str:
    """The docstring of a function or property; for an attribute that the class describes, that description."""
    if isinstance(called, ast.Name):
        return inspect.getdoc(names.get(called.id)) or ""
    static = inspect.getattr_static(type(owner), called.attr, None)
    if isinstance(static, property) or inspect.isdatadescriptor(static):
        return inspect.getdoc(static) or ""
    if static is None and not isinstance(owner, ModuleType):
        described = re.search(rf"^{called.attr} *:[^\n]*\n((?: +[^\n]*\n?)+)", inspect.getdoc(type(owner)) or "", re.M)
        return inspect.cleandoc(described[1]) if described else ""
    return inspect.getdoc(getattr(owner, called.attr)) or ""


def summary_of(document: str) -> str:
    """First paragraph of a docstring as one line without markup; a leading signature is passed over."""
    for paragraph in re.split(r"\n\s*\n", document.strip()):
        text = " ".join(paragraph.split())
        if not text or re.match(r"[\w.]+\(.*\)$", text) or text.startswith(".. "):
            continue
        text = re.sub(r":[\w:]+:`~?([^`<]*?)(?: <[^`]*>)?`", r"\1", text)
        text = re.sub(r"`+([^`]*)`+_*", r"\1", text)
        return text if len(text) <= SUMMARY and not text.startswith(("Parameters", "-", "=", ">>>")) else ""
    return ""


def parameters_of(found: object, document: str) -> dict[str, object]:
    """Parameter -> default; by the signature, else by the signature at the head of the docstring."""
    try:
        parameters = inspect.signature(found).parameters.values()
        stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        return {stars.get(p.kind, "") + p.name: p.default for p in parameters if p.name != "self"}
    except (TypeError, ValueError):
        head = re.match(r"[\w.]+\(([^)]*)\)", document)
        names = re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"[\[\]/*]", "", head[1])) if head else []
        return dict.fromkeys(names, inspect.Parameter.empty)


def options_of(document: str, parameter: str) -> list[str]:
    """The strings that a numpydoc parameter may take: ``mode : {'full', 'same'}``."""
    if not parameter.isidentifier():
        return []
    found = re.search(rf"^ *(?:\w+, *)*{parameter}(?:, *\w+)* *: *[^\n]*?\{{([^}}]*)\}}", document, re.M)
    return re.findall(r"['\"]([\w-]+)['\"]", found[1]) if found else []


def place(source: str, node: ast.expr) -> tuple[int, int]:
    """Character range of a node in ASCII source."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset


def replaced(source: str, changes: list[tuple[tuple[int, int], str]]) -> str:
    """``source`` with other text in the given ranges, which do not overlap."""
    for (begin, end), text in sorted(changes, reverse=True):
        source = source[:begin] + text + source[end:]
    return source


def lifted(source: str, call: Call) -> tuple[str, list[str]] | None:
    """The expression over variables, and the assignments that make them, where it was written over constants.

    Displays and constructed values among receiver and arguments become variables, named after their parameter; where
    there is none of them, the first argument does. None where there is nothing to lift.
    """
    node = ast.parse(source, mode="eval").body
    taken = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    parts = [("data", node.func.value if isinstance(node, ast.Call) else node.value)] if call.receiver else []
    parts += [(name, argument) for (name, _), argument in zip(call.arguments, _arguments(node), strict=True)]
    large = [part for part in parts if isinstance(part[1], ast.List | ast.Tuple | ast.Dict | ast.Set | ast.Call)]
    changes, lines = [], []
    for name, part in large or parts[:1]:
        own = name.isidentifier() and name not in taken and not keyword.iskeyword(name) and name not in vars(builtins)
        variable = name if own else next(n for n in ("data", "values", "other", "third", "fourth") if n not in taken)
        taken = taken | {variable}
        at = place(source, part)
        lines.append(f"{variable} = {source[slice(*at)]}")
        changes.append((at, variable))
    return (replaced(source, changes), lines) if changes else None


def _arguments(node: ast.expr) -> list[ast.expr]:
    return [*getattr(node, "args", ()), *(pair.value for pair in getattr(node, "keywords", ()))]
