"""Draws figures in a common style, with seaborn. The functions draw the numbers in an artifact's
rows (``value``, ``ci_low``, ``ci_high``, ``paper_value``). Seaborn does not compute any numbers.

Bars, dots and lines are our values with 95% intervals. A hollow diamond, outlined in our value's
colour, is the paper's value of the same quantity. Frequency classes, model sizes, providers and
failure categories have fixed colours. Equal rows give equal pictures. Pyplot makes each figure, so
that a notebook can show the figure. The functions close the figure before they return it, so that
the notebook does not show it twice.
"""

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import cycle
from textwrap import fill
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib import rc_params_from_file
from matplotlib.axis import XAxis, YAxis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

from lookuplab.errors import UserError, check_choice
from lookuplab.results.artifact import NUMBERS
from lookuplab.results.looks import DARK, GREY, HEIGHT, PALE, STYLE, WIDTH

# Seaborn imports these packages if it finds them, which takes most of a second. Our pictures do not
# need them (seaborn uses SciPy only for clustermap and cumulative densities), so they are hidden
# while seaborn is imported. Afterwards they can be imported as usual.
_HIDDEN = {"scipy.stats", "scipy.cluster", "statsmodels", "ipywidgets"}.difference(sys.modules)
sys.modules.update(dict.fromkeys(_HIDDEN))  # type: ignore[arg-type]
import seaborn.objects as so  # noqa: E402

for _name in _HIDDEN:
    del sys.modules[_name]

# Colour-blind readers can distinguish the colours of each group from each other and from the colour
# of "all". The contrast with white is at least 3 (WCAG 2.2, 1.4.11).
COLOURS = {
    # frequency classes
    "high": "#08306b",
    "medium": "#2f8fc4",
    "low": "#c55a00",
    "all": "#333333",
    # providers
    "aws": "#c77700",
    "azure": "#0072b2",
    # outcomes of a call
    "valid": "#0b3c5d",
    "another API": "#8a8a8a",
    "wrong usage": "#c77700",
    "no such API": "#b2182b",
    # model sizes
    "-small": "#c46fb8",
    "-medium": "#7f3fa8",
    "-large": "#2b0f4a",
}
# colours of all other names, in the order of their use
OTHERS = ["#0b3c5d", "#c77700", "#0f8a6f", "#a3123a", "#3d8fd1", "#777777"]
FEW = 8  # if a line has more points than this number, bands show the intervals
Style = Mapping[str, Any]  # options of a line, by matplotlib's names
PAPER_STYLE = {
    "marker": "D",
    "linestyle": "none",
    "markerfacecolor": "white",
    "markeredgecolor": DARK,
    "markersize": 5.5,
}
DASHES: Style = {"linestyle": (0, (5, 3)), "linewidth": 1.2}
ABOVE: Style = {"zorder": 3, "clip_on": False}


def looks(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return {name: style} with a colour and a marker for each name. A name in COLOURS, or with an
    ending in COLOURS (``mini-small``), has a fixed colour. Any other name gets the next colour of
    OTHERS.
    """
    others, markers = cycle(OTHERS), cycle("os^v<>")
    keys = {name: "".join(name.partition(" ◇")[0].rpartition("-")[1:]) for name in names}
    return {
        name: {"color": COLOURS.get(key) or next(others), "marker": next(markers)}
        for name, key in keys.items()
    }


def with_roles(rows: pd.DataFrame, roles: Mapping[str, str]) -> pd.DataFrame:
    """Return the rows with longer model names: ``mini-large ◇ StarCoder2-15B`` means that
    mini-large stands for the paper's StarCoder2-15B. A model keeps its name if its rows have no
    value of the paper.
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
    top: float | None = 100,
    **texts: Any,
) -> Figure:
    """Draw a group of bars for each value of the column ``groups``, with a bar for each value of
    the column ``bars``, as for Table 1.

    ``order`` selects and orders the bars. ``top`` is the upper end of the y axis. If it is None,
    matplotlib chooses the end, and each bar is labelled with its value. ``texts`` may be ``title``
    and ``ylabel``.
    """
    rows = _select(_rows(frame, metric), bars, order)
    width = 66 // rows[groups].nunique()  # 66 characters fit below the x axis
    figure = _draw(
        rows.assign(x=[_wrap(name, width) for name in rows[groups]]),
        so.Bar(alpha=1, edgewidth=0),
        so.Range(color="white", linewidth=4),  # visible on dark bars, too
        so.Range(color=DARK),
        move=so.Dodge(by=["group"], gap=0.08),
        key={"marker": "s", "markersize": 9, "linestyle": "none"},
        **texts,
    )
    axes: Any = figure.axes[0]  # matplotlib's types do not know that the containers are bars
    axes.set_ylim(0, top)
    if top is None:
        for drawn in axes.containers:
            axes.bar_label(drawn, fmt="{:,.3g}", padding=2)
    return figure


