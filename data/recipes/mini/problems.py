"""Makes the mini benchmark: executable problems in DS-1000's format from docstring examples.

Each example is run, and its constants become variables. Then a second input is found that gives a
different value. Rules make perturbations of DS-1000's three kinds: Surface, Semantic and
Difficult-Rewrite. Values are written as source code. Floats have ten significant digits, so that
the files do not depend on the last bits of a processor's results. The tests of answers allow
differences of 1e-6.
"""

import ast
import io
import multiprocessing
import os
import pydoc
import re
import resource
import signal
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import Any

import click
import numpy as np
import pandas as pd

from lookuplab import paths
from lookuplab.cloudapi.tasks import interleave
from lookuplab.run.cli import command, run_module
from lookuplab.stackoverflow.ds1000 import Problem, program
from lookuplab.stackoverflow.grader import Grader
from lookuplab.work import watched
from recipes import tables, write_rows
from recipes.mini import WORDINGS, order
from recipes.mini.docstrings import (
    Call,
    DocExample,
    call,
    examples_of,
    lifted,
    names,
    options_of,
    replaced,
)

PROBLEMS = paths.MINI / "stackoverflow" / "problems.jsonl.gz"
RUN_SECONDS = 300  # for one example; if it takes longer, its process is killed
MEMORY = 6 << 30  # bytes that a process may use; this stops a pandas example that needs 15 GB
# the most characters in the source of a value, and in a value that a prompt shows
LONGEST, PRINTED = 2000, 600
# the number of problems of each kind, the problems' words and templates, and code that compares
# values
TEXTS = tables("mini/problems.yaml")
IMPORTS = "\n".join(TEXTS["imports"].values())  # imports that the sources of values need
# types of which ``repr`` gives a source
PLAIN = (bool, int, str, bytes, pd.Timestamp, pd.Timedelta, type(pd.NaT))
EACH, REVERSED = "for each of a list", "then reversed"  # the rules of Difficult-Rewrite


@dataclass(frozen=True)
class Literal:
    """A value. ``source`` is an expression that reproduces it.

    ``kind`` says how the value is compared (a key of ``same`` in problems.yaml). ``shown`` is the
    value as an interpreter shows it, or "" if this text is too long for a prompt or has an address
    in memory.
    """

    kind: str
    source: str
    shown: str = field(default="", compare=False)


@dataclass(frozen=True)
class Candidate(Problem):
    """A problem with the ``rule`` that made it, and ``wrong`` answers, which must fail its test.
    The field ``origin`` is the id of the docstring example from which it was made.
    """

    rule: str = ""
    wrong: tuple[str, ...] = ()

    @property
    def kind_of_rule(self) -> str:
        return self.rule.partition(":")[0]


@dataclass(frozen=True)
class Draft:
    """A problem before its texts are written.

    ``target`` is the expression that answers the problem, and ``call`` is the call in ``target``
    that the question describes. ``cases`` are two pairs (set-up, value of ``target``): the first
    has the example's input, the second has a changed input. ``rule`` names the rule of a
    perturbation, and ``renamed`` maps old names of variables to new ones.
    """

    example: DocExample
    call: Call
    target: str
    cases: tuple[tuple[str, Literal], ...]
    perturbation: str = "Origin"
    rule: str = ""
    renamed: dict[str, str] = field(default_factory=dict)


def literal(value: object) -> Literal | None:
    """Return a value as a Literal, or None if no source of at most LONGEST characters reproduces
    the value.
    """
    with suppress(Exception):
        kind = kind_of(value)
        known: dict[str, Any] = {}
        exec(f"{IMPORTS}\n{TEXTS['same'][kind]}", known)  # a KeyError for the kind ""
        source = source_of(value)
        known["same"](eval(source, known), value)
        shown = source if kind in ("number", "exact") else repr(value)
        if len(shown) > PRINTED or len(shown.splitlines()) > 12 or " at 0x" in shown:
            shown = ""
        return Literal(kind, source, shown) if len(source) <= LONGEST else None
    return None


