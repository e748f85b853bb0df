"""A repository's functions as rows: names that Jedi offers; coverage, success, their changes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pandas import DataFrame

from lookuplab.scoring.rates import averages, of_share, row
from lookuplab_notebooks.toolgen.table_rows import repository_rows

Record = dict[str, Any]  # a function of a marked corpus
SHOWN = re.compile(
    "(depcov|succrate)_(percent|change)|(reference_)?failed|pylint_lost|jedi_lost|degenerate"
)


def judged_rows(frames: Mapping[tuple[str, str], DataFrame]) -> list[dict[str, Any]]:
    """Return rows from {(model, condition): frame of ``evaluation.judged_all``}: ``depcov_percent``
    of all dependencies; ``succrate_percent``; how many functions have each of pylint's errors, got
    no verdict, or have an original that fails; the share of bodies that do nothing; and the changes
    from ``base`` to ``toolgen``, in points.
    """
    return [row for row in repository_rows(frames) if SHOWN.match(row["metric"])]


def offered_rows(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return the percentage of names that the tool offers at their place. Clusters are files."""
    known = [record for record in records if not record["failures"] and record["asked"]]
    marks, asked = ([[record[name]] for record in known] for name in ("marks", "asked"))
    if not known:
        return []
    [share] = averages(marks, [record["file"] for record in known], asked, of_share)
    return [row("", "offered/all", "offered_percent", share.percent())]
