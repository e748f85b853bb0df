"""From verdicts to the rows of a table: pass@k, what examples add and perturbations cost, and how near failures came.

Rows are dictionaries of the tidy schema: model, condition, metric, value, ci_low, ci_high, n. Intervals are clustered
by origin problem: a problem and its perturbations fail together.
"""

import ast
import re
import tokenize
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pandas as pd
from rapidfuzz.distance import Levenshtein

from lookuplab.execution.server import Program
from lookuplab.scoring.rates import average, pass_at_k, rate, row, shares
from lookuplab.stackoverflow.asking import Asked
from lookuplab.stackoverflow.ds1000 import (
    INSERT,
    LIBRARIES,
    PARTS,
    PERTURBATIONS,
    Problem,
    program,
    template,
)
from lookuplab.stackoverflow.grader import Answer, Grader

FAILURES = ("compile error", "test_execution", "test_string")
# The loop over the cases, as DS-1000's and the mini benchmark's test_execution have it
_LOOP = re.compile(r"(def test_execution\(.*\n(?:(?!def ).*\n)*?    for i in range\()(\d+)(\):)")
_OPEN = ast.Name("the value of an argument", ast.Load())  # no program has this name
_SKIPPED = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER)


def solved(
    problems: Sequence[Problem], answers: Iterable[Answer], ks: Sequence[int]
) -> pd.DataFrame:
    """One row a problem that was asked: its fields and ``cluster``, how many ``samples`` it has and how many ``passed``,
    and ``pass_at_<k>``, 0 to 1. Raises UserError for a k above the number of some problem's samples.
    """
    counts = (
        pd.DataFrame(list(answers)).groupby("problem_id").passed.agg(samples="size", passed="sum")
    )
    table = pd.DataFrame(problems, index=[one.id for one in problems]).join(counts, how="inner")
    table["cluster"] = [one.cluster for one in problems if one.id in counts.index]
    for k in ks:
        both = zip(table.samples, table.passed, strict=True)
        table[f"pass_at_{k}"] = [pass_at_k(n, c, k) for n, c in both]
    return table


def rows(table: pd.DataFrame, model: str, prefix: str = "") -> list[dict]:
    """pass@k and the average pass rate in percent, of ``solved``: over all problems, by library and by perturbation.

    The condition is "all", a library's or a perturbation's name, after ``prefix``. The average pass rate is DS-1000's own
    measure (the paper's Section 4.2): the share of samples that pass; its ``n`` counts samples. It is pass@1 where every
    problem has equally many samples.
    """
    found = []
    for name in ("all", *LIBRARIES, *PERTURBATIONS):
        part = table[(table.library == name) | (table.perturbation == name) | (name == "all")]
        if len(part):
            rates = {name: rate(part[name], part.cluster) for name in part.filter(like="pass_at")}
            passed, samples = part[["passed"]].to_numpy(), part[["samples"]].to_numpy()
            (rates["average_pass_rate"],) = shares(passed, part.cluster, samples)
            found += [
                row(model, prefix + name, f"{metric}_percent", number.percent())
                for metric, number in rates.items()
            ]
    return found


def drops(table: pd.DataFrame, k: int, model: str, prefix: str = "") -> list[dict]:
    """What each kind of perturbation costs (the paper's Figure 5): percentage points of pass@k below the origins.

    Each perturbed problem of ``solved`` is compared with the problem that it was made from; those whose origin has no
    answer are left away. A value above 0 is a loss.
    """
    value, found = f"pass_at_{k}", []
    origins = table[table.perturbation == PERTURBATIONS[0]].set_index(["library", "library_id"])
    made = table.join(origins[value].rename("before"), on=["library", "origin"], how="inner")
    for name in PERTURBATIONS[1:]:
        part = made[made.perturbation == name]
        if len(part):
            number = average(100 * part.before - 100 * part[value], part.cluster)
            found.append(row(model, prefix + name, f"{value}_drop_points", number))
    return found


def gain_rows(before: pd.DataFrame, after: pd.DataFrame, model: str, condition: str) -> list[dict]:
    """What examples add, in percentage points of pass@k on the same problems of ``solved``, with a bootstrap paired by
    problem and clustered by origin; metric ``pass_at_<k>_gain_points``."""
    change = 100 * after.filter(like="pass_at") - 100 * before.filter(like="pass_at")
    return [
        row(model, condition, f"{k}_gain_points", average(points, after.cluster))
        for k, points in change.items()
    ]


def trim_rows(problems: Sequence[Problem], asked: Asked, model: str, condition: str) -> list[dict]:
    """How often and how much the budget cut: for description, code and question the share of prompts that lost some of
    it, in percent, and the tokens that they lost on average; ``prompt_tokens`` is the mean length."""
    made, clusters = [asked.prompts[one.id] for one in problems], [one.cluster for one in problems]
    numbers = {"prompt_tokens": average([one.tokens for one in made], clusters)}
    for part, lost in pd.DataFrame([one.lost for one in made]).items():
        numbers[f"{part}_cut_percent"] = rate(lost > 0, clusters).percent()
        numbers[f"{part}_cut_tokens"] = average(lost, clusters)
    return [row(model, condition, metric, number) for metric, number in numbers.items()]


def first_passes(answers: Iterable[Answer], k: int) -> dict[str, bool]:
    """Problem id -> whether one of its first ``k`` samples passed: ranks are no random samples, so not pass@k."""
    first = pd.DataFrame([one for one in answers if one.sample < k])
    return first.groupby("problem_id", sort=False).passed.any().to_dict()


