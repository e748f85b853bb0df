"""Figures in a common style. Each function draws rows of an artifact (``value``, ``ci_low``,
``ci_high``, ``paper_value``).

Bars, dots and lines are our values with 95% intervals; a hollow diamond is the paper's value of the
same quantity. Frequency classes, model sizes, providers and failure categories have fixed colours.
The same rows give the same picture. Figures are returned closed, because a notebook would otherwise
show each of them twice.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator
from numpy.typing import NDArray

from lookuplab.errors import UserError, check_choice
from lookuplab.results.artifact import NUMBERS

# inches; the text width of a page, so that letters keep their size in print
WIDTH, HEIGHT = 6.5, 3.5
STYLE = Path(__file__).with_name("pictures.mplstyle")
DARK, GREY, PALE = "#222222", "#444444", "#e4e4e4"
# Distinguishable in greyscale and by colour-blind readers, within a group and together with "all".
COLOURS = {
    # frequency classes
    "high": "#2171b5",
    "medium": "#93cdf0",
    "low": "#e08214",
    "all": "#333333",
    # providers
    "aws": "#e69f00",
    "azure": "#0072b2",
    # outcomes of a call
    "valid": "#0b3c5d",
    "another API": "#bdbdbd",
    "wrong usage": "#3f9e63",
    "no such API": "#b2182b",
    # model sizes
    "-small": "#c48fe0",
    "-medium": "#8e5bb0",
    "-large": "#4a1f70",
}
OTHERS = ["#0b3c5d", "#e69f00", "#12967a", "#a3123a", "#8fd0f5", "#7b6ca8"]
Style = dict[str, Any]  # options of a line, by matplotlib's names
Mark = float | tuple[float, float]  # a place on the x axis, or a span
PAPER_STYLE: Style = {
    "marker": "D",
    "linestyle": "none",
    "markerfacecolor": "white",
    "markeredgecolor": DARK,
    "markersize": 5.5,
}
INTERVAL: Style = {"marker": "|", "markersize": 9, "markeredgewidth": 1.5}
DASHES: Style = {"linestyle": (0, (5, 3)), "linewidth": 1.2, "markerfacecolor": "white"}


def looks(names: Iterable[str]) -> dict[str, Style]:
    """Return {name: style} with a marker for each name. Its colour is the fixed one of its class,
    size (``mini-small``), provider or category, else the next in the palette.
    """
    others = cycle(OTHERS)
    markers = cycle("os^vPX")
    keys = {name: "".join(name.partition(" ◇")[0].rpartition("-")[1:]) for name in names}
    return {
        name: {"color": COLOURS.get(key) or next(others), "marker": next(markers)}
        for name, key in keys.items()
    }


def with_roles(rows: pd.DataFrame, roles: Mapping[str, str]) -> pd.DataFrame:
    """Return the rows, with the paper's model added to our model's name if the paper's values are
    drawn, too: ``mini-large ◇ StarCoder2-15B``.
    """
    beside = set(rows.model[rows.paper_value.notna()]) & roles.keys()
    return rows.replace({"model": {name: f"{name} ◇\u00a0{roles[name]}" for name in beside}})


def grouped_bars(
    frame: pd.DataFrame,
    metric: str,
    *,
    groups: str = "model",
    bars: str = "condition",
    order: Sequence[str] = (),
    title: str = "",
    ylabel: str = "",
    top: float | None = 100,
) -> Figure:
    """Draw one group of bars per value of the column ``groups``, and in it one bar per value of the
    column ``bars``, e.g. Table 1.

    ``order`` selects and orders the bars. ``top`` is the upper end of the axis. None means
    automatic, and each bar then shows its value.
    """
    rows = _rows(frame, metric)
    names = list(rows[groups].unique())
    kinds = _present(order, rows[bars])
    width = 0.8 / len(kinds)
    palette = looks(kinds)
    figure, [(axes, _)] = _panels(rows, None, "", ylabel)
    for position, (kind, look) in enumerate(palette.items()):
        ours = rows[rows[bars] == kind].set_index(groups).reindex(names)
        x = np.arange(len(names)) + (position - (len(kinds) - 1) / 2) * width
        drawn = axes.bar(x, ours.value, width * 0.92, color=look["color"])
        if top is None:
            axes.bar_label(drawn, fmt="{:,.3g}", padding=2)
        axes.errorbar(x, ours.value, _whiskers(ours), fmt="none", ecolor=DARK, capsize=2.5)
        axes.plot(x, ours.paper_value, **PAPER_STYLE, zorder=5)
    ticks = [_wrapped(name, 66 // len(names)) for name in names]
    axes.set_xticks(range(len(names)), ticks)
    axes.set_ylim(0, top)
    keys, title = _keys(rows, bars, palette, title, marker="s", markersize=10, linestyle="none")
    _draw_keys(figure, title, keys, rows)
    return figure


def dots_with_intervals(
    frame: pd.DataFrame,
    metric: str,
    *,
    policies: Sequence[str] | Mapping[str, str] = (),
    classes: Sequence[str] = (),
    panels: str | None = "model",
    marks: Mapping[str, Mark] | None = None,
    title: str = "",
    xlabel: str = "",
) -> Figure:
    """Draw policies from top to bottom, a dot with its interval per class, e.g. Tables 2 and 3.

    Conditions are ``<policy>/<class>``. ``policies`` selects and orders the policies and, as
    {policy: label}, also names them; ``classes`` selects and orders the classes; ``panels`` is a
    column with one panel per value; ``marks`` are those of ``curves``.
    """
    rows = _rows(frame, metric)
    heads = _present(policies, rows["head"])
    palette = looks(_present(classes, rows["class"]))
    named = policies if isinstance(policies, Mapping) else {}
    labels = [_wrapped(named.get(name, name.replace("_", " ")), 32) for name in heads]
    height = 1.3 + len(heads) * max(0.32, 0.2 * len(palette))
    figure, cells = _panels(rows, panels, xlabel, "", height)
    keys, title = _keys(rows, "class", palette, title)
    for axes, here in cells:
        several = here.groupby("head")["class"].nunique().reindex(heads).ne(1).to_numpy()
        for position, (name, look) in enumerate(palette.items()):
            ours = here[here["class"] == name].set_index("head").reindex(heads)
            beside = (position - (len(palette) - 1) / 2) * 0.8 / len(palette)
            y = np.arange(len(heads)) + beside * several
            axes.errorbar(
                ours.value, y, xerr=_whiskers(ours), ls="none", **look, markersize=5, capsize=2
            )
            axes.plot(ours.paper_value, y, **PAPER_STYLE, zorder=5)
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(len(labels) - 0.45, -0.55)
        axes.grid(axis="x")
        axes.grid(visible=False, axis="y")
        for between in np.arange(len(labels) - 1) + 0.5:
            axes.axhline(between, color=PALE, linewidth=0.8, zorder=0)
        keys |= _draw_marks(axes, marks)
    _draw_keys(figure, title, keys, rows)
    return figure


def curves(
    frame: pd.DataFrame,
    metric: str,
    x: str,
    *,
    lines: str = "class",
    panels: str | None = "model",
    classes: Sequence[str] = (),
    marks: Mapping[str, Mark] | None = None,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
) -> Figure:
    """Draw a value against a quantity that was varied, one line per class, e.g. Figures 7a, 7b and
    9b, or risk against coverage.

    Conditions are ``<x>_<number>/<class>``, e.g. ``precision_50/high`` for x = "precision";
    ``base/<class>`` becomes a dashed level in the colour of its class. ``lines`` is "class" or a
    column; ``panels`` is a column with one panel per value; ``classes`` selects and orders the
    classes. In ``marks``, {label: x} is a vertical line and {label: (from, to)} a grey span.
    """
    rows = _rows(frame, metric)
    varied = rows["head"].str.rpartition("_")
    check_choice("x", x, varied[0].unique())
    rows = rows.assign(at=pd.to_numeric(varied[2].where(varied[0] == x)))
    rows = rows[rows["at"].notna() | (rows["head"] == "base")]
    rows = rows[rows["class"].isin(_present(classes, rows["class"]))]
    palette = looks(_present(classes if lines == "class" else (), rows[lines]))
    figure, cells = _panels(rows, panels, xlabel, ylabel)
    keys, title = _keys(rows, lines, palette, title, linestyle="-")
    if rows["at"].isna().any():
        keys["base"] = {"color": GREY, **DASHES}
    for axes, here in cells:
        for name, look in palette.items():
            of_line = here[here[lines] == name].sort_values("at", kind="stable")
            is_base = of_line["at"].isna()
            ours = of_line[~is_base]
            colour = look["color"]
            axes.fill_between(ours["at"], ours.ci_low, ours.ci_high, color=colour, alpha=0.15, lw=0)
            every = max(1, len(ours) // 8)  # more markers would hide the line
            axes.plot(ours["at"], ours.value, **look, markersize=5, markevery=every)
            for level in of_line.value[is_base]:  # markevery=[1] puts the marker at the right end
                axes.axhline(level, **look, **DASHES, markevery=[1], clip_on=False, zorder=1.5)
            # several diamonds may share an x, so each contains its line's marker
            diamond = PAPER_STYLE | {"markeredgecolor": colour, "markersize": 9}
            axes.plot(ours["at"], ours.paper_value, **diamond, zorder=5)
            axes.plot(ours["at"], ours.paper_value, **look, ls="none", markersize=3.5, zorder=6)
        if rows["at"].nunique() <= 6:  # few values: a tick for each, and none between them
            axes.set_xticks(rows["at"].dropna().unique())
        keys |= _draw_marks(axes, marks)
    band = {"marker": "s", "markersize": 9, "alpha": 0.3}
    _draw_keys(figure, title, keys, rows[rows["at"].notna()], band)
    return figure


def reliability(frame: pd.DataFrame, *, title: str = "") -> Figure:
    """Draw Figure 9a: for each model, how often it is right at each confidence. The diagonal is
    perfect calibration.

    Conditions are ``bin_<number>``: the metric ``confidence`` is the bin's mean (0 to 1),
    ``correct_percent`` its percentage of right answers, as returned by
    ``scoring.calibration.reliability_rows``.
    """
    rows = _rows(frame, "correct_percent")
    key = ["model", "condition"]
    at = _rows(frame, "confidence").set_index(key).value.loc[rows.set_index(key).index]
    figure = curves(
        rows.assign(condition=[f"confidence_{confidence}" for confidence in at]),
        "correct_percent",
        "confidence",
        lines="model",
        panels=None,
        title=title,
        xlabel="API invocation confidence",
        ylabel="valid (%)",
    )
    figure.axes[0].plot([0, 1], [0, 100], color=GREY, zorder=1, **DASHES)
    return figure


def plain_log(axis: XAxis | YAxis) -> None:
    """Make an axis logarithmic, with ticks at 1, 2, 5, 10 ... and not only at powers of ten."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.minorticks_off()


