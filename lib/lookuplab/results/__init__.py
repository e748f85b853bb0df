"""Saves numbers as artifacts, compares them with the papers' numbers, draws pictures, judges the
papers' claims, and checks whether a rerun gives the same figures.
"""
