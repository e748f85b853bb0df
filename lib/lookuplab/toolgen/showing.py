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
    lines = list(dict.fromkeys(zip(alone.model, alone.condition, strict=True)))
    known = {
        tuple(row[:3]): row[3:]
        for row in alone[["model", "condition", "metric", "value", "paper_value"]].itertuples(
            index=False, name=None
        )
    }

    def cell(line: tuple[str, str], metric: str, column: int) -> str:
        value = known.get((*line, metric), (None, None))[column]
        change = known.get(
            (*line, f"{metric.removesuffix('_percent')}_relative_change_percent"), (None, None)
        )[column]
        text = "" if value is None or pd.isna(value) else f"{value:.{digits}f}"
        return text + (
            f" ({change:+.1f}%)" if text and change is not None and not pd.isna(change) else ""
        )

    columns = [
        (metric, heading, column, of)
        for metric, heading in metrics.items()
        for column, of in enumerate(("ours", "paper"))
    ]
    texts = [[cell(line, metric, column) for metric, _, column, _ in columns] for line in lines]
    return pd.DataFrame(
        texts,
        pd.MultiIndex.from_tuples(lines, names=["model", "condition"]),
        pd.MultiIndex.from_tuples([(heading, of) for _, heading, _, of in columns]),
    )


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
