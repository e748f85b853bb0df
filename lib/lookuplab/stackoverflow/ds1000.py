"""Reads DS-1000 (Lai et al. 2022): its problems, the code in an answer, and the program that tests
this code.

A file has one problem per line, with DS-1000's own field names: `prompt`, `reference_code`,
`code_context` and `metadata` (problem_id, library_problem_id, library, test_case_cnt,
perturbation_type, perturbation_origin_id). The mini benchmark is a file of the same form.
"""

import ast
import functools
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lookuplab import paths
from lookuplab.errors import UNPARSABLE, UserError, check_choice
from lookuplab.models.completions import LIST_MARKER, blocks, code_of, visible
from lookuplab.sandbox.server import Program

LIBRARIES = ("Pandas", "Numpy", "Sklearn", "Scipy", "Pytorch", "Tensorflow", "Matplotlib")
PAPER_LIBRARIES = LIBRARIES[:6]  # without Matplotlib (Section 4.1): 845 of the 1,000 problems
PERTURBATIONS = ("Origin", "Surface", "Semantic", "Difficult-Rewrite")
STOP = ("</code>", "# SOLUTION END")  # DS-1000's stop strings
# the authors' script gives chat models this instruction before the prompt
CHAT = """Write a short code following the given format and indentation. Place the executable code \
between <code> and \
</code> tags, without any other non-executable things."""
# the first function checks the solution's values, the second the text of its code
TEST_FUNCTIONS = ("test_execution", "test_string")
FENCE = re.compile(rf"```|^[ \t>]{{0,9}}{LIST_MARKER}~~~", re.MULTILINE)
INSERT = "[insert]"  # marks the solution's place in a context


@dataclass(frozen=True)
class Problem:
    """One problem. ``context`` is the program that tests a solution. ``library_id`` identifies the
    problem among those of its library. ``origin`` is the ``library_id`` of the problem from which
    this one was made; a problem that was not made from another one is its own origin.

    A problem of the mini benchmark is about one ``object``, such as ``pandas.Index.shape``. A
    snippet that contains one of the problem's ``expressions`` gives the answer away and must not be
    shown with the problem.
    """

    id: str
    prompt: str
    reference: str
    context: str
    library: str
    perturbation: str
    origin: str
    library_id: str = ""
    object: str = ""
    expressions: tuple[str, ...] = ()

    @property
    def cluster(self) -> str:
        """Return the label that a problem and its perturbations share. Intervals are clustered by
        this label, because these problems fail together.
        """
        return f"{self.library} {self.origin}"

    @property
    def question(self) -> str:
        """Return the query for retrieval: the question in words, without the lines that DS-1000's
        completion prompts put before and after it.
        """
        text = self.prompt.removeprefix("Problem:\n")
        return text.partition("\nA:\n" if "\nA:\n" in text else "<code>")[0].strip()

    @property
    def inside_function(self) -> bool:
        """Return whether the solution is the body of a function whose head is in the prompt or in
        the context.
        """
        before = template(self.context).partition(INSERT)[0].rstrip()
        last = self.prompt.rstrip().rpartition("\n")[2]
        return before.endswith(":") or last.startswith((" ", "\t"))


def load_problems(file: Path | str) -> list[Problem]:
    """Return the problems of a .jsonl or .jsonl.gz file, in the order of the file.

    Raises UserError if a line is no problem or lacks a test, if its library or perturbation is
    unknown, if an id occurs twice, or if the file has no problems.
    """
    problems = {}
    for number, record in paths.json_lines(paths.located(file)):
        try:
            metadata = record["metadata"]
            problem = Problem(
                str(metadata["problem_id"]),
                record["prompt"],
                record["reference_code"],
                record["code_context"],
                metadata["library"],
                metadata["perturbation_type"],
                str(metadata["perturbation_origin_id"]),
                str(metadata.get("library_problem_id", "")),
                metadata.get("object", ""),
                tuple(metadata.get("expressions", ())),
            )
            known = problem.library in LIBRARIES and problem.perturbation in PERTURBATIONS
            if not known or TEST_FUNCTIONS[0] not in problem.context or problem.id in problems:
                raise ValueError("an unknown library or perturbation, no test, or a duplicate id")
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(
                f"{file}: line {number} is not a problem of DS-1000: {error!r}"
            ) from None
        problems[problem.id] = problem
    if not problems:
        raise UserError(f"{file} holds no problem")
    return list(problems.values())


def select(file: Path | str, limit: int = 0) -> list[Problem]:
    """Return problems of the paper's six libraries from a file, in the order of the file. If
    ``limit`` is 0, all of them are returned.

    Otherwise whole families (a problem with its perturbations) are selected, in the order of a
    hash, until there are at least ``limit`` problems. Raises UserError if the file has no problems
    of these libraries, and whatever ``load_problems`` raises.
    """
    known = [problem for problem in load_problems(file) if problem.library in PAPER_LIBRARIES]
    if not known:
        raise UserError(f"{file} has no problem of {', '.join(PAPER_LIBRARIES)}")
    sizes = Counter(problem.cluster for problem in known)
    families = sorted(sizes, key=paths.hashed)
    while limit and sum(sizes[name] for name in families[:-1]) >= limit:
        families.pop()
    return [problem for problem in known if problem.cluster in families]


