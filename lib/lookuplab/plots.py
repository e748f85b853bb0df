"""Figures in one look. Each function draws tidy rows (``value``, ``ci_low``, ``ci_high``, ``paper_value``).

Bars, dots and lines are our values with 95% intervals; a hollow diamond is the paper's value of the same quantity.
Colours are fixed for frequency classes, model sizes, providers and failure categories. The same rows give the same
picture. Figures are returned closed, so that a notebook shows each of them once.
"""

from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

WIDTH, HEIGHT = 7.5, 3.8  # inches; 10-point text is still readable at the width of a README
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
DARK, GREY, PALE = "#222222", "#444444", "#e4e4e4"
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
PAPER = {
    "marker": "D",
    "linestyle": "none",
    "markerfacecolor": "white",
    "markeredgecolor": DARK,
    "markersize": 6,
}
DASHES = {"linestyle": (0, (5, 3)), "linewidth": 1.2}
LONGEST_BIN = 2048  # tokens: where Figure 6 of CloudAPIBench ends


def colours(names: Iterable[str]) -> dict[str, str]:
    """The fixed colour of each class, size (``mini-small``), provider or category; else the next of the palette."""
    chosen, others = {}, iter(sns.color_palette("colorblind").as_hex() * 10)
    for name in names:
        _, hyphen, size = name.rpartition("-")
        chosen[name] = (
            COLOURS.get(name) or (SIZE_COLOURS.get(size) if hyphen else None) or next(others)
        )
    return chosen


