"""The one look: style, colours, the canvas and the grid of panels, intervals, the paper's marker and the legend.

Every drawing of this room starts with ``canvas`` or ``panels`` and ends with ``legend``.
"""

from collections.abc import Iterable, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

WIDTH, HEIGHT = 7.5, 3.8  # inches; 10-point text is still readable at the width of a README
MOST_PANELS = 6
STYLE = sns.axes_style("whitegrid") | {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same letters on every machine
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.titlepad": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid.axis": "y",
    "axes.edgecolor": "#666666",
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
    "xtick.bottom": False,
}
COLOURS = {
    # frequency classes
    "high": "#2171b5",
    "medium": "#85c1e9",
    "low": "#e08214",
    "all": "#999999",
    # providers
    "aws": "#e69f00",
    "azure": "#0072b2",
    # failure categories
    "incorrect_existing_percent": "#8c8c8c",
    "invalid_usage_percent": "#3f9e63",
    "nonexistent_percent": "#b2182b",
}
SIZE_COLOURS = {"small": "#c3a5d6", "medium": "#a97fc0", "large": "#6a3d8f"}
_OTHERS = sns.color_palette("colorblind").as_hex()
PAPER = {"marker": "D", "linestyle": "none", "markerfacecolor": "white", "markeredgecolor": "#222222", "markersize": 6}


def colours(names: Iterable[str]) -> dict[str, str]:
    """The fixed colour of a class, size (``mini-small``), provider or category; else the next of the palette."""
    chosen, others = {}, iter(_OTHERS * 10)
    for name in names:
        _, hyphen, size = name.rpartition("-")
        chosen[name] = COLOURS.get(name) or (SIZE_COLOURS.get(size) if hyphen else None) or next(others)
    return chosen


def canvas(title: str, ylabel: str, height: float = HEIGHT) -> tuple[Figure, Axes]:
    """A closed figure with one drawing."""
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH, height), layout="constrained")
        axes.set_title(title)
        axes.set_ylabel(ylabel)
    plt.close(figure)
    axes.set_axisbelow(True)
    return figure, axes


def panels(names: Sequence[str], title: str, xlabel: str, ylabel: str, height: float = HEIGHT) -> tuple[Figure, list]:
    """A closed figure with one drawing per name, at most three beside each other, on the same axes."""
    if not names or len(names) > MOST_PANELS:
        raise ValueError(f"a figure has 1 to {MOST_PANELS} panels, not {len(names)}: choose the rows to draw")
    columns = min(len(names), 3)
    lines = -(-len(names) // columns)
    size = (WIDTH if columns == 1 else 3.1 * columns + 1.3, height if lines == 1 else 0.8 * height * lines)
    with mpl.rc_context(STYLE):
        figure, grid = plt.subplots(
            lines, columns, figsize=size, layout="constrained", sharex=True, sharey=True, squeeze=False
        )
        figure.suptitle(title, x=0.01, ha="left", fontsize=STYLE["axes.titlesize"])
        figure.supxlabel(xlabel, fontsize=STYLE["font.size"])
        figure.supylabel(ylabel, fontsize=STYLE["font.size"])
        for axes, name in zip(grid.flat, names, strict=False):
            axes.set_title(name if len(names) > 1 else "", fontsize=STYLE["font.size"], pad=6)
            axes.set_axisbelow(True)
    plt.close(figure)
    for axes in list(grid.flat)[len(names) :]:
        axes.remove()
    for axes in list(grid.flat)[max(len(names) - columns, 0) : len(names)]:
        axes.xaxis.set_tick_params(labelbottom=True)  # also above a hole of the grid
    return figure, list(grid.flat)[: len(names)]


def cells(rows: pd.DataFrame, column: str | None) -> dict[str, pd.DataFrame]:
    """The rows of each panel, by the column's values as they come; one panel of all without a column."""
    return dict(list(rows.groupby(column, sort=False))) if column else {"": rows}


def number(rows: pd.DataFrame, column: str) -> np.ndarray:
    """A column as floats, (rows,); all NaN where the frame does not have it."""
    return rows[column].to_numpy(float) if column in rows else np.full(len(rows), np.nan)


def whiskers(rows: pd.DataFrame) -> np.ndarray:
    """(2, bars) distances down and up; none where there is no interval."""
    value = number(rows, "value")
    distances = np.array([value - number(rows, "ci_low"), number(rows, "ci_high") - value])
    return np.nan_to_num(distances).clip(min=0)


def mark_paper(axes: Axes, x: np.ndarray, rows: pd.DataFrame) -> None:
    """A hollow diamond at each ``x`` (rows,) where the paper reports a value."""
    reported = number(rows, "paper_value")
    if not np.isnan(reported).all():
        first = "paper" not in axes.get_legend_handles_labels()[1]
        axes.plot(x, reported, **PAPER, label="paper" if first else None, zorder=5)


def legend(axes: Axes) -> None:
    """Beside the drawing, never on it; the paper's marker last."""
    handles, labels = axes.get_legend_handles_labels()
    pairs = sorted(zip(handles, labels, strict=True), key=lambda pair: pair[1] == "paper")
    axes.legend(*zip(*pairs, strict=True), loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0, frameon=False)


def plain_log(axis: Axis) -> None:
    """Logarithmic, with 1, 2, 5, 10 ..., not powers of ten."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(mpl.ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(mpl.ticker.FormatStrFormatter("%g"))
    axis.set_minor_locator(mpl.ticker.NullLocator())


def figure_legend(figure: Figure, handles: Iterable) -> None:
    """One legend of labelled artists for all panels, right of them."""
    handles = list(handles)
    if handles:
        figure.legend(handles, [handle.get_label() for handle in handles], loc="outside right upper", frameon=False)


def split(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with ``head`` and ``class`` from conditions ``<head>/<class>``; without a slash the class is all."""
    parts = frame["condition"].astype(str).str.partition("/")
    return frame.assign(**{"head": parts[0], "class": parts[2].where(parts[1] == "/", "all")})


def present(wanted: Sequence[str] | None, found: Iterable[str]) -> list[str]:
    """``wanted`` in its order, without what the rows do not have; default: all, as they come."""
    found = list(dict.fromkeys(found))
    return found if wanted is None else [name for name in wanted if name in found]