@functools.lru_cache(maxsize=2048)
def template(context: str) -> str:
    """Return the text into which the test inserts the solution at INSERT, or "" if the context has
    no such text.
    """
    for node in ast.parse(context).body:
        match node:
            case ast.Assign([ast.Name("exec_context")], ast.Constant(str(text))):
                return text
    return ""


def program(problem: Problem, solution: str, parts: Iterable[str] = TEST_FUNCTIONS) -> Program:
    """Return DS-1000's own program for testing a solution. The program ends without an exception if
    and only if the solution is correct.

    The program's ``imports`` are the third-party imports that run before the solution's first line.
    They stand in the context itself and in the text around the solution. A server may run them in
    advance. A plain import of each package comes first, because many problems share these imports.
    ``parts`` are the functions of the test to run. An analysis of failures runs only one of them.
    """
    calls = [
        f"{part}(code)\n"
        for part in TEST_FUNCTIONS
        if part in parts and f"{part}(" in problem.context
    ]
    text = f"{problem.context}\ncode = {solution!r}\n" + "".join(calls)
    # DS-1000 writes an empty line in place of a call that is left out
    return Program(text + "\n" * (2 - len(calls)), _imports(problem.context), problem.id)


@functools.lru_cache(maxsize=2048)
def _imports(context: str) -> tuple[str, ...]:
    """Return the ``imports`` of a program with this context (see ``program``), each as a line."""
    before = template(context).partition(INSERT)[0].rstrip()
    # text that ends in the head of a function parses only if the function gets a body
    around = _parse(before) or _parse(before + "\n    pass") or []
    packages = {}  # line -> the package that it imports
    for node in ast.parse(context).body + around:
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", "")
            for alias in node.names:
                line = f"from {module} import {alias.name}" if module else f"import {alias.name}"
                packages[line] = (module or alias.name).partition(".")[0]
    foreign = sorted(line for line, top in packages.items() if top not in sys.stdlib_module_names)
    tops = sorted(f"import {packages[line]}" for line in foreign)
    return tuple(dict.fromkeys([*tops, *foreign]))


def _parse(text: str) -> list[ast.stmt] | None:
    """Return the statements of a text, or None if the text does not parse."""
    try:
        return ast.parse(text).body
    except UNPARSABLE:
        return None


def solution_of(text: str, variant: Literal["official", "repaired"] = "official") -> str:
    """Return the code in an answer.

    The variant "official" is DS-1000's post-processing, step by step: cut at ``</code>``, drop
    every opening Python fence, cut at a fence, cut at a line END SOLUTION, drop ``<code>``. An
    answer that begins with a fence without a language loses all its code.

    The variant "repaired" takes the first fenced block (``completions.blocks``), unless the text
    before the first fence is code. It also drops the reasoning before ``</think>`` and words before
    ``<code>``, and cuts at the stop string "# SOLUTION END", because some models continue after
    this string.
    """
    check_choice("variant", variant, ("official", "repaired"))
    block = None
    # reasoning often mentions the tag </code>, because the prompt does
    text = (visible(text) if variant == "repaired" else text).split("</code>")[0]
    if variant == "repaired":
        words, _, code = text.rpartition("<code>")
        if code.strip() and not (FENCE.search(words) or _is_code(words)):
            text = code
        first = FENCE.search(text)
        before = text[: first.start()].replace("<code>", "") if first else ""
        # if the first fence follows code, it closes a block that has no opening fence
        if first and not (before.strip() and _is_code(before)):
            block, *_ = (*blocks(text), None)
            # if only a language follows the fence, there is no code
            rest = re.sub(r"\A\w*\s*\Z", "", text[first.end() :])
            text = code_of(text, block) if block else rest
        text = text.split("# SOLUTION END")[0]
    # a block is not cut at a fence, because a block between long fences may contain shorter fences
    if block is None:
        text = text.replace("```python", "").split("```")[0]
    return text.split("\nEND SOLUTION")[0].replace("<code>", "")


def indented(problem: Problem, solution: str) -> str:
    """Return a solution with the indentation that the problem needs. If the solution is the body of
    a function and starts at the left margin, it is indented. Other solutions are unchanged.

    If only the first line is at the margin, because a tokenizer dropped its leading blanks, only
    that line is indented.
    """
    # the first character of the first line that is neither blank nor a comment
    first = re.search(r"^(?![^\S\n]*(#|$)).", solution, re.MULTILINE)
    if not problem.inside_function or not first or first[0].isspace():
        return solution
    whole = textwrap.indent(solution, "    ")
    alone = solution[: first.start()] + "    " + solution[first.start() :]
    return alone if not _is_code(whole) and _is_code(alone) else whole


def _is_code(text: str) -> bool:
    """Return whether a text parses as statements of a module or of a function."""
    return _parse(text) is not None or _parse(f"def f():\n{text}") is not None
