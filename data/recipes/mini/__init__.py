"""The recipes of the mini world make a training corpus in which every API occurs a known number of
times, and the small models that are trained on it.
"""

from lookuplab.cloudapi.tasks import stable_order
from recipes import tables

# the seed of every random draw: the hash of the commit that added the design (data/mini/DESIGN.md)
DRAW = 0xD3249F0E
WORDINGS = tables("mini/wordings.yaml")


def order(text: str) -> str:
    """Return a sort key that shuffles texts. It depends only on DRAW and the text."""
    return stable_order(text, DRAW)


def split_of(text: str, parts: int) -> str:
    """Return the split that a text belongs to. A hash of the text decides: of every ``parts``
    texts, about one is in "test", one in "development", and all others are in "training".
    """
    return {0: "test", 1: "development"}.get(int(order(text), 16) % parts, "training")
