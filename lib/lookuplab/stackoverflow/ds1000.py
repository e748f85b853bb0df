"""DS-1000 (Lai et al. 2022): its problems, what is cut from an answer, and the program that judges one.

A file has one problem a line, with DS-1000's own field names: `prompt`, `reference_code`, `code_context` and
`metadata` (problem_id, library_problem_id, library, test_case_cnt, perturbation_type, perturbation_origin_id). The mini
benchmark is a file of the same form.
"""

import ast
import functools
import gzip
import json
import re
import sys
import textwrap
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.execution.server import Program

LIBRARIES = ("Pandas", "Numpy", "Sklearn", "Scipy", "Pytorch", "Tensorflow", "Matplotlib")
PAPER_LIBRARIES = LIBRARIES[:6]  # the paper leaves Matplotlib out (Section 4.1): 845 of the 1,000 problems
PERTURBATIONS = ("Origin", "Surface", "Semantic", "Difficult-Rewrite")
VARIANTS = ("official", "repaired")
STOP = ("</code>", "# SOLUTION END")  # where DS-1000 stops a generation
PARTS = ("test_execution", "test_string")  # the test's two functions: what the values are, and what the text says
INSERT = "[insert]"  # where a context puts the solution


@dataclass(frozen=True)
class Problem:
    """One problem. ``context`` is the test's program, ``origin`` the ``library_id`` of the problem it was made from."""

    id: str
    prompt: str
    reference: str
    context: str
    library: str
    perturbation: str
    origin: str
    library_id: str = ""
    test_cases: int = 1

    @property
    def cluster(self) -> str:
        """Equal for a problem and its perturbations, which fail together: the unit that intervals resample."""
        return f"{self.library} {self.origin}"

    @property
    def inside_function(self) -> bool:
        """Whether the solution is the inside of a function that the prompt, or the context, has begun."""
        before = template(self.context).partition(INSERT)[0].rstrip()
        return before.endswith(":") or _last_line(self.prompt).startswith((" ", "\t"))


def load(path: Path | str) -> list[Problem]:
    """The problems of a .jsonl or .jsonl.gz file in its order.

    Raises UserError with the line for a field that is missing or ill-typed, an unknown library or perturbation, a
    context without a test, and an id that occurs twice.
    """
    problems = {}
    for number, line in enumerate(_lines(path), 1):
        if line.strip():
            problem = _problem(line, f"{path}, line {number}")
            if problem.id in problems:
                raise UserError(f"{path}, line {number}: the problem {problem.id} occurs a second time")
            problems[problem.id] = problem
    if not problems:
        raise UserError(f"{path} holds no problem")
    return list(problems.values())


def select(problems: Iterable[Problem], libraries: Iterable[str] = PAPER_LIBRARIES) -> list[Problem]:
    """The problems of some libraries; raises UserError for a library that DS-1000 does not have."""
    libraries = list(libraries)
    for library in libraries:
        if library not in LIBRARIES:
            raise UserError(f"unknown library {library!r}; DS-1000 has {', '.join(LIBRARIES)}")
    return [problem for problem in problems if problem.library in libraries]


def _lines(path: Path | str) -> list[str]:
    try:
        content = paths.located(path).read_bytes()
        return (gzip.decompress(content) if str(path).endswith(".gz") else content).decode("utf-8").splitlines()
    except OSError as error:  # a gzip file that is none raises one too, without a system's message
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    except (EOFError, zlib.error, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}; is it whole?") from None


def _problem(line: str, place: str) -> Problem:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise UserError(f"{place}: not a JSON object: {error}") from None
    about = _field(record, "metadata", dict, place)
    identity = (int, str)
    problem = Problem(
        id=str(_field(about, "problem_id", identity, place)), prompt=_field(record, "prompt", str, place),
        reference=_field(record, "reference_code", str, place), context=_field(record, "code_context", str, place),
        library=_field(about, "library", str, place), perturbation=_field(about, "perturbation_type", str, place),
        origin=str(_field(about, "perturbation_origin_id", identity, place)),
        library_id=str(about.get("library_problem_id", "")), test_cases=int(about.get("test_case_cnt", 1)))
    for value, known, what in ((problem.library, LIBRARIES, "library"),
                               (problem.perturbation, PERTURBATIONS, "perturbation_type")):
        if value not in known:
            raise UserError(f"{place}: unknown {what} {value!r}; known are {', '.join(known)}")
    if not _tests(problem.context):
        raise UserError(f"{place}: the field 'code_context' is no program that defines test_execution")
    return problem


def _field(record: object, name: str, kind: type | tuple[type, ...], place: str) -> object:
    if not isinstance(record, dict) or not isinstance(record.get(name), kind):
        kinds = " or ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))
        raise UserError(f"{place}: the field {name!r} is missing or not of type {kinds}")
    return record[name]


