from lookuplab.scoring.rates import McNemar, holm, mcnemar, paired_difference  # noqa: F401
