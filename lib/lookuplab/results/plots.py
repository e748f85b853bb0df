"""Draws figures in a common style, with seaborn. The functions draw the numbers in an artifact's
rows (``value``, ``ci_low``, ``ci_high``, ``paper_value``); seaborn computes none.

Bars, dots and lines are our values with 95% intervals. A hollow diamond is the paper's value of the
same quantity, outlined in the colour of its class. Frequency classes, model sizes, providers and
failure categories have fixed colours. The same rows give the same picture. Figures are returned
closed, because a notebook would otherwise show each of them twice.
"""

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import cycle
from textwrap import fill
from typing import Any, cast

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

from lookuplab.errors import UserError, check_choice
from lookuplab.results.artifact import NUMBERS
from lookuplab.results.looks import DARK, GREY, HEIGHT, PALE, STYLE, WIDTH

# Seaborn imports these packages if it finds them, which takes most of a second. It does not need
# them for what is drawn here (SciPy only serves clustermap and cumulative densities), so they are
# hidden while seaborn is imported. Afterwards they can be imported as usual.
_HIDDEN = {"scipy.stats", "scipy.cluster", "statsmodels", "ipywidgets"}.difference(sys.modules)
sys.modules.update(dict.fromkeys(_HIDDEN))  # type: ignore[arg-type]
import seaborn.objects as so  # noqa: E402

for _name in _HIDDEN:
    del sys.modules[_name]

# Colour-blind readers can tell the colours of a group apart, also from the colour of "all". The
# contrast with white is at least 3 (WCAG 2.2, 1.4.11).
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
FEW = 8  # if a line has more points than this, bands show the intervals
Style = dict[str, Any]  # options of a line, by matplotlib's names
Mark = float | tuple[float, float]  # a position on the x axis, or a span from one to another
# Seaborn's mark, and {variable: column}. Column None means that the mark does not depend on the
# variable, although the whole plot does.
Layer = tuple[so.Mark, dict[str, str | None]]
PAPER_STYLE: Style = {
    "marker": "D",
    "linestyle": "none",
    "markerfacecolor": "white",
    "markeredgecolor": DARK,
    "markersize": 5.5,
}
# how a legend shows intervals
UPRIGHT: Style = {"marker": "|", "markersize": 11, "markeredgewidth": 1.6, "linestyle": "none"}
BAND: Style = {"marker": "s", "markersize": 9, "alpha": 0.3, "linestyle": "none"}
DASHES: Style = {"linestyle": (0, (5, 3)), "linewidth": 1.2}
HOLLOW: Style = {"color": "white", "edgewidth": 1.2, "artist_kws": {"zorder": 5, "clip_on": False}}
SMALL: Style = {"pointsize": 5, "artist_kws": {"zorder": 3, "clip_on": False}}
BY_KIND: dict[str, str | None] = {"color": None, "edgecolor": "kind"}


def looks(names: Iterable[str]) -> dict[str, Style]:
    """Return {name: style} with a colour and a marker for each name. A class, a provider, a
    category and a model with a size (``mini-small``) have fixed colours (COLOURS). Any other name
    gets the next colour of OTHERS.
    """
    others = cycle(OTHERS)
    markers = cycle("os^vPX")
    keys = {name: "".join(name.partition(" ◇")[0].rpartition("-")[1:]) for name in names}
    return {
        name: {"color": COLOURS.get(key) or next(others), "marker": next(markers)}
        for name, key in keys.items()
    }


