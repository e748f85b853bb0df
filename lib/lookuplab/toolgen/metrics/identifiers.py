"""Identifiers in order of appearance, and how far two such sequences agree (monitor-guided decoding, Section 5).

The text is read with parso, which does not stop at an error: generated functions often end in the middle of a line.
"""

import keyword
from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile

import parso
from parso.tree import Leaf


def leaves(text: str) -> Iterator[Leaf]:
    """The tokens of ``text`` in order, with ``start_pos`` (1-based line, column in characters)."""
    leaf = _tree(text).get_first_leaf()
    while leaf is not None:
        yield leaf
        leaf = leaf.get_next_leaf()


@lru_cache(maxsize=8)
def _tree(text: str) -> parso.tree.NodeOrLeaf:
    """All metrics of one function read the same two texts."""
    return parso.parse(text)


def is_name(leaf: Leaf | None) -> bool:
    """Whether the token is an identifier; in broken code parso calls some keywords names."""
    return leaf is not None and leaf.value.isidentifier() and not keyword.iskeyword(leaf.value)


def identifiers(text: str) -> list[str]:
    """All identifiers of a text, with repetitions; not those inside plain strings and comments."""
    return [leaf.value for leaf in leaves(text) if is_name(leaf)]


def next_match(prediction: str, reference: str) -> bool | None:
    """Whether the first identifiers are equal; None where the reference has none."""
    wanted = identifiers(reference)
    return identifiers(prediction)[:1] == wanted[:1] if wanted else None


def sequence_match(prediction: str, reference: str) -> float | None:
    """The length of the common prefix of both identifier sequences over the reference's; None where that has none."""
    wanted = identifiers(reference)
    if not wanted:
        return None
    pairs = zip(identifiers(prediction), wanted, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)) / len(wanted)


def prefix_match(prediction: str, reference: str) -> float | None:
    """The same over all tokens: the common prefix over the reference's length; None for an empty reference."""
    wanted = [leaf.value for leaf in leaves(reference) if leaf.value.strip()]
    found = [leaf.value for leaf in leaves(prediction) if leaf.value.strip()]
    if not wanted:
        return None
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(found, wanted, strict=False))) / len(wanted)
