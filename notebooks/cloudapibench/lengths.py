"""Validity by length of the augmentation: Figure 6 (right)."""

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from lookuplab.results.plots import STYLE, WIDTH

LONGEST_BIN = 2048  # tokens; the last bin of the paper's figure begins here


def token_bin(count: int) -> str:
    """Return the bin of Figure 6 for a number of tokens: ``[0, 0]``, ``[1, 1]``, ``[2, 3]`` ...
    ``[1024, 2047]``; the last bin is open-ended.
    """
    exponent = min(int(count), LONGEST_BIN - 1).bit_length()
    return f"[{2 ** (exponent - 1)}, {2**exponent - 1}]" if exponent else "[0, 0]"


def length_map(rows: pd.DataFrame, designs: list[str], title: str) -> Figure:
    """Draw, for each of the designs that have rows, how many tokens it adds (y, binned), how often,
    and how many calls are valid.

    Conditions are ``<design>/<bin>``, with bins from ``token_bin`` or "all". Number and colour are
    the metric ``valid_percent`` of the design's samples in the bin; the area is ``share_percent``,
    their share of all its samples.
    """
    rows = rows.assign(**rows.condition.str.extract("(?P<design>.*)/(?P<bin>.*)"))
    names = [name for name in designs if name in set(rows.design)]
    starts = {name: -1 if name == "all" else int(name[1:].partition(",")[0]) for name in rows.bin}
    bins = sorted(starts, key=lambda name: starts[name])
    cells = rows.pivot(index=["design", "bin"], columns="metric", values="value").reset_index()
    x, y = cells.design.map(names.index), cells.bin.map(bins.index)
    share = cells.share_percent.where(cells.bin != "all", 100)
    with plt.style.context(STYLE):
        size = WIDTH, 1.5 + 0.4 * len(bins)
        figure, axes = plt.subplots(figsize=size, layout="constrained")
        axes.set_title(title, fontsize=11, x=-0.16)
    plt.close(figure)
    axes.scatter(x - 0.2, y, 6 * share, cells.valid_percent, cmap="viridis_r", vmin=0)
    for place in zip(x, y, cells.valid_percent, strict=True):
        axes.text(place[0] + 0.05, place[1], f"{place[2]:.0f}%", va="center")
    labels = [name.replace("_", " +\n") for name in names]
    axes.set_xticks(range(len(names)), labels, fontsize=9)
    texts = {"[0, 0]": "0", "all": "any number"}
    ticks = [texts.get(name, name[1:-1].replace(",", " to")) for name in bins]
    axes.set_yticks(range(len(bins)), ticks)
    axes.grid(visible=False)
    axes.set(xlim=(-0.5, len(names) - 0.5), ylim=(-0.5, len(bins) - 0.5))
    axes.set(
        ylabel="tokens that it adds",
        xlabel="number and colour: valid calls (%); area: share of a design's samples",
    )
    return figure