def dots_with_intervals(
    frame: pd.DataFrame,
    metric: str,
    *,
    policies: Sequence[str] | Mapping[str, str] = (),
    classes: Sequence[str] = (),
    panels: str | None = "model",
    **shown: Any,
) -> Figure:
    """Draw the policies one below the other, as for Tables 2 and 3. Each policy has a dot and an
    interval for each class.

    Conditions are ``<policy>/<class>``. ``policies`` selects and orders the policies; a dictionary
    {policy: label} also names them. ``classes`` selects and orders the classes. There is a panel
    for each value of the column ``panels``. ``shown`` may be ``title``, ``xlabel``, ``ylabel`` and
    ``marks`` (see ``curves``).
    """
    rows = _select(_rows(frame, metric, panels), "head", policies)
    named = policies if isinstance(policies, Mapping) else {}
    width = 32 if panels else 40
    rows["y"] = rows.kind.map(lambda name: _wrap(named.get(name, name.replace("_", " ")), width))
    rows = _select(rows, "class", classes)
    count = rows.y.nunique()
    figure = _draw(
        rows,
        so.Dot(pointsize=5, artist_kws=ABOVE),
        so.Range(),
        axis="y",
        move=so.Dodge("drop", by=["group"]),
        interval="_",
        height=1.3 + count * max(0.32, 0.2 * rows.kind.nunique()),
        **shown,
    )
    for axes in figure.axes:
        if len(figure.axes) > 2:
            axes.locator_params(axis="x", nbins=5)
        for line in range(1, count):
            axes.axhline(line - 0.5, color=PALE, linewidth=0.8, zorder=0)
    return figure


