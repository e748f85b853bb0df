"""Executable problems in DS-1000's format from docstring examples: the mini benchmark, and what its models learn from.

An example is run, its constants become variables, a second input is found that gives another value, and rules perturb it
after DS-1000's three kinds: Surface, Semantic and Difficult-Rewrite. Values are written as source, floats with ten
significant digits, so that the last bits of another processor change no file; the tests allow 1e-6.
"""

import ast
import contextlib
import gzip
import hashlib
import io
import json
import multiprocessing
import os
import re
import resource
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from tqdm import tqdm

from lookuplab import paths
from lookuplab.mini import examples
from lookuplab.mini.docstrings import names
from lookuplab.mini.examples import LIBRARIES, Call, Example, call, lifted, place, replaced
from lookuplab.paths import replacing
from lookuplab.stackoverflow.corpus import records

PROBLEMS = paths.MINI / "stackoverflow" / "problems.jsonl.gz"
SECONDS = 300  # for all runs of one example together, against what waits; of the processor, 40
MEMORY = 8 << 30  # bytes of address space
LONGEST, PRINTED = 2000, 600  # characters of a value's source, and of one that a prompt shows
NAMES = (
    "sample",
    "given",
    "items",
    "source",
    "entry",
    "content",
    "group",
    "start",
)  # of renamed variables
IMPORTS = {  # what the sources of values use
    **{
        name: f"from pandas import {name}"
        for name in ("Interval", "NaT", "Period", "Timedelta", "Timestamp")
    },
    "nan": "from math import nan",
    "inf": "from math import inf",
    "np": "import numpy as np",
    "pd": "import pandas as pd",
}
PLAIN = (bool, int, str, bytes, pd.Timestamp, pd.Timedelta, pd.Period, pd.Interval, type(pd.NaT))
_ARRAY = """
    result, expected = np.asarray(result), np.asarray(expected)
    assert result.shape == expected.shape
    assert (result.dtype.kind in "biufc") == (expected.dtype.kind in "biufc")
    if expected.dtype.kind in "fc":
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-9)
    else:
        np.testing.assert_array_equal(result, expected)
"""
_PANDAS = """
    assert isinstance(result, pd.{type})
    pd.testing.assert_{kind}_equal(result, expected, {loose}, rtol=1e-6, atol=1e-9)
"""
_LOOSE = "check_dtype=False, check_freq=False"
SAME = {  # kind -> body of `def same(result, expected)`, which raises where the two are not one value
    "exact": "\n    assert type(result) is type(expected) and result == expected\n",
    "number": """
    assert np.ndim(result) == 0 and np.asarray(result).dtype.kind in "biufc"
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-9)
""",
    "array": _ARRAY,
    "sequence": """
    if isinstance(expected, (list, tuple)):
        assert isinstance(result, (list, tuple)) and len(result) == len(expected)
        for part, other in zip(result, expected):
            same(part, other)
        return"""
    + _ARRAY,
    "frame": _PANDAS.format(type="DataFrame", kind="frame", loose=_LOOSE),
    "series": _PANDAS.format(type="Series", kind="series", loose=_LOOSE),
    "index": _PANDAS.format(type="Index", kind="index", loose='exact="equiv"'),
}
SEVERAL = """
    assert isinstance(result, (list, tuple)) and len(result) == len(expected)
    for part, other in zip(result, expected):
        same_part(part, other)
"""
PROMPT = """Problem:

{question}

A:
<code>
{code}
</code>
result = ...  # the value asked for
BEGIN SOLUTION
<code>
"""
CONTEXT = '''{imports}

INPUTS = (
{inputs}
)
EXPECTED = (
{expected}
)
exec_context = """
{template_imports}
[inputs]
[insert]
"""


{same}

def test_execution(solution: str):
    for i in range({cases}):
        code = exec_context.replace("[inputs]", INPUTS[i]).replace("[insert]", solution)
        environment = {{}}
        exec(code, environment)
        same(environment["result"], EXPECTED[i])
'''
OPENINGS = (
    "I use {library} and have {variables} as in the code below.",
    "Below you see how {variables} came about in my script, which uses {library}.",
    "A question about {library}. Given: {variables}, see the code.",
)
WISHES = (
    "{summary}",
    "What I am after: {summary}",
    "Is there a short way to get there? The task reads: {summary}",
)
STORY = (
    "This is a part of a larger program that several people work on, so please do not change how the data is "
    "made. An older version did it with a loop, which was slow and hard to read."
)
SHOWN = ("The result for these values:", "With these numbers I expect:", "So the output should be")
SYNONYMS = {
    "Return": "Give me",
    "Compute": "Work out",
    "Calculate": "Work out",
    "Evaluate": "Find",
    "Test whether": "Find out whether",
    "element-wise": "for each element",
    "Generate": "Make",
    "Convert": "Turn",
    "Create": "Make",
    "Construct": "Make",
    "Determine": "Find",
}
STEPS = {
    "for each of a list": "Do this for every element of the list `inputs`; the result is the list of the values.",
    "then reversed": "Then turn the outcome around, so that what is last along its first axis comes first.",
}


