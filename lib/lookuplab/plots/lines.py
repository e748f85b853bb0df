"""Numbers over an axis: conditions in order, or a quantity that was varied."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lookuplab.plots import look
from lookuplab.plots.look import canvas, colours, legend, mark_paper

MARKERS_UP_TO = 15  # points on a line; beyond that the markers would hide it
TICKS_UP_TO = 6  # values of x: each is named, so that no half document is


def line_with_band(
    frame: pd.DataFrame,
    metric: str,
    x: Sequence[str] | Mapping[str, float],
    *,
    lines: str = "model",
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    log: bool = False,
) -> Figure:
    """One line per ``lines`` value over the conditions ``x``, the interval as a band, e.g. Figure 1 (right).

    ``x`` is the conditions in order, drawn evenly spaced, or {condition: position}. ``log`` sets a logarithmic value
    axis.
    """
    places = x if isinstance(x, Mapping) else {condition: float(i) for i, condition in enumerate(x)}
    rows = frame[frame["metric"] == metric]
    figure, axes = canvas(title, ylabel)
    for name, colour in colours(dict.fromkeys(rows[lines])).items():
        ours = rows[rows[lines] == name].set_index("condition").reindex(list(places))
        at = np.array(list(places.values()), dtype=float)
        axes.fill_between(
            at, ours["ci_low"].astype(float), ours["ci_high"].astype(float), color=colour, alpha=0.18, linewidth=0
        )
        axes.plot(at, ours["value"], "o-", color=colour, label=name, markersize=5)
        mark_paper(axes, at, ours)
    if not isinstance(x, Mapping):
        axes.set_xticks(range(len(places)), list(places))
        axes.margins(x=0.12)
    axes.set_xlabel(xlabel)
    if log:
        look.plain_log(axes.yaxis)
    legend(axes)
    return figure


def curves(
    frame: pd.DataFrame,
    metric: str,
    x: str,
    *,
    lines: str = "class",
    panels: str | None = "model",
    classes: Sequence[str] | None = None,
    base: str = "base",
    points: str | None = None,
    marks: Mapping[str, float | tuple[float, float]] | None = None,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
) -> Figure:
    """A value over a quantity that was varied, one line per class: Figures 7a, 7b and 9b, risk over coverage.

    Columns: model, condition, metric, value; ci_low, ci_high (bands) and paper_value (diamonds) where there are any.
    Conditions are ``<x>_<number>/<class>``, e.g. ``precision_50/high`` for x = "precision"; ``<base>/<class>``, where
    the rows have it, becomes a dashed horizontal line in the colour of its class.
    lines: "class" or a column, e.g. "model" with ``classes=["all"]``; panels: a column, one drawing per value (none if
    the lines are its values). classes: which ones, in which order. points: a second metric, drawn as dots without a
    line (the sampled estimate). marks: {label: x} as a dotted vertical line, {label: (from, to)} as a grey span.
    """
    rows = _numbered(frame[frame["metric"].isin([metric, points])], x, base)
    rows = rows[rows["class"].isin(look.present(classes, rows["class"]))]
    if rows["is_base"].all():
        raise ValueError(f"no row of {metric} has a condition like {x}_1/all")
    palette = colours(look.present(classes if lines == "class" else None, rows[lines]))
    cells = look.cells(rows, None if panels == lines else panels)
    figure, grid = look.panels(list(cells), title, xlabel, ylabel)
    for axes, here in zip(grid, cells.values(), strict=True):
        for name, colour in palette.items():
            _curve(axes, here[(here[lines] == name) & (here["metric"] == metric)], colour, bare=points is not None)
            sampled = here[(here[lines] == name) & (here["metric"] == points)]
            axes.plot(sampled["at"], sampled["value"], ".", color=colour, markersize=5, zorder=4)
        _mark(axes, marks or {}, rows["at"].dropna().unique())
    look.figure_legend(figure, _keys(rows, palette, base, points, marks or {}))
    return figure


def _numbered(frame: pd.DataFrame, x: str, base: str) -> pd.DataFrame:
    """The rows of the line and of the base, with the number in the condition as ``at``."""
    rows = look.split(frame)
    at = pd.to_numeric(rows["head"].str.removeprefix(f"{x}_").where(rows["head"].str.startswith(f"{x}_")))
    rows = rows.assign(at=at, is_base=rows["head"] == base)
    return rows[rows["is_base"] | rows["at"].notna()]


def _curve(axes: Axes, rows: pd.DataFrame, colour: str, bare: bool) -> None:
    """One line; ``bare`` without markers, which leaves them to the sampled points."""
    ours = rows[~rows["is_base"]].sort_values("at", kind="stable")
    if ours["at"].duplicated().any():
        raise ValueError("several rows for one point of a line: choose classes, or panels")
    at = ours["at"].to_numpy(float)
    axes.fill_between(at, look.number(ours, "ci_low"), look.number(ours, "ci_high"), color=colour, alpha=0.18, lw=0)
    style = "-" if bare or len(ours) > MARKERS_UP_TO else "o-"
    axes.plot(at, ours["value"], style, color=colour, markersize=4)
    for value in rows.loc[rows["is_base"], "value"]:
        axes.axhline(value, color=colour, linestyle=(0, (5, 3)), linewidth=1.2, zorder=1.5)
    # a diamond says by its edge which line it belongs to: several may stand over the same x
    axes.plot(at, look.number(ours, "paper_value"), **look.PAPER | {"markeredgecolor": colour}, mew=1.6, zorder=5)


def _mark(axes: Axes, marks: Mapping[str, float | tuple[float, float]], at: np.ndarray) -> None:
    """What stands on the x axis: few values by name, and the marks."""
    if len(at) <= TICKS_UP_TO:
        axes.set_xticks(at)
    for place in marks.values():
        if isinstance(place, tuple):
            axes.axvspan(*place, color="#bbbbbb", alpha=0.3, linewidth=0, zorder=0)
        else:
            axes.axvline(place, color="#444444", linestyle=":", linewidth=1.2, zorder=1)


def _keys(rows: pd.DataFrame, palette: Mapping[str, str], base: str, points: str | None, marks: Mapping) -> list:
    """What the legend explains: the lines, then whatever else is drawn, in black."""
    keys = [Line2D([], [], color=colour, label=name, linewidth=2) for name, colour in palette.items()]
    if rows["is_base"].any():
        keys.append(Line2D([], [], color="#444444", linestyle=(0, (5, 3)), linewidth=1.2, label=base))
    if (rows["metric"] == points).any():
        keys.append(Line2D([], [], color="#444444", marker=".", linestyle="none", label="sampled"))
    for label, place in marks.items():
        span = isinstance(place, tuple)
        style = {"color": "#dddddd", "linewidth": 7} if span else {"color": "#444444", "linestyle": ":"}
        keys.append(Line2D([], [], label=label, **style))
    if not np.isnan(look.number(rows[~rows["is_base"]], "paper_value")).all():
        keys.append(Line2D([], [], **look.PAPER, label="paper"))
    return keys