def kind_of(value: object) -> str:
    """Return the kind of a value, such as "frame", which decides how it is compared. As in
    DS-1000's tests, numbers are compared by allclose, pandas' objects by pandas' own tests, and
    other values by equality.

    An empty value, a very large one, and a value that cannot be compared have the kind "".
    """
    if not 0 < getattr(value, "size", 1) <= LONGEST:
        return ""
    match value:
        case pd.DataFrame():
            return "frame"
        case pd.Series():
            return "series"
        case pd.Index():
            return "index"
        case bool() | int() | float() | complex() | np.bool_() | np.number():
            return "number"
        case [*parts]:
            # if any element has one of these types, the sequences are compared element by element
            inexact = (np.ndarray, np.generic, float, tuple, list)
            compared = any(isinstance(part, inexact) for part in parts)
            return "sequence" if compared else "exact" if parts else ""
        case str() | dict() | pd.Timestamp() | pd.Timedelta():
            return "exact" if value else ""
    return "array" if type(value) is np.ndarray else ""


def source_of(value: object) -> str:
    """Return the source of a scalar, an array or a pandas object, or of a tuple, list or dictionary
    of these. Named tuples become plain tuples.

    A frame is written as its columns by position, followed by both indexes. This works for any
    labels, even for duplicates. Raises ValueError for any other value.
    """
    match value:
        case float():
            return repr(float(f"{value:.10g}"))
        case complex():
            return f"complex({source_of(value.real)}, {source_of(value.imag)})"
        case np.bool_() | np.number():
            return source_of(value.item())
        case tuple():
            return f"({', '.join(map(source_of, value))}{',' * (len(value) == 1)})"
        case list():
            return f"[{', '.join(map(source_of, value))}]"
        case dict():
            pairs = (f"{source_of(key)}: {source_of(part)}" for key, part in value.items())
            return f"{{{', '.join(pairs)}}}"
        case pd.DataFrame():
            columns = (
                f"{n}: pd.Series({source_of(value.iloc[:, n].tolist())}, dtype={str(dtype)!r})"
                for n, dtype in enumerate(value.dtypes)
            )
            index, labels = source_of(value.index), source_of(value.columns)
            filled = f"pd.DataFrame({{{', '.join(columns)}}})"
            return f"{filled}.set_axis({index}).set_axis({labels}, axis=1)"
        case pd.MultiIndex():
            tuples = source_of(value.tolist())
            levels = source_of(list(value.names))
            return f"pd.MultiIndex.from_tuples({tuples}, names={levels})"
        case pd.Series() | pd.Index():
            named = "" if value.name is None else f", name={source_of(value.name)}"
            if isinstance(value, pd.RangeIndex):
                return f"pd.RangeIndex({value.start}, {value.stop}, {value.step}{named})"
            parts = source_of(value.tolist())
            last = f"dtype={str(value.dtype)!r}{named}"
            if isinstance(value, pd.Index):
                return f"pd.Index({parts}, {last})"
            return f"pd.Series({parts}, index={source_of(value.index)}, {last})"
        case np.ndarray() if value.dtype.kind in "biufcUSmM":
            dtype = value.dtype.str[1:] if value.dtype.kind in "US" else str(value.dtype)
            whole = value.astype("int64") if value.dtype.kind in "mM" else value
            return f"np.array({source_of(whole.tolist())}, dtype={dtype!r})"
    if value is None or isinstance(value, PLAIN):
        return repr(value)
    raise ValueError(f"no plain form: {type(value)}")


def evaluated(example: DocExample, setup: str, target: str) -> tuple[dict[str, Any], Literal]:
    """Run an example's set-up and an expression. Return (namespace after the run, the expression's
    value as a Literal). In the namespace, the variable ``result`` has the value.

    Raises whatever the code raises, with warnings as errors. Raises ValueError if the code prints,
    if the value cannot be written as a Literal, or if a variable of the set-up has an equal value.
    """
    known = {"__name__": "problem"}
    out = io.StringIO()
    with warnings.catch_warnings(action="error"), redirect_stdout(out), redirect_stderr(out):
        exec("\n".join([*example.imports, setup, f"result = {target}"]), known)
    found = literal(known["result"])
    others = (literal(value) for name, value in known.items() if name != "result")
    if out.getvalue() or found is None or found in others:
        raise ValueError("no value of its own")
    return known, found


