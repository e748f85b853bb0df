"""Numbers on marked functions: the paper's five, the tool's failures, marks by repository and by
the package's rules.

Rows are dictionaries as ``scoring.rates.row`` makes them.
"""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from lookuplab.scoring.rates import average, bare_row, row
from lookuplab.toolgen.marking import MEANS

Record = dict[str, Any]  # a function of a marked corpus
Row = dict[str, Any]


def statistics_rows(records: Sequence[Record], condition: str) -> list[Row]:
    """The paper's five numbers (Sections IV-B and IV-C): counts, and means per function.

    The paper does not say which tokens it counts; ours are Python's, and a docstring's are its
    words.
    """
    frame = pd.DataFrame(records, columns=["repository", *MEANS])
    counts = {"functions": len(frame), "repositories": frame.repository.nunique()}
    rows = [{"condition": condition, "metric": name, "value": n} for name, n in counts.items()]
    return rows + [
        row("", condition, name, average(frame[field], frame.repository))
        for field, name in MEANS.items()
        if records
    ]


def failure_rows(records: Sequence[Record], condition: str) -> list[Row]:
    """``failed_calls``: questions without an answer, out of all that were asked."""
    failed = sum(sum(record["failures"].values()) for record in records)
    total = sum(record["asked"] for record in records)
    return [bare_row("", condition, "failed_calls", failed, total)]


def by_repository(records: Sequence[Record]) -> pd.DataFrame:
    """Marks per function in each repository; functions are the clusters here."""
    counts = pd.DataFrame(records).groupby("repository", sort=False).marks
    return pd.DataFrame(
        row("", f"evaluation/{name}", "marks_per_function", average(marks, range(len(marks))))
        for name, marks in counts
    )


def rules_rows(paper: Sequence[Record], package: Sequence[Record]) -> list[Row]:
    """The marks per function by the package's rules, and how many more they are than by the paper's
    on the same functions.
    """
    ours, theirs = pd.DataFrame(paper), pd.DataFrame(package).marks
    mean, more = (average(marks, ours.repository) for marks in (theirs, theirs - ours.marks))
    return [
        row("", "evaluation/package", "marks_per_function", mean),
        row("", "evaluation/package - paper", "marks_per_function_change", more),
    ]