def with_roles(rows: pd.DataFrame, roles: Mapping[str, str]) -> pd.DataFrame:
    """Return the rows with longer model names: ``mini-large ◇ StarCoder2-15B`` names our model and
    the paper's model that it stands for. Models for which no value of the paper is drawn keep their
    names.
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
    matplotlib chooses the end, and each bar is labelled with its value. ``texts`` are ``title`` and
    ``ylabel``.
    """
    rows = _rows(frame, metric)
    width = 66 // rows[groups].nunique()  # 66 characters fit below the x axis
    kinds = looks(_present(order, rows[bars]))
    rows = rows.assign(x=[_wrap(name, width) for name in rows[groups]], kind=rows[bars])
    interval = {"ymin": "ci_low", "ymax": "ci_high", "color": None}
    layers: list[Layer] = [
        (so.Bar(alpha=1, edgewidth=0), {"y": "value"}),
        (so.Range(color="white", linewidth=4), interval),  # visible on dark bars, too
        (so.Range(color=DARK), interval),
        (so.Dot(marker="D", edgecolor=DARK, **HOLLOW), {"y": "paper_value", "color": None}),
    ]
    keys = _keys(rows, kinds, marker="s", markersize=9, linestyle="none")
    move = so.Dodge(by=["group"], gap=0.08)
    figure = _draw(rows, layers, kinds, keys, "x", move=move, **texts)
    [axes] = figure.axes
    axes.set_ylim(0, top)
    if top is None:
        for drawn in axes.containers:
            axes.bar_label(cast(BarContainer, drawn), fmt="{:,.3g}", padding=2)
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
    """Draw a line for each policy, from top to bottom, with a dot and an interval for each class,
    as for Tables 2 and 3.

    Conditions are ``<policy>/<class>``. ``policies`` selects and orders the policies; a dictionary
    {policy: label} also names them. ``classes`` selects and orders the classes. There is a panel
    for each value of the column ``panels``. ``shown`` are ``title``, ``xlabel``, ``ylabel`` and
    ``marks``, as in ``curves``.
    """
    rows = _rows(frame, metric)
    heads = _present(policies, rows["head"])
    kinds = looks(_present(classes, rows["class"]))
    named = policies if isinstance(policies, Mapping) else {}
    labels = {
        name: _wrap(named.get(name, name.replace("_", " ")), 32 if panels else 40) for name in heads
    }
    y = pd.Categorical(rows["head"].map(labels), [*dict.fromkeys(labels.values())])
    rows = rows.assign(y=y, kind=rows["class"])[rows["head"].isin(heads)]
    layers: list[Layer] = [
        (so.Range(), {"xmin": "ci_low", "xmax": "ci_high"}),
        (so.Dot(**SMALL), {"x": "value", "marker": "kind"}),
        # the paper's diamond is behind our dot, so that both are visible if the values are equal
        (
            so.Dot(
                marker="D",
                pointsize=7,
                **HOLLOW | {"artist_kws": {"zorder": 2.5, "clip_on": False}},
            ),
            {"x": "paper_value", **BY_KIND},
        ),
    ]
    figure = _draw(
        rows,
        layers,
        kinds,
        _keys(rows, kinds, linestyle="-"),
        "y",
        move=so.Dodge("drop", by=["group"]),
        panels=panels,
        interval={"linestyle": "-"},
        height=1.3 + len(heads) * max(0.32, 0.2 * len(kinds)),
        **shown,
    )
    for axes in figure.axes:
        for between in np.arange(len(labels) - 1) + 0.5:
            axes.axhline(between, color=PALE, linewidth=0.8, zorder=0)
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
    against coverage. Each point has an interval; if a line has more than FEW points, bands show the
    intervals.

    Conditions are ``<x>_<number>/<class>``, such as ``precision_50/high`` for x = "precision". A
    condition ``base/<class>`` becomes a dashed horizontal line in the colour of its class. There is
    a line for each value of the column ``lines`` (by default, each class), and a panel for each
    value of the column ``panels``. ``classes`` selects and orders the classes. With ``log_ticks``,
    the x axis shows log(1 + x), with these ticks. ``shown`` are ``title``, ``xlabel``, ``ylabel``
    and ``marks``; in ``marks``, {label: x} draws a vertical line and {label: (from, to)} a grey
    span.
    """
    rows = _rows(frame, metric)
    varied = rows["head"].str.rpartition("_")
    check_choice("x", x, varied[0].unique())
    rows = rows.assign(x=pd.to_numeric(varied[2].where(varied[0] == x)), kind=rows[lines])
    rows = rows[rows["x"].notna() | (rows["head"] == "base")]
    rows = rows[rows["class"].isin(_present(classes, rows["class"]))]
    kinds = looks(_present(classes if lines == "class" else (), rows["kind"]))
    # if x has few values, ticks are at these values alone
    few = rows["x"].dropna().unique() if rows["x"].nunique() <= 6 else None
    # ``there`` converts values of x to the axis's scale, on which distances are computed; ``back``
    # converts them to values of x again
    there, back = (np.log1p, np.expm1) if log_ticks else (np.asarray, np.asarray)
    scale = so.Continuous(trans=(there, back) if log_ticks else None)
    levels, rows = rows[rows["x"].isna()], rows[rows["x"].notna()].sort_values("x", kind="stable")
    of_line = rows.groupby(list({"kind", panels or "kind"}))["x"]
    sizes = of_line.transform("size")
    is_few = sizes.max() <= FEW
    first, last = there([rows["x"].min(), rows["x"].max()])
    # intervals of several lines at the same x are shifted, so that they do not overlap
    step = 0.015 * (last - first) * is_few * rows.ci_low.notna().any()
    beside = {name: (place - (len(kinds) - 1) / 2) * step for place, name in enumerate(kinds)}
    rows = rows.assign(
        x=back(there(rows["x"]) + rows["kind"].map(beside).astype(float)),
        # only some points of a long line have a marker, because more markers would hide the line
        dot=rows.value.where(of_line.cumcount() % (sizes // 8).clip(lower=1) == 0),
    )
    layers: list[Layer] = [
        (so.Range() if is_few else so.Band(alpha=0.15), {"ymin": "ci_low", "ymax": "ci_high"}),
        (so.Line(), {"y": "value"}),
        (so.Dot(**SMALL), {"y": "dot", "marker": "kind"}),
        # Several diamonds may be at the same x. The marker inside each one shows which line it
        # belongs to.
        (so.Dot(marker="D", pointsize=9, **HOLLOW), {"y": "paper_value", **BY_KIND}),
        (so.Dot(pointsize=3.5, artist_kws={"zorder": 6}), {"y": "paper_value", "marker": "kind"}),
        (so.Line(**DASHES), {"y": "level"}),
        (so.Dot(pointsize=5, **HOLLOW), {"y": "end", "marker": "kind", **BY_KIND}),
    ]
    keys = _keys(rows, kinds if lines != panels else {}, linestyle="-")
    if len(levels):
        keys["base"] = {"color": GREY, **DASHES}
        levels = levels.assign(level=levels.value, value=np.nan, ci_low=np.nan, paper_value=np.nan)
        ends = levels.assign(x=back(last + 0.06 * (last - first)), end=levels.level)
        rows = pd.concat([rows, levels.assign(x=back(first)), ends])
    return _draw(
        rows.reindex(columns=[*dict.fromkeys([*rows, "level", "end"])]).reset_index(drop=True),
        layers,
        kinds,
        keys,
        "x",
        panels=panels,
        interval=UPRIGHT if is_few else BAND,
        scales={"x": scale.tick(at=log_ticks or few)},
        **shown,
    )


def reliability(frame: pd.DataFrame, *, title: str = "") -> Figure:
    """Draw Figure 9a: for each model, the percentage of right answers at each confidence. The
    diagonal is perfect calibration. ``frame`` has the rows of
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
    layers: Iterable[Layer],
    kinds: Mapping[str, Style],
    keys: Mapping[str, Style],
    axis: str,
    *,
    move: so.Move | None = None,
    panels: str | None = None,
    marks: Mapping[str, Mark] | None = None,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    height: float = HEIGHT,
    interval: Style = UPRIGHT,
    scales: Mapping[str, so.Continuous] | None = None,
) -> Figure:
    """Return a figure with those of the ``layers`` that have a number to show.

    The figure has a panel for each value of the column ``panels``. At most three panels are side by
    side, and all have the same axes. The column ``kind`` decides the colour and the marker, as
    ``kinds`` says, and ``keys`` is the legend. On the ``axis`` ("x" or "y"), all layers show the
    column with this name. ``move`` puts the kinds side by side. ``interval`` is the style of
    intervals in the legend.
    """
    count = rows[panels].nunique() if panels else 1
    lines = -(-count // 3)  # rounded up
    columns = -(-count // lines)
    rows = rows[rows["kind"].isin(kinds)]
    rows = rows.assign(kind=pd.Categorical(rows["kind"], [*kinds]))
    plot = so.Plot(rows, color="kind", group="kind", **{axis: axis})
    for mark, shown in layers:
        if rows[next(iter(shown.values()))].notna().any():
            plot = plot.add(mark, *filter(None, [move]), orient=axis, legend=False, **shown)
    if panels:
        plot = plot.facet(panels, wrap=columns).label(title=lambda name: _wrap(name, 66 // columns))
    colours, markers = (
        {name: look[key] for name, look in kinds.items()} for key in ("color", "marker")
    )
    theme = dict(matplotlib.rc_params_from_file(STYLE, use_default_template=False))
    theme["axes.grid.axis"] = "x" if axis == "y" else "y"
    with plt.style.context(STYLE):
        height *= 0.8 * lines if lines > 1 else 1
        figure = plt.figure(figsize=(WIDTH, height), layout="constrained")
        plot = plot.scale(color=colours, edgecolor=colours, marker=markers, **scales or {})
        plot = plot.label(x="", y="").theme(theme)
        plot.on(figure).plot()
        figure.supxlabel(xlabel)
        figure.supylabel(ylabel)
    plt.close(figure)
    for axes in figure.axes:
        axes.tick_params(labelbottom=True)
    marked = _draw_marks(figure.axes, marks or {})
    _draw_keys(figure, title, {**keys, **marked}, rows, interval)
    return figure


def _rows(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the rows of a metric, with all columns of NUMBERS, and with conditions
    ``<head>/<class>`` split into the columns ``head`` and ``class``. If a condition has no slash,
    its class is "all". Raises UserError for a metric without a row.
    """
    if frame.empty:
        raise UserError("there is no row to draw")
    check_choice("the metric", metric, frame.metric.unique())
    rows = frame[frame.metric == metric]
    rows = rows.reindex(columns=list(dict.fromkeys([*rows, *NUMBERS])))
    parts = rows.condition.str.partition("/")
    return rows.assign(head=parts[0], **{"class": parts[2].replace("", "all")})


def _draw_keys(
    figure: Figure, title: str, keys: Mapping[str, Style], rows: pd.DataFrame, interval: Style
) -> None:
    """Draw the title and, below it, one legend for all panels. ``keys`` are the legend's entries,
    {label: style}. The legend also explains the intervals and the paper's diamonds. It states n if
    all rows have the same n.
    """
    styles = dict(keys)
    if rows.ci_low.notna().any():
        styles["95% interval"] = {"color": GREY, **interval}
    if rows.paper_value.notna().any():
        label = "paper (the ◇ model)" if any("◇" in model for model in rows.model) else "paper"
        styles[label] = PAPER_STYLE
    if rows.n.nunique() == 1:
        styles[f"n = {rows.n.max():,.0f}"] = {"linestyle": "none"}
    # 115 characters fit in a line of the legend, and a label's marker takes the place of 8
    columns = max(1, 115 // (8 + max(map(len, [*styles, ""]))))
    figure.set_figheight(figure.get_figheight() + 0.2 * -(-len(styles) // columns))
    figure.legend(
        handles=[Line2D([], [], label=label, **style) for label, style in styles.items()],
        title=_wrap(title, 78),
        title_fontsize=11,
        fontsize=9,
        loc="outside upper left",
        ncols=columns,
        alignment="left",
        columnspacing=1.6,
        frameon=False,
    )


def _draw_marks(panels: Sequence[Axes], marks: Mapping[str, Mark]) -> dict[str, Style]:
    """Draw each of the ``marks`` in each panel, as a vertical line or a grey span. Return {label:
    style} for the legend.
    """
    keys: dict[str, Style] = {}
    dashes = cycle([":", "-.", (0, (6, 2))])
    for label, place in marks.items():
        line: Style = {"color": GREY, "linestyle": next(dashes)}
        keys[label] = {"color": PALE, "linewidth": 7} if isinstance(place, tuple) else line
        for axes in panels:
            if isinstance(place, tuple):
                axes.axvspan(*place, color="#bbbbbb", alpha=0.3, zorder=0)
            else:
                axes.axvline(place, **line, zorder=0.5)
    return keys


def _wrap(text: str, width: int) -> str:
    return fill(text, width, break_on_hyphens=False)


def _keys(rows: pd.DataFrame, kinds: Mapping[str, Style], **style: Any) -> dict[str, Style]:
    """Return a legend, {label: style}. A label is a name from ``kinds``. If all rows of the
    name have the same n, but not all rows of the table do, this n is added to the label.
    """
    keys = {}
    for name, look in kinds.items():
        counts = rows.n[rows["kind"] == name].dropna().unique()
        n = f", n = {counts[0]:,.0f}" if len(counts) == 1 < rows.n.nunique() else ""
        of_class = " frequency" if "high" in kinds and name != "all" else ""
        keys[f"{name}{of_class}{n}"] = look | style
    return keys if [*kinds] != ["all"] else {}


def _present(wanted: Collection[str], rows: pd.Series) -> list[str]:
    """Return the ``wanted`` names that occur in a column of the rows, in the order of ``wanted``.
    If ``wanted`` is empty, return all names in order of appearance.

    Some names may be missing, because a small run may lack them. Raises UserError if all are.
    """
    names = list(rows.unique())
    present = [name for name in wanted or names if name in names]
    if not present:
        check_choice("a name to draw", next(iter(wanted)), names)
    return present
