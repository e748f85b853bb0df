"""Perturbations of a problem by rule, after DS-1000's three kinds: Surface, Semantic and Difficult-Rewrite.

Each rule changes the origin in one way and is recorded with the problem. Whatever changes a value is run again.
"""

import ast
import contextlib
from collections.abc import Iterator
from dataclasses import replace

from lookuplab.mini.problems import calls
from lookuplab.mini.problems.calls import Call
from lookuplab.mini.problems.drafts import Draft, Unfit, evaluated, origin, printed, variables
from lookuplab.mini.problems.examples import Example
from lookuplab.mini.problems.values import Literal, literal

NAMES = ("sample", "given", "items", "source", "entry", "content", "group", "start")  # of renamed variables


def examine(example: Example) -> list[Draft] | str:
    """The origin problem of an example and every perturbation that a rule gives, or why there is none."""
    try:
        first, call = origin(example)
    except Unfit as reason:
        return str(reason)
    return [first, *surface(first), *semantic(first, call), *difficult(first)]


def surface(origin: Draft) -> Iterator[Draft]:
    """The same question in other words, inside a story, or over variables of other names."""
    draft = replace(origin, perturbation="Surface")
    yield replace(draft, rule="reworded")
    yield replace(draft, rule="story around it")
    setup = origin.cases[0][0]
    taken = {node.id for node in ast.walk(ast.parse(f"{setup}\n{origin.target}")) if isinstance(node, ast.Name)}
    free = [name for name in NAMES if name not in taken]
    new = dict(zip(variables(origin.target, [setup]), free, strict=False))
    if new:
        cases = tuple((renamed(text, new), expected) for text, expected in origin.cases)
        arguments = tuple((name, renamed(source, new)) for name, source in origin.arguments)
        listed = ", ".join(f"{old} to {name}" for old, name in new.items())
        yield replace(draft, rule=f"renamed: {listed}", target=renamed(origin.target, new), cases=cases,
                      arguments=arguments, receiver=renamed(origin.receiver, new))


def renamed(source: str, new: dict[str, str]) -> str:
    """``source`` with other variable names; strings, attributes and keywords stay."""
    names = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name) and node.id in new]
    return calls.replaced(source, [(calls.place(source, node), new[node.id]) for node in names])


def semantic(origin: Draft, call: Call) -> Iterator[Draft]:
    """Another argument is asked for: a number, a flag or an option changes, or one is given that had its default."""
    for rule, arguments, target in other_arguments(call):
        found = []
        for setup, expected in origin.cases:
            with contextlib.suppress(Unfit):
                value = evaluated(origin.imports, [setup], target)
                other = literal(value)
                if other is not None and other != expected:
                    found.append((setup, other, value))
        if len(found) == 2 and found[0][1] != found[1][1] and found[0][1].kind == found[1][1].kind:
            yield replace(origin, perturbation="Semantic", rule=rule, target=target, arguments=arguments,
                          printed=printed(found[0][2], found[0][1]), cases=tuple(part[:2] for part in found))


def other_arguments(call: Call) -> Iterator[tuple[str, tuple[tuple[str, str], ...], str]]:
    """(rule, arguments, expression) for each argument that can be another one, in a fixed order."""
    for number, (name, source) in enumerate(call.arguments):
        for rule, text in other_constants(call, name, source):
            arguments = (*call.arguments[:number], (name, text), *call.arguments[number + 1:])
            yield f"{rule}: {name or number + 1}", arguments, calls.replaced(call.source, [(call.places[number], text)])
    given = {name for name, _ in call.arguments}
    if not call.source.endswith(")"):
        return
    comma = ", " if call.arguments else ""
    for name, default in call.parameters.items():
        if name in given or name.startswith("*"):
            continue
        texts = [repr(not default)] if isinstance(default, bool) else []
        texts += [repr(option) for option in calls.options_of(call.document, name) if option != default]
        texts += ["0", "1"] if name == "axis" and default in (None, 0, 1, -1) else ["1"] * (name == "ddof")
        for text in texts:
            if text != repr(default):
                source = f"{call.source[:-1].rstrip().rstrip(',')}{comma}{name}={text})"
                yield f"argument given: {name}", (*call.arguments, (name, text)), source


def other_constants(call: Call, name: str, source: str) -> Iterator[tuple[str, str]]:
    """(rule, source) of other constants that could stand for one argument."""
    try:
        value = ast.literal_eval(source)
    except (ValueError, SyntaxError):
        return
    if isinstance(value, bool):
        yield "flag turned", repr(not value)
    elif isinstance(value, int):
        yield from (("number changed", repr(value + step)) for step in (1, -1, 2))
    elif isinstance(value, float):
        yield from (("number changed", repr(value * factor)) for factor in (2, 0.5))
    elif isinstance(value, str):
        options = [option for option in calls.options_of(call.document, name) if option != value]
        yield from (("other option", repr(option)) for option in options)


def difficult(origin: Draft) -> Iterator[Draft]:
    """The call is not named, is made for every element of a list, or is followed by a second step."""
    draft = replace(origin, perturbation="Difficult-Rewrite", printed="")
    if origin.name.rpartition(".")[2] not in " ".join(origin.imports):
        yield replace(draft, rule="call not named", printed=origin.printed)
    for rule, target, cases in (("for each of a list", *_for_each(origin)), ("then reversed", *_reversed(origin))):
        if target:
            yield replace(draft, rule=rule, target=target, cases=cases)


def _for_each(origin: Draft) -> tuple[str, tuple]:
    """The call for each of two inputs in a list; the second case has the list the other way round."""
    (first, expected), (second, other) = origin.cases
    node = ast.parse(origin.target, mode="eval").body
    known = variables(origin.target, [first])
    names = [part for part in ast.walk(node) if isinstance(part, ast.Name) and part.id in known]
    changed = [name for name in names if second.count(f"\n{name.id} = ") > first.count(f"\n{name.id} = ")]
    variable = changed[0].id if changed else ""
    if not variable or not second.startswith(first) or expected.kind == "sequence":
        return "", ()
    places = [(calls.place(origin.target, name), "item") for name in names if name.id == variable]
    target = f"[{calls.replaced(origin.target, places)} for item in inputs]"
    change = second[len(first):].strip()
    lines = [f"inputs = [{variable}, {change.partition(' = ')[2]}]", "inputs = inputs[::-1]"]
    both = Literal(f"several {expected.kind}", f"[{expected.source}, {other.source}]")
    turned = Literal(both.kind, f"[{other.source}, {expected.source}]")
    return target, ((f"{first}\n{lines[0]}", both), (f"{first}\n{lines[0]}\n{lines[1]}", turned))


def _reversed(origin: Draft) -> tuple[str, tuple]:
    """The call's value in reverse order (rows of a frame, first axis of an array)."""
    step = {"array": "[::-1]", "frame": ".iloc[::-1]", "series": ".iloc[::-1]", "index": "[::-1]"}
    target = f"{origin.target}{step.get(origin.cases[0][1].kind, '')}"
    if target == origin.target:
        return "", ()
    cases = []
    for setup, expected in origin.cases:
        with contextlib.suppress(Unfit):
            found = literal(evaluated(origin.imports, [setup], target))
            if found is not None and found != expected:
                cases.append((setup, found))
    return (target, tuple(cases)) if len(cases) == 2 and cases[0][1] != cases[1][1] else ("", ())
