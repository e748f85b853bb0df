"""Makes rows of a table from verdicts: pass@k, its changes, and the cost of perturbations.

Rows have the form that ``scoring.rates.row`` returns. Intervals are clustered by origin problem,
because a problem and its perturbations fail together.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from lookuplab.scoring.rates import paired_difference, pass_at_k, rate, row
from lookuplab.stackoverflow.ds1000 import PERTURBATIONS, Problem


def solved(problems: Sequence[Problem], judged: pd.DataFrame, ks: Sequence[int]) -> pd.DataFrame:
    """Return a table with one row per problem. ``judged`` has one row per sample, with the columns
    ``id`` (of the problem) and ``passed``.

    The columns of the table are the fields of Problem; ``cluster``; ``samples``, the number of the
    problem's samples; ``passed``, how many of them passed; and ``pass_at_<k>`` from 0 to 1. A
    problem is left out if one of its samples could not be judged (``passed`` is None). Raises
    UserError if a problem has fewer than k samples.
    """
    lost = judged.id[judged.passed.isna()]
    passed = judged[~judged.id.isin(lost)].groupby("id").passed
    fields = [vars(problem) | {"cluster": problem.cluster} for problem in problems]
    table = pd.DataFrame(fields, columns=[*Problem.__dataclass_fields__, "cluster"]).set_index("id")
    table = table.join(passed.agg(samples="size", passed="sum"), how="inner")
    for k in ks:
        both = zip(table.samples, table.passed, strict=True)
        table[f"pass_at_{k}"] = [pass_at_k(n, c, k) for n, c in both]
    return table


def change(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Return the table ``after`` with changes in place of pass@k: each problem's pass@k in
    ``after`` minus its pass@k in ``before``. Problems that are not in both tables are left out.

    Either both tables come from ``solved``, or both come from this function.
    """
    less = (after.filter(like="pass_at") - before.filter(like="pass_at")).dropna()
    return after.loc[after.index.isin(less.index)].assign(**less)


def rows(
    tables: Mapping[tuple[str, str], pd.DataFrame],
    pairs: Iterable[tuple[str, str]] = (),
    parts: Sequence[str] = ("all",),
) -> list[dict[str, Any]]:
    """Return rows of pass@k in percent, with the condition ``<way>/<part>``. ``tables`` has a
    table of ``solved`` for each (model, way). A way names how the model was asked: with which
    documents, for example.

    ``parts`` are the subsets of problems that get rows: "all", libraries, perturbations, and, if
    the tables have a column ``shown``, "hit" and "miss".

    Each pair (old, new) of ways in ``pairs`` has rows with the condition ``<new>/<part> -
    <old>/<part>``. Their metrics are

    - ``pass_at_<k>_change_points``: a model's pass@k asked in the new way minus its pass@k asked in
      the old way, on the same problems.
    - ``pass_at_<k>_change_difference_points``: the last model's change minus the first model's.

    A perturbation also has rows for its cost (the paper's Figure 5):

    - ``pass_at_<k>_drop_points``: pass@k on the problems from which the perturbed problems were
      made, minus pass@k on the perturbed problems.
    - ``pass_at_<k>_drop_points_change``: the cost in the new way minus the cost in the old way.

    DS-1000's own measure, the average pass rate of the samples (Section 4.2), equals pass@1 if
    every problem has the same number of samples.
    """
    rows = []
    models = list(dict.fromkeys(model for model, _ in tables))
    for (model, way), table in tables.items():
        rows += _rows(table, model, way + "/{0}", parts)
    for old, new in pairs:
        condition = f"{new}/{{0}} - {old}/{{0}}"
        changes = [change(tables[model, old], tables[model, new]) for model in models]
        for model, table in zip(models, changes, strict=True):
            rows += _rows(table, model, condition, parts, "_change")
        if len(models) > 1:
            name = f"{models[-1]} - {models[0]}"
            further = change(changes[0], changes[-1])
            rows += _rows(further, name, condition, parts, "_change_difference")
    return rows


def _rows(
    table: pd.DataFrame, model: str, condition: str, parts: Sequence[str], kind: str = ""
) -> list[dict[str, Any]]:
    """Return the rows of one model's ``table`` for ``rows``. Each of the ``parts`` replaces {0} in
    ``condition``. If the table comes from ``solved``, ``kind`` is "". If the table has changes of
    pass@k, ``kind`` is the ending of the metrics' names, such as "_change".
    """
    origins = table[table.perturbation == PERTURBATIONS[0]].set_index(["library", "library_id"])
    before = origins.filter(like="pass_at").add_prefix("before ")
    rows = []
    for part in parts:
        labels = table.reindex(columns=["library", "perturbation", "shown"])
        some = table if part == "all" else table[labels.eq(part).any(axis="columns")]
        perturbed = some.join(before, on=["library", "origin"], how="inner")
        for k in some.filter(like="pass_at") if len(some) else ():
            # a table with a ``kind`` has changes, so its rows state the mean difference from 0
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


def compared_with_printed(passed: pd.Series, printed: float) -> dict[str, int]:
    """Compare verdicts on answers with the percentage of right answers that a paper ``printed`` for
    them. ``passed`` has one verdict per answer: True, False, or None if the answer is not judged.

    Return four counts of answers: ``passed``, those that pass here; ``printed``, those that are
    right according to the percentage; ``not_judged``; and ``apart``, ``passed`` minus ``printed``.
    For ``apart``, the answers that are not judged get the outcomes that make this difference
    smallest.
    """
    ours, unknown = int(passed.eq(True).sum()), int(passed.isna().sum())
    count = round(printed * len(passed) / 100)
    apart = min(max(count, ours), ours + unknown) - count
    return {"passed": ours, "printed": count, "not_judged": unknown, "apart": apart}
