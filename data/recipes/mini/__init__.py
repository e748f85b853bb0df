"""The mini world: a training corpus in which it is known how often every API occurs, and the small
models trained on it.
"""

from lookuplab.cloudapi.tasks import stable_order
from recipes import tables

# the seed of every draw: the hash of the commit that wrote down the design (data/mini/DESIGN.md)
DRAW = 0xD3249F0E
WORDINGS = tables("mini/wordings.yaml")


def order(text: str) -> str:
    """Return a sort key that shuffles texts. It depends only on the draw and the text."""
    return stable_order(text, DRAW)


def split_of(text: str, parts: int) -> str:
    """Return the split of a text: "test" and "development" get one in ``parts`` each, "training"
    the rest.
    """
    return {0: "test", 1: "development"}.get(int(order(text), 16) % parts, "training")