class Literal(NamedTuple):
    """Source of an expression that gives a value again, and its kind (a key of ``SAME``)."""

    kind: str
    source: str


@dataclass(frozen=True)
class Draft:
    """One problem before it is written out.

    ``cases`` are (set-up, expected value): the example's own first, then the one with changed input. ``rule`` says how a
    perturbation was made. The others are as in ``Example`` and ``Call``.
    """

    example: str
    object: str
    library: str
    imports: tuple[str, ...]
    target: str
    name: str
    receiver: str
    summary: str
    arguments: tuple[tuple[str, str], ...]
    printed: str
    cases: tuple[tuple[str, Literal], ...]
    perturbation: str = "Origin"
    rule: str = ""


def literal(value: object) -> Literal | None:
    """The value's source; None where it has none that gives it back, or a long one."""
    try:
        found = _literal(value)
        namespace: dict = {}
        exec("\n".join(IMPORTS.values()), namespace)
        same(found.kind, eval(found.source, namespace), value)
    except (ValueError, TypeError, AssertionError, SyntaxError, NameError, OverflowError):
        return None
    return found if len(found.source) <= LONGEST else None


def same(kind: str, result: object, expected: object) -> None:
    """The test of a kind, as the problems carry it. Raises AssertionError (or what the comparison raises)."""
    known = {"np": np, "pd": pd}
    exec(f"def same(result, expected):{SAME[kind]}", known)
    known["same"](result, expected)


def _literal(value: object) -> Literal:
    """The kind is that of DS-1000's tests: allclose for numbers, pandas' own tests, equality for the rest."""
    kinds = {pd.DataFrame: "frame", pd.Series: "series", pd.Index: "index"}
    kind = next((kind for of, kind in kinds.items() if isinstance(value, of)), "")
    if type(value) is np.ndarray:
        kind = "array"
    elif isinstance(value, bool | int | float | complex | np.bool_ | np.number):
        kind = "number"
    elif isinstance(value, tuple | list):
        inexact = (np.ndarray, np.generic, float, tuple, list)  # to be compared part by part
        kind = "sequence" if any(isinstance(part, inexact) for part in value) else "exact"
    elif isinstance(value, str | dict | pd.Timestamp | pd.Timedelta | pd.Period):
        kind = "exact"
    if not kind or getattr(value, "size", 1) == 0 or kind == "exact" and not value:
        raise ValueError("no literal form")
    return Literal(kind, (_sequence if kind == "sequence" else source_of)(value))


def source_of(value: object) -> str:
    """Source of a scalar, an array, a frame, or of plain containers of scalars. Raises ValueError for anything else."""
    if isinstance(value, float):
        return repr(float(f"{value:.10g}"))
    if isinstance(value, complex):
        return f"complex({source_of(value.real)}, {source_of(value.imag)})"
    if isinstance(value, np.bool_ | np.number | np.str_) and not isinstance(
        value.item(), np.generic
    ):
        return source_of(value.item())
    if type(value) in (tuple, list):
        return _listed([source_of(part) for part in value], type(value))
    if type(value) is dict:
        pairs = (f"{source_of(key)}: {source_of(part)}" for key, part in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, np.ndarray | pd.Series | pd.DataFrame | pd.Index):
        return _array(value)
    if value is None or isinstance(value, PLAIN):
        return repr(value)
    raise ValueError(f"no plain form: {type(value)}")


def _listed(parts: list[str], kind: type) -> str:
    inner = ", ".join(parts) + "," * (issubclass(kind, tuple) and len(parts) == 1)
    return f"({inner})" if issubclass(kind, tuple) else f"[{inner}]"


