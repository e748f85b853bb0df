"""What the papers report, number by number: the CSVs of ``data/paper`` (its README says what is left out).

Values are as printed (percent stays percent). A number that the paper shows only in a picture is not here: it is
absent, never guessed.
"""

import difflib
from collections.abc import Mapping
from functools import cache

import pandas as pd

from lookuplab import paths
from lookuplab.errors import UserError

COLUMNS = ["paper", "artifact", "model", "condition", "metric", "value", "n", "place", "note"]
KEY = ["model", "condition", "metric"]


def papers() -> list[str]:
    """The papers that have a folder under ``data/paper``."""
    return sorted(folder.name for folder in paths.PAPER.iterdir() if folder.is_dir())


def values(paper: str, artifact: str | None = None) -> pd.DataFrame:
    """Every reported number of a paper or of one artifact (table, figure, ``stated_values``); ``n`` may be NaN."""
    folder = paths.PAPER / paper
    if not folder.is_dir():
        raise UserError(f"no paper {paper!r}; known: {', '.join(papers())}")
    names = sorted(file.stem for file in folder.glob("*.csv"))
    if artifact is None:
        return pd.concat([_read(paper, name) for name in names], ignore_index=True)
    if artifact not in names:
        raise UserError(f"{paper} reports no {artifact!r}; {_nearest(artifact, names)}")
    return _read(paper, artifact).copy()


def value(paper: str, artifact: str, model: str, condition: str, metric: str) -> float:
    """One reported number; UserError with the nearest existing keys if the paper does not give it."""
    table = values(paper, artifact)
    hit = table[(table.model == model) & (table.condition == condition) & (table.metric == metric)]
    if hit.empty:
        wanted = " | ".join([model, condition, metric])
        known = [" | ".join(row) for row in table[KEY].itertuples(index=False)]
        raise UserError(f"{paper}/{artifact} reports no [{wanted}]; {_nearest(wanted, known)}")
    return float(hit.value.iloc[0])


def attach(frame: pd.DataFrame, roles: Mapping[str, str] | None = None, **artifact: str) -> pd.DataFrame:
    """A copy of a tidy frame with ``paper_value`` filled where the paper reports the same quantity.

    The columns ``paper`` and ``artifact`` are needed; ``paper=..., artifact=...`` sets them for a frame without.
    ``roles`` maps our model names to the paper's ({"mini-small": "StarCoder2-3B"}): the comparison is then of the same
    place in a family of sizes, not of the same model. A model without a role is looked up under its own name; what is
    not reported (Figure 1 has no printed number, Table 4 only the largest models) stays NaN. UserError for a role that
    the paper does not have.
    """
    frame, roles = frame.assign(**artifact), dict(roles or {})
    reported = pd.concat([values(paper) for paper in frame["paper"].unique()]) if len(frame) else _empty()
    for ours, theirs in roles.items():
        if theirs not in set(reported.model):
            raise UserError(
                f"role of {ours!r}: no paper model {theirs!r}; {_nearest(theirs, sorted(set(reported.model)))}"
            )
    known = {
        row[:5]: row[5] for row in reported[["paper", "artifact", *KEY, "value"]].itertuples(index=False, name=None)
    }
    model = frame["model"].fillna("").map(lambda name: roles.get(name, name))
    keys = zip(frame["paper"], frame["artifact"], model, frame["condition"], frame["metric"], strict=True)
    return frame.assign(
        paper_value=pd.Series([known.get(key, float("nan")) for key in keys], index=frame.index, dtype=float)
    )


def _empty() -> pd.DataFrame:
    return pd.DataFrame(columns=COLUMNS)


@cache
def _read(paper: str, artifact: str) -> pd.DataFrame:
    text = {name: str for name in COLUMNS if name not in ("value", "n")}
    return pd.read_csv(paths.PAPER / paper / f"{artifact}.csv", dtype=text).fillna({name: "" for name in text})


def _nearest(wanted: str, known: list[str]) -> str:
    close = difflib.get_close_matches(wanted, known, n=3, cutoff=0.4)
    if close:
        return "did you mean " + ", ".join(f"[{name}]" for name in close) + "?"
    return "known: " + ", ".join(known[:12]) + (" ..." if len(known) > 12 else "")
