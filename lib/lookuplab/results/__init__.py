"""Computes results from rows of numbers: artifacts, the papers' values for the same quantities,
plots, verdicts on claims, and the verification of figures.
"""
