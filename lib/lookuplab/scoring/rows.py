from lookuplab.scoring.rates import bare_row, row  # noqa: F401
