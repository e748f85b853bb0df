"""The mini world: a training corpus in which we know how often every API occurs, and the small models trained on it."""
