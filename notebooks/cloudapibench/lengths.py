"""Validity by length of the augmentation: Figure 6 (right)."""

import pandas as pd

LONGEST_BIN = 2048  # tokens; the last bin of the paper's figure begins here


def token_bin(count: int) -> str:
    """Return the bin of Figure 6 for a number of tokens: ``[0, 0]``, ``[1, 1]``, ``[2, 3]`` ...
    ``[1024, 2047]``; the last bin is open-ended.
    """
    exponent = min(int(count), LONGEST_BIN - 1).bit_length()
    return f"[{2 ** (exponent - 1)}, {2**exponent - 1}]" if exponent else "[0, 0]"


def by_length(rows: pd.DataFrame, designs: list[str], frequency: str) -> pd.DataFrame:
    """Return the metric ``percent`` for each of the designs that have rows, from all lengths to the
    longest bin: conditions ``<tokens>/valid calls`` with intervals, and ``<tokens>/share of the
    samples``. The column ``design`` names the design.

    Conditions of the given rows are ``<design>/<bin>``, with bins from ``token_bin``, and
    ``<design>/<frequency>`` for all lengths. There are no rows if no design has a bin.
    """
    kinds = {"valid_percent": "valid calls", "share_percent": "share of the samples"}
    rows = rows.assign(**rows.condition.str.extract("(?P<design>.*)/(?P<bin>.*)"))
    first = rows.bin.str.extract(r"\[(\d+),")[0].astype(float).mask(rows.bin == frequency, -1)
    rows = rows.assign(
        first=first, order=rows.design.map({name: i for i, name in enumerate(designs)})
    )
    rows = rows[rows.metric.isin(kinds)].dropna(subset=["first", "order"])
    if not rows["first"].gt(-1).any():
        return rows[:0]
    rows = rows.sort_values(["first", "order"], kind="stable")
    bins = rows.bin.str.strip("[]").str.replace(", ", " to ")
    bins = bins.replace({frequency: "any number", "0 to 0": "0"})
    is_share = rows.metric == "share_percent"
    return rows.assign(
        design=rows.design.str.replace("_", " + "),
        condition=bins + "/" + rows.metric.map(kinds),
        metric="percent",
        ci_low=rows.ci_low.mask(is_share),
        ci_high=rows.ci_high.mask(is_share),
        paper_value=float("nan"),
    )
