"""What a generated function is worth: similarity, dependencies, success, identifiers (paper, Section IV-C).

Judged elsewhere too: nothing here needs a model, only the repository, the place of the reference and the prediction.
"""