def _sequence(value: object) -> str:
    """Lists and tuples of numbers and arrays; named tuples as plain ones."""
    if isinstance(value, tuple | list):
        return _listed([_sequence(part) for part in value], type(value))
    return source_of(value)


def _array(value: np.ndarray | pd.Series | pd.DataFrame | pd.Index) -> str:
    """Of a frame the columns by position, then both indexes: holds for any labels, also for equal ones."""
    if isinstance(value, pd.DataFrame):
        columns = (
            f"{n}: pd.Series({source_of(value.iloc[:, n].tolist())}, dtype={str(value.dtypes.iloc[n])!r})"
            for n in range(value.shape[1])
        )
        filled = f"pd.DataFrame({{{', '.join(columns)}}})"
        return f"{filled}.set_axis({_array(value.index)}).set_axis({_array(value.columns)}, axis=1)"
    if isinstance(value, pd.MultiIndex):
        named = source_of(list(value.names))
        return f"pd.MultiIndex.from_tuples({source_of(value.tolist())}, names={named})"
    name = getattr(value, "name", None)
    named = "" if name is None else f", name={source_of(name)}"
    if isinstance(value, pd.Series):
        index = _array(value.index)
        return f"pd.Series({source_of(value.tolist())}, index={index}, dtype={str(value.dtype)!r}{named})"
    if type(value) is pd.RangeIndex:
        return f"pd.RangeIndex({value.start}, {value.stop}, {value.step}{named})"
    dtype, listed = str(value.dtype), value
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biufcUSmM":
            raise ValueError("array of objects")
        dtype = value.dtype.str[1:] if value.dtype.kind in "US" else dtype
        listed = value.astype("int64") if value.dtype.kind in "mM" else value
    make = "np.array" if isinstance(value, np.ndarray) else "pd.Index"
    return f"{make}({source_of(listed.tolist())}, dtype={dtype!r}{named})"


def run(imports: Sequence[str], lines: Sequence[str]) -> dict:
    """The names that the statements leave behind. Raises what they raise, warnings too, and ValueError where they
    print.
    """
    known, out = {"__name__": "problem"}, io.StringIO()
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
    ):
        warnings.simplefilter("error")
        exec("\n".join([*imports, *lines]), known)
    if out.getvalue():
        raise ValueError("prints")
    return {name: value for name, value in known.items() if name != "__builtins__"}


def evaluated(imports: Sequence[str], setup: Sequence[str], target: str) -> tuple[object, Literal]:
    """The expression's value and its source. Raises where it fails, warns, prints, has no source or is one of the
    variables already.
    """
    known = run(imports, [*setup, f"result = {target}"])
    value = known.pop("result")
    found = literal(value)
    if (
        found is None
        or "printed" in known
        or any(literal(other) == found for other in known.values())
    ):
        raise ValueError("no value of its own")
    return value, found


def examine(example: Example) -> list[Draft]:
    """The problem of an example and every perturbation that a rule gives; none of an example that makes no problem."""
    try:
        first, found = origin(example)
    except Exception:  # whatever the documented object raises
        return []
    return [first, *surface(first), *semantic(first, found), *difficult(first)]


def origin(example: Example) -> tuple[Draft, Call]:
    """The problem of an example, and its call. Raises for an example that makes none."""
    imports, setup, target = example.imports, list(example.setup), example.target
    found = call(target, run(imports, setup))
    if not variables(target, setup):
        target, lines = lifted(target, found)
        setup += lines
        found = call(target, run(imports, setup))
    value, expected = evaluated(imports, setup, target)
    other = next(changed_inputs(imports, setup, target, expected))
    cases = (("\n".join(setup), expected), other)
    of_call = found.name, found.receiver, found.summary, found.arguments
    named = example.id, example.object, example.library, imports, target
    return Draft(*named, *of_call, printed(value, expected), cases), found


def printed(value: object, expected: Literal) -> str:
    """The value as an interpreter shows it; empty where that is long."""
    pandas = isinstance(value, pd.Series | pd.DataFrame)
    plain = expected.kind in ("number", "exact")
    text = expected.source if plain else str(value) if pandas else repr(value)
    short = len(text) <= PRINTED and len(text.splitlines()) <= 12
    return text if short and " at 0x" not in text else ""


def variables(target: str, setup: Sequence[str]) -> list[str]:
    """Variables of the set-up that the expression reads, in its order."""
    made = names(ast.parse("\n".join(setup)), ast.Store)
    return list(dict.fromkeys(name for name in re.findall(r"[A-Za-z_]\w*", target) if name in made))


