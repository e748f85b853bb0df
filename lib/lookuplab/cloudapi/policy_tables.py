"""Tables 2 and 3 and the questions beside them: what a policy misses, what it costs, what real retrieval makes of it.

Rows are those of ``cloudapi.results``. All is selected from passes that exist (``dag.Passes``); nothing is generated.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from lookuplab.artifact import readable
from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.policies import PRECISION, TOKENS, by_class, outcome, spent, valid_rows
from lookuplab.cloudapi.results import CLASSES, FAILURES
from lookuplab.scoring.rates import average, rate
from lookuplab.scoring.rows import row

_TRIGGERED, _VALID, _CHANGE = "triggered_percent", "valid_percent", "valid_change_points"


def missed_rows(first: pd.DataFrame, name: str, retrieve: np.ndarray) -> list[dict]:
    """What the trigger ``retrieve``, (tasks,) booleans, makes of the invalid first calls (Section 4.1, Results).

    ``caught_percent``: how many of them it sends to the documentation; ``missed_<category>_percent``: of the others,
    the share of each failure category. A class without invalid or without missed calls has no such row.
    """
    model, wrong = first.model.iloc[0], ~first.valid.to_numpy(dtype=bool)
    rows = []
    for condition, mask in by_class(first).items():
        invalid, missed = first[mask & wrong], first[mask & wrong & ~retrieve]
        numbers = {}
        if len(invalid):
            numbers["caught_percent"] = rate(retrieve[mask & wrong], invalid.api)
        if len(missed):
            numbers |= {f"missed_{kind}_percent": rate(missed.category == kind, missed.api) for kind in FAILURES}
        rows += [row(model, f"{name}/{condition}", metric, number.percent()) for metric, number in numbers.items()]
    return rows


def real_retrieval_rows(passes: Passes, name: str, retrieve: np.ndarray) -> list[dict]:
    """A policy with BM25 left alone in place of the retriever of chosen precision, conditions ``<name>_bm25/<class>``.

    ``valid_percent``, and ``precision_percent``: of the tasks it retrieves for, how many get an acceptable API.
    """
    first = passes.first
    rows = valid_rows(passes, f"{name}_bm25", outcome(passes, retrieve, passes.retrieved))
    for condition, mask in by_class(first).items():
        if (asked := mask & retrieve).any():
            precision = rate(passes.retrieved[asked], first.api[asked]).percent()
            rows.append(row(first.model.iloc[0], f"{name}_bm25/{condition}", "precision_percent", precision))
    return rows


def cost_rows(passes: Passes, name: str, retrieve: np.ndarray, precision: float = PRECISION) -> list[dict]:
    """What a task costs on average, condition ``<name>/all``: the first pass always, the second where it retrieves.

    ``prompt_tokens``, ``new_tokens`` and their sum ``tokens`` in the model's own tokens, as expectations over hits and
    misses; ``model_calls`` 1 to 2.
    """
    costs = {column: spent(passes, retrieve, precision, [column]) for column in TOKENS}
    costs |= {"tokens": sum(costs.values()), "model_calls": 1.0 + retrieve}
    return [row(passes.first.model.iloc[0], f"{name}/all", metric, average(cost, passes.first.api))
            for metric, cost in costs.items()]


def as_printed(table: pd.DataFrame, column: str = "value") -> pd.DataFrame:
    """Table 3 as the paper prints it: a line per model and policy, percent triggered and percent valid by class.

    ``table`` has rows of ``policies.policy_rows``; the change from the base model, in points, stands in brackets.
    ``column="paper_value"`` prints the paper's numbers instead; what is not known is left blank, or out.
    """
    known = table[table.metric.isin((_TRIGGERED, _VALID, _CHANGE))].dropna(subset=[column])
    lines: dict[tuple, dict] = {}
    for line in known[~known.condition.str.contains(" - ")].itertuples():
        policy, _, name = line.condition.partition("/")
        lines.setdefault((line.model, policy), {})[line.metric, name] = getattr(line, column)
    columns = [(_TRIGGERED, name) for name in CLASSES] + [(_VALID, name) for name in (*CLASSES, "all")]
    texts = [[_cell(numbers, *place, policy) for place in columns] for (_, policy), numbers in lines.items()]
    index = pd.MultiIndex.from_frame(pd.DataFrame(list(lines), columns=["model", "policy"]))
    return pd.DataFrame(texts, index, pd.MultiIndex.from_tuples(columns))


def side_by_side(rows: Iterable[dict] | pd.DataFrame, metrics: Sequence[str] | None = None) -> pd.DataFrame:
    """Rows as texts with interval and n, a line per model and condition, a column per metric, in the order they came.

    ``metrics`` selects and orders the columns. Numbers without an interval (counts, p values) stand alone.
    """
    table = pd.DataFrame(rows)
    if metrics is not None and len(table):
        table = table[table.metric.isin(metrics)]
    if not len(table):
        return pd.DataFrame()
    bare = table.ci_low.isna()
    texts = readable(table).where(~bare, table.value.map("{:.3g}".format))
    wide = table.assign(text=texts).pivot(index=["model", "condition"], columns="metric", values="text")
    lines = pd.MultiIndex.from_frame(table[["model", "condition"]].drop_duplicates())
    return wide.reindex(index=lines, columns=list(metrics or dict.fromkeys(table.metric))).fillna("")


def _cell(numbers: Mapping[tuple, float], metric: str, name: str, policy: str) -> str:
    if (metric, name) not in numbers:
        return ""
    change = numbers.get((_CHANGE, name)) if metric == _VALID and policy != "base" else None
    return f"{numbers[metric, name]:.1f}" + ("" if change is None else f" ({change:+.1f})")
