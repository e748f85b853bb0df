"""What a model's probabilities say: Figure 8's tokens and Figure 9a's reliability."""

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lookuplab.plots import look
from lookuplab.plots.look import STYLE, WIDTH, canvas, colours

_ROW = 72  # letters in one row of tokens


def reliability_diagram(
    frame: pd.DataFrame,
    *,
    lines: str = "model",
    title: str = "",
    xlabel: str = "API invocation confidence",
    ylabel: str = "% valid",
) -> Figure:
    """Figure 9a: per model how often it is right at which confidence, and below how many tasks say so.

    Columns: ``lines``, condition (``bin_<number>``), metric, value, n; ci_low, ci_high where there are any. Metric
    ``confidence`` is the bin's mean (0 to 1), metric ``correct_percent`` its share of right answers, n its size.
    ``scoring.calibration.reliability_rows`` makes such rows.
    """
    with mpl.rc_context(STYLE):
        figure, (axes, strip) = plt.subplots(
            2, 1, figsize=(WIDTH, 5.2), sharex=True, layout="constrained", height_ratios=[4, 1]
        )
        axes.set_title(title)
    plt.close(figure)
    axes.plot([0, 1], [0, 100], color="#666666", linestyle="--", linewidth=1, zorder=1)
    for name, colour in colours(dict.fromkeys(frame[lines])).items():
        ours = frame[frame[lines] == name].drop_duplicates(["condition", "metric"])
        correct = ours[ours["metric"] == "correct_percent"].set_index("condition")
        at = ours[ours["metric"] == "confidence"].set_index("condition")["value"].reindex(correct.index).to_numpy(float)
        axes.errorbar(
            at, look.number(correct, "value"), look.whiskers(correct), fmt="o-", color=colour, label=name, markersize=5,
            elinewidth=1, capsize=2,
        )
        strip.vlines(at, 0, look.number(correct, "n"), color=colour, linewidth=1.5, alpha=0.7)
        strip.plot(at, look.number(correct, "n"), "o", color=colour, markersize=4)
    axes.set(ylabel=ylabel, ylim=(-3, 103), xlim=(-0.03, 1.03))
    strip.set(ylabel="tasks", xlabel=xlabel)
    strip.set_ylim(0, strip.get_ylim()[1] * 1.1)
    look.figure_legend(figure, [*axes.containers, mpl.lines.Line2D(
        [], [], color="#666666", linestyle="--", linewidth=1, label="calibrated")])
    return figure


def token_strip(
    tokens: Sequence[str], probabilities: Sequence[float], *, name: Sequence[bool] | None = None, title: str = ""
) -> Figure:
    """Figure 8: the tokens of one invocation as boxes coloured by their probability, the minimum framed.

    tokens: (n,) texts; probabilities: (n,) from 0 to 1; name: (n,) which of them belong to the API's name (default:
    all): the others are paler, and the minimum, the invocation confidence, is taken over the name alone.
    """
    inside = np.ones(len(tokens), dtype=bool) if name is None else np.asarray(name, dtype=bool)
    if not len(tokens) == len(probabilities) == len(inside) or not inside.any():
        raise ValueError(f"{len(tokens)} tokens, {len(probabilities)} probabilities, {inside.sum()} of the name")
    shown = [repr(token)[1:-1].replace(" ", "\u2423") for token in tokens]  # blanks and line ends seen
    places = _places([max(len(text), 4) + 1.5 for text in shown])
    figure, axes = canvas(title, "", height=0.75 + 0.85 * (1 + places[-1][1]))
    palette = mpl.colormaps["cividis"]
    least = min(np.flatnonzero(inside), key=lambda place: probabilities[place])
    for place, ((x, row), text, probability) in enumerate(zip(places, shown, probabilities, strict=True)):
        width = max(len(text), 4) + 1.3
        colour, alpha = palette(float(probability)), 1.0 if inside[place] else 0.35
        axes.add_patch(Rectangle((x, -row), width, 0.55, facecolor=colour, alpha=alpha, linewidth=0))
        ink = "white" if probability < 0.5 and inside[place] else "#222222"
        axes.text(x + width / 2, -row + 0.275, text, color=ink, ha="center", va="center", family="DejaVu Sans Mono")
        axes.text(x + width / 2, -row - 0.06, f"{probability:.2f}", color="#444444", ha="center", va="top", fontsize=9)
        if place == least:
            axes.add_patch(Rectangle((x, -row), width, 0.55, fill=False, edgecolor="#d55e00", linewidth=2.5))
            axes.text(x + width / 2, -row + 0.6, "minimum", color="#d55e00", ha="center", va="bottom", fontsize=9)
    axes.set(xlim=(0, _ROW + 2), ylim=(-places[-1][1] - 0.35, 0.85))
    axes.set_axis_off()
    return figure


def _places(widths: Sequence[float]) -> list[tuple[float, int]]:
    """Where each box begins, (x, row): one after the other, a new row where the line is full."""
    places, x, row = [], 0.0, 0
    for width in widths:
        if x and x + width > _ROW:
            x, row = 0.0, row + 1
        places.append((x, row))
        x += width
    return places
