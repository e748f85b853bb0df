"""From verdicts to the rows of a table: pass@k, its changes, what perturbations cost, and how close
failures came.

Rows are dictionaries as ``scoring.rates.row`` makes them. Intervals are clustered by origin
problem: a problem and its perturbations fail together.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from parso.grammar import load_grammar
from rapidfuzz.distance import Levenshtein
from scipy.stats import norm

from lookuplab.errors import UNPARSABLE
from lookuplab.scoring.rates import average, paired_difference, pass_at_k, rate, row
from lookuplab.stackoverflow.ds1000 import (
    INSERT,
    PARTS,
    PERTURBATIONS,
    Problem,
    program,
    template,
)
from lookuplab.stackoverflow.grader import Grader

FAILURES = "compile_error test_execution test_string one_token one_argument near_miss".split()
PARSO: Any = load_grammar(version="3.11")
_OPEN = ast.Name("the value of an argument", ast.Load())  # no program has this name


def solved(problems: Sequence[Problem], judged: pd.DataFrame, ks: Sequence[int]) -> pd.DataFrame:
    """One row per problem in ``judged`` (columns ``id``, ``passed``): its fields, ``cluster``, how
    many ``samples`` it has, how many ``passed``, and ``pass_at_<k>``, 0 to 1.

    Raises UserError if some problem has fewer than k samples.
    """
    passed = judged.groupby("id").passed
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
) -> list[dict[str, Any]]:
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
    rows, models = [], list(dict.fromkeys(model for model, _ in tables))
    for (model, way), table in tables.items():
        rows += _rows(table, model, way + "/{0}", parts)
    for old, new in pairs:
        condition = f"{new}/{{0}} - {old}/{{0}}"
        changes = [change(tables[model, old], tables[model, new]) for model in models]
        for model, table in zip(models, changes, strict=True):
            rows += _rows(table, model, condition, parts, "_change")
        if len(models) > 1:
            name, further = f"{models[-1]} - {models[0]}", change(changes[0], changes[-1])
            rows += _rows(further, name, condition, parts, "_change_difference")
    return rows


def _rows(
    table: pd.DataFrame, model: str, condition: str, parts: Sequence[str], kind: str = ""
) -> list[dict[str, Any]]:
    origins = table[table.perturbation == PERTURBATIONS[0]].set_index(["library", "library_id"])
    before, rows = origins.filter(like="pass_at").add_prefix("before "), []
    for part in parts:
        labels = table.reindex(columns=["library", "perturbation", "shown"])
        some = table if part == "all" else table[labels.eq(part).any(axis="columns")]
        perturbed = some.join(before, on=["library", "origin"], how="inner")
        for k in some.filter(like="pass_at") if len(some) else ():
            if kind:
                change = paired_difference(0 * some[k], some[k], some.cluster)
                numbers = {f"{kind}_points": change}
            else:
                numbers = {"_percent": rate(some[k], some.cluster)}
            if part in PERTURBATIONS[1:] and len(perturbed):
                less = paired_difference(perturbed[k], perturbed[f"before {k}"], perturbed.cluster)
                numbers[f"_drop_points{kind}"] = less
            rows += [
                row(model, condition.format(part), k + metric, number.percent())
                for metric, number in numbers.items()
            ]
    return rows


def greatest(changes: Sequence[dict[str, Any]]) -> dict[str, Any]:
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


def trim_rows(judged: pd.DataFrame, condition: str) -> list[dict[str, Any]]:
    """How often and how much the budget cut the prompts of one model (a frame of ``evaluate``).

    For description, code and question: the percentage of prompts that lost some of it, and the mean
    number of tokens lost; ``prompt_tokens`` is the mean length.
    """
    prompts = judged.drop_duplicates("id")
    numbers = {"prompt_tokens": average(prompts.prompt_tokens, prompts.cluster)}
    for part in ("description", "code", "question"):
        lost = prompts[f"{part}_lost"]
        numbers[f"{part}_cut_percent"] = rate(lost > 0, prompts.cluster).percent()
        numbers[f"{part}_cut_tokens"] = average(lost, prompts.cluster)
    model = prompts.model.iloc[0]
    return [row(model, condition, metric, number) for metric, number in numbers.items()]


def near_misses(problems: Iterable[Problem], judged: pd.DataFrame, grader: Grader) -> pd.DataFrame:
    """The completions of ``judged`` that failed (a frame of ``evaluate``), in its order, with the
    columns FAILURES and token_distance.

    The paper counted 40% of one model's failures, inspected by hand, as near misses: "minor
    syntactic errors or missing an argument" (Section 5). Here this is a rule: a near_miss differs
    from the reference by at most one token (``one_token``) or by one argument of one call
    (``one_argument``). compile_error: the code does not compile where the test puts it;
    test_execution: a value is wrong or an exception is raised; test_string: only what the test asks
    of the code's text is missing. token_distance ignores comments and line ends.
    """
    by_id = {problem.id: problem for problem in problems}
    failed = judged[~judged.passed.astype(bool)].reset_index(drop=True)
    pairs = [(by_id[id], code) for id, code in zip(failed.id, failed.solution, strict=True)]
    of_values = [program(problem, code, PARTS[:1]) for problem, code in pairs]
    rows = []
    for (problem, code), run in zip(pairs, grader.outcomes(of_values), strict=True):
        compiles = _tree(problem, code) is not None
        distance = Levenshtein.distance(_tokens(code), _tokens(problem.reference))
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


def near_miss_rows(failures: pd.DataFrame) -> list[dict[str, Any]]:
    """Shares of the failures of ``near_misses`` in percent, by model; condition "all"."""
    return [
        row(model, "all", f"{name}_percent", rate(part[name], part.cluster).percent())
        for model, part in failures.groupby("model", sort=False)
        for name in FAILURES
    ]


def _tree(problem: Problem, solution: str) -> ast.Module | None:
    text = template(problem.context).replace(INSERT, solution) or solution
    try:
        compile(text, "solution", "exec")
        return ast.parse(text)
    except UNPARSABLE:
        return None


def _tokens(code: str) -> list[str]:
    """Python's tokens, even of code that does not parse."""
    leaf, tokens = PARSO.parse(code).get_first_leaf(), []
    while leaf:
        if leaf.value.strip():
            tokens.append(leaf.value)
        leaf = leaf.get_next_leaf()
    return tokens


