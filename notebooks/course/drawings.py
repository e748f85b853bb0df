"""Draws the figures of the lessons. Every figure is returned closed, because Jupyter would show an
open figure twice: the second time when the cell ends.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count, pairwise

import matplotlib.pyplot as plt
import numpy
import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lookuplab.results.looks import DARK, STYLE

BLUE, ORANGE, LIGHT = "#2171b5", "#e08214", "#bbbbbb"
# token -> (the text that is written next to the token, the tree below the token)
Tree = Mapping[str, tuple[str, "Tree"]]


@contextmanager
def _sheet(title: str, height: float) -> Iterator[Axes]:
    with plt.style.context(STYLE):
        figure, axes = plt.subplots(figsize=(7.5, height), layout="constrained")
        axes.set_title(title)
        yield axes
        plt.close(figure)


def tree(root: Tree, chosen: Sequence[str] = (), title: str = "", start: str = "") -> Figure:
    """Draw a tree of tokens from left to right, with the token ``start`` at its root and the path
    ``chosen`` as a thick line.
    """
    rows = count()
    with _sheet(title, 1.6) as axes:
        _branches(axes, {start: ("", root)}, [start, *chosen], 0, rows)
        axes.figure.set_figheight(max(1.6, 0.34 * next(rows) + 0.7))
        axes.margins(x=0.1)
        axes.axis("off")
        axes.invert_yaxis()
    return axes.figure


def _branches(
    axes: Axes, node: Tree, path: list[str], depth: int, rows: Iterator[int]
) -> list[float]:
    """Draw the tokens of a node at the horizontal position ``depth``, and the trees below them.
    Return the tokens' vertical positions. ``rows`` yields the free vertical positions.
    """
    heights = []
    for token, (beside, below) in node.items():
        on_path = path[:1] == [token]
        ends = _branches(axes, below, path[1:] if on_path else [], depth + 1, rows)
        at = float(numpy.mean(ends)) if ends else next(rows)
        for end, name in zip(ends, below, strict=True):
            colour, width = (BLUE, 3) if [token, name] == path[:2] else (LIGHT, 1)
            axes.plot([depth, depth + 1], [at, end], color=colour, linewidth=width, zorder=1)
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": BLUE if on_path else LIGHT}
        text = f"{token}  {beside}".rstrip()
        axes.text(depth, at, text, bbox=box, ha="center", va="center", fontsize=9, zorder=2)
        heights.append(at)
    return heights


def intervals(
    rows: Sequence[tuple[str, float, float, float]],
    bound: float,
    title: str = "",
    xlabel: str = "",
    verdicts: Mapping[str, str] | None = None,
) -> Figure:
    """Draw rows (name, low, value, high) as dots with intervals, and ``bound`` as a dashed line.
    The verdict on each interval is written after its name. By default, the verdict says whether the
    claim "greater than the bound" holds, fails or is open.
    """
    from lookuplab.results.plots import dots_with_intervals  # imports seaborn, which takes a second

    table = pandas.DataFrame(rows, columns=["name", "ci_low", "value", "ci_high"])
    sides = [table.ci_low > bound, table.ci_high < bound]
    said = table.name.map(verdicts) if verdicts else numpy.select(sides, ["holds", "fails"], "open")
    named = (table.name + ": " + said).str.removesuffix(": ")
    table = table.assign(condition=named, metric="value", model="")
    figure = dots_with_intervals(table, "value", panels=None, title=title, xlabel=xlabel)
    figure.axes[0].axvline(bound, color=DARK, linestyle=(0, (5, 3)))
    return figure


def simulated(
    worlds: Mapping[str, Sequence[float]],
    seen: Mapping[str, float],
    title: str = "",
    xlabel: str = "",
) -> Figure:
    """Draw a histogram of the values in each simulated world. ``seen`` maps names to observed
    values; each is drawn as a dashed line with its name.
    """
    table = pandas.DataFrame({name: pandas.Series(values) for name, values in worlds.items()})
    every = table.stack().dropna().to_numpy(dtype=float)
    looks = {"bins": _edges(every), "color": [BLUE, ORANGE][: len(worlds)], "alpha": 0.6}
    with _sheet(title, 3) as axes:
        table.plot.hist(**looks, ax=axes, legend=len(worlds) > 1, xlabel=xlabel, ylabel="how often")
        for name, place in seen.items():
            axes.axvline(place, color=DARK, linestyle=(0, (5, 3)))
            at = {"xy": (place, 1), "xycoords": axes.get_xaxis_transform(), "va": "bottom"}
            axes.annotate(name, **at, ha="center")
        axes.set_title(title, pad=18)
        if numpy.all(every == every.round()):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return axes.figure


def _edges(values: numpy.ndarray) -> numpy.ndarray:
    """Return the edges of at most about 40 bins. Each bin is a whole number of steps wide. A step
    is the smallest difference between two values, for example 1/n for shares of n tasks. With other
    widths, some bins would contain more possible values than others and look too high.
    """
    different = numpy.unique(values.round(9))
    step = numpy.diff(different).min() if len(different) > 1 else 1
    low, high = different[0], different[-1]
    wide = step * numpy.ceil(((high - low) / step + 1) / 40)
    return numpy.arange(low - step / 2, high + wide, wide)


def continuations(names: Iterable[str], start: str) -> tuple[Tree, list[str]]:
    """Return (tree, path) for the words that follow the word ``start`` in a list of names. The path
    takes the most probable word at each step. The text next to a word is the probability that it
    follows the word before.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name in names:
        for word, after in pairwise([*re.findall("_?[^_]+", name), "("]):
            counts[word][after] += 1

    def below(word: str, most: int, *further: int) -> Tree:
        after = counts[word]
        return {
            one: (f"{n / after.total():.2f}", below(one, *further) if further else {})
            for one, n in after.most_common(most)
        }

    root = node = below(start, 3, 2, 2)  # at most 3 words after the first word, later at most 2
    path: list[str] = []
    while node:
        path.append(next(iter(node)))
        node = node[path[-1]][1]
    return root, path


def choice(walked, at: int) -> tuple[Tree, list[str]]:
    """Return (tree, path) for a call to the completion tool. The tree has the tokens of the names
    that the tool offered after step ``at`` of ``walked`` (a ``toolgen.explorer.Walk``). The path
    spells the name that was written.

    The text next to the first token of a name is the probability that the model gives the token
    without the constraint. The tree has at most 12 names: the written one, and those with the most
    probable first tokens.
    """
    likely = walked.probabilities[at + 1]
    piece = walked.vocabulary.piece
    names = sorted(walked.spelled(at), key=lambda name: -float(likely[name[0]]))
    written = [step.token for step in walked.steps[at + 1 :]]
    done = next((name for name in names if list(name) == written[: len(name)]), ())
    root: Tree = {}
    for name in [done, *(one for one in names if one != done)][:12]:
        node = root
        for depth, token in enumerate(name):
            beside = f"{float(likely[token]):.2f}" if depth == 0 else ""
            node = node.setdefault(piece(token), (beside, {}))[1]
    return root, [piece(token) for token in done]
