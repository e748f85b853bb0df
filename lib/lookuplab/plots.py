"""One look for every figure: each function draws tidy rows (``value, ci_low, ci_high, paper_value``).

Bars and lines are ours, with 95% intervals; a hollow diamond is the paper's value for the same quantity. Colours are
fixed per frequency class, model size, provider and failure category, and told apart in every common colour blindness
and in grey. The same rows give the same picture. Figures are closed before they are returned, so that a notebook shows
each once.
"""

from collections.abc import Iterable, Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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
PAPER_ROW = "paper"
_OTHERS = sns.color_palette("colorblind").as_hex()
_PAPER = {"marker": "D", "linestyle": "none", "markerfacecolor": "white", "markeredgecolor": "#222222", "markersize": 6}


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
    figure, axes = _canvas(title, ylabel)
    for position, (kind, colour) in enumerate(colours(kinds).items()):
        ours = rows[rows[bars] == kind].set_index(groups).reindex(names)
        x = np.arange(len(names)) + (position - (len(kinds) - 1) / 2) * width
        axes.bar(x, ours["value"], width * 0.92, color=colour, label=kind)
        axes.errorbar(x, ours["value"], _whiskers(ours), fmt="none", ecolor="#222222", elinewidth=1, capsize=2.5)
        _paper_values(axes, x, ours)
    crowded = sum(map(len, names)) > 60
    axes.set_xticks(range(len(names)), names, rotation=25 if crowded else 0, ha="right" if crowded else "center")
    axes.set_ylim(0, top)
    _legend(axes)
    return figure


def stacked_shares(
    frame: pd.DataFrame, metrics: Mapping[str, str], *, title: str = "", xlabel: str = "% of invalid invocations"
) -> Figure:
    """One horizontal bar per model, cut into ``metrics`` {metric: label}, percents that add up to 100, e.g. Table 4.

    The paper's shares, where the frame has them, are a paler bar of their own under the model.
    """
    bars = _share_rows(frame, list(metrics))
    figure, axes = _canvas(title, "", height=1.4 + 0.42 * len(bars))
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
    _legend(axes)
    return figure


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
    figure, axes = _canvas(title, ylabel)
    for name, colour in colours(dict.fromkeys(rows[lines])).items():
        ours = rows[rows[lines] == name].set_index("condition").reindex(list(places))
        at = np.array(list(places.values()), dtype=float)
        axes.fill_between(
            at, ours["ci_low"].astype(float), ours["ci_high"].astype(float), color=colour, alpha=0.18, linewidth=0
        )
        axes.plot(at, ours["value"], "o-", color=colour, label=name, markersize=5)
        _paper_values(axes, at, ours)
    if not isinstance(x, Mapping):
        axes.set_xticks(range(len(places)), list(places))
        axes.margins(x=0.12)
    axes.set(xlabel=xlabel, yscale="log" if log else "linear")
    if log:
        axes.yaxis.set_major_locator(mpl.ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(mpl.ticker.FormatStrFormatter("%g"))
        axes.yaxis.set_minor_locator(mpl.ticker.NullLocator())
    _legend(axes)
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
    figure, axes = _canvas(title, ylabel)
    for position, (provider, colour) in enumerate(colours(providers).items()):
        x = np.arange(len(classes)) + (position - (len(providers) - 1) / 2) * width
        heights = [count.get(f"{provider}/{name}", 0) for name in classes]
        drawn = axes.bar(x, heights, width * 0.92, color=colour, label=provider)
        axes.bar_label(drawn, fmt="%.0f", padding=2, fontsize=9)
    axes.set_xticks(range(len(classes)), classes)
    axes.margins(y=0.1)
    _legend(axes)
    return figure


def word_cloud(counts: Mapping[str, float], *, title: str = "", seed: int = 0) -> Figure:
    """Words as large as their counts, e.g. the services of Figure 2b; placed by a seeded generator."""
    from wordcloud import WordCloud

    if not counts:
        raise ValueError("no words to draw")
    palette = [COLOURS["high"], COLOURS["aws"], SIZE_COLOURS["large"], "#1b7837", "#b2182b"]
    cloud = WordCloud(
        font_path=mpl.font_manager.findfont("DejaVu Sans"),
        width=1500,
        height=700,
        max_font_size=150,
        background_color="white",
        prefer_horizontal=0.95,
        random_state=seed,
        color_func=lambda *_, random_state, **__: palette[random_state.randrange(len(palette))],
    )
    # sorted, so that the picture depends on the counts and not on the order in which they were met
    image = cloud.generate_from_frequencies(dict(sorted(counts.items()))).to_array()
    figure, axes = _canvas(title, "")
    axes.imshow(image, interpolation="bilinear")
    axes.set_axis_off()
    return figure


def colours(names: Iterable[str]) -> dict[str, str]:
    """The fixed colour of a class, size (``mini-small``), provider or category; else the next of the palette."""
    chosen, others = {}, iter(_OTHERS * 10)
    for name in names:
        _, hyphen, size = name.rpartition("-")
        chosen[name] = COLOURS.get(name) or (SIZE_COLOURS.get(size) if hyphen else None) or next(others)
    return chosen


def _canvas(title: str, ylabel: str, height: float = HEIGHT) -> tuple[Figure, Axes]:
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH, height), layout="constrained")
        axes.set_title(title)
        axes.set_ylabel(ylabel)
    plt.close(figure)
    axes.set_axisbelow(True)
    return figure, axes


def _whiskers(rows: pd.DataFrame) -> np.ndarray:
    """(2, bars) distances down and up; none where there is no interval."""
    value = rows["value"].astype(float)
    distances = np.array([value - rows["ci_low"].astype(float), rows["ci_high"].astype(float) - value])
    return np.nan_to_num(distances).clip(min=0)


def _share_rows(frame: pd.DataFrame, metrics: list[str]) -> list[tuple[str, pd.Series]]:
    """Per model our shares, then the paper's where it reports all of them."""
    rows = []
    for model in dict.fromkeys(frame["model"]):
        values = frame[frame["model"] == model].set_index("metric").reindex(metrics)
        rows.append((model, values["value"].astype(float)))
        if values["paper_value"].notna().all():
            rows.append((PAPER_ROW, values["paper_value"].astype(float)))
    return rows


def _paper_values(axes: Axes, x: np.ndarray, rows: pd.DataFrame) -> None:
    reported = rows["paper_value"].astype(float).to_numpy()
    if not np.isnan(reported).all():
        first = "paper" not in axes.get_legend_handles_labels()[1]
        axes.plot(x, reported, **_PAPER, label="paper" if first else None, zorder=5)


def _legend(axes: Axes) -> None:
    """Beside the drawing, never on it; the paper's marker last."""
    handles, labels = axes.get_legend_handles_labels()
    pairs = sorted(zip(handles, labels, strict=True), key=lambda pair: pair[1] == "paper")
    axes.legend(*zip(*pairs, strict=True), loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0, frameon=False)
