"""The agreement of each instrument with something that knows better, as rows and as the table of
docs/instruments.md: ``python -m lookuplab_notebooks.published.instrument_table`` prints it.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from lookuplab import paths
from lookuplab.paths import PUBLISHED
from lookuplab.results.artifact import read_csv
from lookuplab.scoring.rates import bare_row, rate, row

FIGURES = paths.FIGURES / PUBLISHED / PUBLISHED
SCORES = "CodeBLEU", "BLEU", "AUROC", "ECE"  # how the names of those that give a number begin


def agreement_rows(cases: pd.DataFrame) -> list[dict[str, Any]]:
    """For each instrument, as ``model``, and what it was checked against, as ``condition``: the
    share of cases in which both say the same (verdicts, clustered by the number in their id), or
    the largest difference and the number of cases that differ (scores).
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


def markdown(figures: Path = FIGURES) -> str:
    """The table, from the artifacts ``instruments`` and ``near_misses`` of a folder."""
    found = read_csv(figures / "instruments.csv")
    differing = found[found.metric.eq("differing_cases")].set_index("model").value.to_dict()
    lines = ["| Instrument | Checked against | n | Agreement |", "|---|---|---|---|"]
    for each in [*found.itertuples(), *_near(figures / "near_misses.csv")]:
        if each.metric == "differing_cases":
            continue
        if each.metric == "largest_difference":
            more = differing[each.model]
            said = f"{more:.0f} differ, by at most {each.value:.2g}" if more else "none differs"
        else:
            unit, digits = ("%", 1) if each.metric == "agreement_percent" else ("", 2)
            ends = f"[{each.ci_low:.{digits}f}, {each.ci_high:.{digits}f}]"
            said = f"{each.value:.{digits}f}{unit} {ends}"
            said = said if unit else f"kappa {said}"
        lines.append(f"| {each.model} | {each.condition} | {each.n:,.0f} | {said} |")
    return "\n".join(lines)


def _near(file: Path) -> Iterable[Any]:
    """The agreement of readers and rules, in the same form; nothing before there are labels."""
    if not file.exists():
        return []
    rows = read_csv(file).query("metric == 'kappa'")
    rows = rows[rows.condition.str.fullmatch("readers|.*/held-out")]
    is_reader = rows.condition.eq("readers")
    names = rows.condition.str.removesuffix("/held-out").radd("near misses, rule ")
    against = is_reader.map({True: "another reader", False: "what both readers say, held out"})
    names = names.where(~is_reader, "near misses, a reader")
    return rows.assign(model=names, condition=against).itertuples()


if __name__ == "__main__":
    print(markdown())