def _panels(
    rows: pd.DataFrame,
    column: str | None,
    xlabel: str,
    ylabel: str,
    height: float = HEIGHT,
) -> tuple[Figure, list[tuple[Axes, pd.DataFrame]]]:
    """Return a figure with one panel per value of ``column``, and each panel with its rows. At most
    three are side by side; all share their axes.
    """
    cells = dict(list(rows.groupby(column, sort=False))) if column else {"": rows}
    lines = -(-len(cells) // 3)
    columns = -(-len(cells) // lines)
    height *= 0.8 * lines if lines > 1 else 1
    with plt.style.context(STYLE):
        figure, grid = plt.subplots(
            lines,
            columns,
            figsize=(WIDTH, height),
            sharex=True,
            sharey=True,
            squeeze=False,
            layout="constrained",
        )
        figure.supxlabel(xlabel)
        figure.supylabel(ylabel)
        used = grid.flat[: len(cells)]
        unused = grid.flat[len(cells) :]
        for axes, name in zip(used, cells, strict=True):
            axes.set_title(_wrapped(name, 66 // columns))
    plt.close(figure)
    for axes in unused:
        axes.remove()
    for axes in used[-columns:]:
        axes.xaxis.set_tick_params(labelbottom=True)  # also above an empty place in the grid
    return figure, list(zip(used, cells.values(), strict=True))


def _rows(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the rows of a metric, with all NUMBERS; conditions ``<head>/<class>`` give the columns
    ``head`` and ``class``.

    Without a slash, the class is "all". Raises UserError for a metric without a row.
    """
    if frame.empty:
        raise UserError("there is no row to draw")
    check_choice("the metric", metric, frame.metric.unique())
    rows = frame[frame.metric == metric]
    rows = rows.reindex(columns=list(dict.fromkeys([*rows, *NUMBERS])))
    parts = rows.condition.str.partition("/")
    return rows.assign(head=parts[0], **{"class": parts[2].replace("", "all")})


def _whiskers(rows: pd.DataFrame) -> NDArray[np.float64]:
    """Return the interval's distances down and up, (2, rows). NaN, if there is no interval, draws
    nothing.
    """
    distances = [rows.value - rows.ci_low, rows.ci_high - rows.value]
    return np.array(distances, dtype=float).clip(min=0)


def _draw_keys(
    figure: Figure,
    title: str,
    keys: Mapping[str, Style],
    rows: pd.DataFrame,
    interval: Style = INTERVAL,
) -> None:
    """Draw the title and, below it, one legend of {label: style} for all panels.

    The legend also explains intervals and the paper's mark if a row has them.
    """
    styles = dict(keys)
    if rows.ci_low.notna().any():
        styles["95% interval"] = {"color": GREY, "linestyle": "none"} | interval
    if rows.paper_value.notna().any():
        label = "paper (the ◇ model)" if any("◇" in model for model in rows.model) else "paper"
        styles[label] = PAPER_STYLE
    columns = max(1, 80 // (7 + max(map(len, [*styles, ""]))))
    figure.set_figheight(figure.get_figheight() + 0.2 * -(-len(styles) // columns))
    figure.legend(
        handles=[Line2D([], [], label=label, **style) for label, style in styles.items()],
        title=title,
        title_fontsize=11,
        loc="outside upper left",
        ncols=columns,
        alignment="left",
        frameon=False,
    )


def _draw_marks(axes: Axes, marks: Mapping[str, Mark] | None) -> dict[str, Style]:
    """Draw marks on the x axis, each as a line or a grey span, and return {label: style}."""
    keys: dict[str, Style] = {}
    dashes = cycle([":", "-.", (0, (6, 2))])
    for label, place in (marks or {}).items():
        if isinstance(place, tuple):
            axes.axvspan(*place, color="#bbbbbb", alpha=0.3)
            keys[label] = {"color": PALE, "linewidth": 7}
        else:
            keys[label] = {"color": GREY, "linestyle": next(dashes)}
            axes.axvline(place, **keys[label])
    return keys


def _wrapped(text: str, width: int) -> str:
    return fill(text, width, break_on_hyphens=False)


def _keys(
    rows: pd.DataFrame, column: str, palette: Mapping[str, Style], title: str, **style: Any
) -> tuple[dict[str, Style], str]:
    """Return a legend, {label: style}, and its title, which says what the names are.

    A label is the name and the n of its rows. If all names share one n, it is below the title.
    """
    told = {}
    for name in palette:
        counts = rows.n[rows[column] == name].dropna().unique()
        told[name] = f"n = {counts[0]:,.0f}" if len(counts) == 1 else ""
    is_shared = len(set(told.values())) == 1

    def with_n(text: str, n: str) -> str:
        return ", ".join(filter(None, (text, n)))

    keys = {
        name if is_shared else with_n(name, told[name]): look | style
        for name, look in palette.items()
        if [*palette] != ["all"]
    }
    below = with_n("API frequency" if "high" in palette else "", told[name] if is_shared else "")
    return keys, f"{_wrapped(title, 78)}\n{below}".strip()


def _present(wanted: Collection[str], rows: pd.Series) -> list[str]:
    """Return the ``wanted`` names that occur in the rows, in their order; by default all, in order
    of appearance.

    A small run may lack some of them. Raises UserError if it lacks all.
    """
    names = list(rows.unique())
    present = [name for name in wanted or names if name in names]
    if not present:
        check_choice("a name to draw", next(iter(wanted)), names)
    return present