def grouped_bars(
    frame: pd.DataFrame,
    metric: str,
    *,
    groups: str = "model",
    bars: str = "condition",
    order: Sequence[str] | None = None,
    counts: bool = False,
    title: str = "",
    ylabel: str = "",
    top: float | None = 100,
) -> Figure:
    """One group of bars per value of ``groups``, one bar per value of ``bars`` (columns), e.g. Table 1.

    ``order`` selects and orders the bars; ``counts`` writes each value on its bar; ``top`` is the upper end of the
    axis, None for automatic.
    """
    rows = frame[frame["metric"] == metric]
    names, kinds = list(dict.fromkeys(rows[groups])), list(order or dict.fromkeys(rows[bars]))
    width = 0.8 / len(kinds)
    figure, axes = canvas(title, ylabel)
    for position, (kind, colour) in enumerate(colours(kinds).items()):
        ours = rows[rows[bars] == kind].set_index(groups).reindex(names)
        x = np.arange(len(names)) + (position - (len(kinds) - 1) / 2) * width
        drawn = axes.bar(x, ours["value"], width * 0.92, color=colour, label=kind)
        if counts:
            axes.bar_label(drawn, fmt="%.0f", padding=2, fontsize=9)
        else:
            style = {"fmt": "none", "ecolor": DARK, "elinewidth": 1, "capsize": 2.5}
            axes.errorbar(x, ours["value"], _whiskers(ours), **style)
        reported = _numbers(ours, "paper_value")
        if not np.isnan(reported).all():
            first = "paper" not in axes.get_legend_handles_labels()[1]
            axes.plot(x, reported, **PAPER, label="paper" if first else None, zorder=5)
    crowded = sum(map(len, names)) > 60
    room = 1000 if crowded else max(12, 60 // max(1, len(names)))  # characters
    names = [fill(str(name), room, break_long_words=False) for name in names]
    axes.set_xticks(
        range(len(names)), names, rotation=25 if crowded else 0, ha="right" if crowded else "center"
    )
    axes.set_ylim(0, top)
    legend(axes)
    return figure


def dots_with_intervals(
    frame: pd.DataFrame,
    metric: str,
    *,
    policies: Sequence[str] | Mapping[str, str] | None = None,
    classes: Sequence[str] | None = None,
    panels: str | None = "model",
    title: str = "",
    xlabel: str = "",
) -> Figure:
    """Policies from top to bottom, a dot with its interval per class: Tables 2 and 3 at a glance.

    Conditions are ``<policy>/<class>``. ``policies`` selects and orders, and as {policy: label} also names;
    ``classes`` likewise; ``panels`` is a column with one panel per value.
    """
    rows = _split(frame[frame["metric"] == metric])
    labels = _labels(policies, rows["head"])
    palette = colours(_present(classes, rows["class"]))
    height = 1.3 + len(labels) * max(0.5 if len(labels) < 20 else 0.2, 0.2 * len(palette))
    figure, cells = _panels(rows, panels, title, xlabel, "", height)
    for axes, here in cells:
        for position, (name, colour) in enumerate(palette.items()):
            ours = here[here["class"] == name].set_index("head").reindex(list(labels))
            y = np.arange(len(labels)) + (position - (len(palette) - 1) / 2) * 0.8 / len(palette)
            style = {"fmt": "o", "color": colour, "markersize": 5, "capsize": 2}
            axes.errorbar(_numbers(ours, "value"), y, xerr=_whiskers(ours), **style)
            axes.plot(_numbers(ours, "paper_value"), y, **PAPER | {"markersize": 4.5}, zorder=5)
        axes.set_yticks(range(len(labels)), list(labels.values()))
        axes.set_ylim(len(labels) - 0.45, -0.55)
        axes.grid(axis="x")
        axes.grid(visible=False, axis="y")
        for between in np.arange(len(labels) - 1) + 0.5:
            axes.axhline(between, color=PALE, linewidth=0.8, zorder=0)
    keys = [
        Line2D([], [], color=colour, marker="o", label=name) for name, colour in palette.items()
    ]
    if not np.isnan(_numbers(rows, "paper_value")).all():
        keys.append(Line2D([], [], **PAPER, label="paper"))
    _key(figure, keys)
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

    Conditions are ``<x>_<number>/<class>``, e.g. ``precision_50/high`` for x = "precision"; ``<base>/<class>`` becomes
    a dashed level in the colour of its class. ``lines`` is "class" or a column, ``panels`` a column with one panel per
    value, ``classes`` which ones in which order. ``points`` is a second metric, drawn as dots (a sampled estimate).
    ``marks``: {label: x} are dotted vertical lines, {label: (from, to)} grey spans.
    """
    marks = marks or {}
    rows = _split(frame[frame["metric"].isin([metric, points])])
    at = pd.to_numeric(
        rows["head"].str.removeprefix(f"{x}_").where(rows["head"].str.startswith(f"{x}_"))
    )
    rows = rows.assign(at=at, is_base=rows["head"] == base)
    rows = rows[
        (rows["is_base"] | at.notna()) & rows["class"].isin(_present(classes, rows["class"]))
    ]
    palette = colours(_present(classes if lines == "class" else None, rows[lines]))
    figure, cells = _panels(rows, None if panels == lines else panels, title, xlabel, ylabel)
    for axes, here in cells:
        for name, colour in palette.items():
            of_line = here[here[lines] == name]
            _curve(axes, of_line[of_line["metric"] == metric], colour, markers=points is None)
            sampled = of_line[of_line["metric"] == points]
            axes.plot(sampled["at"], sampled["value"], ".", color=colour, markersize=5, zorder=4)
        if rows["at"].nunique() <= 6:  # few values are named each: nobody reads off half a document
            axes.set_xticks(rows["at"].dropna().unique())
        for place in marks.values():
            if isinstance(place, tuple):
                axes.axvspan(*place, color="#bbbbbb", alpha=0.3, linewidth=0, zorder=0)
            else:
                axes.axvline(place, color=GREY, linestyle=":", linewidth=1.2, zorder=1)
    keys = [
        Line2D([], [], color=colour, label=name, linewidth=2) for name, colour in palette.items()
    ]
    if rows["is_base"].any():
        keys.append(Line2D([], [], color=GREY, **DASHES, label=base))
    if (rows["metric"] == points).any():
        keys.append(Line2D([], [], color=GREY, marker=".", linestyle="none", label="sampled"))
    for label, place in marks.items():
        span = {"color": "#dddddd", "linewidth": 7}
        style = span if isinstance(place, tuple) else {"color": GREY, "linestyle": ":"}
        keys.append(Line2D([], [], label=label, **style))
    if not np.isnan(_numbers(rows[~rows["is_base"]], "paper_value")).all():
        keys.append(Line2D([], [], **PAPER, label="paper"))
    _key(figure, keys)
    return figure


def _curve(axes: Axes, rows: pd.DataFrame, colour: str, markers: bool) -> None:
    ours = rows[~rows["is_base"]].sort_values("at", kind="stable")
    at = ours["at"].to_numpy(float)
    axes.fill_between(
        at, _numbers(ours, "ci_low"), _numbers(ours, "ci_high"), color=colour, alpha=0.18, lw=0
    )
    style = "o-" if markers and len(ours) <= 15 else "-"  # more markers would hide the line
    axes.plot(at, ours["value"], style, color=colour, markersize=4)
    for value in rows.loc[rows["is_base"], "value"]:
        axes.axhline(value, color=colour, **DASHES, zorder=1.5)
    # the edge of a diamond tells its line: several may stand over the same x
    reported = PAPER | {"markeredgecolor": colour}
    axes.plot(at, _numbers(ours, "paper_value"), **reported, mew=1.6, zorder=5)


def length_map(
    frame: pd.DataFrame, *, designs: Sequence[str] | None = None, title: str = "", ylabel: str = ""
) -> Figure:
    """Figure 6 (right): per augmentation design how long it is (y, binned), how often that occurs, and how it fares.

    Conditions are ``<design>/<bin>``, the bin as from ``token_bin``. A cell's colour and first number are the metric
    ``valid_percent`` of the design's samples in the bin; below it, ``share_percent``, their share of its samples.
    """
    rows = _split(frame)
    bins = sorted(
        set(rows["class"]), key=lambda name: int(name.strip("[]").split(",")[0]), reverse=True
    )
    names = _present(designs, rows["head"])
    cells = rows.pivot_table(index="class", columns=["metric", "head"], values="value").reindex(
        bins
    )
    valid, share = (
        cells[metric].reindex(columns=names) for metric in ("valid_percent", "share_percent")
    )
    valid = valid.where(share > 0)
    texts = valid.map("{:.0f}%".format) + share.map("\nof {:.0f}%".format)
    figure, axes = canvas(title, ylabel, height=1.9 + 0.45 * len(bins))
    style = {"fmt": "", "annot_kws": {"fontsize": 8}, "cmap": "cividis", "linewidths": 1}
    bar = {"label": "valid (%)", "pad": 0.02}
    sns.heatmap(valid, annot=texts, vmin=0, cbar_kws=bar, ax=axes, **style)
    labels = [name.replace("_", "\n") for name in names]
    axes.set_xticks(np.arange(len(names)) + 0.5, labels, fontsize=8, rotation=0)
    axes.set(xlabel="", ylabel=ylabel)
    axes.grid(visible=False)
    return figure


def token_bin(count: int, cap: int = LONGEST_BIN) -> str:
    """Figure 6's exponential bins: ``[0, 0]``, ``[1, 1]``, ``[2, 3]`` ... ``[1024, 2047]``; above ``cap``, the last."""
    exponent = min(int(count), cap - 1).bit_length()
    return f"[{2 ** (exponent - 1)}, {2**exponent - 1}]" if exponent else "[0, 0]"


def reliability(frame: pd.DataFrame, *, title: str = "") -> Figure:
    """Figure 9a: per model how often it is right at which confidence; the diagonal is a calibrated model.

    Conditions are ``bin_<number>``: metric ``confidence`` is the bin's mean (0 to 1), metric ``correct_percent`` its
    share of right answers, as from ``scoring.calibration.reliability_rows``.
    """
    at = frame[frame["metric"] == "confidence"].set_index(["model", "condition"])["value"]
    rows = frame[frame["metric"] == "correct_percent"]
    places = [
        f"confidence_{at[key]}/all" for key in zip(rows["model"], rows["condition"], strict=True)
    ]
    names = {"xlabel": "API invocation confidence", "ylabel": "valid (%)", "title": title}
    figure = curves(
        rows.assign(condition=places),
        "correct_percent",
        "confidence",
        lines="model",
        panels=None,
        **names,
    )
    figure.axes[0].plot([0, 1], [0, 100], color=GREY, zorder=1, **DASHES)
    return figure


def plain_log(axis: Axis) -> None:
    """Make an axis logarithmic, with ticks at 1, 2, 5, 10 ... and not at powers of ten."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(mpl.ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(mpl.ticker.FormatStrFormatter("%g"))
    axis.set_minor_locator(mpl.ticker.NullLocator())


def canvas(title: str, ylabel: str, height: float = HEIGHT) -> tuple[Figure, Axes]:
    """A closed figure in the one look, with one drawing; ``height`` in inches."""
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH, height), layout="constrained")
        axes.set_title(title)
        axes.set_ylabel(ylabel)
    plt.close(figure)
    axes.set_axisbelow(True)
    return figure, axes


def _panels(
    rows: pd.DataFrame,
    column: str | None,
    title: str,
    xlabel: str,
    ylabel: str,
    height: float = HEIGHT,
) -> tuple[Figure, list[tuple[Axes, pd.DataFrame]]]:
    """One panel per value of ``column`` with its rows, at most three side by side, all on the same axes."""
    cells = dict(list(rows.groupby(column, sort=False))) if column else {"": rows}
    columns = min(len(cells), 3)
    lines = -(-len(cells) // columns)
    width = WIDTH if columns == 1 else 3.1 * columns + 1.3
    size = (width, height if lines == 1 else 0.8 * height * lines)
    with mpl.rc_context(STYLE):
        shared = {"sharex": True, "sharey": True, "squeeze": False}
        figure, grid = plt.subplots(lines, columns, figsize=size, layout="constrained", **shared)
        figure.suptitle(title, x=0.01, ha="left", fontsize=STYLE["axes.titlesize"])
        figure.supxlabel(xlabel, fontsize=STYLE["font.size"])
        figure.supylabel(ylabel, fontsize=STYLE["font.size"])
        for axes, name in zip(grid.flat, cells, strict=False):
            axes.set_title(name if len(cells) > 1 else "", fontsize=STYLE["font.size"], pad=6)
            axes.set_axisbelow(True)
    plt.close(figure)
    used = list(grid.flat)[: len(cells)]
    for axes in list(grid.flat)[len(cells) :]:
        axes.remove()
    for axes in used[-columns:]:
        axes.xaxis.set_tick_params(labelbottom=True)  # also above a hole of the grid
    return figure, list(zip(used, cells.values(), strict=True))


def _numbers(rows: pd.DataFrame, column: str) -> np.ndarray:
    """A column as floats, (rows,); NaN where the frame does not have it."""
    return rows[column].to_numpy(float) if column in rows else np.full(len(rows), np.nan)


def _whiskers(rows: pd.DataFrame) -> np.ndarray:
    """Distances down and up, (2, rows); 0 where there is no interval."""
    value = _numbers(rows, "value")
    distances = np.array([value - _numbers(rows, "ci_low"), _numbers(rows, "ci_high") - value])
    return np.nan_to_num(distances).clip(min=0)


def legend(axes: Axes) -> None:
    """Beside the drawing, never on it; the paper's marker last."""
    handles, labels = axes.get_legend_handles_labels()
    pairs = sorted(zip(handles, labels, strict=True), key=lambda pair: pair[1] == "paper")
    place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0}
    axes.legend(*zip(*pairs, strict=True), frameon=False, **place)


def _key(figure: Figure, handles: Sequence) -> None:
    """One legend of labelled artists for all panels, on their right."""
    if handles:
        labels = [handle.get_label() for handle in handles]
        figure.legend(handles, labels, loc="outside right upper", frameon=False)


def _split(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with ``head`` and ``class`` from conditions ``<head>/<class>``; without a slash the class is all."""
    parts = frame["condition"].astype(str).str.partition("/")
    return frame.assign(**{"head": parts[0], "class": parts[2].where(parts[1] == "/", "all")})


def _present(wanted: Sequence[str] | None, found: Iterable[str]) -> list[str]:
    """``wanted`` in its order, without what the rows do not have; default: all, as they come."""
    found = list(dict.fromkeys(found))
    return found if wanted is None else [name for name in wanted if name in found]


def _labels(
    wanted: Sequence[str] | Mapping[str, str] | None, found: Iterable[str]
) -> dict[str, str]:
    """{name in the condition: label}, in the order asked for."""
    names = _present(None if wanted is None else list(wanted), found)
    return {
        name: wanted[name] if isinstance(wanted, Mapping) else name.replace("_", " ")
        for name in names
    }
