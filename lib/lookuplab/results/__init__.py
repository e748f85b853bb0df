"""Results computed from rows of numbers: artifacts, the papers' values beside them, plots, claims,
verification.
"""
