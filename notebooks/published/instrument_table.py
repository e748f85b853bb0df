"""The agreement of each instrument with a better-informed reference, as rows."""

from typing import Any

import pandas as pd

from lookuplab.scoring.rates import bare_row, rate, row

# instruments whose names begin so give a number, not a verdict
SCORES = "CodeBLEU", "BLEU", "AUROC", "ECE"


def agreement_rows(cases: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows for each instrument (``model``) and its reference (``condition``): the percentage
    of cases in which both agree (verdicts, clustered by the number in their id), or the largest
    difference and the number of cases that differ (scores).
    """
    rows = []
    for key, some in cases.groupby(["instrument", "against"], sort=False):
        if key[0].startswith(SCORES):
            most = float(some.difference.max())
            rows.append(bare_row(*key, "largest_difference", most, len(some)))
            differing = int(some.difference.gt(0).sum())
            rows.append(bare_row(*key, "differing_cases", differing, len(some)))
        else:
            same = some.difference.eq(0)
            number = rate(same, some.id.str.split().str[-1]).percent()
            rows.append(row(*key, "agreement_percent", number))
    return rows