def argument_apart(problem: Problem, solution: str) -> bool:
    """Whether one argument of one call is missing, superfluous or different; not for equal code."""
    tree, reference = _tree(problem, solution), _tree(problem, problem.reference)
    if tree is None or reference is None:
        return False
    try:
        if (first := ast.dump(tree)) == (second := ast.dump(reference)):
            return False
        (less, opened), (other_less, other_opened) = _changed(tree), _changed(reference)
    except RecursionError:  # nobody forgot a single argument in so deep a tree
        return False
    return first in other_less or second in less or not opened.isdisjoint(other_opened)


def _changed(tree: ast.Module) -> tuple[set[str], set[str]]:
    """(every text that the tree has without one argument, every text with the value of one argument
    left open).

    Only an argument that contains no call is left open; otherwise everything in ``print(...)``
    would be one argument.
    """
    less, opened = set(), set()
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        places: list[tuple[list[Any], int]] = [
            *((call.args, at) for at in range(len(call.args))),
            *((call.keywords, at) for at in range(len(call.keywords))),
        ]
        for arguments, at in places:
            taken = arguments.pop(at)
            less.add(ast.dump(tree))
            keyword = isinstance(taken, ast.keyword)
            arguments.insert(at, ast.keyword(taken.arg, _OPEN) if keyword else _OPEN)
            if not any(isinstance(node, ast.Call) for node in ast.walk(taken)):
                opened.add(ast.dump(tree))
            arguments[at] = taken
    return less, opened