def drafts(example: DocExample) -> list[Draft]:
    """Return the problem of an example, followed by every perturbation that a rule gives. Raises an
    exception if the example gives no problem.
    """
    first = origin(example)
    found = [first, *surface(first)]
    for rule, target in other_arguments(first.call):
        found += with_target(first, "Semantic", rule, target)
    found += for_each(first)
    if backwards := TEXTS["backwards"].get(first.cases[0][1].kind):
        found += with_target(first, "Difficult-Rewrite", REVERSED, first.target + backwards)
    return found


def origin(example: DocExample) -> Draft:
    """Return an unperturbed problem, made from an example, with two inputs that give different
    values. Raises an exception if the example gives no such problem. The exception may have any
    type, because the example's code is run.
    """
    example = unimported(example)
    lines = [*example.setup]
    setup = "\n".join(lines)
    target = example.target
    known, expected = evaluated(example, setup, target)
    found = call(target, known)
    if gives_away_name(found, setup):
        raise ValueError("the prompt would name the callable")
    if not variables(target, setup):
        target, made = lifted(found)
        lines += made
        setup = "\n".join(lines)
        known, expected = evaluated(example, setup, target)
    # first try to change the variables that the expression reads, then the set-up's variables from
    # the last to the first
    read = [*variables(target, setup), *reversed(variables(setup, setup))]
    for name in dict.fromkeys(read):
        # the change comes after the last line that assigns the variable
        at = max(n for n, line in enumerate(lines, 1) if name in names(ast.parse(line), ast.Store))
        for change in changes(known.get(name)):
            second = "\n".join([*lines[:at], f"{name} = {change.format(name)}", *lines[at:]])
            with suppress(Exception):
                _, other = evaluated(example, second, target)
                if other.kind == expected.kind and other != expected:
                    cases = (setup, expected), (second, other)
                    return Draft(example, call(target, known), target, cases)
    raise ValueError("no other input gives another value")


def gives_away_name(found: Call, setup: str) -> bool:
    """Return whether the prompt would contain the callable's name, because the summary or the
    set-up does.

    In the summary, a plain word such as ``mean`` counts only if it is written as code.
    """
    last = found.name.rpartition(".")[2]
    anywhere = rf"\b{last}\b"
    as_code = rf"\.{last}\b|\b{last}\(|`{last}`"
    in_summary = as_code if last.isalpha() and last.islower() else anywhere
    return bool(re.search(in_summary, found.summary) or re.search(anywhere, setup))


def unimported(example: DocExample) -> DocExample:
    """Return an example whose imports do not give away the callable's name. If ``from m import
    name`` is among them, ``import m`` replaces it, and the expression calls ``m.name``.
    """
    name = called(example.target)
    for line in reversed(example.imports):
        (node,) = ast.parse(line).body
        if not isinstance(node, ast.ImportFrom):
            continue
        known = {one.asname or one.name: one for one in node.names}
        if name in known:
            target = renamed(example.target, {name: f"{node.module}.{known.pop(name).name}"})
            imports = [one for one in example.imports if one != line] + [f"import {node.module}"]
            if known:
                imports.append(ast.unparse(ast.ImportFrom(node.module, [*known.values()], 0)))
            return replace(example, imports=tuple(dict.fromkeys(imports)), target=target)
    return example


def mentioned(text: str, known: Iterable[str]) -> list[str]:
    """Return the ``known`` names that occur in a text, in the order of their first occurrence."""
    return list(dict.fromkeys(name for name in re.findall(r"[A-Za-z_]\w*", text) if name in known))


