"""The picture of a prefix tree: the chosen path is there, small trees whole, large ones folded and counted."""

import io

import pytest

from lookuplab import plots
from lookuplab.plots.tree import shown_tree

FEW = [["foo"], ["foo", "_", "bar"], ["qu", "x"]]
MANY = [["add"], *([f"n{i}", "_", "a"] for i in range(9)), ["reg", "ister"], ["reg", "istry"], ["reg", "ion", "al"]]


def labels(node):
    return {node.label: [labels(child) for child in node.children]} if node.children else node.label


def test_a_small_tree_is_drawn_whole_and_its_names_are_terminal():
    root = shown_tree(FEW, (), {}, 6)
    assert labels(root) == {"ε": [{"foo": [{"_": ["bar"]}]}, {"qu": ["x"]}]}
    foo, qu = root.children
    assert foo.terminal and not foo.children[0].terminal and not qu.terminal and qu.children[0].terminal


def test_of_a_large_tree_only_what_lies_beside_the_chosen_path_is_drawn():
    root = shown_tree(MANY, ("reg", "ister"), {("n3",): 0.5, ("reg",): 0.25}, 3)
    assert labels(root) == {"ε": [{"reg 0.25": ["ister", "ion (+1)", "istry"]}, "n3 0.50 (+1)", "add", "and 8 more"]}


def test_every_node_has_a_row_of_its_own_in_its_column():
    root = shown_tree(FEW, (), {}, 6)
    found, stack = [], [root]
    while stack:
        node = stack.pop()
        found.append((node.column, node.row))
        stack += node.children
    assert sorted(found) == [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0)]


def test_a_path_that_leads_nowhere_and_a_tree_without_names_are_refused():
    for names, chosen in ((FEW, ["bar"]), ([], []), ([[]], [])):
        with pytest.raises(ValueError, match="names"):
            plots.prefix_tree(names, chosen)


def test_the_same_tree_is_the_same_picture_closed():
    def png():
        file = io.BytesIO()
        plots.prefix_tree(MANY, ["reg", "ister"], title="tree").savefig(file, format="png", metadata={"Software": None})
        return file.getvalue()

    assert png() == png()
