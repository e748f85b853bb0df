"""Executes notebooks: the command line, notebooks and profiles, downloads, the runner, audits
and pages.
"""
