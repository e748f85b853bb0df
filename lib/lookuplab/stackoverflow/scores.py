"""From verdicts to the rows of a table: pass@k, what examples add and perturbations cost, and how near failures came.

Rows are dictionaries of the tidy schema: model, condition, metric, value, ci_low, ci_high, n. Intervals are clustered
by origin problem: a problem and its perturbations fail together.
"""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pandas as pd
from rapidfuzz.distance import Levenshtein

from lookuplab.execution.server import Program
from lookuplab.scoring.pass_at_k import pass_at_k, passes
from lookuplab.scoring.rates import Rate, average, paired_difference, rate, row
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
from lookuplab.stackoverflow.grader import Answer, Grader, Verdict

FAILURES = ("compile error", "test_execution", "test_string")
COLUMNS = (
    "model", "problem_id", "sample", "failure", "error", "cases_passed", "cases", "edit_distance", "token_distance",
    "one_token", "one_argument", "near_miss",
)  # fmt: skip
# The loop over the cases, as DS-1000's and the mini benchmark's test_execution have it
_LOOP = re.compile(r"(def test_execution\(.*\n(?:(?!def ).*\n)*?    for i in range\()(\d+)(\):)")
_OPEN = ast.Name("the value of an argument", ast.Load())  # no program has this name
_SKIPPED = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER)


def by_problem(verdicts: Iterable[Verdict]) -> dict[str, list[bool]]:
    """Problem id -> whether each of its samples passed."""
    found = defaultdict(list)
    for verdict in verdicts:
        found[verdict.problem_id].append(verdict.passed)
    return dict(found)


def average_pass_rate(passed: Mapping[str, Sequence[bool]], clusters: Mapping[str, str]) -> Rate:
    """DS-1000's own measure (the paper's Section 4.2): the share of samples that pass; ``n`` counts samples.

    It is pass@1 where every problem has equally many samples.
    """
    pairs = [(one, clusters[problem]) for problem, values in passed.items() for one in values]
    return rate(*zip(*pairs, strict=True))


def rows(
    problems: Sequence[Problem],
    verdicts: Iterable[Verdict],
    ks: Sequence[int],
    model: str,
    prefix: str = "",
) -> list[dict]:
    """pass@k and the average pass rate in percent: over all problems, by library and by perturbation.

    The condition is "all", a library's or a perturbation's name, after ``prefix``. Raises UserError for a k above the
    number of some problem's samples.
    """
    passed, found = by_problem(verdicts), []
    clusters = {problem.id: problem.cluster for problem in problems}
    for name in ("all", *LIBRARIES, *PERTURBATIONS):
        ids = [
            one.id
            for one in problems
            if one.id in passed and name in ("all", one.library, one.perturbation)
        ]
        if group := {one: passed[one] for one in ids}:
            rates = {f"pass_at_{k}_percent": passes(group, clusters, k) for k in ks}
            rates["average_pass_rate_percent"] = average_pass_rate(group, clusters)
            found += [
                row(model, prefix + name, metric, number.percent())
                for metric, number in rates.items()
            ]
    return found


def percents(verdicts: Iterable[Verdict], k: int) -> dict[str, float]:
    """Problem id -> pass@k in percent."""
    return {
        one: 100 * pass_at_k(len(values), sum(values), k)
        for one, values in by_problem(verdicts).items()
    }


def drops(
    problems: Sequence[Problem], verdicts: Sequence[Verdict], k: int, model: str, prefix: str = ""
) -> list[dict]:
    """What each kind of perturbation costs (the paper's Figure 5): percentage points of pass@k below the origins.

    Each perturbed problem is compared with the problem that it was made from; those whose origin has no verdict are
    left away. A value above 0 is a loss.
    """
    value, found = percents(verdicts, k), []
    known = [problem for problem in problems if problem.id in value]
    origins = {
        (one.library, one.library_id): one.id
        for one in known
        if one.perturbation == PERTURBATIONS[0]
    }
    for name in PERTURBATIONS[1:]:
        pairs = [
            (value[origins[one.library, one.origin]] - value[one.id], one.cluster)
            for one in known
            if one.perturbation == name and (one.library, one.origin) in origins
        ]
        if pairs:
            number = average(*zip(*pairs, strict=True))
            found.append(row(model, prefix + name, f"pass_at_{k}_drop_points", number))
    return found


def gain_rows(
    problems: Sequence[Problem],
    before: Sequence[Verdict],
    after: Sequence[Verdict],
    ks: Sequence[int],
    model: str,
    condition: str,
) -> list[dict]:
    """What examples add, in percentage points of pass@k on the same problems, with a bootstrap paired by problem and
    clustered by origin; metric ``pass_at_<k>_gain_points``."""
    found = []
    for k in ks:
        first, second = percents(before, k), percents(after, k)
        known = [one for one in problems if one.id in first and one.id in second]
        values = ([side[one.id] for one in known] for side in (first, second))
        number = paired_difference(*values, [one.cluster for one in known])
        found.append(row(model, condition, f"pass_at_{k}_gain_points", number))
    return found


def trim_rows(problems: Sequence[Problem], asked: Asked, model: str, condition: str) -> list[dict]:
    """How often and how much the budget cut: for description, code and question the share of prompts that lost some of
    it, in percent, and the tokens that they lost on average; ``prompt_tokens`` is the mean length."""
    made, clusters = [asked.prompts[one.id] for one in problems], [one.cluster for one in problems]
    numbers = {"prompt_tokens": average([one.tokens for one in made], clusters)}
    for part in ("description", "code", "question"):
        lost = [sum(count for cut, count in one.lost.items() if cut[0] == part) for one in made]
        numbers[f"{part}_cut_percent"] = rate([count > 0 for count in lost], clusters).percent()
        numbers[f"{part}_cut_tokens"] = average(lost, clusters)
    return [row(model, condition, metric, number) for metric, number in numbers.items()]


