"""The token trie: what may follow, what must follow, where a name ends."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from lookuplab.models.trie import ROOT, TokenTrie

NAMES = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=6), min_size=1, max_size=12)


def walk(trie, tokens):
    node = ROOT
    for token in tokens:
        node = trie.child(node, token)
    return node


def test_children_are_allowed_and_nothing_else():
    trie = TokenTrie([[3, 1], [3, 2, 9], [7]])
    assert torch.equal(trie.allowed(ROOT), torch.tensor([3, 7]))
    assert trie.allowed(walk(trie, [3])).tolist() == [1, 2] and trie.allowed(walk(trie, [7])).tolist() == []
    assert trie.child(ROOT, 4) is None and len(trie) == 6


def test_a_chain_of_single_children_is_forced_up_to_a_branch_or_the_end_of_a_name():
    trie = TokenTrie([[1, 2, 3], [1, 2, 4, 5, 6], [1, 2, 4, 5]])
    assert trie.forced(ROOT) == (1, 2)  # 3 or 4 comes next
    assert trie.forced(walk(trie, [1, 2])) == ()
    assert trie.forced(walk(trie, [1, 2, 4])) == (5,)  # a name ends here, so 6 need not follow
    assert trie.forced(walk(trie, [1, 2, 4, 5])) == ()


def test_a_merged_ending_is_closed_and_no_name_by_itself():
    trie = TokenTrie([[1, 2]], closed=[[1, 8]])
    assert trie.terminal(walk(trie, [1, 2])) and not trie.closed(walk(trie, [1, 2]))
    assert trie.closed(walk(trie, [1, 8])) and not trie.terminal(walk(trie, [1, 8]))
    assert trie.forced(walk(trie, [1])) == ()


@given(NAMES)
def test_the_trie_holds_its_names_and_no_others(names):
    trie, found, open_nodes = TokenTrie(names), [], [(ROOT, ())]
    for node, path in open_nodes:
        if trie.terminal(node):
            found.append(path)
        open_nodes += [(trie.child(node, token), (*path, token)) for token in trie.allowed(node).tolist()]
    assert sorted(found) == sorted({tuple(name) for name in names})


@given(NAMES)
def test_forced_tokens_are_on_the_way_of_every_name_below(names):
    trie = TokenTrie(names)
    for name in names:
        for cut in range(len(name)):
            chain = trie.forced(walk(trie, name[:cut]))
            below = [other for other in [*names] if other[:cut] == name[:cut]]
            if list(name[:cut]) not in names:
                assert all(tuple(other[cut : cut + len(chain)]) == chain for other in below)