def changed_inputs(
    imports: Sequence[str], setup: list[str], target: str, expected: Literal
) -> Iterator[tuple[str, Literal]]:
    """(set-up with one variable changed, expected value) for every change that gives another value of the same kind."""
    known, direct = run(imports, setup), variables(target, setup)
    indirect = [name for name in reversed(variables(" ".join(setup), setup)) if name not in direct]
    for name in (*direct, *indirect):
        at = max(n for n, line in enumerate(setup) if name in names(ast.parse(line), ast.Store)) + 1
        for change in changes(known.get(name)):
            lines = [*setup[:at], f"{name} = {change.format(name)}", *setup[at:]]
            with contextlib.suppress(Exception):
                _, found = evaluated(imports, lines, target)
                if found.kind == expected.kind and found != expected:
                    yield "\n".join(lines), found


def changes(value: object) -> Sequence[str]:
    """Expressions that give a variable ``{0}`` another value of its type."""
    if isinstance(value, bool):
        return ["not {0}"]
    if isinstance(value, int | pd.Period):
        return ["{0} + 1"]
    if isinstance(value, float | complex | pd.Timedelta):
        return ["{0} * 2"]
    if isinstance(value, pd.Timestamp):
        return ["{0} + pd.Timedelta(days=40, hours=5)"]
    if isinstance(value, np.ndarray) and value.ndim:
        return ["{0} + 1", "{0}[::-1]", "{0} * 2"] if value.dtype.kind in "iufc" else ["{0}[::-1]"]
    if isinstance(value, list) and value and all(type(part) in (int, float) for part in value):
        return ["[{0}[0] + 1, *{0}[:0:-1]]", "{0}[::-1]", "[part + 1 for part in {0}]"]
    if isinstance(value, pd.Series | pd.DataFrame):
        return ["{0}.iloc[::-1]", "{0} * 2", "{0}.iloc[1:]"]
    sliced = list | tuple | str | range | pd.Index | pd.api.extensions.ExtensionArray
    return ["{0}[::-1]", "{0}[1:]"] if isinstance(value, sliced) and len(value) > 1 else []


def surface(first: Draft) -> Iterator[Draft]:
    """The same question in other words, inside a story, or over variables of other names."""
    draft, setup = replace(first, perturbation="Surface"), first.cases[0][0]
    yield replace(draft, rule="reworded")
    yield replace(draft, rule="story around it")
    tree = ast.parse(f"{setup}\n{first.target}")
    taken = names(tree, ast.Load) | names(tree, ast.Store)
    free = (name for name in NAMES if name not in taken)
    if new := dict(zip(variables(first.target, [setup]), free, strict=False)):
        yield replace(
            draft,
            rule=f"renamed: {', '.join(f'{old} to {name}' for old, name in new.items())}",
            target=renamed(first.target, new),
            cases=tuple((renamed(text, new), expected) for text, expected in first.cases),
            arguments=tuple((name, renamed(source, new)) for name, source in first.arguments),
            receiver=renamed(first.receiver, new),
        )


def renamed(source: str, new: dict[str, str]) -> str:
    """``source`` with other variable names; strings, attributes and keywords stay."""
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)]
    return replaced(source, [(place(source, one), new[one.id]) for one in found if one.id in new])


def semantic(first: Draft, found: Call) -> Iterator[Draft]:
    """Another argument is asked for: a number, a flag or an option changes, or one is given that had its default."""
    for rule, arguments, target in other_arguments(found):
        with contextlib.suppress(Exception):
            yield again(first, "Semantic", rule, target, arguments)


def again(first: Draft, kind: str, rule: str, target: str, arguments: tuple | None = None) -> Draft:
    """The problem with another expression: both values anew, which differ from the first ones and from each other."""
    values = [evaluated(first.imports, [setup], target) for setup, _ in first.cases]
    (one, other), (old, last) = (found for _, found in values), (found for _, found in first.cases)
    if one in (old, other) or other == last or one.kind != other.kind:
        raise ValueError("not another problem")
    cases = tuple(
        (setup, found) for (setup, _), (_, found) in zip(first.cases, values, strict=True)
    )
    draft = replace(first, perturbation=kind, rule=rule, target=target, cases=cases, printed="")
    if arguments is None:
        return draft
    return replace(draft, arguments=arguments, printed=printed(values[0][0], one))


