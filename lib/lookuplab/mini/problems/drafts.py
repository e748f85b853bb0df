"""From an example to a problem, by running it. Everything here happens in a process of its own."""

import ast
import contextlib
import io
import re
import signal
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lookuplab.mini.problems import calls
from lookuplab.mini.problems.calls import Call
from lookuplab.mini.problems.examples import Example
from lookuplab.mini.problems.values import Literal, literal

SECONDS = 2.0  # of processor time that one run may take
PRINTED = 600  # characters of the result shown in a prompt at most


class Unfit(Exception):
    """Why an example is no problem."""


@dataclass(frozen=True)
class Draft:
    """One problem before it is written out.

    ``cases`` are (set-up, expected value): the example's own first, then the one with changed input. ``arguments`` are
    (parameter or "", source) of the wanted call, ``receiver`` the source of the object that it belongs to or "".
    ``rule`` says how a perturbation was made.
    """

    example: str
    object: str
    library: str
    perturbation: str
    rule: str
    imports: tuple[str, ...]
    target: str
    name: str
    receiver: str
    summary: str
    arguments: tuple[tuple[str, str], ...]
    printed: str
    cases: tuple[tuple[str, Literal], ...]


def origin(example: Example) -> tuple[Draft, Call]:
    """The problem of an example, and its call. Raises Unfit for an example that makes none."""
    setup, target = list(example.setup), example.target
    call = _call(example.imports, setup, target)
    if not variables(target, setup):
        found = calls.lifted(target, call)
        if found is None:
            raise Unfit("nothing to vary")
        target, setup = found[0], [*setup, *found[1]]
        call = _call(example.imports, setup, target)
    value = evaluated(example.imports, setup, target)
    expected = literal(value)
    if expected is None:
        raise Unfit("the value has no literal form")
    other = next(changed_inputs(example.imports, setup, target, expected), None)
    if other is None:
        raise Unfit("no other input gives another value")
    return Draft(example.id, example.object, example.library, "Origin", "", example.imports, target, call.name,
                 call.receiver, call.summary, call.arguments, printed(value, expected),
                 (("\n".join(setup), expected), other)), call


def _call(imports: tuple[str, ...], setup: list[str], target: str) -> Call:
    names, _ = run(imports, setup)
    try:
        call = calls.read(target, names)
    except Exception as error:  # whatever the documented object raises
        raise Unfit("does not run on its own") from error
    if call is None:
        raise Unfit("the call is not documented")
    return call


def run(imports: tuple[str, ...], setup: list[str]) -> tuple[dict, str]:
    """The names that the statements leave behind, and what they print. Raises Unfit for whatever goes wrong."""
    names: dict = {"__name__": "problem"}
    out = io.StringIO()
    signal.signal(signal.SIGPROF, _slow)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of the processor: the same on a busy machine
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            warnings.simplefilter("error")
            exec("\n".join([*imports, *setup]), names)
    except Unfit:
        raise
    except Warning:
        raise Unfit("warns") from None
    except PermissionError:
        raise Unfit("needs files or network") from None
    except Exception as error:
        raise Unfit("does not run on its own") from error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    names.pop("__builtins__")
    return names, out.getvalue()


def _slow(*_: object) -> None:
    raise Unfit("slow")


def evaluated(imports: tuple[str, ...], setup: list[str], target: str) -> object:
    """The expression's value. Raises Unfit where it fails, warns, prints, or is one of the variables already."""
    names, out = run(imports, [*setup, f"result = {target}"])
    if out:
        raise Unfit("prints")
    found = literal(names["result"])
    for name, value in names.items():
        if name != "result" and found is not None and literal(value) == found:
            raise Unfit("the set-up holds the value already")
    return names["result"]


def variables(target: str, setup: list[str]) -> list[str]:
    """Variables of the set-up that the expression reads, in its order."""
    made = _stored("\n".join(setup))
    return list(dict.fromkeys(name for name in re.findall(r"[A-Za-z_]\w*", target) if name in made))


def changed_inputs(imports: tuple[str, ...], setup: list[str], target: str,
                   expected: Literal) -> Iterator[tuple[str, Literal]]:
    """(set-up with one variable changed, expected value) for every change that gives another value of the same kind."""
    names, _ = run(imports, setup)
    direct = variables(target, setup)
    indirect = [name for name in reversed(variables(" ".join(setup), setup)) if name not in direct]
    for variable in (*direct, *indirect):
        position = max((number for number, line in enumerate(setup) if variable in _stored(line)), default=None)
        if position is None:
            continue
        for change in changes(variable, names.get(variable)):
            text = [*setup[:position + 1], change, *setup[position + 1:]]
            with contextlib.suppress(Unfit):
                found = literal(evaluated(imports, text, target))
                if found is not None and found.kind == expected.kind and found != expected:
                    yield "\n".join(text), found


def _stored(code: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(code))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def changes(name: str, value: object) -> Iterator[str]:
    """Statements that give a variable another value of its type."""
    if isinstance(value, bool):
        yield f"{name} = not {name}"
    elif isinstance(value, int | pd.Period):
        yield f"{name} = {name} + 1"
    elif isinstance(value, float | complex | pd.Timedelta):
        yield f"{name} = {name} * 2"
    elif isinstance(value, pd.Timestamp):
        yield f"{name} = {name} + pd.Timedelta(days=40, hours=5)"
    elif isinstance(value, np.ndarray) and value.ndim:
        if value.dtype.kind in "iufc":
            yield f"{name} = {name} + 1"
        yield f"{name} = {name}[::-1]"
        if value.dtype.kind in "iufc":
            yield f"{name} = {name} * 2"
    elif isinstance(value, list) and value and all(type(part) in (int, float) for part in value):
        yield f"{name} = [{name}[0] + 1, *{name}[:0:-1]]"
        yield f"{name} = {name}[::-1]"
        yield f"{name} = [part + 1 for part in {name}]"
    elif isinstance(value, pd.Series | pd.DataFrame):
        yield f"{name} = {name}.iloc[::-1]"
        yield f"{name} = {name} * 2"
        yield f"{name} = {name}.iloc[1:]"
    elif isinstance(value, list | tuple | str | range | pd.Index | pd.api.extensions.ExtensionArray) and len(value) > 1:
        yield f"{name} = {name}[::-1]"
        yield f"{name} = {name}[1:]"


def printed(value: object, expected: Literal) -> str:
    """The value as an interpreter shows it; empty where that is long."""
    pandas = isinstance(value, pd.Series | pd.DataFrame)
    text = expected.source if expected.kind in ("number", "exact") else str(value) if pandas else repr(value)
    return text if len(text) <= PRINTED and len(text.splitlines()) <= 12 and " at 0x" not in text else ""
