"""Numbers as bars: rates per model and class, shares that add up, counts."""

from collections.abc import Mapping, Sequence
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lookuplab.plots.look import canvas, colours, legend, mark_paper, whiskers

PAPER_ROW = "paper"


def grouped_bars(
    frame: pd.DataFrame,
    metric: str,
    *,
    groups: str = "model",
    bars: str = "condition",
    order: Sequence[str] | None = None,
    title: str = "",
    ylabel: str = "",
    top: float | None = 100,
) -> Figure:
    """One group of bars per ``groups`` value, one bar per ``bars`` value (columns of the frame), e.g. Table 1.

    ``order`` selects and orders the bars (default: as they come); ``top`` is the upper end of the axis, None for
    automatic.
    """
    rows = frame[frame["metric"] == metric]
    names, kinds = list(dict.fromkeys(rows[groups])), list(order or dict.fromkeys(rows[bars]))
    width = 0.8 / len(kinds)
    figure, axes = canvas(title, ylabel)
    for position, (kind, colour) in enumerate(colours(kinds).items()):
        ours = rows[rows[bars] == kind].set_index(groups).reindex(names)
        x = np.arange(len(names)) + (position - (len(kinds) - 1) / 2) * width
        axes.bar(x, ours["value"], width * 0.92, color=colour, label=kind)
        axes.errorbar(x, ours["value"], whiskers(ours), fmt="none", ecolor="#222222", elinewidth=1, capsize=2.5)
        mark_paper(axes, x, ours)
    crowded = sum(map(len, names)) > 60
    room = max(12, 60 // max(1, len(names)))  # characters
    labels = names if crowded else ["\n".join(fill(line, room, break_long_words=False) for line in str(name).split("\n"))
                                    for name in names]
    axes.set_xticks(range(len(names)), labels, rotation=25 if crowded else 0, ha="right" if crowded else "center")
    axes.set_ylim(0, top)
    legend(axes)
    return figure


def stacked_shares(
    frame: pd.DataFrame, metrics: Mapping[str, str], *, title: str = "", xlabel: str = "% of invalid invocations"
) -> Figure:
    """One horizontal bar per model, cut into ``metrics`` {metric: label}, percents that add up to 100, e.g. Table 4.

    The paper's shares, where the frame has them, are a paler bar of their own under the model.
    """
    bars = _share_rows(frame, list(metrics))
    figure, axes = canvas(title, "", height=1.4 + 0.42 * len(bars))
    left = np.zeros(len(bars))
    for (metric, label), colour in zip(metrics.items(), colours(metrics).values(), strict=True):
        share = np.array([values[metric] for _, values in bars], dtype=float)
        drawn = axes.barh(range(len(bars)), share, 0.8, left=left, color=colour, label=label)
        numbers = [f"{value:.0f}" if value >= 4 else "" for value in share]
        texts = axes.bar_label(drawn, numbers, label_type="center", color="white", fontsize=9)
        for patch, text, (name, _) in zip(drawn, texts, bars, strict=True):
            if name == PAPER_ROW:
                patch.set_alpha(0.45)
                text.set_color("#222222")
        left = left + share
    axes.set_yticks(range(len(bars)), [name for name, _ in bars])
    axes.set(xlim=(0, 100), xlabel=xlabel)
    axes.invert_yaxis()
    axes.grid(visible=False)
    legend(axes)
    return figure


def composition_bars(
    frame: pd.DataFrame,
    metric: str = "tasks",
    classes: Sequence[str] = ("low", "medium", "high"),
    providers: Sequence[str] = ("aws", "azure"),
    *,
    title: str = "",
    ylabel: str = "tasks",
) -> Figure:
    """Tasks per class, one bar per provider with its count on it (conditions ``aws/low`` ...), as in Figure 10."""
    count = frame[frame["metric"] == metric].set_index("condition")["value"]
    width = 0.8 / len(providers)
    figure, axes = canvas(title, ylabel)
    for position, (provider, colour) in enumerate(colours(providers).items()):
        x = np.arange(len(classes)) + (position - (len(providers) - 1) / 2) * width
        heights = [count.get(f"{provider}/{name}", 0) for name in classes]
        drawn = axes.bar(x, heights, width * 0.92, color=colour, label=provider)
        axes.bar_label(drawn, fmt="%.0f", padding=2, fontsize=9)
    axes.set_xticks(range(len(classes)), classes)
    axes.margins(y=0.1)
    legend(axes)
    return figure


def _share_rows(frame: pd.DataFrame, metrics: list[str]) -> list[tuple[str, pd.Series]]:
    """Per model our shares, then the paper's where it reports all of them."""
    rows = []
    for model in dict.fromkeys(frame["model"]):
        values = frame[frame["model"] == model].set_index("metric").reindex(metrics)
        rows.append((model, values["value"].astype(float)))
        if values["paper_value"].notna().all():
            rows.append((PAPER_ROW, values["paper_value"].astype(float)))
    return rows
