"""Threshold and precision to play with: pages over answers that exist, for ``lookuplab.sliders``.

``trigger_page`` asks of a threshold what it catches and whom it disturbs (paper, Section 4.2); ``policy_page`` what
comes of it with a retriever of some precision (Figures 7a and 9b).
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.policies import below, by_class, outcome, triggered
from lookuplab.plots import canvas, colours, legend
from lookuplab.scoring.rates import estimate, rate
from lookuplab.sliders import image, table

BINS = np.linspace(0, 1, 21)


def trigger_page(first: pd.DataFrame, threshold: float) -> str:
    """Of the calls in ``first`` (a frame of ``dag.ask``), how many of the invalid and of the valid ones have a
    confidence below ``threshold`` (0 to 1), by class, with 95% intervals over APIs. UserError without confidences."""
    unsure, valid = below(first, threshold), first.valid.to_numpy(dtype=bool)
    rows = [(name, _share(unsure, mask & ~valid, first), _share(unsure, mask & valid, first))
            for name, mask in by_class(first).items()]
    figure = _histogram(first, threshold)
    text = f"Histogram of the confidence of valid and of invalid calls, and the threshold {threshold:.2f}"
    heads = ["APIs", "caught: of the invalid calls", "disturbed: of the valid calls"]
    return f"<p><b>Confidence below {threshold:.2f}</b></p>" + table(heads, rows) + image(figure, text)


def policy_page(passes: Passes, threshold: float, precision: float) -> str:
    """Valid calls (%) by class without documentation, with documentation for all, and with documentation below
    ``threshold`` (0 to 1), from a retriever of ``precision`` (percent), with 95% intervals over APIs. UserError for
    numbers outside their range."""
    ways = {"base": triggered(passes.first, "base"), "DAG": triggered(passes.first, "dag"),
            f"DAG below {threshold:.2f}": triggered(passes.first, "dag_confidence", threshold)}
    shares = {way: outcome(passes, mask, precision) for way, mask in ways.items()}
    classes = by_class(passes.first)
    valid = {way: [estimate(shares[way][mask], passes.first.api[mask], repetitions=1_000).percent()
                   for mask in classes.values()] for way in ways}
    rows = [[way, f"{100 * ways[way].mean():.0f}",
             *(f"{one.value:.1f} [{one.low:.0f}, {one.high:.0f}]" for one in found)] for way, found in valid.items()]
    figure = _bars({way: [one.value for one in found] for way, found in valid.items()}, list(classes))
    text = f"Valid calls by class at a precision of {precision:g}%; the numbers are those of the table"
    heads = ["", "documentation for (% of tasks)",
             *(f"valid, {name} (%, n {mask.sum()})" for name, mask in classes.items())]
    return f"<p><b>Retriever of {precision:g}% precision</b></p>" + table(heads, rows) + image(figure, text)


def _share(unsure: np.ndarray, mask: np.ndarray, first: pd.DataFrame) -> str:
    if not mask.any():
        return "none"
    found = rate(unsure[mask], first.api[mask], repetitions=1_000).percent()
    return f"{found.value:.0f}% [{found.low:.0f}, {found.high:.0f}] of {found.n}"


def _histogram(first: pd.DataFrame, threshold: float) -> Figure:
    figure, axes = canvas("Confidence of the calls", "calls", height=2.6)
    parts = {"valid": first.minimum[first.valid], "invalid": first.minimum[~first.valid]}
    axes.hist(list(parts.values()), BINS, stacked=True, color=list(colours(parts).values()), label=list(parts))
    axes.axvline(threshold, color="black", linestyle=":", label="threshold")
    axes.set_xlabel("confidence")
    legend(axes)
    return figure


def _bars(shares: dict[str, list[float]], classes: list[str]) -> Figure:
    figure, axes = canvas("Valid calls", "%", height=2.6)
    width, colour = 0.8 / len(shares), colours(shares)
    for at, (way, values) in enumerate(shares.items()):
        axes.bar(np.arange(len(classes)) + (at - 1) * width, values, width, color=colour[way], label=way)
    axes.set_xticks(range(len(classes)), classes)
    axes.set_ylim(0, 100)
    legend(axes)
    return figure
