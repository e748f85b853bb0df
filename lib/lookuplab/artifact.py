"""A table or figure as files: picture (SVG and PNG), the numbers behind it (CSV), where they come
from (JSON).

Picture and CSV are byte-identical whenever the numbers are; what changes from run to run is in the
JSON alone.
"""

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookuplab import paths, provenance
from lookuplab.errors import UserError
from lookuplab.paths import replacing

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

KEY = ("paper", "artifact", "model", "condition", "metric")
COLUMNS = (*KEY, "value", "ci_low", "ci_high", "n", "paper_value")
REQUIRED = ("model", "condition", "metric", "value")
_FLOATS = ("value", "ci_low", "ci_high", "paper_value")
_DIGITS = 6  # significant: below the noise of any rate, above that of float32


@dataclass(frozen=True)
class Artifact:
    """One table or figure in the making; ``begun`` is when (seconds, monotonic), for the wall time."""

    paper: str
    name: str
    profile: str
    begun: float

    @classmethod
    def begin(cls, paper: str, name: str, profile: str = "mini") -> "Artifact":
        """From here on pandas computes the same whatever else is installed."""
        import pandas as pd

        pd.set_option("compute.use_bottleneck", False, "compute.use_numexpr", False)
        return cls(paper, name, profile, time.monotonic())

    @property
    def folder(self) -> Path:
        """``figures/<profile>/<paper>``, below ``$LOOKUPLAB_FIGURES`` if the runner sets it."""
        return (
            Path(os.environ.get("LOOKUPLAB_FIGURES") or paths.FIGURES) / self.profile / self.paper
        )

    def save(
        self,
        frame: "pd.DataFrame",
        figure: "Figure | None" = None,
        *,
        models: Iterable[Any] = (),
        data: Iterable[str | Path] = (),
        seeds: Mapping[str, int] | int | None = None,
        parameters: Mapping[str, Any] | None = None,
        timed: bool = False,
    ) -> "pd.DataFrame":
        """Write ``<name>.csv``, ``.json`` and, with a figure, ``.svg`` and ``.png``; return the
        rows as written.

        ``frame`` has one row per number: model, condition, metric, value and, if they exist,
        ci_low, ci_high, n and paper_value; paper and artifact are filled in. ``models`` and
        ``data`` are those of ``provenance.describe``; ``parameters`` are added to the notebook's
        own. ``timed`` says that the numbers are times or speeds, which no second run repeats.
        Raises UserError for an unknown or missing column, a row that occurs twice, an interval
        whose ends are swapped, and a disk that cannot be written.
        """
        table = self._checked(frame)
        record = {
            "paper": self.paper,
            "artifact": self.name,
            "profile": self.profile,
            "timed": timed,
            "seeds": seeds,
            "parameters": provenance.relative(
                json.loads(os.environ.get("LOOKUPLAB_PARAMETERS", "{}")) | dict(parameters or {})
            ),
            **provenance.describe(models, data),
            "wall_seconds": round(time.monotonic() - self.begun, 2),
            "peak_memory_mb": provenance.peak_memory_mb(),
        }
        place = self.folder / self.name
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            _write(place.with_suffix(".csv"), to_csv(table))
            if figure is not None:
                _save_figure(figure, place)
            _write(place.with_suffix(".json"), json.dumps(record, indent=1, sort_keys=True) + "\n")
        except OSError as error:
            raise UserError(
                f"cannot write {place}.*: {error.strerror}; free or allow the place"
            ) from error
        return table

    def _checked(self, frame: "pd.DataFrame") -> "pd.DataFrame":
        def refuse(problem: str) -> None:
            raise UserError(f"{self.paper}/{self.name}: {problem}")

        if extra := sorted(set(frame.columns) - set(COLUMNS)):
            refuse(f"column {extra[0]!r} is not in the schema ({', '.join(COLUMNS)})")
        if missing := sorted(set(REQUIRED) - set(frame.columns)):
            refuse(f"column {missing[0]!r} is missing (needed: {', '.join(REQUIRED)})")
        table = (
            frame.assign(paper=self.paper, artifact=self.name)
            .reindex(columns=list(COLUMNS))
            .reset_index(drop=True)
        )
        for wrong, said in (
            (table.duplicated(list(KEY)), "two numbers for"),
            (
                table.ci_low.astype(float) > table.ci_high.astype(float),
                "ci_low is above ci_high for",
            ),
        ):
            if wrong.any():
                refuse(f"{said} {' / '.join(map(str, table.loc[wrong.idxmax(), list(KEY[2:])]))}")
        return table


def to_csv(table: "pd.DataFrame") -> str:
    """The one written form: six significant digits, ``n`` a whole number, nothing if there is none."""
    written = table.astype(object)
    for column in _FLOATS:  # + 0.0: no "-0"
        written[column] = [
            "" if _empty(value) else f"{float(value) + 0.0:.{_DIGITS}g}" for value in table[column]
        ]
    written["n"] = ["" if _empty(value) else str(int(value)) for value in table["n"]]
    return written.to_csv(index=False, lineterminator="\n")


def read_csv(file: Path) -> "pd.DataFrame":
    """An artifact's CSV with its numbers as floats (NaN if empty). Raises UserError if it breaks
    the schema.
    """
    import pandas as pd

    numbers = (*_FLOATS, "n")
    try:
        table = pd.read_csv(
            file,
            keep_default_na=False,
            na_values=dict.fromkeys(numbers, [""]),
            dtype=dict.fromkeys(numbers, float) | dict.fromkeys(KEY, str),
        )
    except (ValueError, OSError) as error:
        raise UserError(f"{file} is not an artifact's CSV: {error}") from error
    if tuple(table.columns) != COLUMNS:
        raise UserError(
            f"{file}: the columns are {', '.join(table.columns)}, not {', '.join(COLUMNS)}"
        )
    return table


def readable(table: "pd.DataFrame", digits: int = 1) -> "pd.Series":
    """Each row's number with its interval and n, as a text for a notebook's table: ``59.3 [48.5,
    69.7] n=150``.
    """

    def text(row: Any) -> str:
        interval = (
            "" if _empty(row.ci_low) else f" [{row.ci_low:.{digits}f}, {row.ci_high:.{digits}f}]"
        )
        return f"{row.value:.{digits}f}{interval}" + ("" if _empty(row.n) else f" n={int(row.n)}")

    return table.apply(text, axis="columns")


def _empty(value: Any) -> bool:
    return value is None or value != value or str(value) == "<NA>"


def _save_figure(figure: "Figure", place: Path) -> None:
    """Without the date, the drawing library's name and random ids, so that equal pictures are
    equal files.
    """
    import matplotlib

    with (
        matplotlib.rc_context({"svg.hashsalt": "lookuplab"}),
        replacing(place.with_suffix(".svg")) as part,
    ):
        figure.savefig(
            part, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight"
        )
    with replacing(place.with_suffix(".png")) as part:
        figure.savefig(
            part, format="png", metadata={"Software": None}, bbox_inches="tight", dpi=150
        )


def _write(file: Path, content: str) -> None:
    with replacing(file) as part:
        part.write_text(content, encoding="utf-8", newline="\n")
