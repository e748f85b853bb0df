"""The mini benchmark: executable problems in the format of DS-1000, from docstring examples held out of the corpus."""
