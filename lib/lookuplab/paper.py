"""What the papers report, number by number: the CSVs of ``data/paper`` (its README says what is
left out).

Values are as printed (percent stays percent). A number that the paper shows only in a picture is
not here: it is absent, never guessed.
"""

import difflib
from collections.abc import Iterable, Mapping
from functools import cache

import pandas as pd

from lookuplab import paths
from lookuplab.errors import UserError

KEY = ["paper", "artifact", "model", "condition", "metric"]
COLUMNS = [*KEY, "value", "n", "place", "note"]


def papers() -> list[str]:
    """The papers that have a folder under ``data/paper``."""
    return sorted(_reported().paper.unique())


def values(paper: str, artifact: str | None = None) -> pd.DataFrame:
    """Every number that a paper reports, or one artifact of it (table, figure, ``stated_values``);
    ``n`` may be NaN.

    Raises UserError with the nearest names for an unknown one.
    """
    table = _reported()
    for column, name in (("paper", paper), ("artifact", artifact or None)):
        if name is not None:
            _check(f"no {column}", name, table[column].unique())
            table = table[table[column] == name]
    return table.reset_index(drop=True)


def value(paper: str, artifact: str, model: str, condition: str, metric: str) -> float:
    """One reported number. Raises UserError with the nearest keys if the paper does not give it."""
    table = values(paper, artifact)
    known = dict(zip(table[KEY[2:]].agg(" | ".join, axis="columns"), table.value, strict=True))
    _check(
        f"{paper}/{artifact} reports no", wanted := " | ".join([model, condition, metric]), known
    )
    return float(known[wanted])


def attach(
    frame: pd.DataFrame, roles: Mapping[str, str] | None = None, **artifact: str
) -> pd.DataFrame:
    """A copy of a tidy frame with ``paper_value`` filled where the paper reports the same quantity,
    NaN elsewhere.

    The columns ``paper`` and ``artifact`` are needed; ``paper=..., artifact=...`` sets them for a
    frame without. ``roles`` maps our model names to the paper's ({"mini-small": "StarCoder2-3B"}):
    the comparison is then of the same place in a family of sizes, not of the same model. A model
    without a role is looked up under its own name. Raises UserError for a role that the paper does
    not have.
    """
    frame, roles = frame.assign(**artifact), dict(roles or {})
    reported = _reported()
    reported = reported[reported.paper.isin(frame.paper)]
    for ours, theirs in roles.items() if len(frame) else ():
        _check(f"role of {ours!r}: no paper model", theirs, reported.model.unique())
    known = reported.set_index(KEY).value.to_dict()
    keys = frame.assign(model=frame.model.fillna("").replace(roles))[KEY].itertuples(
        index=False, name=None
    )
    return frame.assign(
        paper_value=pd.Series([known.get(key) for key in keys], index=frame.index, dtype=float)
    )


@cache
def _reported() -> pd.DataFrame:
    texts = {name: str for name in COLUMNS if name not in ("value", "n")}
    tables = [pd.read_csv(file, dtype=texts) for file in sorted(paths.PAPER.glob("*/*.csv"))]
    return pd.concat(tables, ignore_index=True).fillna(dict.fromkeys(texts, ""))


def _check(problem: str, wanted: str, known: Iterable[str]) -> None:
    known = list(known)
    if wanted not in known:
        close = difflib.get_close_matches(wanted, known, n=3, cutoff=0.4)
        hint = (
            f"did you mean {', '.join(f'[{name}]' for name in close)}?"
            if close
            else f"known: {', '.join(known[:12])}"
        )
        raise UserError(f"{problem} [{wanted}]; {hint}")