def variables(target: str, setup: str) -> list[str]:
    """Return the variables that a set-up assigns and an expression reads, in the order of the
    expression.
    """
    return mentioned(target, names(ast.parse(setup), ast.Store))


def changes(value: object) -> Sequence[str]:
    """Return templates of expressions that change a variable to a different value of the same type.
    ``{0}`` in a template stands for the variable's name: ``["{0} + 1"]`` for an integer.
    """
    match value:
        case bool():
            return ["not {0}"]
        case int() | pd.Period():
            return ["{0} + 1"]
        case float() | complex() | pd.Timedelta():
            return ["{0} * 2"]
        case pd.Timestamp():
            return ["{0} + pd.Timedelta(days=40, hours=5)"]
        case np.ndarray() if value.ndim:
            numeric = value.dtype.kind in "iufc"
            return ["{0} + 1", "{0}[::-1]", "{0} * 2"] if numeric else ["{0}[::-1]"]
        case list() if value and all(type(part) in (int, float) for part in value):
            return ["[{0}[0] + 1, *{0}[:0:-1]]", "{0}[::-1]", "[part + 1 for part in {0}]"]
        case pd.Series() | pd.DataFrame():
            return ["{0}.iloc[::-1]", "{0} * 2", "{0}.iloc[1:]"]
    sliced = list | tuple | str | range | pd.Index | pd.api.extensions.ExtensionArray
    return ["{0}[::-1]", "{0}[1:]"] if isinstance(value, sliced) and len(value) > 1 else []


def surface(first: Draft) -> Iterator[Draft]:
    """Yield up to three Surface perturbations of a problem: the question in different words, the
    question inside a story, and, if the expression reads variables, the problem with these
    variables renamed.
    """
    draft = replace(first, perturbation="Surface")
    setup = first.cases[0][0]
    yield replace(draft, rule="reworded")
    yield replace(draft, rule="story around it")
    taken = names(ast.parse(f"{setup}\n{first.target}"))
    free = (name for name in TEXTS["variables"] if name not in taken)
    if new := dict(zip(variables(first.target, setup), free, strict=False)):
        rule = f"renamed: {', '.join(map(' to '.join, new.items()))}"
        target = renamed(first.target, new)
        cases = tuple((renamed(text, new), expected) for text, expected in first.cases)
        yield replace(draft, rule=rule, target=target, cases=cases, renamed=new)


def renamed(source: str, new: dict[str, str]) -> str:
    """Return ``source`` with variables renamed by ``new``, which maps old names to new ones.
    Strings, attributes and keywords stay unchanged.
    """
    found = ast.walk(ast.parse(source)) if new else ()
    named = [node for node in found if isinstance(node, ast.Name) and node.id in new]
    return replaced(source, [(node, new[node.id]) for node in named])


def with_target(first: Draft, perturbation: str, rule: str, target: str) -> Iterator[Draft]:
    """Yield a perturbation of the problem ``first``. The answer of the perturbation is ``target``:
    the answer of ``first`` with one argument changed or added, or with a second step.

    The values of both cases are computed again. Yield nothing unless they differ from the old
    values and from each other.
    """
    (setup, old), (second, last) = first.cases
    with suppress(Exception):
        known, one = evaluated(first.example, setup, target)
        _, other = evaluated(first.example, second, target)
        # the target of REVERSED is the original call with a reversal after it, so the question
        # describes the original call
        asked = first.call if rule == REVERSED else call(target, known)
        if one not in (old, other) and other != last and one.kind == other.kind:
            cases = (setup, one), (second, other)
            yield Draft(first.example, asked, target, cases, perturbation, rule)


