"""How near a failed answer came (the paper's Section 5, and what its Section 6 leaves for later).

The paper counted 40% of one model's failures, looked at by hand, as near misses: "minor syntactic errors or missing an
argument". Here that is a rule: one token, or one argument of one call, away from the reference.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pandas as pd
from rapidfuzz.distance import Levenshtein

from lookuplab.execution.server import Program
from lookuplab.scoring.rates import average, rate
from lookuplab.scoring.rows import row
from lookuplab.stackoverflow.ds1000 import INSERT, PARTS, Problem, program, template
from lookuplab.stackoverflow.grader import Answer, Grader, Verdict

COLUMNS = ("problem_id", "sample", "library", "perturbation", "failure", "error", "cases_passed", "cases",
           "edit_distance", "token_distance", "one_token", "one_argument", "near_miss")
FAILURES = ("compile error", "test_execution", "test_string")
# The loop over the cases, as DS-1000's and the mini benchmark's test_execution have it
_LOOP = re.compile(r"(def test_execution\(.*\n(?:(?!def ).*\n)*?    for i in range\()(\d+)(\):)")
_OPEN = ast.Name("the value of an argument", ast.Load())  # no program has this name
_SKIPPED = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER)


def rows(problems: Iterable[Problem], answers: Iterable[Answer], verdicts: Iterable[Verdict], grader: Grader
         ) -> list[dict]:
    """One row for each answer that failed, with COLUMNS, in the order of ``verdicts``.

    failure: the first of FAILURES that applies: the code does not compile where the test puts it; a value is wrong or
    an exception raised; only what the test asks of the code's text is missing. cases_passed: of the test's ``cases``
    inputs, each tried in a run of its own, how many gave the right value. edit_distance: in characters;
    token_distance: in tokens, comments and line ends left away; near_miss: ``one_token`` or ``one_argument``.
    """
    problems = {problem.id: problem for problem in problems}
    code = {(answer.problem_id, answer.sample): answer.solution for answer in answers}
    failed = [(verdict, problems[verdict.problem_id], code[verdict.problem_id, verdict.sample])
              for verdict in verdicts if not verdict.passed]
    runs = [case_programs(problem, solution) if compiles(problem, solution) else [] for _, problem, solution in failed]
    outcomes = iter(grader.outcomes([one for each in runs for one in each], "trying each case"))
    passed = [[next(outcomes).passed for _ in each] for each in runs]
    return [_row(verdict, problem, solution, cases)
            for (verdict, problem, solution), cases in zip(failed, passed, strict=True)]


def _row(verdict: Verdict, problem: Problem, solution: str, cases: Sequence[bool]) -> dict:
    failure = "compile error" if not cases else "test_string" if all(cases) else "test_execution"
    distance = token_distance(solution, problem.reference)
    one_argument = argument_apart(problem, solution)
    return {"problem_id": problem.id, "sample": verdict.sample, "library": problem.library,
            "perturbation": problem.perturbation, "failure": failure, "error": verdict.error,
            "cases_passed": sum(cases), "cases": number_of_cases(problem),
            "edit_distance": Levenshtein.distance(solution.strip(), problem.reference.strip()),
            "token_distance": distance, "one_token": distance <= 1, "one_argument": one_argument,
            "near_miss": distance <= 1 or one_argument}


def summary_rows(failures: pd.DataFrame, problems: Iterable[Problem]) -> list[dict]:
    """Shares of the failed answers in percent, and their mean edit distance, by model; clustered by origin problem.

    ``failures``: COLUMNS and ``model``. The condition is "all"; ``some_cases_percent`` failed, but not for every input.
    """
    clusters, found = {problem.id: problem.cluster for problem in problems}, []
    for model, part in failures.groupby("model", sort=False):
        labels = [clusters[one] for one in part.problem_id]
        shares = {f"{name.replace(' ', '_')}_percent": part.failure == name for name in FAILURES}
        shares |= {"some_cases_percent": part.cases_passed > 0, "one_token_percent": part.one_token,
                   "one_argument_percent": part.one_argument, "near_miss_percent": part.near_miss}
        numbers = {metric: rate([bool(one) for one in flags], labels).percent() for metric, flags in shares.items()}
        numbers["edit_distance"] = average(list(part.edit_distance), labels)
        found += [row(model, "all", metric, number) for metric, number in numbers.items()]
    return found


def number_of_cases(problem: Problem) -> int:
    """How many inputs test_execution tries; 1 where it has no loop over them."""
    found = _LOOP.search(problem.context)
    return int(found.group(2)) if found else 1


def case_programs(problem: Problem, solution: str) -> list[Program]:
    """The official program for each of the test's inputs by itself, without the test of the text."""
    whole = program(problem, solution, PARTS[:1])
    if not _LOOP.search(problem.context):
        return [whole]
    return [replace(whole, text=_LOOP.sub(rf"\g<1>{case}, {case + 1}\g<3>", whole.text, count=1))
            for case in range(number_of_cases(problem))]


