"""The verdicts on programs, kept on disk beside the completion store: what was graded is not run again.

A key covers the program's text, the grader's Python and its packages, the limits and whether a sandbox kept the network
away. A verdict belongs to the text: five equal samples are run once.
"""

from dataclasses import asdict

from lookuplab.execution.sandbox import Limits, Sandbox
from lookuplab.execution.server import Program
from lookuplab.models.answer_store import AnswerStore
from lookuplab.models.store import canonical, digest

GRADER_VERSION = 2  # raise it whenever the same program would get another verdict than before


class VerdictStore(AnswerStore):
    """Key -> {passed, error, seconds}, in ``verdicts.sqlite``."""

    name = "verdicts"


def key(program: Program, environment: str, sandbox: Sandbox, limits: Limits) -> str:
    """The key of a program; ``environment`` is the Python's ``environment.identity``."""
    return digest(canonical({"program": program.text, "environment": environment, "alone": sandbox.name != "none",
                             "limits": asdict(limits), "version": GRADER_VERSION}))
