"""Tables II and III for a reader: as the paper prints them, and with intervals. Rows are those of ``toolgen.tables``."""

from collections.abc import Mapping, Sequence

import pandas as pd

from lookuplab.artifact import readable


def as_printed(table: pd.DataFrame, metrics: Mapping[str, str], digits: int = 1) -> pd.DataFrame:
    """A line per model and condition, ours beside the paper's, the change relative to the base in brackets.

    ``table`` has ``paper_value`` (``paper.attach``); ``metrics`` is {metric: heading}. A number that is not there
    leaves its cell blank.
    """
    alone = table[~table.condition.str.contains(" - ", regex=False)]
    lines = pd.MultiIndex.from_frame(alone[["model", "condition"]].drop_duplicates())
    cells = {}
    for metric, heading in metrics.items():
        changed = f"{metric.removesuffix('_percent')}_relative_change_percent"
        for head, column in ("ours", "value"), ("paper", "paper_value"):
            numbers = alone.pivot(index=["model", "condition"], columns="metric", values=column)
            numbers = numbers.reindex(lines).reindex(columns=[metric, changed]).astype(float)
            cells[heading, head] = [
                ("" if pd.isna(number) else f"{number:.{digits}f}")
                + ("" if pd.isna(number + change) else f" ({change:+.1f}%)")
                for number, change in numbers.itertuples(index=False)
            ]
    return pd.DataFrame(cells, lines)


def side_by_side(table: pd.DataFrame, metrics: Sequence[str], digits: int = 1) -> pd.DataFrame:
    """A line per model and condition, a column per metric: the number with its interval and n, blank without one.

    Whole numbers without an interval (counts) stand alone.
    """
    found = table[table.metric.isin(metrics)]
    if found.empty:
        return pd.DataFrame()
    texts = readable(found, digits)
    counts = found.ci_low.isna() & (found.value.astype(float) % 1 == 0)
    texts = texts.where(~counts, found.value.map("{:.0f}".format))
    wide = found.assign(text=texts).pivot(
        index=["model", "condition"], columns="metric", values="text"
    )
    lines = pd.MultiIndex.from_frame(found[["model", "condition"]].drop_duplicates())
    return wide.reindex(index=lines, columns=[name for name in metrics if name in wide]).fillna("")
