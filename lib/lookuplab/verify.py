"""Compares fresh numbers with committed ones, one by one."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lookuplab.artifact import KEY, read_csv
from lookuplab.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

EQUAL, INSIDE, DIFFERENT, TIMED = "equal", "inside the interval", "different", "timed"


@dataclass(frozen=True)
class Comparison:
    """One artifact. ``rows`` has the key columns, ``committed``, ``fresh`` and ``status`` (one of the four above)."""

    artifact: str
    rows: "pd.DataFrame"
    committed_processor: str
    fresh_processor: str

    def count(self, status: str) -> int:
        return int((self.rows.status == status).sum())


def compare_folders(committed: Path, fresh: Path, paper: str | None = None) -> list[Comparison]:
    """Every artifact on either side, ``<paper>/<artifact>.csv`` below both folders; one that is missing differs whole.

    Raises UserError where there is nothing to compare, or a CSV breaks the schema.
    """
    def below(folder: Path) -> set[str]:
        return {f"{file.parent.name}/{file.stem}" for file in folder.glob(f"{paper or '*'}/*.csv")}

    check_committed(committed, paper)
    if not below(fresh):
        raise UserError(f"no fresh numbers below {fresh}{_of(paper)}; it must hold PAPER/ARTIFACT.csv")
    return [compare(name, committed / name, fresh / name) for name in sorted(below(committed) | below(fresh))]


def check_committed(committed: Path, paper: str | None = None) -> None:
    """Raise UserError where there are no numbers to compare with: worth knowing before notebooks run for minutes."""
    if not any(committed.glob(f"{paper or '*'}/*.csv")):
        raise UserError(f"no committed numbers below {committed}{_of(paper)}; make them with `lookuplab reproduce`")


def _of(paper: str | None) -> str:
    return f" for {paper!r}" if paper else ""


def compare(name: str, committed: Path, fresh: Path) -> Comparison:
    """One artifact's two CSVs (paths without extension), row by row by the schema's key."""
    old, new = _table(committed), _table(fresh)
    one, other = _provenance(committed), _provenance(fresh)
    both = old.merge(new, on=list(KEY), how="outer", suffixes=("_committed", "_fresh"), indicator=True, sort=True)
    timed = bool(one.get("timed") or other.get("timed"))
    both["status"] = [TIMED if timed else _status(row) for _, row in both.iterrows()]  # also where it did not run
    rows = both.rename(columns={"value_committed": "committed", "value_fresh": "fresh"})
    return Comparison(name, rows[[*KEY, "committed", "fresh", "status"]],
                      one.get("processor", "unknown"), other.get("processor", "unknown"))


def _status(row: "pd.Series") -> str:
    """Equal in value, interval and n; or a fresh value inside the committed interval; or different."""
    if row["_merge"] != "both":
        return DIFFERENT
    if all(_same(row[f"{name}_committed"], row[f"{name}_fresh"]) for name in ("value", "ci_low", "ci_high", "n")):
        return EQUAL
    inside = row["ci_low_committed"] <= row["value_fresh"] <= row["ci_high_committed"]
    return INSIDE if inside else DIFFERENT


def _same(one: float, other: float) -> bool:
    return one == other or (one != one and other != other)


def _table(stem: Path) -> "pd.DataFrame":
    import pandas as pd

    from lookuplab.artifact import COLUMNS

    file = stem.with_name(stem.name + ".csv")
    if not file.exists():
        return pd.DataFrame({name: pd.Series(dtype=str if name in KEY else float) for name in COLUMNS})
    table = read_csv(file)
    if (twice := table.duplicated(list(KEY))).any():
        line = int(twice.idxmax()) + 2
        raise UserError(f"{file}, line {line}: a second number for the same model, condition and metric")
    return table


def _provenance(stem: Path) -> dict:
    try:
        return json.loads(stem.with_name(stem.name + ".json").read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        return {}
