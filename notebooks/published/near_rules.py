"""Rules that decide whether a failed answer is a near miss (data/published/near_misses/DESIGN.md).
To judge the drawn answers again:

    python -m lookuplab_notebooks.published.near_rules DRAWN PROBLEMS ANSWERS PYTHON OUTPUT

with the folder of the authors' answers and the Python of the environment ds1000-grader.
"""

import ast
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rapidfuzz.distance import Levenshtein

from lookuplab.errors import UNPARSABLE
from lookuplab.execution.server import Program
from lookuplab.stackoverflow.ds1000 import Problem, load_problems, program, solution_of
from lookuplab.stackoverflow.grader import Grader, environment
from lookuplab_notebooks.published.near_draw import PRINTED, published_answers
from lookuplab_notebooks.published.single_edits import MOST, core_of, parsed, same, single_edits
from lookuplab_notebooks.stackoverflow.near_misses import argument_apart, code_tokens

EXAMPLE = "result = np.argsort(a)[-N:]\n"  # Appendix A: a near miss


class OneProcess(Program):
    """A program whose test and solution share a process, which takes a third of the time; for
    trying edits.
    """

    @property
    def draws(self) -> bool:
        return True


def similarity(problem: Problem, answer: str) -> float:
    """Return 1 - edit distance in tokens / length of the longer one, for answer and reference."""
    return float(
        Levenshtein.normalized_similarity(code_tokens(answer), code_tokens(problem.reference))
    )


def today(problem: Problem, answer: str) -> bool:
    """Return whether the answer differs by one token, or by one argument of one call."""
    distance = Levenshtein.distance(code_tokens(answer), code_tokens(problem.reference))
    return distance <= 1 or argument_apart(problem, answer)


def one_edit_apart(problem: Problem, answer: str) -> bool:
    """Return whether one edit of the syntax tree turns the answer into the reference. False for
    equal code. Imports and prints are ignored.
    """
    try:
        mine, theirs = (_statements(code) for code in (answer, problem.reference))
        return tree_edits(mine, theirs) == 1
    except (*UNPARSABLE, IndexError):
        return False


def _statements(code: str) -> list[ast.stmt]:
    def is_aside(node: ast.stmt) -> bool:
        called = getattr(getattr(node, "value", None), "func", None)
        return isinstance(node, ast.Import | ast.ImportFrom) or getattr(called, "id", "") == "print"

    return [node for node in parsed(code)[0].body if not is_aside(node)]


def tree_edits(mine: Any, other: Any) -> int:
    """Return the least number of edits between two trees, or lists of trees: 0, 1, or 2
    for more.
    """
    if same(mine, other):
        return 0
    if isinstance(mine, list) and isinstance(other, list):
        return _list_edits(mine, other)
    if not isinstance(mine, ast.AST) or not isinstance(other, ast.AST):
        return 1  # a name, a value, or something that only one of them has
    if isinstance(mine, ast.operator | ast.cmpop | ast.unaryop | ast.boolop):
        return 1
    least = 2
    if type(mine) is type(other):
        fields = (name for name in mine._fields if name not in ("ctx", "kind", "type_comment"))
        least = sum(tree_edits(getattr(mine, name), getattr(other, name)) for name in fields)
    calls = any(isinstance(node, ast.Call) for each in (mine, other) for node in ast.walk(each))
    if isinstance(mine, ast.expr) and isinstance(other, ast.expr) and not calls:
        least = min(least, 1)  # another value
    for outer, inner in ((mine, other), (other, mine)):
        if (core := core_of(outer)) and same(core.get(), inner):
            least = 1
    return min(least, 2)


def _list_edits(mine: list[Any], other: list[Any]) -> int:
    while mine and other and same(mine[0], other[0]):
        mine, other = mine[1:], other[1:]
    while mine and other and same(mine[-1], other[-1]):
        mine, other = mine[:-1], other[:-1]
    if len(mine) == len(other):
        return min(sum(map(tree_edits, mine, other)), 2)
    return 1 if len(mine) + len(other) == 1 else 2


def passing_edits(pairs: Sequence[tuple[Problem, str]], grader: Grader, most: int) -> list[int]:
    """Return, for each answer, the number, from 1, of the first single edit with which the
    problem's test passes; 0 if there is none among the first ``most``.

    Edits are tried in one process with the test. The first that passes is run again in the way of
    answers, in two processes.
    """
    edits = [single_edits(*pair, most) for pair in pairs]
    trials = [(at, number) for at, each in enumerate(edits) for number in range(len(each))]
    programs = [program(pairs[at][0], edits[at][number]) for at, number in trials]
    quick = [OneProcess(each.text, each.imports, each.about) for each in programs]
    found = [0] * len(pairs)
    runs = grader.outcomes(quick, "trying edits")
    for (at, number), run in zip(trials, runs, strict=True):
        if run.passed and not found[at]:
            found[at] = number + 1
    fixed = [at for at, number in enumerate(found) if number]
    final = [program(pairs[at][0], edits[at][found[at] - 1]) for at in fixed]
    for at, outcome in zip(fixed, grader.outcomes(final, "checking edits"), strict=True):
        if outcome.judged and not outcome.passed:
            found[at] = 0
    return found


def judged(
    drawn: pd.DataFrame, problems: Mapping[str, Problem], answers: Path, grader: Grader, most: int
) -> pd.DataFrame:
    """Return the drawn answers, and the paper's EXAMPLE, with the verdict of every rule: today,
    tree, run (the number of the first single edit that passes, from 1; 0 for none), and their
    similarity.
    """
    texts = {model: published_answers(answers, model) for model in drawn.model.unique()}
    pairs = [
        (problems[str(id)], solution_of(texts[model][str(id)]))
        for model, id in zip(drawn.model, drawn.problem_id, strict=True)
    ]
    pairs.append((problems[PRINTED], EXAMPLE))
    rows = [*drawn[["model", "problem_id"]].itertuples(index=False), ("paper", int(PRINTED))]
    return pd.DataFrame(rows, columns=["model", "problem_id"]).assign(
        today=[int(today(*pair)) for pair in pairs],
        tree=[int(one_edit_apart(*pair)) for pair in pairs],
        run=passing_edits(pairs, grader, most),
        similarity=[round(similarity(*pair), 4) for pair in pairs],
    )


if __name__ == "__main__":
    drawn, problems, answers, python, output = sys.argv[1:]
    by_id = {problem.id: problem for problem in load_problems(problems)}
    grader = Grader(environment(python))
    table = judged(pd.read_csv(drawn), by_id, Path(answers), grader, MOST)
    table.to_csv(output, index=False, lineterminator="\n")
