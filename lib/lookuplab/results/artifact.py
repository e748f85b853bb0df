"""Saves a table or figure as files: its numbers (CSV), their provenance (JSON), a picture that is
drawn from the CSV alone (SVG and PNG), and its result in a sentence (TXT).

Equal numbers give byte-identical CSVs, pictures and sentences. Only the JSON differs from run to
run.
"""

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models.names import table_name
from lookuplab.results import provenance
from lookuplab.results.provenance import figures_of, kernel_parameters
from lookuplab.work import check_memory

if TYPE_CHECKING:
    from IPython.display import Markdown
    from matplotlib.figure import Figure

ROW_KEY = ("paper", "artifact", "model", "condition", "metric")
NUMBERS = ("value", "ci_low", "ci_high", "n", "clusters", "paper_value")
ARTIFACT_COLUMNS = (*ROW_KEY, *NUMBERS)
REQUIRED = {"model", "condition", "metric", "value"}
MOST_ROWS = 12  # the largest number of lines of a table that `lookuplab run` prints
WIDTH = 120  # the largest number of characters in such a line


@dataclass(frozen=True)
class Artifact:
    """One table or figure of a notebook.

    ``begun`` is when this object was created. ``save`` records the seconds since then. The files
    are written below the folder ``figures``; ``place`` says which folder this is by default.
    """

    paper: str
    name: str
    profile: str = "mini"
    figures: Path | None = None
    begun: float = field(default_factory=time.monotonic)
    # Keys are (a number that ``quote`` returned, its n), both as texts. ``tell`` appends the n of
    # each number that its text quotes. A dictionary keeps the order, which a set would not.
    quoted: dict[tuple[str, str], None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # raises UserError for a wrong parameter, before the notebook computes anything
        kernel_parameters()

    @cached_property
    def place(self) -> Path:
        """Return the path of the artifact's files without suffix: ``<profile>/<paper>/<name>``
        below the folder ``figures``.

        If ``figures`` is None, the runner decides by the environment variable LOOKUPLAB_FIGURES.
        Without the runner, as in JupyterLab, the folder is below ``runs``, because only the runner
        may replace committed figures.
        """
        folder = Path(self.paper, self.name)
        return (self.figures or figures_of(str(folder))) / self.profile / folder

    def save(
        self,
        frame: pd.DataFrame,
        *,
        models: Iterable[Any] = (),
        data: Iterable[str | Path] = (),
        seeds: Mapping[str, int] | int | None = None,
        parameters: Mapping[str, Any] | None = None,
        timed: bool = False,
    ) -> pd.DataFrame:
        """Write ``<name>.csv`` and ``<name>.json``, and return the rows as written. Print the path
        of the CSV, and how many of the answers that this kernel has used are empty or cut off.

        ``frame`` has one row per number. The columns model, condition, metric and value are
        required. The columns ci_low, ci_high, n, clusters (the number of clusters among the n
        values) and paper_value are optional. The columns paper and artifact are added.

        ``models`` and ``data`` are passed to ``provenance.describe``. The JSON also records
        ``seeds``, the notebook's parameters and the further ``parameters``. ``timed`` says that the
        numbers are times or speeds, which vary from run to run.

        Raises UserError for an unknown or missing column, a duplicate row, or an interval whose
        lower end is above its upper end.
        """
        from lookuplab.models.completions import unfinished_answers

        check_memory()
        table = self._check_columns(frame)
        record = {
            "paper": self.paper,
            "artifact": self.name,
            "profile": self.profile,
            "timed": timed,
            "seeds": seeds,
            "parameters": provenance.publishable(kernel_parameters() | dict(parameters or {})),
            **provenance.describe(models, data),
            "wall_seconds": round(time.monotonic() - self.begun, 2),
        }
        paths.write_text(self.place.with_suffix(".csv"), to_csv(table))
        text = json.dumps(record, indent=1, sort_keys=True)
        paths.write_lines(self.place.with_suffix(".json"), [text])
        _append_to_screen(screen_lines(self.place.with_suffix(".csv")))
        # if the user executes the notebook, the full path is printed, because the user's working
        # folder may not be the checkout
        is_run = "LOOKUPLAB_FIGURES" in os.environ
        print(f"written: {provenance.relative(self.place) if is_run else self.place}.csv")
        for line in unfinished_answers():
            print(line)
        return table

    def read(self) -> pd.DataFrame:
        """Return the rows of the saved CSV, from which pictures are drawn."""
        return read_csv(self.place.with_suffix(".csv"))

    def draw(self, figure: "Figure") -> "Figure":
        """Write the figure to ``<name>.svg`` and ``<name>.png``, and return it. The files contain
        no date, library name, random id or path of this machine, so that equal figures give equal
        files.
        """
        import matplotlib
        from matplotlib.text import Text

        for shown in figure.findobj(Text):
            if (text := shown.get_text()) != (public := self._publishable_text(text)):
                shown.set_text(public)
        vector = {"format": "svg", "metadata": {"Date": None, "Creator": None}}
        pixels = {"format": "png", "metadata": {"Software": None}, "dpi": 150}
        for options in (vector, pixels):
            with (
                matplotlib.rc_context({"svg.hashsalt": "lookuplab"}),
                paths.replacing(self.place.with_suffix(f".{options['format']}")) as part,
            ):
                figure.savefig(part, bbox_inches="tight", **options)
        return figure

    def quote(
        self,
        condition: str,
        metric: str,
        model: str = "",
        digits: int = 1,
    ) -> str:
        """Return a saved number with its interval, for a sentence: ``59.3% [48.5, 69.7]``.

        ``model`` is written as in a notebook's parameter: a folder, a name on the hub or an
        address. Without ``model``, return the number in the last row of the CSV with this condition
        and metric. If there is no such number, return "not measured".
        """
        saved = self.read()
        matches = saved[(saved.condition == condition) & (saved.metric == metric)]
        if model:
            matches = matches[matches.model == table_name(model)]
        if matches.empty:
            return "not measured"
        row = matches.iloc[-1]
        unit = {"percent": "%", "points": " points"}.get(metric.rpartition("_")[2], "")
        text = _with_interval(row, digits, unit)
        if row.n > 1:
            within = f" ({row.clusters:.0f} clusters)" if row.clusters < row.n else ""
            self.quoted[text, f"{row.n:,.0f}{within}"] = None
        return text

    def tell(self, text: str) -> "Markdown":
        """Write ``text``, the result in words, to ``<name>.txt``, from which RESULTS.md quotes it.
        The sample sizes (n) of the quoted numbers are appended. Return the text as Markdown, for
        the notebook to show.

        Names of models and paths of this machine are first shortened (``_publishable_text``).
        """
        from IPython.display import Markdown

        text = self._publishable_text(text)
        if counts := dict.fromkeys(n for quote, n in self.quoted if quote in text):
            text += f" n = {', '.join(counts)}."
        paths.write_lines(self.place.with_suffix(".txt"), [text])
        _append_to_screen(["", text, ""])
        return Markdown(text)

    def _publishable_text(self, text: str) -> str:
        """Return ``text`` with the values of the notebook's parameters made fit for publication: a
        model is named as in tables, and a path is shortened (``provenance.publishable``).
        """
        given = kernel_parameters() or read_record(self.place)["parameters"]
        names = {}
        for parameter, value in given.items():
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, str) and item:
                    is_model = re.search("models?$", parameter)
                    names[item] = table_name(item) if is_model else provenance.publishable(item)
        # longest first, because one value may contain another
        for item in sorted(names, key=len, reverse=True):
            text = text.replace(item, names[item])
        return text

    def _check_columns(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the frame with all columns of an artifact. Raises the UserErrors of ``save``."""
        required = REQUIRED if len(frame) else set()  # an empty frame has no columns
        for name in {*frame}.difference(ARTIFACT_COLUMNS) | required.difference(frame):
            raise UserError(
                f"{self.paper}/{self.name}: columns {', '.join(ARTIFACT_COLUMNS)}; "
                f"unknown or missing: {name}"
            )
        table = frame.assign(paper=self.paper, artifact=self.name)
        table = table.reindex(columns=[*ARTIFACT_COLUMNS]).reset_index(drop=True)
        twice = table.duplicated(list(ROW_KEY))
        invalid = table[twice | (table.ci_low.astype(float) > table.ci_high.astype(float))]
        for row in invalid.itertuples():
            raise UserError(
                f"{self.paper}/{self.name}: two numbers, or ci_low above ci_high, "
                f"for {row.model} / {row.condition} / {row.metric}"
            )
        return table


def to_csv(table: pd.DataFrame) -> str:
    """Return the table as CSV. Numbers have six significant digits, which is finer than the
    sampling noise of any rate and coarser than the rounding noise of float32.

    ``n`` and ``clusters`` are whole numbers. A missing number is an empty cell.
    """
    numbers = table[[*NUMBERS]].astype(float) + 0.0  # turns -0 into 0
    whole = numbers[["n", "clusters"]].round().astype("Int64")
    return str(table.assign(**numbers).assign(**whole).to_csv(index=False, float_format="%.6g"))


def read_csv(file: Path) -> pd.DataFrame:
    """Return the rows of an artifact's CSV, with numbers as floats; an empty cell is NaN. Raises
    UserError if the file cannot be read or lacks a column.
    """
    try:
        return _frame(file.read_bytes()).copy()
    except (ValueError, OSError) as error:
        raise UserError(f"{file} is not an artifact's CSV: {error}") from error


@lru_cache(maxsize=512)  # to write a page, each file is read several times
def _frame(content: bytes) -> pd.DataFrame:
    types = dict.fromkeys(ROW_KEY, str) | dict.fromkeys(NUMBERS, float)
    empty = dict.fromkeys(NUMBERS, "")
    return pd.read_csv(
        BytesIO(content), usecols=[*types], keep_default_na=False, na_values=empty, dtype=types
    )


def read_record(place: Path) -> dict[str, Any]:
    """Return the provenance that ``save`` wrote to the JSON at ``place`` (without suffix). Raises
    UserError if the JSON is damaged or lacks the notebook's parameters.
    """
    file = place.with_suffix(".json")
    record = parse_record(file, file.read_bytes())
    if not isinstance(record.get("parameters"), dict):
        raise UserError(f"{file} has no parameters: run its notebook again")
    return record


def parse_record(file: str | Path, content: bytes) -> dict[str, Any]:
    """Return the provenance in the ``content`` of an artifact's JSON. Raises UserError, which names
    the ``file``, if the content is not what ``save`` writes.
    """
    try:
        return {**paths.parse(json.loads, content)}
    except (ValueError, TypeError) as error:  # TypeError: it is not a dictionary
        raise UserError(f"{file} is damaged ({error}): run its notebook again") from error


def _with_interval(row: Any, digits: int, unit: str = "") -> str:
    """Return a row's number with its interval, such as ``59.3% [48.5, 69.7]``. A whole number that
    has no interval is written without decimals.
    """
    if pd.isna(row.ci_low):
        return f"{row.value:,.{digits if row.value % 1 else 0}f}{unit}"
    value, low, high = (f"{number:,.{digits}f}" for number in (row.value, row.ci_low, row.ci_high))
    return f"{value}{unit} [{low}, {high}]"


def readable(table: pd.DataFrame, digits: int | None = None) -> pd.Series:
    """Return each row's number as text for a notebook's table, with interval and n: ``59.3 [48.5,
    69.7] n=150``. Numbers without an interval (counts, p values) are shown alone.

    ``digits`` is the number of decimals. By default, percentages, points and numbers of 10 or
    more have one, and other numbers have three.
    """

    def text(row: Any) -> str:
        if pd.isna(row.ci_low):
            return f"{row.value:.3g}" if row.value % 1 else f"{row.value:.0f}"
        n = "" if pd.isna(row.n) else f" n={row.n:.0f}"
        is_share = row.metric.endswith(("percent", "points")) or abs(row.value) >= 10
        places = (1 if is_share else 3) if digits is None else digits
        return f"{_with_interval(row, places)}{n}"

    return table.apply(text, axis="columns")


def side_by_side(
    rows: Iterable[dict[str, Any]] | pd.DataFrame,
    metrics: Sequence[str] | None = None,
    digits: int | None = None,
) -> pd.DataFrame:
    """Return a table of texts (see ``readable``) with one line per model and condition and one
    column per metric, both in order of appearance in ``rows``. ``metrics`` selects and orders the
    columns instead. If a row has the paper's value, the row's text shows this value after ours.
    """
    table = pd.DataFrame(rows)
    if metrics and len(table):
        table = table[table.metric.isin(metrics)]
    if table.empty:
        return table
    texts = readable(table, digits)
    if "paper_value" in table:
        paper = table.paper_value.map(" (paper {:.4g})".format)
        texts += paper.where(table.paper_value.notna(), "")
    keys = ["model", "condition", "metric"]
    wide = table.assign(text=texts).set_index(keys).text.unstack(fill_value="", sort=False)
    return wide[[name for name in metrics or wide if name in wide]]


def screen_lines(file: Path) -> Iterator[str]:
    """Yield the lines that show an artifact's CSV on a terminal: the part of the table that fits on
    one screen, and then the number of lines and of metrics that are left out.
    """
    table = side_by_side(read_csv(file))
    # leave out metrics from the end until the lines are short enough
    for shown_metrics in range(len(table.columns), 0, -1):
        part = table.iloc[:, :shown_metrics]
        part = part[part.ne("").any(axis=1)].head(MOST_ROWS).reset_index()
        text = part.to_string(index=False, max_colwidth=40)
        if len(text.partition("\n")[0]) <= WIDTH:
            break
    yield text
    counts = {"line": len(table) - len(part), "metric": len(table.columns) - shown_metrics}
    if more := [
        f"{count} more {what}{'s' if count > 1 else ''}" for what, count in counts.items() if count
    ]:
        yield f"... {' and '.join(more)}: {file}"


def _append_to_screen(lines: Iterable[str]) -> None:
    """Append lines to what `lookuplab run` prints at its end, if `lookuplab run` started this
    process.
    """
    from lookuplab.models.store import SCREEN, log_file

    if file := log_file(SCREEN):
        with file.open("a", encoding="utf-8") as screen:
            screen.writelines(f"{line}\n" for line in lines)