@functools.lru_cache(maxsize=2048)
def _tests(context: str) -> tuple[str, ...]:
    """Those of PARTS that a context defines, none if it is no program or has no test_execution."""
    try:
        defined = {node.name for node in ast.parse(context).body if isinstance(node, ast.FunctionDef)}
    except (SyntaxError, ValueError):
        return ()
    return tuple(part for part in PARTS if part in defined) if PARTS[0] in defined else ()


@functools.lru_cache(maxsize=2048)
def template(context: str) -> str:
    """The text into which the test puts the solution at INSERT; "" where the context has no such constant."""
    for node in ast.parse(context).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "exec_context":
            return node.value.value if isinstance(node.value, ast.Constant) else ""
    return ""


def program(problem: Problem, solution: str, parts: Iterable[str] = PARTS) -> Program:
    """The official program: it ends without an exception if and only if the solution is right.

    ``imports`` are the third-party imports that have run before the solution's first line, by the context itself and by
    the text around the solution: what a server may have imported before. The packages come first, each by itself, so
    that many problems share them. ``parts`` leaves a part of the test away, for an analysis of failures.
    """
    calls = [f"{part}(code)" for part in PARTS if part in parts and f"{part}(" in problem.context]
    text = f"{problem.context}\ncode = {solution!r}\n" + "".join(call + "\n" for call in calls)
    return Program(text + "\n" * (2 - len(calls)), imports=_imports(problem.context))


@functools.lru_cache(maxsize=2048)
def _imports(context: str) -> tuple[str, ...]:
    before = template(context).partition(INSERT)[0]
    found = {}
    for node in [*_parsed(context), *_parsed(before)]:
        if isinstance(node, ast.Import):
            found |= {f"import {alias.name}": alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found |= {f"from {node.module} import {alias.name}": node.module for alias in node.names}
    tops = {line: module.partition(".")[0] for line, module in found.items()}
    foreign = {line: top for line, top in tops.items() if top not in sys.stdlib_module_names}
    packages = [f"import {top}" for top in sorted(set(foreign.values()))]
    return tuple(dict.fromkeys([*packages, *sorted(foreign)]))


def _parsed(text: str) -> list[ast.stmt]:
    """The statements of the text before the solution, which may end in an open `def`."""
    for ending in ("", "\n    pass"):
        try:
            return ast.parse(text.rstrip() + ending).body
        except SyntaxError:
            continue
    return []


def solution_of(text: str, variant: str = "official") -> str:
    """An answer's code.

    "official" is DS-1000's post-processing in its order: cut at ``</code>``, drop every opening fence of Python, cut
    at a fence, cut at a line END SOLUTION, drop ``<code>``. It loses an answer whose fence names no language.
    "repaired" takes the first fenced block where the answer opens with a fence, of whatever language, or has one
    behind words that are no code, and also cuts at the stop word "# SOLUTION END", which the model may run over.
    """
    if variant not in VARIANTS:
        raise UserError(f"unknown post-processing {variant!r}; known are {', '.join(VARIANTS)}")
    text = text.split("</code>")[0]
    if variant == "repaired":
        text = _unfenced(text).split("# SOLUTION END")[0]
    text = text.replace("```python", "").split("```")[0]
    return text.split("\nEND SOLUTION")[0].replace("<code>", "")


def _unfenced(text: str) -> str:
    """The inside of the first fenced block, unless what stands before its fence is code: then that fence closes."""
    before, fence, rest = text.partition("```")
    if not fence or (before.replace("<code>", "").strip() and _is_code(before.replace("<code>", ""))):
        return text
    language, _, block = rest.partition("\n")
    return (block if re.fullmatch(r"\s*\w*\s*", language) else rest).split("```")[0]


def indented(problem: Problem, solution: str) -> str:
    """A solution at the margin, moved to where the problem's function has its statements; others as they are.

    Where only the first line stands at the margin, as after a tokenizer that drops leading blanks, only that is moved.
    """
    lines = solution.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")), None)
    if not problem.inside_function or first is None or lines[first][0].isspace():
        return solution
    whole = textwrap.indent(solution, "    ")
    alone = "\n".join(["    " + line if i == first else line for i, line in enumerate(lines)])
    return alone if not _is_code(whole) and _is_code(alone) else whole


def _is_code(text: str) -> bool:
    """Whether a text parses, as a module's or as a function's statements."""
    for tried in (text, f"def f():\n{text}"):
        try:
            ast.parse(tried)
            return True
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            continue
    return False


def _last_line(text: str) -> str:
    return text.rstrip().rpartition("\n")[2]
