"""A table or figure as files: the numbers (CSV), where they come from (JSON), and the picture drawn from the CSV alone.

Picture and CSV are byte-identical whenever the numbers are; what changes from run to run is in the JSON alone.
"""

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
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
REQUIRED = {"model", "condition", "metric", "value"}
_NUMBERS = ("value", "ci_low", "ci_high", "n", "paper_value")


@dataclass(frozen=True)
class Artifact:
    """One table or figure; its wall time is counted from here, and pandas computes the same whatever is installed."""

    paper: str
    name: str
    profile: str = "mini"
    begun: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        import pandas as pd

        pd.set_option("compute.use_bottleneck", False, "compute.use_numexpr", False)

    @property
    def place(self) -> Path:
        """``figures/<profile>/<paper>/<name>``, below ``$LOOKUPLAB_FIGURES`` if the runner sets it."""
        figures = Path(os.environ.get("LOOKUPLAB_FIGURES") or paths.FIGURES)
        return figures / self.profile / self.paper / self.name

    def save(
        self,
        frame: "pd.DataFrame",
        *,
        models: Iterable[Any] = (),
        data: Iterable[str | Path] = (),
        seeds: Mapping[str, int] | int | None = None,
        parameters: Mapping[str, Any] | None = None,
        timed: bool = False,
    ) -> "pd.DataFrame":
        """Write ``<name>.csv`` and ``.json``; return the rows as written.

        ``frame`` has one row per number: model, condition, metric, value and, if they exist, ci_low, ci_high, n and
        paper_value; paper and artifact are filled in. ``models`` and ``data`` are those of ``provenance.describe``;
        ``parameters`` are added to the notebook's own. ``timed`` says that the numbers are times or speeds, which no
        second run repeats. Raises UserError for an unknown or missing column, a row that occurs twice, an interval
        whose ends are swapped, and a disk that cannot be written.
        """
        table = self._checked(frame)
        own = json.loads(os.environ.get("LOOKUPLAB_PARAMETERS", "{}"))
        record = {
            "paper": self.paper,
            "artifact": self.name,
            "profile": self.profile,
            "timed": timed,
            "seeds": seeds,
            "parameters": provenance.relative(own | dict(parameters or {})),
            **provenance.describe(models, data),
            "wall_seconds": round(time.monotonic() - self.begun, 2),
            "peak_memory_mb": provenance.peak_memory_mb(),
        }
        self._write(".csv", lambda part: part.write_text(to_csv(table), encoding="utf-8"))
        text = json.dumps(record, indent=1, sort_keys=True) + "\n"
        self._write(".json", lambda part: part.write_text(text, encoding="utf-8"))
        return table

    def read(self) -> "pd.DataFrame":
        """The saved rows: what a picture is drawn from."""
        return read_csv(self.place.with_suffix(".csv"))

    def draw(self, figure: "Figure") -> "Figure":
        """Write ``<name>.svg`` and ``.png``: without a date, a library's name and random ids, so that equal pictures are
        equal files.
        """
        import matplotlib

        vector = {"format": "svg", "metadata": {"Date": None, "Creator": None}}
        pixels = {"format": "png", "metadata": {"Software": None}, "dpi": 150}
        with matplotlib.rc_context({"svg.hashsalt": "lookuplab"}):
            self._write(".svg", lambda part: figure.savefig(part, bbox_inches="tight", **vector))
        self._write(".png", lambda part: figure.savefig(part, bbox_inches="tight", **pixels))
        return figure

    def _write(self, suffix: str, write: Any) -> None:
        file = self.place.with_suffix(suffix)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with replacing(file) as part:
                write(part)
        except OSError as error:
            raise UserError(
                f"cannot write {file}: {error.strerror}; free or allow the place"
            ) from error

    def _checked(self, frame: "pd.DataFrame") -> "pd.DataFrame":
        wrong = set(frame.columns) - set(COLUMNS) or REQUIRED - set(frame.columns)
        if wrong:
            raise UserError(
                f"{self.paper}/{self.name}: columns {', '.join(COLUMNS)}; unknown or missing: {min(wrong)}"
            )
        table = frame.assign(paper=self.paper, artifact=self.name).reindex(columns=list(COLUMNS))
        table = table.reset_index(drop=True)
        swapped = table.ci_low.astype(float) > table.ci_high.astype(float)
        for rows, said in (
            (table.duplicated(list(KEY)), "two numbers"),
            (swapped, "ci_low is above ci_high"),
        ):
            if rows.any():
                names = " / ".join(map(str, table.loc[rows.idxmax(), list(KEY[2:])]))
                raise UserError(f"{self.paper}/{self.name}: {said} for {names}")
        return table


def to_csv(table: "pd.DataFrame") -> str:
    """The one written form: six significant digits (below the noise of any rate, above that of float32), ``n`` a whole
    number, nothing if there is none.
    """
    written = table.astype(object)
    for column in _NUMBERS:  # + 0.0: no "-0"
        texts = (
            f"{float(value) + 0.0:.6g}" if column != "n" else str(int(value))
            for value in table[column].dropna()
        )
        written[column] = ""
        written.loc[table[column].notna(), column] = list(texts)
    return written.to_csv(index=False, lineterminator="\n")


def read_csv(file: Path) -> "pd.DataFrame":
    """An artifact's CSV with its numbers as floats (NaN if empty). Raises UserError if it breaks the schema."""
    import pandas as pd

    types = dict.fromkeys(_NUMBERS, float) | dict.fromkeys(KEY, str)
    empty = dict.fromkeys(_NUMBERS, [""])
    try:
        table = pd.read_csv(file, keep_default_na=False, na_values=empty, dtype=types)
    except (ValueError, OSError) as error:
        raise UserError(f"{file} is not an artifact's CSV: {error}") from error
    if tuple(table.columns) != COLUMNS:
        raise UserError(
            f"{file}: the columns are {', '.join(table.columns)}, not {', '.join(COLUMNS)}"
        )
    return table


def readable(table: "pd.DataFrame", digits: int = 1) -> "pd.Series":
    """Each row's number with its interval and n, as a text for a notebook's table: ``59.3 [48.5, 69.7] n=150``."""
    import pandas as pd

    def text(row: Any) -> str:
        interval = (
            "" if pd.isna(row.ci_low) else f" [{row.ci_low:.{digits}f}, {row.ci_high:.{digits}f}]"
        )
        return f"{row.value:.{digits}f}{interval}" + ("" if pd.isna(row.n) else f" n={int(row.n)}")

    return table.apply(text, axis="columns")
