"""Implements the commands of ``lookuplab.run.cli``, one module for each topic."""
