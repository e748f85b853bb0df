"""A prefix tree of names with the path that was chosen, as in Figure 5 of ToolGen."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from matplotlib.figure import Figure

from lookuplab.plots.look import WIDTH, canvas

GREEN, BLUE, GREY = "#1b7837", "#2171b5", "#999999"
SMALL = 16  # nodes: such a tree is drawn whole
_ROW, _LETTER, _GAP = 0.36, 0.082, 3  # inches a row, inches a letter; letters between two columns

Path = tuple[str, ...]


@dataclass
class Node:
    """A token in the tree. ``path`` leads to it, ``label`` is what its box shows, ``row`` and ``column`` its place."""

    path: Path
    label: str
    terminal: bool = False
    children: list["Node"] = field(default_factory=list)
    row: float = 0.0
    column: int = 0


def prefix_tree(names: Sequence[Sequence[str]], chosen: Sequence[str] = (), *,
                probabilities: Mapping[Path, float] | None = None, most: int = 6, title: str = "") -> Figure:
    """Figure 5: names as paths of tokens, ends of names in blue boxes, the chosen path green.

    names: the tokens of each; chosen: those of one of them, or of how it begins; probabilities: {path: 0 to 1}, shown
    in a node's box, and where not all children find room, the ``most`` likely are drawn. Of a large tree only what
    lies beside the chosen path is drawn, ``(+n)`` says how many names go on from there. ValueError for a path that is
    no name's.
    """
    root, chosen = shown_tree(names, tuple(chosen), probabilities or {}, most), tuple(chosen)
    nodes = list(_all(root))
    places = _places(nodes)
    rows = 1 + max(node.row for node in nodes)
    figure, axes = canvas(title, "", height=0.7 + _ROW * rows)
    width = max(WIDTH / _LETTER, places[-1])
    figure.set_size_inches(width * _LETTER, 0.7 + _ROW * rows)
    for node in nodes:
        x, y = places[node.column], -node.row
        on_path = bool(node.path) and node.path == chosen[:len(node.path)]
        for child in node.children:
            follows = child.path == chosen[:len(child.path)]
            bend = places[child.column] - 1.5
            axes.plot([x + len(node.label), bend, places[child.column]], [y, -child.row, -child.row], zorder=1,
                      color=GREEN if follows else "#cccccc", linewidth=2.2 if follows else 1, solid_capstyle="round")
        edge = BLUE if node.terminal else GREEN if on_path else "#cccccc"
        box = {"boxstyle": "round,pad=0.25", "facecolor": "#e3f2e1" if on_path else "white", "edgecolor": edge,
               "linewidth": 1.6 if node.terminal or on_path else 0.8}
        axes.text(x, y, node.label, family="DejaVu Sans Mono", fontsize=9, va="center", bbox=box, zorder=2,
                  color=GREY if node.label.startswith("and ") else "#222222")
    axes.set(xlim=(-1, width), ylim=(-rows + 0.4, 0.6))
    axes.set_axis_off()
    return figure


def shown_tree(names: Sequence[Sequence[str]], chosen: Path, probabilities: Mapping[Path, float], most: int) -> Node:
    """The part of the tree that is drawn, every node at its row and column. ValueError as in ``prefix_tree``."""
    paths = {tuple(name) for name in names}
    prefixes = {path[:length] for path in paths for length in range(1, len(path) + 1)}
    if not paths or () in paths or (chosen and chosen not in prefixes):
        raise ValueError(f"{len(paths)} names, and {chosen} is {'' if chosen in prefixes else 'not '}one of their paths")
    whole = len(prefixes) <= SMALL
    below: dict[Path, list[Path]] = {}
    for path in sorted(prefixes):
        below.setdefault(path[:-1], []).append(path)

    def node(path: Path) -> Node:
        text = repr(path[-1])[1:-1].replace(" ", "\u2423") if path else "\u03b5"
        text += f" {probabilities[path]:.2f}" if path in probabilities else ""
        made = Node(path, text, path in paths)
        if whole or path == chosen[:len(path)]:
            made.children = drawn(path)
        elif behind := sum(name[:len(path)] == path and name != path for name in paths):
            made.label += f" (+{behind})"
        return made

    def drawn(path: Path) -> list[Node]:
        likely = sorted(below.get(path, []), key=lambda child: (
            child != chosen[:len(child)], -probabilities.get(child, 0), child))
        cut = len(likely) if whole or len(likely) <= most + 1 else most
        kept = [node(child) for child in likely[:cut]]
        return kept + ([Node((*path, ""), f"and {len(likely) - cut} more")] if cut < len(likely) else [])

    root = node(())
    _lay_out(root, 0, 0.0)
    return root


def _lay_out(node: Node, column: int, row: float) -> float:
    """Give every node its place, its first child in its own row; returns the next free row."""
    node.column, node.row = column, row
    for child in node.children:
        row = _lay_out(child, column + 1, row)
    return row if node.children else row + 1


def _all(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _all(child)


def _places(nodes: Sequence[Node]) -> list[float]:
    """Where each column begins, in letters, and where the last one ends."""
    places = [0.0]
    for column in range(1 + max(node.column for node in nodes)):
        places.append(places[-1] + _GAP + max(len(node.label) for node in nodes if node.column == column))
    return places