def near_misses(
    problems: Iterable[Problem], answers: Iterable[Answer], grader: Grader, model: str
) -> list[dict]:
    """One row for each answer that failed, in the order of ``answers``.

    The paper counted 40% of one model's failures, looked at by hand, as near misses: "minor syntactic errors or missing
    an argument" (Section 5). Here that is a rule: near_miss is ``one_token`` or ``one_argument`` of one call away from
    the reference. failure: the first of FAILURES that applies: the code does not compile where the test puts it; a
    value is wrong or an exception raised; only what the test asks of the code's text is missing. cases_passed: of the
    test's ``cases`` inputs, each tried in a run of its own, how many gave the right value. edit_distance: in
    characters; token_distance: in tokens, comments and line ends left away.
    """
    known = {problem.id: problem for problem in problems}
    failed = [(one, known[one.problem_id]) for one in answers if not one.passed]
    runs = [case_programs(problem, one.solution) for one, problem in failed]
    outcomes = iter(grader.outcomes([one for each in runs for one in each], "trying each case"))
    found = []
    for (one, problem), each in zip(failed, runs, strict=True):
        passed = [next(outcomes).passed for _ in each]
        distance = Levenshtein.distance(_tokens(one.solution), _tokens(problem.reference))
        argument = argument_apart(problem, one.solution)
        found.append(
            {
                "model": model,
                **vars(one),
                "failure": FAILURES[(1 + all(passed)) * bool(passed)],
                "cases_passed": sum(passed),
                "cases": cases(problem),
                "edit_distance": Levenshtein.distance(
                    one.solution.strip(), problem.reference.strip()
                ),
                "token_distance": distance,
                "one_token": distance <= 1,
                "one_argument": argument,
                "near_miss": distance <= 1 or argument,
            }
        )
    return found


def near_miss_rows(failures: pd.DataFrame, problems: Iterable[Problem]) -> list[dict]:
    """Shares of the failed answers in percent, and their mean edit distance, by model; condition "all".

    ``failures``: rows of ``near_misses``; ``some_cases_percent`` failed, but not for every input.
    """
    clusters, found = {problem.id: problem.cluster for problem in problems}, []
    for model, part in failures.groupby("model", sort=False):
        labels = part.problem_id.map(clusters)
        shares = {name.replace(" ", "_"): part.failure == name for name in FAILURES}
        shares |= {"some_cases": part.cases_passed > 0}
        shares |= {name: part[name] for name in ("one_token", "one_argument", "near_miss")}
        rates = {f"{name}_percent": rate(one, labels).percent() for name, one in shares.items()}
        rates["edit_distance"] = average(part.edit_distance, labels)
        found += [row(model, "all", metric, number) for metric, number in rates.items()]
    return found


def cases(problem: Problem) -> int:
    """How many inputs test_execution tries; 1 where it has no loop over them."""
    return int(found[2]) if (found := _LOOP.search(problem.context)) else 1


def case_programs(problem: Problem, solution: str) -> list[Program]:
    """The official program for each of the test's inputs by itself, without the test of the text; none for a solution
    that does not compile where the test puts it."""
    if not _tree(problem, solution):
        return []
    whole = program(problem, solution, PARTS[:1])
    return [
        replace(whole, text=_LOOP.sub(rf"\g<1>{case}, {case + 1}\g<3>", whole.text, count=1))
        for case in range(cases(problem))
    ]


def _tree(problem: Problem, solution: str) -> ast.Module | None:
    text = template(problem.context).replace(INSERT, solution) or solution
    try:
        compile(text, "solution", "exec", dont_inherit=True)
        return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _tokens(code: str) -> list[str]:
    """Python's tokens; as far as they go in code that is none, and then words and signs."""
    lines, found, row, column = code.strip("\n").splitlines(keepends=True), [], 1, 0
    try:
        for token in tokenize.generate_tokens(iter(lines).__next__):
            row, column = token.end
            # indents are blank, and so are some errors
            if token.type not in _SKIPPED and token.string.strip():
                found.append(token.string)
    except (tokenize.TokenError, SyntaxError):
        found += re.findall(r"\w+|[^\w\s]", "".join(lines[row - 1 :])[column:])
    return found


def argument_apart(problem: Problem, solution: str) -> bool:
    """Whether one argument of one call is missing, too many, or another one; false for code that is equal."""
    trees = [_tree(problem, code) for code in (solution, problem.reference)]
    if None in trees or (first := ast.dump(trees[0])) == (second := ast.dump(trees[1])):
        return False
    (less, opened), (other_less, other_opened) = map(_changed, trees)
    return first in other_less or second in less or not opened.isdisjoint(other_opened)


def _changed(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Every text that the tree has with one argument left away; with the value of one argument left open.

    Only an argument that holds no call is left open: otherwise the whole of ``print(...)`` would be one argument.
    """
    less, opened = set(), set()
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        for arguments in (call.args, call.keywords):
            for place, taken in enumerate(list(arguments)):
                del arguments[place]
                less.add(ast.dump(tree))
                keyword = isinstance(taken, ast.keyword)
                arguments.insert(place, ast.keyword(taken.arg, _OPEN) if keyword else _OPEN)
                if not any(isinstance(node, ast.Call) for node in ast.walk(taken)):
                    opened.add(ast.dump(tree))
                arguments[place] = taken
    return less, opened
