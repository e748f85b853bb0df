"""One look for every figure: each function draws tidy rows (``value, ci_low, ci_high, paper_value``).

Bars and lines are ours, with 95% intervals; a hollow diamond is the paper's value for the same quantity. Colours are
fixed per frequency class, model size, provider and failure category, and told apart in every common colour blindness
and in grey. The same rows give the same picture. Figures are closed before they are returned, so that a notebook shows
each once.

    bars         grouped_bars, stacked_shares, composition_bars
    lines        line_with_band, curves
    points       dots_with_intervals, scatter, bubbles
    confidence   reliability_diagram, token_strip
    tree         prefix_tree
    words        word_cloud
"""

from lookuplab.plots.bars import composition_bars, grouped_bars, stacked_shares
from lookuplab.plots.confidence import reliability_diagram, token_strip
from lookuplab.plots.lines import curves, line_with_band
from lookuplab.plots.look import COLOURS, SIZE_COLOURS, colours
from lookuplab.plots.points import bubbles, dots_with_intervals, scatter, token_bin
from lookuplab.plots.tree import prefix_tree
from lookuplab.plots.words import word_cloud

__all__ = [
    "COLOURS",
    "SIZE_COLOURS",
    "bubbles",
    "colours",
    "composition_bars",
    "curves",
    "dots_with_intervals",
    "grouped_bars",
    "line_with_band",
    "prefix_tree",
    "reliability_diagram",
    "scatter",
    "stacked_shares",
    "token_bin",
    "token_strip",
    "word_cloud",
]