def other_arguments(found: Call) -> Iterator[tuple[str, str]]:
    """Yield (rule, new expression) for each change or addition of one argument, in a fixed order.
    An example of a rule is "number changed: axis".
    """
    for number, (name, node) in enumerate(found.arguments, 1):
        try:
            value = ast.literal_eval(node)
        except ValueError:
            continue
        others: Sequence[object]
        match value:
            case bool():
                rule = "flag turned"
                others = [not value]
            case int():
                rule = "number changed"
                others = [value + 1, value - 1, value + 2]
            case float():
                rule = "number changed"
                others = [value * 2, value * 0.5]
            case str() if name:
                rule = "other option"
                others = options_of(found.document, name)
            case _:
                continue
        for other in others:
            yield f"{rule}: {name or number}", replaced(found.source, [(node, repr(other))])
    head = found.source[:-1].rstrip().rstrip(",") + (", " if found.arguments else "")
    for name, default in found.parameters.items():
        if name not in dict(found.arguments):
            texts = [repr(not default)] if isinstance(default, bool) else []
            texts += map(repr, options_of(found.document, name))
            texts += ["0", "1"] if name == "axis" and default in (None, 0, 1, -1) else []
            texts += ["1"] if name == "ddof" else []
            for text in texts:
                if text != repr(default):
                    yield f"argument given: {name}", f"{head}{name}={text})"


def for_each(first: Draft) -> Iterator[Draft]:
    """Yield the problem in which the call is applied to each of the two inputs in a list. In the
    second of the problem's ``cases``, the list is reversed.
    """
    (setup, expected), (second, other) = first.cases
    changed, _, change = second.removeprefix(f"{setup}\n").partition(" = ")
    is_read = changed in names(ast.parse(first.target))
    if is_read and second.startswith(setup) and expected.kind != "sequence":
        kind = f"several {expected.kind}"
        lines = f"{setup}\ninputs = [{changed}, {change}]"
        both = Literal(kind, f"[{expected.source}, {other.source}]")
        turned = Literal(kind, f"[{other.source}, {expected.source}]")
        cases = (lines, both), (f"{lines}\ninputs = inputs[::-1]", turned)
        target = f"[{renamed(first.target, {changed: 'item'})} for item in inputs]"
        yield Draft(first.example, first.call, target, cases, "Difficult-Rewrite", EACH)


def prompt(draft: Draft) -> str:
    """Return the prompt of a problem: the question and the code of the set-up. The answer begins on
    the line after the prompt.

    The question names the variables that are given, says what to compute and with which arguments,
    and shows the result for the first of the two set-ups that test the answer. It names neither the
    callable nor a parameter.
    """
    asked = draft.call
    setup, expected = draft.cases[0]
    way = 0
    if draft.rule == "reworded":
        way = 1 + int(paths.hashed(draft.example.id), 16) % 2
    opening, wish, take, show = WORDINGS["questions"][way]
    made = re.findall(r"^(\w+)(?:, *\w+)* *=|^def (\w+)", setup, re.M)
    read = mentioned(draft.target, {first or second for first, second in made})
    shown = listed(["inputs"] if draft.rule == EACH else read)
    summary = asked.summary
    if not summary.endswith((".", "?", "!", ":")):
        summary += "."
    for word, other in WORDINGS["synonyms"].items() if way else ():
        summary = re.sub(rf"\b{word}\b", other, summary)
    library = draft.example.object.partition(".")[0]
    lines = [opening.format(library=library, variables=shown)]
    if draft.rule == "story around it":
        lines.append(WORDINGS["story"])
    lines.append(wish.format(summary=summary))
    if parts := [renamed(source, draft.renamed) for source in asked.parts.values()]:
        lines.append(f"{take} {listed(parts)}.")
    if draft.rule in WORDINGS["steps"]:
        lines.append(WORDINGS["steps"][draft.rule])
    elif expected.shown:
        lines += ["", show, "", expected.shown]
    code = "\n".join([*draft.example.imports, "", setup]).lstrip("\n")
    return str(TEXTS["prompt"]).format(question="\n".join(lines), code=code)


def listed(codes: Iterable[str]) -> str:
    """Return pieces of code as a list in a sentence, such as "`a`, `b` and `c`"."""
    *others, last = [f"`{code}`" for code in codes] or [""]
    return f"{', '.join(others)} and {last}" if others else last


