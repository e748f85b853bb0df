"""Numbers as points: policies with intervals, validity against cost, and Figure 6's bubbles."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lookuplab.plots import look
from lookuplab.plots.look import canvas, colours

RATES = "cividis"  # dark to bright, the same for the colour-blind
CAP = 2048  # tokens; Figure 6's scale ends here
_MARKERS = "osD^v*<>ph"


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
    """Policies from top to bottom, per class a dot with its interval: Tables 2 and 3 at a glance.

    Columns: model, condition (``<policy>/<class>``), metric, value; ci_low, ci_high, paper_value where there are any.
    policies: which ones, in which order, or {policy: label}; classes likewise; panels: a column, one drawing per value.
    """
    rows = look.split(frame[frame["metric"] == metric])
    labels = _labels(policies, rows["head"])
    palette = colours(look.present(classes, rows["class"]))
    cells = look.cells(rows, panels)
    height = 1.3 + len(labels) * max(0.5, 0.2 * len(palette))
    figure, grid = look.panels(list(cells), title, xlabel, "", height)
    for axes, here in zip(grid, cells.values(), strict=True):
        for position, (name, colour) in enumerate(palette.items()):
            ours = here[here["class"] == name].set_index("head").reindex(list(labels))
            y = np.arange(len(labels)) + (position - (len(palette) - 1) / 2) * 0.8 / len(palette)
            axes.errorbar(
                look.number(ours, "value"), y, xerr=look.whiskers(ours), fmt="o", color=colour, markersize=5, capsize=2
            )
            axes.plot(look.number(ours, "paper_value"), y, **look.PAPER | {"markersize": 4.5}, zorder=5)
        axes.set_yticks(range(len(labels)), list(labels.values()))
        axes.set_ylim(len(labels) - 0.45, -0.55)
        axes.grid(axis="x")
        axes.grid(visible=False, axis="y")
        for between in np.arange(len(labels) - 1) + 0.5:
            axes.axhline(between, color="#e4e4e4", linewidth=0.8, zorder=0)
    keys = [Line2D([], [], color=colour, marker="o", label=name) for name, colour in palette.items()]
    look.figure_legend(figure, [*keys, *_paper_key(rows)])
    return figure


def scatter(
    frame: pd.DataFrame,
    x: str,
    y: str = "valid_percent",
    *,
    of: str = "all",
    policies: Sequence[str] | Mapping[str, str] | None = None,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    log: bool = False,
) -> Figure:
    """What a policy costs and what it brings: metric ``x`` against metric ``y``, a marker per policy.

    Columns: model, condition (``<policy>/<class>``), metric, value; ci_low and ci_high of ``y`` where there are any.
    of: the class to draw. A colour per model, or per policy where there is one model. log: a logarithmic x axis.
    """
    rows = look.split(frame)
    rows = rows[(rows["class"] == of) & rows["metric"].isin([x, y])]
    labels, models = _labels(policies, rows["head"]), list(dict.fromkeys(rows["model"]))
    markers = dict(zip(labels, _MARKERS * 3, strict=False))
    palette = colours(models if len(models) > 1 else labels)
    figure, axes = canvas(title, ylabel)
    for (model, head), pair in rows[rows["head"].isin(list(labels))].groupby(["model", "head"], sort=False):
        cost, gain = pair[pair["metric"] == x], pair[pair["metric"] == y]
        if len(cost) and len(gain):
            axes.errorbar(
                look.number(cost, "value"), look.number(gain, "value"), look.whiskers(gain), fmt=markers[head],
                color=palette[model if len(models) > 1 else head], ms=8, mec="white", mew=0.5, capsize=2, elinewidth=1,
            )
    axes.grid(axis="x")
    axes.set(xlabel=xlabel, xmargin=0.08)
    if log:
        look.plain_log(axes.xaxis)
    keys = [Line2D([], [], color=palette[model], linewidth=5, label=model) for model in models if len(models) > 1]
    for head, label in labels.items():
        colour = palette.get(head, "#444444")
        keys.append(Line2D([], [], color=colour, marker=markers[head], ls="none", markersize=8, label=label))
    look.figure_legend(figure, keys)
    return figure


def bubbles(
    frame: pd.DataFrame,
    *,
    share: str = "share_percent",
    rate: str = "valid_percent",
    designs: Sequence[str] | Mapping[str, str] | None = None,
    title: str = "",
    ylabel: str = "tokens of the augmentation",
) -> Figure:
    """Figure 6 (right): per augmentation design how long it is (y, binned), how often that occurs, and how it fares.

    Columns: condition (``<design>/<bin>``, the bin as from ``token_bin``), metric, value. Metric ``share``: percent of
    the design's samples in the bin, the area of the bubble; metric ``rate``: percent valid among them, its colour.
    designs: which ones, in which order, or {design: label}.
    """
    rows = look.split(frame[frame["metric"].isin([share, rate])])
    table = rows.pivot(index=["head", "class"], columns="metric", values="value").astype(float).reset_index()
    labels = _labels(designs, rows["head"])
    table = table[table["head"].isin(list(labels))]
    bins = sorted(set(table["class"]), key=lambda name: int(name.strip("[]").split(",")[0]))
    table = table[table[share] > 0]
    figure, axes = canvas(title, ylabel, height=1.9 + 0.34 * len(bins))
    drawn = axes.scatter(
        table["head"].map(list(labels).index), table["class"].map(bins.index), s=table[share] * 9, c=table[rate],
        cmap=RATES, norm=Normalize(0, 100), edgecolors="#444444", linewidths=0.6,
    )
    axes.set_xticks(range(len(labels)), [label.replace(" ", "\n") for label in labels.values()], fontsize=8)
    axes.set_yticks(range(len(bins)), bins)
    axes.set(xlim=(-0.6, len(labels) - 0.4), ylim=(-0.8, len(bins) - 0.2))
    axes.grid(axis="x")
    figure.colorbar(drawn, ax=axes, label="% valid", pad=0.02)
    sizes = [
        Line2D([], [], linestyle="none", marker="o", markersize=(percent * 9) ** 0.5, markerfacecolor="white",
               markeredgecolor="#444444", label=f"{percent}%")
        for percent in (5, 20, 50)
    ]
    sizes.insert(0, Line2D([], [], linestyle="none", label="share of the design's samples:"))
    figure.legend(handles=sizes, loc="outside lower center", ncols=4, frameon=False, handleheight=2.4, borderpad=0)
    return figure


def token_bin(count: int, cap: int = CAP) -> str:
    """Figure 6's exponential bins: ``[0, 0]``, ``[1, 1]``, ``[2, 3]`` ... ``[1024, 2047]``; above ``cap``, the last."""
    if count < 0:
        raise ValueError(f"a text has no {count} tokens")
    exponent = min(int(count), cap - 1).bit_length()
    return f"[{2 ** (exponent - 1)}, {2**exponent - 1}]" if exponent else "[0, 0]"


def _labels(wanted: Sequence[str] | Mapping[str, str] | None, found) -> dict[str, str]:
    """{name in the condition: label}, in the order asked for."""
    names = look.present(None if wanted is None else list(wanted), found)
    return {name: wanted[name] if isinstance(wanted, Mapping) else name.replace("_", " ") for name in names}


def _paper_key(rows: pd.DataFrame) -> list:
    known = not np.isnan(look.number(rows, "paper_value")).all()
    return [Line2D([], [], **look.PAPER, label="paper")] if known else []
