"""Draws the figures of the lessons. Every figure is returned closed, because Jupyter shows a figure
that is still open a second time when the cell ends.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lookuplab.results.looks import DARK, GREY, STYLE

BLUE, ORANGE, RED = "#2171b5", "#e08214", "#b2182b"
# token -> (the text that is written next to the token, the tree below the token)
Tree = Mapping[str, tuple[str, "Tree"]]


@contextmanager
def _sheet(title: str, width: float, height: float, bare: bool = True) -> Iterator[Axes]:
    with plt.style.context(STYLE):
        figure, axes = plt.subplots(figsize=(width, height), layout="constrained")
        axes.set_title(title)
        axes.axis("off" if bare else "on")
        yield axes
        plt.close(figure)


def tree(root: Tree, chosen: Sequence[str] = (), title: str = "", start: str = "") -> Figure:
    """Draw a tree of tokens from left to right, with the token ``start`` at its root and the path
    ``chosen`` as a thick line.
    """
    rows = sum(1 for _ in _leaves(root))
    with _sheet(title, 7.5, max(1.6, 0.34 * rows + 0.7)) as axes:
        _branches(axes, {start: ("", root)}, [start, *chosen], 0, [0])
        axes.set_xlim(-0.3, _depth(root) + 0.6)
        axes.invert_yaxis()
    return axes.figure


def _leaves(node: Tree) -> Iterator[str]:
    for token, (_, below) in node.items():
        yield from _leaves(below) if below else [token]


def _depth(node: Tree) -> int:
    return max((1 + _depth(below) for _, below in node.values()), default=0)


def _branches(axes: Axes, node: Tree, path: Sequence[str], depth: int, row: list) -> list[float]:
    """Draw the tokens of a node at the horizontal position ``depth``, and the trees below them.
    Return the tokens' vertical positions. ``row[0]`` is the next free vertical position.
    """
    heights = []
    for token, (beside, below) in node.items():
        on_path = bool(path) and path[0] == token
        ends = _branches(axes, below, path[1:] if on_path else (), depth + 1, row)
        at = float(numpy.mean(ends)) if ends else row[0]
        row[0] += not ends
        for end, (name, _) in zip(ends, below.items(), strict=True):
            thick = on_path and len(path) > 1 and path[1] == name
            colour, width = (BLUE, 3) if thick else ("#bbbbbb", 1)
            axes.plot([depth, depth + 1], [at, end], color=colour, linewidth=width, zorder=1)
        box = {"boxstyle": "round", "facecolor": "#d6e6f4" if on_path else "white"}
        box |= {"edgecolor": BLUE if on_path else "#bbbbbb", "linewidth": 2 if on_path else 1}
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
    The verdict on each interval is written next to it. By default, the verdict says whether the
    claim "greater than the bound" holds, fails or is open.
    """
    names = [name for name, *_ in rows]
    with _sheet(title, 7.5, 0.36 * len(rows) + 1.1, bare=False) as axes:
        axes.axvline(bound, color=DARK, linestyle=(0, (5, 3)))
        for at, (name, low, value, high) in enumerate(rows):
            found = "holds" if low > bound else "fails" if high < bound else "open"
            colour, marker = {"holds": (BLUE, "o"), "fails": (RED, "s")}.get(found, (GREY, "D"))
            axes.plot([low, high], [at, at], color=colour, linewidth=2)
            axes.plot(value, at, marker, color=colour)
            said = (verdicts or {}).get(name, found)
            axes.annotate(said, (1.01, at), xycoords=axes.get_yaxis_transform(), va="center")
        axes.set(yticks=range(len(names)), yticklabels=names, xlabel=xlabel)
        axes.set_ylim(len(names) - 0.5, -0.5)
    return axes.figure