def other_arguments(found: Call) -> Iterator[tuple[str, tuple[tuple[str, str], ...], str]]:
    """(rule, arguments, expression) for each argument that can be another one, in a fixed order."""
    for number, (name, source) in enumerate(found.arguments):
        for rule, text in other_constants(found, name, source):
            arguments = (*found.arguments[:number], (name, text), *found.arguments[number + 1 :])
            changed = replaced(found.source, [(found.places[number], text)])
            yield f"{rule}: {name or number + 1}", arguments, changed
    given = {name for name, _ in found.arguments}
    for name, default in found.parameters.items():
        if name in given or name.startswith("*"):
            continue
        texts = [repr(not default)] if isinstance(default, bool) else []
        texts += [repr(option) for option in examples.options_of(found.document, name)]
        texts += ["0", "1"] if name == "axis" and default in (None, 0, 1, -1) else []
        texts += ["1"] if name == "ddof" else []
        for text in texts:
            if text != repr(default):
                head = found.source[:-1].rstrip().rstrip(",") + ", " * bool(found.arguments)
                arguments = (*found.arguments, (name, text))
                yield f"argument given: {name}", arguments, f"{head}{name}={text})"


def other_constants(found: Call, name: str, source: str) -> Iterator[tuple[str, str]]:
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
    elif isinstance(value, str) and name:
        options = examples.options_of(found.document, name)
        yield from (("other option", repr(option)) for option in options if option != value)


def difficult(first: Draft) -> Iterator[Draft]:
    """The call is not named, is made for every element of a list, or is followed by a second step."""
    draft = replace(first, perturbation="Difficult-Rewrite")
    if first.name.rpartition(".")[2] not in " ".join(first.imports):
        yield replace(draft, rule="call not named")
    yield from for_each(replace(draft, rule="for each of a list", printed=""))
    step = {"array": "[::-1]", "frame": ".iloc[::-1]", "series": ".iloc[::-1]", "index": "[::-1]"}
    if (kind := first.cases[0][1].kind) in step:
        with contextlib.suppress(Exception):
            yield again(first, draft.perturbation, "then reversed", first.target + step[kind])


def for_each(draft: Draft) -> Iterator[Draft]:
    """The call for each of two inputs in a list; the second case has the list the other way round."""
    (first, expected), (second, other) = draft.cases
    known = variables(draft.target, [first])
    found = [node for node in ast.walk(ast.parse(draft.target)) if isinstance(node, ast.Name)]
    found = [node for node in found if node.id in known]
    changed = [n.id for n in found if second.count(f"\n{n.id} = ") > first.count(f"\n{n.id} = ")]
    if changed and second.startswith(first) and expected.kind != "sequence":
        places = [(place(draft.target, node), "item") for node in found if node.id == changed[0]]
        change = second[len(first) :].strip().partition(" = ")[2]
        setup, kind = f"{first}\ninputs = [{changed[0]}, {change}]", f"several {expected.kind}"
        both = Literal(kind, f"[{expected.source}, {other.source}]")
        turned = Literal(kind, f"[{other.source}, {expected.source}]")
        cases = ((setup, both), (f"{setup}\ninputs = inputs[::-1]", turned))
        target = f"[{replaced(draft.target, places)} for item in inputs]"
        yield replace(draft, target=target, cases=cases)


def prompt(draft: Draft) -> str:
    """The question with the example's set-up; the answer begins on the next line."""
    code = "\n".join([*draft.imports, *([""] if draft.imports else []), draft.cases[0][0]])
    return PROMPT.format(question="\n".join(question(draft)), code=code)


def question(draft: Draft) -> list[str]:
    """The lines of the question: what there is, what is wanted with which arguments, and the value for the example."""
    dice = int(hashlib.sha256(draft.example.encode()).hexdigest(), 16)
    way = dice % (len(OPENINGS) - 1) + 1 if draft.rule == "reworded" else 0
    made = re.findall(r"^(\w+)(?:, *\w+)* *=|^def (\w+)", draft.cases[0][0], re.M)
    made = {first or second for first, second in made}
    read = [name for name in re.findall(r"[A-Za-z_]\w*", draft.target) if name in made]
    read = ["inputs"] if draft.rule == "for each of a list" else list(dict.fromkeys(read))
    shown = listed([f"`{name}`" for name in read])
    summary = draft.summary if draft.summary.endswith((".", "?", "!", ":")) else f"{draft.summary}."
    for word, other in SYNONYMS.items() if way else ():
        summary = re.sub(rf"\b{word}\b", other, summary)
    lines = [OPENINGS[way].format(library=LIBRARIES[draft.library], variables=shown)]
    lines += [STORY] if draft.rule == "story around it" else []
    given = [
        f"`{source if name in ('', source) else f'{name} = {source}'}`"
        for name, source in draft.arguments
    ]
    verb = "Apply it" if draft.rule == "call not named" else f"Use `{draft.name}`"
    verb += f" on `{draft.receiver}`" * bool(draft.receiver) + f" with {listed(given)}" * bool(
        given
    )
    lines += [WISHES[way].format(summary=summary), f"{verb}."]
    lines += [STEPS[draft.rule]] if draft.rule in STEPS else []
    return [*lines, "", SHOWN[way], "", draft.printed] if draft.printed else lines


