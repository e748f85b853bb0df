"""The agreement of each instrument with a better-informed reference, as rows and as the table of
docs/instruments.md: ``python -m lookuplab_notebooks.published.instrument_table`` prints it.
"""

from pathlib import Path
from typing import Any

import pandas as pd

from lookuplab import paths
from lookuplab.paths import PUBLISHED
from lookuplab.results.artifact import read_csv
from lookuplab.scoring.rates import bare_row, rate, row
from lookuplab_notebooks.published import documents

FIGURES = paths.FIGURES / PUBLISHED / PUBLISHED
# the users of instruments whose names do not say it
USERS = {"body in a chat answer": "ToolGen, body in a chat answer"}
USERS |= {
    name: f"CloudAPIBench, {name}"
    for name in ("code in a chat answer", "end of a call", "validity of a call")
}
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


def markdown(figures: Path = FIGURES) -> str:
    """Return the table, from the artifacts of published answers in a folder."""
    found = read_csv(figures / "instruments.csv").replace({"model": USERS})
    differing = found[found.metric.eq("differing_cases")].set_index("model").value.to_dict()
    lines = ["| Instrument | Checked against | n | Agreement |", "|---|---|---|---|"]
    rules = read_csv(figures / "apibench_rule.csv").query("condition == 'agreement/all'")
    rules = rules[rules.metric.str.endswith("percent")].assign(condition="its authors' rule")
    rules["model"] = rules.model.radd("Gorilla, a clean rule, answers of ")
    lines += [_counted(*counts) for counts in (_grader(figures), _gorilla())]
    for each in pd.concat([rules, found, _near(figures)]).itertuples():
        if each.metric == "differing_cases":
            continue
        if each.metric == "largest_difference":
            more = differing[each.model]
            said = f"{more:.0f} differ, by at most {each.value:.2g}" if more else "none differs"
        else:
            unit, digits = ("%", 1) if each.metric.endswith("percent") else ("", 2)
            ends = f"[{each.ci_low:.{digits}f}, {each.ci_high:.{digits}f}]"
            said = f"{each.value:.{digits}f}{unit} {ends}"
            said = said if unit else f"kappa {said}"
        lines.append(f"| {each.model} | {each.condition} | {each.n:,.0f} | {said} |")
    return "\n".join(lines)


def _counted(name: str, against: str, apart: pd.Series, unit: str) -> str:
    """Return a line about counts that were computed twice, from the distance of each."""
    far = apart[apart != 0].abs()
    said = f"{len(apart) - len(far)} equal"
    said += f", {len(far)} apart by at most {far.max():.0f} {unit}" if len(far) else ""
    return f"| {name} | {against} | {len(apart)} | {said} |"


def _grader(figures: Path) -> tuple[str, str, pd.Series, str]:
    rows = read_csv(figures / "ds1000.csv").query("metric == 'apart_problems'")
    rows = rows[rows.condition != "all"]
    return "DS-1000's grader", "printed pass rates of models and libraries", rows.value, "problem"


def _gorilla() -> tuple[str, str, pd.Series, str]:
    apart = (documents.counts(documents.load()) - documents.official_counts()).abs().sum(axis=1)
    return "Gorilla, its authors' rule", "what their scripts count, by file", apart, "answers"


def _near(figures: Path) -> pd.DataFrame:
    """Return the agreement of readers and rules on near misses, in the same form."""
    rows = read_csv(figures / "near_misses.csv").query("metric == 'kappa'")
    rows = rows[rows.condition.str.fullmatch("readers|.*/held-out")]
    is_reader = rows.condition.eq("readers")
    names = rows.condition.str.removesuffix("/held-out").radd("near misses, rule ")
    against = is_reader.map({True: "another reader", False: "what both readers say, held out"})
    names = names.where(~is_reader, "near misses, a reader")
    return rows.assign(model=names, condition=against)


if __name__ == "__main__":
    print(markdown())