def curves(
    frame: pd.DataFrame,
    metric: str,
    x: str,
    *,
    lines: str = "class",
    panels: str | None = "model",
    classes: Sequence[str] = (),
    log_ticks: Sequence[float] = (),
    **shown: Any,
) -> Figure:
    """Draw a metric against a quantity that was varied, as for Figures 7a, 7b and 9b, or risk
    against coverage. Bands show the intervals. If there are several lines with at most FEW points
    each, error bars show the intervals, because bands would hide each other.

    Conditions are ``<x>_<number>/<class>``, such as ``precision_50/high`` for x = "precision". A
    condition ``base/<class>`` becomes a dashed horizontal line in the colour of its class. There is
    a line for each value of the column ``lines`` (by default, each class), and a panel for each
    value of the column ``panels``. ``classes`` selects and orders the classes. With ``log_ticks``,
    the x axis shows log(1 + x), with these ticks. ``shown`` may be ``title``, ``xlabel``,
    ``ylabel`` and ``marks``. ``marks`` are vertical lines: {label: x} draws one line at x, and
    {label: (from, to)} draws two lines.
    """
    rows = _rows(frame, metric, panels)
    varied = rows["head"].str.rpartition("_")
    check_choice("x", x, varied[0].unique())
    rows["x"] = pd.to_numeric(varied[2].where(varied[0] == x))
    rows = _select(rows[rows.x.notna() | (rows["head"] == "base")], "class", classes)
    if lines != "class":
        rows = _select(rows, lines)
    # lines with many points are thin, and only some points have markers: with more markers, the
    # line could not be seen
    longest = rows.groupby(["kind", "panel"]).x.count().max()
    is_few = longest <= FEW and rows.kind.nunique() > 1 and rows.ci_low.notna().any()
    levels = rows.loc[rows.x.isna(), ["kind", "panel", "value"]].rename(columns={"value": "level"})
    rows = rows.dropna(subset="x").sort_values("x", kind="stable")
    # if x has few values, only these values get ticks
    places = rows.x.unique()
    ticks = log_ticks or (places if len(places) <= 6 else None)
    ends = [levels.assign(x=end) for end in (places[0], places[-1] * 1.06)]
    rows = pd.concat([rows, *ends], ignore_index=True)
    # the error bars of several lines at the same x are shifted, so that they do not overlap
    step = 0.015 * np.ptp(np.log1p(places) if log_ticks else places) * is_few
    line = rows.kind.cat.codes
    return _draw(
        rows,
        so.Line(
            linewidth=1.6 if longest < 120 else 0.9,
            artist_kws={**ABOVE, "markevery": longest // 6 or 1},
        ),
        so.Range(linewidth=1.2) if is_few else so.Band(alpha=0.15),
        move=so.Shift(step * (line - line.max() / 2)),
        interval="|" if is_few else "s",
        x=so.Continuous(trans="symlog" if log_ticks else None).tick(at=ticks).label(like=",g"),
        **shown,
    )


def reliability(frame: pd.DataFrame, *, title: str = "") -> Figure:
    """Draw Figure 9a: for each model, the percentage of right answers at each confidence. The
    diagonal is perfect calibration. ``frame`` has the rows of
    ``scoring.calibration.reliability_rows``.
    """
    right, sure = (_rows(frame, metric) for metric in ("correct_percent", "confidence"))
    figure = curves(
        right.assign(condition=[f"confidence_{value}" for value in sure.value]),
        "correct_percent",
        "confidence",
        lines="model",
        title=title,
        xlabel="API invocation confidence (dashed: perfect calibration)",
        ylabel="valid (%)",
    )
    for axes in figure.axes:
        axes.plot([0, 1], [0, 100], color=GREY, zorder=1, **DASHES)
    return figure


def plain_log(axis: XAxis | YAxis) -> None:
    """Make an axis logarithmic, with ticks at 1, 2, 5, 10, 20 and so on."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.minorticks_off()


def _draw(
    rows: pd.DataFrame,
    value: so.Mark,
    *intervals: so.Mark,
    move: so.Move,
    axis: str = "x",
    marks: Mapping[str, float | tuple[float, float]] = MappingProxyType({}),
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    height: float = HEIGHT,
    interval: str = "|",
    key: Style = MappingProxyType({}),
    **scales: so.Continuous,
) -> Figure:
    """Return a figure in which the mark ``value`` shows our values, the marks ``intervals`` show
    their intervals, and hollow diamonds show the paper's values.

    The figure has a panel for each value of the column ``panel``. At most three panels are side by
    side, and all have the same axes. Rows of the same kind (column ``kind``) have the same colour
    and marker. ``move`` puts the marks of different kinds side by side. ``axis`` ("x" or "y") is
    the axis that shows groups or a varied quantity; the column of the same name has each row's
    group or quantity. The numbers in the column ``level`` become dashed lines. In the legend, the
    marker ``interval`` stands for intervals, and the options in ``key`` apply to every kind.
    """
    count = rows.panel.nunique()
    lines = -(-count // 3)  # rounded up
    columns = -(-count // lines)
    across = "y" if axis == "x" else "x"
    kinds = looks(rows.kind.cat.categories)
    colours, markers = map(list, zip(*map(dict.values, kinds.values()), strict=True))
    hollow = so.Dot(marker="D", pointsize=8, color="white", edgewidth=1.2, artist_kws=ABOVE)
    # a dashed line has one marker, at its end, which shows the kind to which the line belongs
    dashed = so.Line(
        fillcolor="white",
        artist_kws={**ABOVE, "markevery": [1]},
        **DASHES,
    )
    plot = (
        so.Plot(rows, color="kind", group="kind", **{axis: axis})
        .scale(color=colours, edgecolor=colours, marker=markers, **scales)
        .facet("panel", wrap=columns)
        .label(x="", y="", title=lambda name: _wrap(name, 66 // columns))
    )
    between = {across: "value", f"{across}min": "ci_low", f"{across}max": "ci_high"}
    # Each layer names only the properties (colour, marker) that its mark needs. For each
    # combination of the named properties' values, seaborn would look for rows, although each kind
    # has only one colour and one marker.
    layers = [(mark, between) for mark in intervals]
    # our values are drawn over the paper's larger marks, so that both are visible if they are equal
    layers += [(hollow, {across: "paper_value", "edgecolor": "kind"})]
    layers += [(value, {across: "value", "marker": "kind"})]
    if rows.level.notna().any():
        layers += [(dashed, {across: "level", "marker": "kind"})]
    for mark, shown in layers:
        plot = plot.add(mark, move, orient=axis, legend=False, **shown)
    keys = _keys(rows, kinds, key)
    for label, dash in zip(marks, cycle([":", "-.", (0, (6, 2))])):
        keys[label] = {"color": GREY, "linestyle": dash, "linewidth": 1.2}
    paper = "paper (the ◇ model)" if rows.model.str.contains("◇").any() else "paper"
    bar = {"color": DARK, "marker": interval, "markersize": 11, "alpha": 0.6, "linestyle": "none"}
    told = [
        ("base", {"color": GREY, **DASHES}, rows.level),
        ("95% interval", bar, rows.ci_low),
        (paper, PAPER_STYLE, rows.paper_value),
    ]
    keys |= {label: look for label, look, column in told if column.notna().any()}
    if rows.n.nunique() == 1:
        keys[f"n = {rows.n.max():,.0f}"] = {"linestyle": "none"}
    style = {**rc_params_from_file(STYLE, use_default_template=False), "axes.grid.axis": across}
    with plt.rc_context(style):
        figure = plt.figure()
        plot.theme(style).on(figure).plot()
        figure.supxlabel(xlabel)
        figure.supylabel(ylabel)
        for axes in figure.axes:
            axes.tick_params(labelbottom=True)
            for label, place in marks.items():
                for at in np.ravel(place):
                    axes.axvline(at, **keys[label], zorder=0.9)
        # 115 characters fit in a line of the legend; a label's marker is as wide as 8 characters
        ncols = max(1, 115 // (8 + max(map(len, keys), default=0)))
        legend_lines = -(-len(keys) // ncols)
        figure.set_size_inches(WIDTH, height * (0.4 + 0.6 * lines) + 0.2 * legend_lines)
        figure.legend(
            handles=[Line2D([], [], label=label, **look) for label, look in keys.items()],
            title=_wrap(title, 78),
            loc="outside upper left",
            ncols=ncols,
            alignment="left",
        )
    plt.close(figure)
    return figure


def _keys(rows: pd.DataFrame, kinds: Mapping[str, Style], key: Style) -> dict[str, Style]:
    """Return a legend, {label: style}, with a label for each of the ``kinds``. If all rows of a
    kind have the same n, and n is not the same for all kinds, the label also states n. The legend
    is empty if the only kind is "all", or if each panel shows only the kind after which the panel
    is named.
    """
    keys: dict[str, Style] = {}
    for name, look in kinds.items():
        counts = rows.n[rows.kind == name].dropna().unique()
        n = f", n = {counts[0]:,.0f}" if len(counts) == 1 < rows.n.nunique() else ""
        of_class = " frequency" if "high" in kinds and name != "all" else ""
        keys[f"{name}{of_class}{n}"] = {**look, **key}
    return keys if [*kinds] != ["all"] and any(rows.kind != rows.panel) else {}


def _rows(frame: pd.DataFrame, metric: str, panels: str | None = None) -> pd.DataFrame:
    """Return the rows of a metric, with all columns of NUMBERS. Conditions ``<head>/<class>`` are
    split into the columns ``head`` and ``class``; without a slash, the class is "all". The column
    ``panel`` is a copy of the column that ``panels`` names, or empty if ``panels`` is None. Raises
    UserError for a metric without a row.
    """
    if frame.empty:
        raise UserError("there is no row to draw")
    check_choice("the metric", metric, frame.metric.unique())
    rows = frame[frame.metric == metric]
    numbers = rows.reindex(columns=[*NUMBERS, "level"]).astype(float)
    parts = rows.condition.str.partition("/").replace("", "all")
    rows = rows.assign(**numbers, **parts.set_axis(["head", "/", "class"], axis="columns"))
    return rows.assign(panel=rows[panels] if panels else "")


def _select(rows: pd.DataFrame, column: str, wanted: Collection[str] = ()) -> pd.DataFrame:
    """Return the rows whose ``column`` has a name in ``wanted``, and set the column ``kind`` to
    these names, as a categorical in the order of ``wanted``. If ``wanted`` is empty, return all
    rows; the categories are then in order of appearance.

    Some names may be missing, as in a small run. Raises UserError if all names are missing.
    """
    names = rows[column].unique()
    present = [name for name in wanted or names if name in names]
    check_choice("a name to draw", [*present, *wanted][0], names)
    rows = rows[rows[column].isin(present)]
    return rows.assign(kind=pd.Categorical(rows[column], present))


def _wrap(text: str, width: int) -> str:
    return fill(text, width, break_on_hyphens=False)
