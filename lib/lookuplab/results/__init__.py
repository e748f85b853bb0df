"""Saves rows of numbers as artifacts and computes what follows from the rows: the comparison with
the papers' numbers, pictures, verdicts on claims, and whether a rerun gives the same figures.
"""