def first_passes(verdicts: Sequence[Verdict], k: int) -> dict[str, bool]:
    """Problem id -> whether one of its first ``k`` samples passed: ranks are no random samples, so not pass@k."""
    ordered = sorted(verdicts, key=lambda one: one.sample)
    return {problem: any(values[:k]) for problem, values in by_problem(ordered).items()}


def near_misses(
    problems: Iterable[Problem],
    answers: Iterable[Answer],
    verdicts: Iterable[Verdict],
    grader: Grader,
    model: str,
) -> list[dict]:
    """One row with COLUMNS for each answer that failed, in the order of ``verdicts``.

    The paper counted 40% of one model's failures, looked at by hand, as near misses: "minor syntactic errors or missing
    an argument" (Section 5). Here that is a rule: near_miss is ``one_token`` or ``one_argument`` of one call away from
    the reference. failure: the first of FAILURES that applies: the code does not compile where the test puts it; a
    value is wrong or an exception raised; only what the test asks of the code's text is missing. cases_passed: of the
    test's ``cases`` inputs, each tried in a run of its own, how many gave the right value. edit_distance: in
    characters; token_distance: in tokens, comments and line ends left away.
    """
    known = {problem.id: problem for problem in problems}
    code = {(answer.problem_id, answer.sample): answer.solution for answer in answers}
    failed = [
        (one, known[one.problem_id], code[one.problem_id, one.sample])
        for one in verdicts
        if not one.passed
    ]
    runs = [case_programs(problem, solution) for _, problem, solution in failed]
    outcomes = iter(grader.outcomes([one for each in runs for one in each], "trying each case"))
    found = []
    for (verdict, problem, solution), each in zip(failed, runs, strict=True):
        passed = [next(outcomes).passed for _ in each]
        failure = FAILURES[0] if not passed else FAILURES[2] if all(passed) else FAILURES[1]
        edits = Levenshtein.distance(solution.strip(), problem.reference.strip())
        distance, argument = (
            token_distance(solution, problem.reference),
            argument_apart(problem, solution),
        )
        row_of = (
            model,
            problem.id,
            verdict.sample,
            failure,
            verdict.error,
            sum(passed),
            cases(problem),
            edits,
            distance,
        )
        found.append(
            dict(
                zip(
                    COLUMNS,
                    (*row_of, distance <= 1, argument, distance <= 1 or argument),
                    strict=True,
                )
            )
        )
    return found


def near_miss_rows(failures: pd.DataFrame, problems: Iterable[Problem]) -> list[dict]:
    """Shares of the failed answers in percent, and their mean edit distance, by model; condition "all".

    ``failures``: rows of ``near_misses``; ``some_cases_percent`` failed, but not for every input.
    """
    clusters, found = {problem.id: problem.cluster for problem in problems}, []
    for model, part in failures.groupby("model", sort=False):
        labels = [clusters[one] for one in part.problem_id]
        shares = {name.replace(" ", "_"): part.failure == name for name in FAILURES}
        shares |= {"some_cases": part.cases_passed > 0}
        shares |= {name: part[name] for name in ("one_token", "one_argument", "near_miss")}
        numbers = {
            f"{name}_percent": rate(flags.astype(bool), labels).percent()
            for name, flags in shares.items()
        }
        numbers["edit_distance"] = average(part.edit_distance, labels)
        found += [row(model, "all", metric, number) for metric, number in numbers.items()]
    return found


def cases(problem: Problem) -> int:
    """How many inputs test_execution tries; 1 where it has no loop over them."""
    return int(found.group(2)) if (found := _LOOP.search(problem.context)) else 1


def case_programs(problem: Problem, solution: str) -> list[Program]:
    """The official program for each of the test's inputs by itself, without the test of the text; none for a solution
    that does not compile where the test puts it."""
    whole, every = (
        program(problem, solution, PARTS[:1]),
        range(cases(problem) if _tree(problem, solution) else 0),
    )
    return [
        replace(whole, text=_LOOP.sub(rf"\g<1>{case}, {case + 1}\g<3>", whole.text, count=1))
        for case in every
    ]


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
            place = sum(map(len, lines[: token.end[0] - 1])) + token.end[1]
            if (
                token.type not in _SKIPPED and token.string.strip()
            ):  # indents are blank, and so are some errors
                found.append(token.string)
    except (tokenize.TokenError, SyntaxError):
        found += re.findall(r"\w+|[^\w\s]", "".join(lines)[place:])
    return found


def argument_apart(problem: Problem, solution: str) -> bool:
    """Whether one argument of one call is missing, too many, or another one; false for code that is equal."""
    mine, other = (_tree(problem, code) for code in (solution, problem.reference))
    if mine is None or other is None or (first := ast.dump(mine)) == (second := ast.dump(other)):
        return False
    less, opened = zip(_changed(mine), _changed(other), strict=True)
    return first in less[1] or second in less[0] or not opened[0].isdisjoint(opened[1])


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
                arguments.insert(
                    place,
                    ast.keyword(taken.arg, _OPEN) if isinstance(taken, ast.keyword) else _OPEN,
                )
                if not any(isinstance(node, ast.Call) for node in ast.walk(taken)):
                    opened.add(ast.dump(tree))
                arguments[place] = taken
    return less, opened