def simulated(
    worlds: Mapping[str, Sequence[float]],
    seen: Mapping[str, float],
    title: str = "",
    xlabel: str = "",
) -> Figure:
    """Draw a histogram of the values in each simulated world. ``seen`` maps names to observed
    values; each is drawn as a dashed line with its name.
    """
    every = numpy.concatenate([numpy.asarray(values, dtype=float) for values in worlds.values()])
    edges = _edges(every)
    looks = {"color": BLUE, "alpha": 0.75}, {"color": ORANGE, "histtype": "step", "linewidth": 2.5}
    with _sheet(title, 7.5, 3, bare=False) as axes:
        for (name, values), look in zip(worlds.items(), looks, strict=False):
            axes.hist(values, bins=edges, label=name, **look)
        for name, place in seen.items():
            axes.axvline(place, color=DARK, linestyle=(0, (5, 3)))
            at = {"xy": (place, 1), "xycoords": axes.get_xaxis_transform(), "va": "bottom"}
            axes.annotate(name, **at, ha="center")
        axes.set(xlabel=xlabel, ylabel="how often")
        axes.set_title(title, pad=18)
        if numpy.all(every == every.round()):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if len(worlds) > 1:
            axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return axes.figure


def _edges(values: numpy.ndarray, most: int = 40) -> numpy.ndarray:
    """Return the edges of about ``most`` bins or fewer. If all values are multiples of one step,
    like shares of n tasks, each bin is a whole number of steps wide. Otherwise some bins would
    contain more possible values than others and look too high.
    """
    different = numpy.unique(values.round(9))
    step = numpy.diff(different).min(initial=numpy.inf)
    low = different[0]
    high = different[-1]
    if len(different) == 1:
        return numpy.array([low - 0.5, low + 0.5])
    places = (different - low) / step
    if not numpy.allclose(places, places.round(), atol=1e-3):
        return numpy.histogram_bin_edges(values, most)
    wide = step * -(-(places[-1] + 1) // most)
    return numpy.arange(low - step / 2, high + wide, wide)


def continuations(
    names: Iterable[str], start: str, widths: Sequence[int] = (3, 2, 2)
) -> tuple[Tree, list[str]]:
    """Return (tree, path) for the words that follow the word ``start`` in a list of names. The path
    takes the most probable word at each step. The text next to a word is its probability after the
    word before it. ``widths`` are the maximum numbers of words to show after a word, by depth.
    """
    counts: dict[str, Counter[str]] = {}
    for name in names:
        words = [*re.findall("_?[^_]+", name), "("]
        for word, after in pairwise(words):
            counts.setdefault(word, Counter())[after] += 1

    def below(word: str, wide: Sequence[int]) -> Tree:
        after = counts.get(word, Counter())
        best = after.most_common(wide[0]) if wide else ()
        return {one: (f"{n / after.total():.2f}", below(one, wide[1:])) for one, n in best}

    root = node = below(start, widths)
    path: list[str] = []
    while node:
        path.append(next(iter(node)))
        node = node[path[-1]][1]
    return root, path


def choice(walked, at: int, most: int = 12) -> tuple[Tree, list[str]]:
    """Return (tree, path) for a call of the completion tool. The tree has the tokens of the names
    that the tool offered after step ``at`` of ``walked`` (a ``toolgen.explorer.Walk``). The path
    spells the name that was written.

    The text next to a first token is the probability that the model gives the token without the
    constraint. The tree has at most ``most`` names: the written one, and those with the most
    probable first tokens.
    """
    likely = walked.probabilities[at + 1]
    piece = walked.vocabulary.piece
    names = sorted(walked.spelled(at), key=lambda name: -float(likely[name[0]]))
    written = [step.token for step in walked.steps[at + 1 :]]
    done = next((name for name in names if list(name) == written[: len(name)]), ())
    root: Tree = {}
    for name in [done, *(one for one in names if one != done)][:most]:
        node = root
        for depth, token in enumerate(name):
            beside = f"{float(likely[token]):.2f}" if depth == 0 else ""
            node = node.setdefault(piece(token), (beside, {}))[1]
    return root, [piece(token) for token in done]
