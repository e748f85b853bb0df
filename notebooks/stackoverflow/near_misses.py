"""Analyses failed answers: where an answer fails, and how much it differs from the reference
(paper, Section 5).
"""

import ast
from collections.abc import Iterable
from math import nan

import pandas as pd
from rapidfuzz.distance import Levenshtein

from lookuplab import paths
from lookuplab.benchmark import rate_rows
from lookuplab.errors import UNPARSABLE
from lookuplab.results.artifact import read_csv, readable
from lookuplab.scoring.rates import Rows
from lookuplab.stackoverflow.ds1000 import INSERT, TEST_FUNCTIONS, Problem, program, template
from lookuplab.stackoverflow.grader import Grader
from lookuplab.toolgen.source import code_tokens

FAILURES = "compile_error test_execution test_string one_token one_argument near_miss".split()
_OPEN = ast.Name("the value of an argument", ast.Load())  # a name with blanks, which no program has


def near_misses(problems: Iterable[Problem], judged: pd.DataFrame, grader: Grader) -> pd.DataFrame:
    """Return the failed completions of ``judged`` (a frame of ``evaluate``), in the same order,
    with the further columns FAILURES and token_distance.

    The authors inspected one model's failures by hand and called 40% of them near misses: "minor
    syntactic errors or missing an argument" (Section 5). Here a rule decides. Two language
    models that read such answers do not agree with this rule (``kappa_with_readers``). The columns
    are:

    - near_miss: the answer differs from the reference by at most one token (``one_token``) or by
      one argument of one call (``one_argument``)
    - compile_error: the code does not compile where the test inserts it
    - test_execution: a value is wrong or an exception is raised
    - test_string: only the test's requirement on the code's text fails
    - token_distance: the number of tokens to insert, delete or replace; comments and line ends are
      not counted
    """
    by_id = {problem.id: problem for problem in problems}
    failed = judged[judged.passed.eq(False)].reset_index(drop=True)
    pairs = [(by_id[id], code) for id, code in zip(failed.id, failed.solution, strict=True)]
    # The programs test only the values. An answer that failed, but passes these programs, failed
    # the test of the code's text.
    of_values = [program(problem, code, TEST_FUNCTIONS[:1]) for problem, code in pairs]
    rows = []
    for (problem, code), run in zip(pairs, grader.outcomes(of_values), strict=True):
        compiles = tree_of(problem, code) is not None
        distance = Levenshtein.distance(code_tokens(code), code_tokens(problem.reference))
        argument = argument_apart(problem, code)
        rows.append(
            {
                "compile_error": not compiles,
                "test_execution": compiles and not run.passed,
                "test_string": compiles and run.passed,
                "token_distance": distance,
                "one_token": distance <= 1,
                "one_argument": argument,
                "near_miss": distance <= 1 or argument,
            }
        )
    return failed.join(pd.DataFrame(rows, columns=[*FAILURES, "token_distance"]))


def near_miss_rows(failures: pd.DataFrame) -> Rows:
    """Return the percentage of each kind of failure for each model, from the frame of
    ``near_misses``. The condition is "all".
    """
    return rate_rows(failures, FAILURES)


def kappa_with_readers() -> str:
    """Return how well the rule of ``near_misses`` agrees with the two language models that read
    failed answers of real models: Cohen's kappa of the rule and the readers' consensus, with its
    interval, on the held-out half of the answers. The number is read from the committed artifact of
    ``published/near_misses``. Return "not measured" if this artifact is missing.
    """
    file = paths.FIGURES / paths.PUBLISHED / paths.PUBLISHED / "near_misses.csv"
    if not file.exists():
        return "not measured"
    rows = read_csv(file).query("condition == 'today/held-out' and metric == 'kappa'")
    return str(readable(rows.assign(n=nan), 2).iloc[0])


def tree_of(problem: Problem, solution: str) -> ast.Module | None:
    """Return the syntax tree of the test's program with the solution inserted, or None if the
    program does not compile.
    """
    text = template(problem.context).replace(INSERT, solution) or solution
    try:
        compile(text, "solution", "exec")
        return ast.parse(text)
    except UNPARSABLE:
        return None


def argument_apart(problem: Problem, solution: str) -> bool:
    """Return whether the solution differs from the reference only in one argument of one call: the
    argument is missing, superfluous or different. Return False if the two are equal, or if either
    does not compile.
    """
    tree = tree_of(problem, solution)
    reference = tree_of(problem, problem.reference)
    if tree is None or reference is None:
        return False
    try:
        if (first := ast.dump(tree)) == (second := ast.dump(reference)):
            return False
        (less, opened), (other_less, other_opened) = _changed(tree), _changed(reference)
    except RecursionError:  # code this deeply nested is unlikely to lack just one argument
        return False
    return first in other_less or second in less or not opened.isdisjoint(other_opened)


def _changed(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Return two sets of variants of the tree, as texts of ``ast.dump``. In each variant of the
    first set, one argument of one call is missing. In each variant of the second set, a placeholder
    replaces the value of one argument.

    Only an argument that contains no call is replaced. Otherwise, two programs that print different
    results would differ in just one argument, that of ``print``.
    """
    less, opened = set(), set()
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        given = call.args, call.keywords
        for arguments, at in [(some, at) for some in given for at in range(len(some))]:
            taken = arguments.pop(at)
            less.add(ast.dump(tree))
            keyword = isinstance(taken, ast.keyword)
            arguments.insert(at, ast.keyword(taken.arg, _OPEN) if keyword else _OPEN)
            if not any(isinstance(node, ast.Call) for node in ast.walk(taken)):
                opened.add(ast.dump(tree))
            arguments[at] = taken
    return less, opened