def context(draft: Draft) -> str:
    """Return the program that tests an answer (DS-1000's ``code_context``). The program contains
    both cases, each with its set-up and expected value, and the code that compares values.
    """
    several, _, part = draft.cases[0][1].kind.rpartition(" ")
    sources = [expected.source for _, expected in draft.cases]
    compared = TEXTS["same"][part]
    if several:
        compared = compared.replace("same(", "same_part(") + "\n\n" + TEXTS["several"]
    used = "\n".join([*sources, compared])
    imports = draft.example.imports
    needed = {
        line
        for name, line in TEXTS["imports"].items()
        if re.search(rf"(?<![\w.'\"]){name}\b", used)
    }
    return str(TEXTS["context"]).format(
        imports="\n".join(dict.fromkeys([*imports, *sorted(needed)])),
        template_imports="\n".join(imports),
        inputs="\n".join(f"    {setup!r}," for setup, _ in draft.cases),
        expected="\n".join(f"    {source}," for source in sources),
        same=compared,
        cases=len(sources),
    )


def written(example: DocExample) -> list[Candidate]:
    """Return the problems of an example, or [] if it gives none.

    The answers that must fail are an empty one, None, the value of the first case as a constant,
    and each variable that the expression reads.
    """
    signal.alarm(RUN_SECONDS)
    found = []
    try:
        for number, draft in enumerate(drafts(example)):
            setup, expected = draft.cases[0]
            values = ["None", expected.source, *variables(draft.target, setup)]
            found.append(
                Candidate(
                    f"{example.id}.{number}",
                    prompt(draft),
                    f"result = {draft.target}",
                    context(draft),
                    library=example.object.partition(".")[0],
                    perturbation=draft.perturbation,
                    origin=example.id,
                    object=example.object,
                    # the docstring's own expression is listed, too, because ``draft.target`` may
                    # differ from it (see ``unimported`` and ``lifted``)
                    expressions=(draft.target, draft.call.source, example.target),
                    rule=draft.rule,
                    wrong=("pass", *(f"{IMPORTS}\nresult = {value}" for value in values)),
                )
            )
    except Exception:  # the documented object may raise anything
        return []
    return found


def examined(tried: Sequence[DocExample]) -> Iterator[list[Candidate]]:
    """Yield the list of problems (``written``) of every example, in the order of the examples. Each
    example runs in a new process.

    The list is empty for an example that writes a file, opens a connection, takes too long or too
    much memory, or kills its process.
    """
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    fork = multiprocessing.get_context("forkserver")
    fork.set_forkserver_preload([__name__, "scipy.stats", "scipy.signal", "sklearn.linear_model"])
    with fork.Pool(initializer=_confine, maxtasksperchild=1) as pool:
        found = [pool.apply_async(written, [one]) for one in tried]
        for one in watched(found, "examples"):
            try:
                yield one.get(2 * RUN_SECONDS)  # a process that was killed never answers
            except multiprocessing.TimeoutError:
                yield []


def _confine() -> None:
    """Forbid this process to write files and to open connections, and limit its memory."""

    def refuse(event: str, arguments: tuple[object, ...]) -> None:
        writes = event == "open" and set(str(arguments[1])) & set("wax+")
        if writes or event in TEXTS["blocked"]:
            raise PermissionError(f"{event} is not for examples")

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.addaudithook(refuse)


def draw() -> Iterator[dict[str, Any]]:
    """Yield the lines of problems.jsonl.gz as dictionaries, made from the held-out examples.

    ``numbers`` in problems.yaml has the number of problems of each library and kind. No object
    gives a second example before all objects have given their first. The same versions of the
    libraries give the same problems.
    """
    ids = count()
    for library, numbers in TEXTS["numbers"].items():
        found = [family for family in examined(examples_of(library.lower())) if family]
        number = 0
        for family in chosen(found, numbers):
            origin = number
            for one in family:
                facts = {
                    "problem_id": next(ids),
                    "library_problem_id": number,
                    "library": library,
                    "test_case_cnt": 2,
                    "perturbation_type": one.perturbation,
                    "perturbation_origin_id": origin,
                    "rule": one.rule,
                    "object": one.object if calls(one.object, one.expressions[1]) else "",
                    "example": int(one.origin.rpartition("#")[2]),
                    "expressions": one.expressions,
                }
                yield {
                    "prompt": one.prompt,
                    "reference_code": one.reference,
                    "code_context": one.context,
                    "metadata": facts,
                }
                number += 1


