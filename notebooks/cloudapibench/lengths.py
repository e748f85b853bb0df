"""How long an augmentation is, and how well its calls do: Figure 6 (right)."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from lookuplab.results.plots import STYLE, WIDTH

LONGEST_BIN = 2048  # tokens: where the paper's figure ends


def token_bin(count: int) -> str:
    """Figure 6's exponential bins: ``[0, 0]``, ``[1, 1]``, ``[2, 3]`` ... ``[1024, 2047]``; the
    last is open-ended.
    """
    exponent = min(int(count), LONGEST_BIN - 1).bit_length()
    return f"[{2 ** (exponent - 1)}, {2**exponent - 1}]" if exponent else "[0, 0]"


def length_map(rows: pd.DataFrame, designs: list[str], title: str) -> Figure:
    """For each of the designs that have rows, how many tokens it adds (y, binned), how often, and
    how well it does.

    Conditions are ``<design>/<bin>``, with bins from ``token_bin``. A cell's colour and first
    number are the metric ``valid_percent`` of the design's samples in the bin; the number below is
    ``share_percent``, their share of all its samples.
    """
    rows = rows.assign(**rows.condition.str.extract("(?P<design>.*)/(?P<bin>.*)"))
    names = [name for name in designs if name in set(rows.design)]
    cells = rows.pivot(index="bin", columns=["metric", "design"], values="value")
    cells = cells.loc[sorted(cells.index, key=lambda name: -int(name[1:].split(",")[0]))]
    valid, share = cells["valid_percent"][names], cells["share_percent"][names]
    valid = valid.where(share > 0)
    with plt.style.context(STYLE):
        size = WIDTH, 1.9 + 0.45 * len(cells)
        figure, axes = plt.subplots(figsize=size, layout="constrained")
        axes.set_title(title)
    plt.close(figure)
    sns.heatmap(
        valid,
        annot=valid.map("{:.0f}%".format) + share.map("\nof {:.0f}%".format),
        annot_kws={"fontsize": 8},
        cbar_kws={"label": "valid (%)", "pad": 0.02},
        ax=axes,
        vmin=0,
        vmax=100,
        cmap="cividis",
        linewidths=1,
        fmt="",
    )
    labels = [name.replace("_", "\n") for name in names]
    axes.set_xticks(np.arange(len(names)) + 0.5, labels, fontsize=8, rotation=0)
    axes.set(xlabel="", ylabel="tokens that the documentation adds")
    axes.grid(visible=False)
    return figure
