"""Executes notebooks. This package has the command line, notebooks and profiles, downloads, the
runner, audits, and the pages that show results.
"""
