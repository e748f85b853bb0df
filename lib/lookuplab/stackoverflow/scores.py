"""From verdicts to the rows of a table: pass@k, its changes, what perturbations cost, and how close
failures came.

Rows are dictionaries as ``scoring.rates.row`` makes them. Intervals are clustered by origin
problem: a problem and its perturbations fail together.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd
import parso
from rapidfuzz.distance import Levenshtein
from scipy.stats import norm

from lookuplab.scoring.rates import average, paired_difference, pass_at_k, rate, row
from lookuplab.stackoverflow.asking import Asked
from lookuplab.stackoverflow.ds1000 import (
    INSERT,
    PARTS,
    PERTURBATIONS,
    Problem,
    program,
    template,
)
from lookuplab.stackoverflow.grader import Answer, Grader

SHARES = "compile_error test_execution test_string one_token one_argument near_miss".split()
PARTED = ["library", "perturbation", "shown"]
_OPEN = ast.Name("the value of an argument", ast.Load())  # no program has this name


def solved(
    problems: Sequence[Problem], answers: Iterable[Answer], ks: Sequence[int]
) -> pd.DataFrame:
    """One row per problem that was asked: its fields, ``cluster``, how many ``samples`` it has, how
    many ``passed``, and ``pass_at_<k>``, 0 to 1.

    Raises UserError if some problem has fewer than k samples.
    """
    passed = pd.DataFrame(list(answers), columns=["problem_id", "passed"])
    passed = passed.groupby("problem_id").passed
    fields = [vars(one) | {"cluster": one.cluster} for one in problems]
    table = pd.DataFrame(fields, columns=[*Problem.__dataclass_fields__, "cluster"]).set_index("id")
    table = table.join(passed.agg(samples="size", passed="sum"), how="inner")
    for k in ks:
        both = zip(table.samples, table.passed, strict=True)
        table[f"pass_at_{k}"] = [pass_at_k(n, c, k) for n, c in both]
    return table


def change(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """``after`` with each problem's pass@k replaced by its change from ``before``, -1 to 1.

    Both are tables of ``solved``, or both are changes.
    """
    return after.assign(**(after.filter(like="pass_at") - before.filter(like="pass_at")))


def rows(
    tables: Mapping[tuple[str, str], pd.DataFrame],
    pairs: Iterable[tuple[str, str]] = (),
    parts: Sequence[str] = ("all",),
) -> list[dict]:
    """pass@k of (model, way) -> table of ``solved``, in percent, condition ``<way>/<part>``.

    For pairs (old, new) of ways also the change on the same problems,
    ``pass_at_<k>_change_points``, condition
    ``<new>/<part> - <old>/<part>``, and, as ``_change_difference_points``, the last model's change
    minus the first's.
    parts: "all", libraries, perturbations, and, if the tables have a column ``shown``
    (``asking.hits``), "hit" and "miss". A perturbation also has its cost (the paper's Figure 5):
    how far its problems are below those that they were made from, ``pass_at_<k>_drop_points``, and
    the change of that. DS-1000's own measure, the average pass rate of the
    samples (Section 4.2), is pass@1 if every problem has the same number of samples.
    """
    found, models = [], list(dict.fromkeys(model for model, _ in tables))
    for (model, way), table in tables.items():
        found += _rows(table, model, way + "/{0}", parts)
    for old, new in pairs:
        said = f"{new}/{{0}} - {old}/{{0}}", parts
        changes = [change(tables[model, old], tables[model, new]) for model in models]
        for model, table in zip(models, changes, strict=True):
            found += _rows(table, model, *said, "_change")
        if len(models) > 1:
            further = change(changes[0], changes[-1])
            found += _rows(further, f"{models[-1]} - {models[0]}", *said, "_change_difference")
    return found


def _rows(
    table: pd.DataFrame, model: str, condition: str, parts: Sequence[str], kind: str = ""
) -> list[dict]:
    origins = table[table.perturbation == PERTURBATIONS[0]].set_index(["library", "library_id"])
    ks, found = list(table.filter(like="pass_at")), []
    for part in parts:
        alike = table.reindex(columns=PARTED).eq(part).any(axis="columns")
        some = table if part == "all" else table[alike]
        if some.empty:
            continue
        made = some[:0]
        if part in PERTURBATIONS[1:]:
            before = origins[ks].add_prefix("before ")
            made = some.join(before, on=["library", "origin"], how="inner")
        for k in ks:
            if kind:
                change = paired_difference(0 * some[k], some[k], some.cluster)
                numbers = {f"{kind}_points": change}
            else:
                numbers = {"_percent": rate(some[k], some.cluster)}
            if len(made):
                less = paired_difference(made[k], made[f"before {k}"], made.cluster)
                numbers[f"_drop_points{kind}"] = less
            for metric, one in numbers.items():
                found.append(row(model, condition.format(part), k + metric, one.percent()))
    return found


def greatest(changes: Sequence[dict]) -> dict:
    """The greatest of several rows of changes, for a claim that says "up to"; condition "maximum".

    The greatest change is at least as large as each of them, so the largest of the m lower ends
    bounds it from below. For this, all m must hold together (Bonferroni); their distances are
    stretched as those of a normal distribution.
    """
    stretched = norm.isf(0.025 / len(changes)) / norm.isf(0.025)
    ends = [one["value"] - stretched * (one["value"] - one["ci_low"]) for one in changes]
    best = max(changes, key=lambda one: one["value"])
    metric = best["metric"].replace("change", "maximum_change")
    high = max(one["ci_high"] for one in changes)
    names = {"model": "", "condition": "maximum", "metric": metric}
    return best | names | {"ci_low": max(ends), "ci_high": high}


def trim_rows(problems: Sequence[Problem], asked: Asked, model: str, condition: str) -> list[dict]:
    """How often and how much the budget cut.

    For description, code and question: the percentage of prompts that lost some of it, and the mean
    number of tokens lost; ``prompt_tokens`` is the mean length.
    """
    made, clusters = [asked.prompts[one.id] for one in problems], [one.cluster for one in problems]
    numbers = {"prompt_tokens": average([one.tokens for one in made], clusters)}
    for part, lost in pd.DataFrame([one.lost for one in made]).items():
        numbers[f"{part}_cut_percent"] = rate(lost > 0, clusters).percent()
        numbers[f"{part}_cut_tokens"] = average(lost, clusters)
    return [row(model, condition, metric, number) for metric, number in numbers.items()]


def near_misses(
    problems: Iterable[Problem], answers: Iterable[Answer], grader: Grader, model: str
) -> pd.DataFrame:
    """One row for each answer that failed, in the order of ``answers``.

    The paper counted 40% of one model's failures, inspected by hand, as near misses: "minor
    syntactic errors or missing an argument" (Section 5). Here this is a rule: a near_miss differs
    from the reference by at most one token (``one_token``) or by one argument of one call
    (``one_argument``). compile_error: the code does not compile where the test puts it;
    test_execution: a value is wrong or an exception is raised; test_string: only what the test asks
    of the code's text is missing. token_distance ignores comments and line ends.
    """
    known = {problem.id: problem for problem in problems}
    failed = [(one, known[one.problem_id]) for one in answers if not one.passed]
    of_values = [program(problem, one.solution, PARTS[:1]) for one, problem in failed]
    found = []
    for (one, problem), run in zip(failed, grader.outcomes(of_values), strict=True):
        compiles = _tree(problem, one.solution) is not None
        distance = Levenshtein.distance(_tokens(one.solution), _tokens(problem.reference))
        argument = argument_apart(problem, one.solution)
        found.append(
            {
                "model": model,
                **vars(one),
                "cluster": problem.cluster,
                "compile_error": not compiles,
                "test_execution": compiles and not run.passed,
                "test_string": compiles and run.passed,
                "token_distance": distance,
                "one_token": distance <= 1,
                "one_argument": argument,
                "near_miss": distance <= 1 or argument,
            }
        )
    own = ["model", *Answer.__dataclass_fields__, "cluster"]
    return pd.DataFrame(found, columns=[*own, *SHARES[:3], "token_distance", *SHARES[3:]])


def near_miss_rows(failures: pd.DataFrame) -> list[dict]:
    """Shares of the failed answers of ``near_misses`` in percent, by model; condition "all"."""
    return [
        row(model, "all", f"{name}_percent", rate(part[name], part.cluster).percent())
        for model, part in failures.groupby("model", sort=False)
        for name in SHARES
    ]


def _tree(problem: Problem, solution: str) -> ast.Module | None:
    text = template(problem.context).replace(INSERT, solution) or solution
    try:
        compile(text, "solution", "exec")
        return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _tokens(code: str) -> list[str]:
    """Python's tokens, even of code that does not parse."""
    leaf, found = parso.parse(code, version="3.11").get_first_leaf(), []
    while leaf:
        found += [leaf.value] if leaf.value.strip() else []
        leaf = leaf.get_next_leaf()
    return found


def argument_apart(problem: Problem, solution: str) -> bool:
    """Whether one argument of one call is missing, superfluous or different; false for equal code."""
    trees = [_tree(problem, code) for code in (solution, problem.reference)]
    if None in trees or (first := ast.dump(trees[0])) == (second := ast.dump(trees[1])):
        return False
    (less, opened), (other_less, other_opened) = map(_changed, trees)
    return first in other_less or second in less or not opened.isdisjoint(other_opened)


def _changed(tree: ast.Module) -> tuple[set[str], set[str]]:
    """(every text that the tree has without one argument, every text with the value of one argument
    left open).

    Only an argument that contains no call is left open; otherwise everything in ``print(...)``
    would be one argument.
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
