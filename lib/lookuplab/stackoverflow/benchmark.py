"""What every notebook of the paper begins with: the problems, and who runs their tests."""

import hashlib
import sys
from collections import defaultdict
from pathlib import Path

from lookuplab.errors import UserError
from lookuplab.execution.sandbox import choose
from lookuplab.stackoverflow import ds1000
from lookuplab.stackoverflow.ds1000 import Problem
from lookuplab.stackoverflow.environment import environment
from lookuplab.stackoverflow.grader import Grader


def problems(file: Path | str, limit: int = 0) -> list[Problem]:
    """The problems of the paper's six libraries in a file, in its order; all with ``limit`` 0.

    Otherwise whole families, a problem with its perturbations, until there are ``limit`` problems; which ones is decided
    by a hash of the family's name. Raises UserError for a file without such problems, and as ``ds1000.load``.
    """
    known = ds1000.select(ds1000.load(file))
    if not known:
        raise UserError(f"{file} has no problem of {', '.join(ds1000.PAPER_LIBRARIES)}")
    families = defaultdict(list)
    for problem in known:
        families[problem.cluster].append(problem.id)
    chosen: set[str] = set()
    for name in sorted(families, key=lambda one: hashlib.sha256(one.encode()).digest()):
        if limit and len(chosen) >= limit:
            break
        chosen.update(families[name])
    return [problem for problem in known if problem.id in chosen]


def grader(python: str = "", sandbox: str = "", workers: int = 0, progress: bool = True) -> Grader:
    """Who runs the tests. ``python``: "" for this interpreter, else the name of an environment made by
    ``lookuplab data get``; ``sandbox``: one of ``execution.sandbox.NAMES``, "" for the first that works."""
    return Grader(environment(python) if python else Path(sys.executable), sandbox=choose(sandbox or None),
                  workers=workers or None, progress=progress)
