"""The mini world: a training corpus in which we know how often every API occurs, and the small models trained on it."""

DRAW = 0xD3249F0E  # the seed of every draw: the hash of the commit that wrote down the design (data/mini/DESIGN.md)