def calls(name: str, source: str) -> bool:
    """Return whether the outermost call in ``source`` is a call of the object ``name``. If the
    object is a class, any call counts, because it may call a method.

    In some examples, the documented object is only used inside another call:
    ``np.allclose(..., kappa4.cdf(...))`` is not a call of ``kappa4``.
    """
    last = name.rpartition(".")[2]
    return last in called(source).split(".") or isinstance(pydoc.locate(name), type)


def called(source: str) -> str:
    """Return the source of the callable in the outermost call of an expression: ``np.mean`` for
    ``np.mean(x)``. If the expression is not a call, return the expression.
    """
    node = ast.parse(source, mode="eval").body
    return ast.unparse(getattr(node, "func", node))


def chosen(
    families: Sequence[list[Candidate]], numbers: Mapping[str, int]
) -> list[list[Candidate]]:
    """Return the chosen families of problems. A family is a list of an unperturbed problem (the
    origin) and its chosen perturbations. All problems pass the checks of ``holding``. Of each kind
    (Origin, Surface ...), ``numbers[kind]`` problems are chosen, or fewer if too few pass.

    The perturbations of a kind are tried by origin, in an order that differs between kinds. The
    second perturbation of an origin is tried only after the first of every origin. If several rules
    give perturbations of a kind, the rule that is tried first changes from one origin to the next,
    so that every rule is used.
    """
    # of families with the same prompt and answer, only the last is used
    unlike = {(family[0].prompt, family[0].reference): family for family in families}
    known = {family[0].origin: family for family in unlike.values()}
    by_object = defaultdict(list)
    for origin in sorted(known, key=order):
        by_object[known[origin][0].object].append(known[origin][:1])
    (_, total), *others = numbers.items()
    ranked = interleave([by_object[name] for name in sorted(by_object, key=order)])
    kept = {one.origin: [one] for one in holding(ranked, total)}
    for kind, total in others:
        offered = []
        for turn, origin in enumerate(sorted(kept, key=lambda origin: order(kind + origin))):
            found = [one for one in known[origin] if one.perturbation == kind]
            rules = sorted({one.kind_of_rule for one in found})
            offered.append(
                sorted(found, key=lambda one: (rules.index(one.kind_of_rule) + turn) % len(rules))
            )
        for one in holding(offered, total):
            kept[one.origin].append(one)
    return [kept[origin] for origin in sorted(kept, key=order)]


def holding(offered: list[list[Candidate]], number: int) -> list[Candidate]:
    """Return up to ``number`` problems whose reference passes the test and whose wrong answers all
    fail it. The first problem of each list is tried before the second problem of any list.
    """
    grader = Grader(own=True, store=False)
    kept: list[Candidate] = []
    waiting = iter(interleave(offered))
    while tried := [*islice(waiting, number - len(kept))]:
        answers = [(one, answer) for one in tried for answer in (one.reference, *one.wrong)]
        outcomes = grader.outcomes([program(*one) for one in answers], "checking problems")
        failed = {
            one
            for (one, answer), outcome in zip(answers, outcomes, strict=True)
            if outcome.passed != (answer == one.reference)
        }
        kept += [one for one in tried if one not in failed]
    return kept


@command()
def main() -> None:
    """Draw the problems of the mini benchmark from the held-out docstring examples of numpy,
    pandas, scipy and scikit-learn.

    Each example runs in its own process, without writing files or opening connections.

    \b
    Example:
      python -m recipes.mini.problems
    """
    made = list(draw())
    write_rows(PROBLEMS, made)
    click.echo(f"{len(made)} problems -> {PROBLEMS}")


if __name__ == "__main__":
    run_module(main)
