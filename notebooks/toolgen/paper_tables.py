"""Helps the notebooks of Tables II and III: reads functions that were held out from repositories
that the models know, and formats tables as the paper prints them.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.toolgen.evaluation import token_counter
from lookuplab.toolgen.functions import Filters, Function, extract, locate_all


def listed_functions(
    file: Path | str, filters: Filters = Filters(), limit: int | None = None
) -> list[Function]:
    """Return the functions of the pinned sources whose ids are listed in ``file``, one per line, in
    the order of the file.

    Only the first ``limit`` ids are read; functions that the filters exclude are then left out.
    Raises UserError for a line that is not an id, for a missing repository or file, and if no
    function is left.
    """
    lines = paths.located(file).read_text(encoding="utf-8").splitlines()
    ids = [line for line in lines if line][:limit]
    files = defaultdict(set)
    for id in ids:
        name, _, path = id.partition(":")[0].partition("/")
        if not path.endswith(".py"):
            raise UserError(
                f"{file}: {id!r} is not a function's id, such as click/core.py:invoke#75"
            )
        files[name].add(path)
    functions: dict[str, Function] = {}
    for repository in locate_all(files):
        paths_of = [repository / path for path in sorted(files[repository.name])]
        if missing := [str(path) for path in paths_of if not path.is_file()]:
            raise UserError(f"{file} names functions of files that do not exist: {missing[0]}")
        extracted = extract(repository, filters, files=paths_of).functions
        functions |= {function.id: function for function in extracted}
    if not functions.keys() & ids:
        raise UserError(f"{file}: none of the {len(ids)} ids belongs to a usable function")
    return [functions[id] for id in ids if id in functions]


def too_long(functions: Sequence[Function], models: Sequence[str], most: int) -> dict[str, int]:
    """Return {model: number of functions that have more than ``most`` of the model's tokens}."""
    counters = {name: token_counter(name) for name in models}
    return {
        name: sum(count(one.code) > most for one in functions) for name, count in counters.items()
    }


def as_printed(table: pd.DataFrame, metrics: Mapping[str, str], digits: int = 1) -> pd.DataFrame:
    """Return one line per model and condition: our values next to the paper's, and the changes
    relative to the base in percent.

    ``table`` has the column ``paper_value`` (``paper.attach``). ``metrics`` maps a metric to the
    heading of its columns. A missing number leaves its cell blank.
    """
    headings = {"value": "ours", "paper_value": "paper"}
    for metric, heading in metrics.items():
        changed = f"{metric.removesuffix('_percent')}_relative_change_percent"
        headings |= {metric: heading, changed: f"{heading}: change (%)"}
    shown = table[table.metric.isin(headings) & ~table.condition.str.contains(" - ", regex=False)]
    wide = shown.set_index(["model", "condition", "metric"])[["value", "paper_value"]]
    wide = wide.unstack(sort=False).rename(columns=headings).swaplevel(axis="columns")
    return wide.astype(float).round(digits).astype(object).fillna("")