def listed(words: list[str]) -> str:
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def context(draft: Draft) -> str:
    """The program that tests an answer: both inputs, their values, and the comparison that fits."""
    several, _, part = draft.cases[0][1].kind.rpartition(" ")
    sources = [expected.source for _, expected in draft.cases]
    compared = f"def same(result, expected):{SAME[part]}"
    if several:
        compared = compared.replace("same(", "same_part(")
        compared += f"\n\ndef same(result, expected):{SEVERAL}"
    used = "\n".join([*sources, SAME[part]])
    needed = {line for name, line in IMPORTS.items() if re.search(rf"(?<![\w.'\"]){name}\b", used)}
    return CONTEXT.format(
        imports="\n".join(dict.fromkeys([*draft.imports, *sorted(needed)])),
        template_imports="\n".join(draft.imports),
        inputs="\n".join(f"    {setup!r}," for setup, _ in draft.cases),
        expected="\n".join(f"    {source}," for source in sources),
        same=compared,
        cases=len(sources),
    )


def examined(tried: Sequence[Example]) -> Iterator[list[Draft]]:
    """``examine`` of every example, in their order, in a process of its own: what writes a file or opens a connection,
    computes or waits for long makes no problem.
    """
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    fork = multiprocessing.get_context("forkserver")
    fork.set_forkserver_preload([__name__, "scipy.stats", "scipy.signal", "sklearn.linear_model"])
    for example in tqdm(tried, desc="examples"):
        receiving, sending = fork.Pipe(duplex=False)
        child = fork.Process(target=_examine, args=(sending, example))
        child.start()
        sending.close()
        try:
            yield receiving.recv() if receiving.poll(SECONDS) else []
        except EOFError:  # stopped by a limit
            yield []
        finally:
            child.kill()
            child.join()


def _examine(sending, example: Example) -> None:
    def refuse(event: str, arguments: tuple) -> None:
        writes = (
            event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
        )
        if writes or event in (
            "socket.connect",
            "socket.getaddrinfo",
            "subprocess.Popen",
            "os.system",
            "os.exec",
        ):
            raise PermissionError(f"{event} is not for examples")

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.dont_write_bytecode = True
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (40, 41))
        sys.addaudithook(refuse)
        done = examine(example)
        os.chdir("/")
        sending.send(done)


def rebuilt(file: Path = PROBLEMS) -> Iterator[dict]:
    """The records of a benchmark made again from the installed libraries: object, example, rule and answer say which.

    Raises KeyError for a problem that these versions do not give.
    """
    chosen = [one for _, one in records(file)]
    wanted = {(one["metadata"]["object"], one["metadata"]["example"]) for one in chosen}
    tried = [
        one
        for library in LIBRARIES
        for item in examples.objects(library, held_out=True)
        for one in examples.examples(item, library)
        if (one.object, one.number) in wanted
    ]
    found = {
        (one.example, one.rule, one.target): one for drafts in examined(tried) for one in drafts
    }
    for one in chosen:
        facts = one["metadata"]
        answer = one["reference_code"].removeprefix("result = ")
        draft = found[f"{facts['object']}#{facts['example']}", facts["rule"], answer]
        yield {
            "prompt": prompt(draft),
            "reference_code": f"result = {draft.target}",
            "code_context": context(draft),
            "metadata": facts,
        }


def write(file: Path, made: Sequence[dict]) -> None:
    """JSON Lines, compressed; the same records give the same bytes."""
    with replacing(file) as part, part.open("wb") as raw:
        with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as stream:
            stream.writelines((json.dumps(one) + "\n").encode() for one in made)
