"""What executes a notebook: the command line, notebooks and profiles, downloads, the runner, audits
and pages.
"""
