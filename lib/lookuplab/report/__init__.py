"""A static site of a profile's last runs: every artifact with the verdicts on it, every notebook, the documentation.

The pages are Markdown, written from the artifacts' files and the templates in ``docs/_templates``; Sphinx with MyST-NB
makes the site of them. Nothing is executed and nothing is fetched.
"""

from lookuplab.report.last_run import Entry, LastRun, last_run
from lookuplab.report.site import Built, build

__all__ = ["Built", "Entry", "LastRun", "build", "last_run"]