def compiles(problem: Problem, solution: str) -> bool:
    """Whether the code compiles where the test puts it."""
    return _tree(problem, solution) is not None


def _tree(problem: Problem, solution: str) -> ast.Module | None:
    text = template(problem.context).replace(INSERT, solution) or solution
    try:
        compile(text, "solution", "exec", dont_inherit=True)
        return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def token_distance(first: str, second: str) -> int:
    """The fewest tokens to insert, delete or replace that make one code the other."""
    return Levenshtein.distance(_tokens(first), _tokens(second))


def _tokens(code: str) -> list[str]:
    """Python's tokens; as far as they go in code that is none, and then words and signs."""
    found, place = [], 0
    lines = code.strip("\n").splitlines(keepends=True)
    try:
        for token in tokenize.generate_tokens(io.StringIO("".join(lines)).readline):
            place = sum(map(len, lines[:token.end[0] - 1])) + token.end[1]
            if token.type not in _SKIPPED and token.string.strip():  # indents are blank, and so are some errors
                found.append(token.string)
    except (tokenize.TokenError, SyntaxError):
        found += re.findall(r"\w+|[^\w\s]", "".join(lines)[place:])
    return found


def argument_apart(problem: Problem, solution: str) -> bool:
    """Whether one argument of one call is missing, too many, or another one; false for code that is equal.

    An argument is taken for another one at its place only if neither holds a call itself: otherwise the whole of
    ``print(...)`` would be one argument.
    """
    trees = [_tree(problem, code) for code in (solution, problem.reference)]
    if None in trees or ast.dump(trees[0]) == ast.dump(trees[1]):
        return False
    mine, other = trees
    missing = ast.dump(mine) in _one_less(other) or ast.dump(other) in _one_less(mine)
    return missing or not _one_open(mine).isdisjoint(_one_open(other))


def _arguments(tree: ast.Module) -> Iterator[tuple[list, int]]:
    """(the list that holds it, its place) of each argument of each call."""
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        for arguments in (call.args, call.keywords):
            yield from ((arguments, place) for place in range(len(arguments)))


def _one_less(tree: ast.Module) -> set[str]:
    """Every text that the tree has with one argument left away."""
    texts = set()
    for arguments, place in _arguments(tree):
        taken = arguments.pop(place)
        texts.add(ast.dump(tree))
        arguments.insert(place, taken)
    return texts


def _one_open(tree: ast.Module) -> set[str]:
    """Every text that the tree has with the value of one argument without a call left open."""
    texts = set()
    for arguments, place in _arguments(tree):
        taken = arguments[place]
        if not any(isinstance(node, ast.Call) for node in ast.walk(taken)):
            arguments[place] = ast.keyword(taken.arg, _OPEN) if isinstance(taken, ast.keyword) else _OPEN
            texts.add(ast.dump(tree))
            arguments[place] = taken
    return texts
