"""What Jedi and pylint said, kept on disk beside the completion store: a second run asks neither.

A key covers all Python files of the repository, the file's own text with the function in it, and the versions of all
installed packages: the analysers, and the libraries that they read. An answer that was lost (timeout, crash) is not
kept.
"""

import functools
import hashlib
import sys
from collections import Counter
from importlib.metadata import distributions
from pathlib import Path

from lookuplab.models.answer_store import AnswerStore
from lookuplab.models.store import canonical, digest
from lookuplab.toolgen.files import python_files

JUDGING_VERSION = 2  # raise it whenever the same question would get another answer than before


class JudgementStore(AnswerStore):
    """Key -> what an analyser said, in ``judgements.sqlite``."""

    name = "judgements"


def key(kind: str, repository: str, **question: object) -> str:
    """The key of a question of one ``kind``; ``repository`` is the repository's digest."""
    return digest(canonical({"kind": kind, "repository": repository, "installed": installed(),
                             "version": JUDGING_VERSION, **question}))


def repository_digest(root: Path) -> str:
    """The names and contents of all Python files below ``root``."""
    total = hashlib.sha256()
    for path in python_files(root, Counter()):
        total.update(f"{path.relative_to(root).as_posix()}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


@functools.cache
def installed() -> str:
    """A digest of Python's version and of all installed packages with theirs."""
    names = sorted(f"{one.metadata['Name']}=={one.version}" for one in distributions())
    return digest(canonical([sys.version, *names]))
