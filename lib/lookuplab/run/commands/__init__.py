"""Has the commands of the command line (``lookuplab.run.cli``), by topic."""
