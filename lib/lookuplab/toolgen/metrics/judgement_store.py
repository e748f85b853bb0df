"""What Jedi and pylint said, kept on disk beside the completion store: a second run asks neither.

A key covers all Python files of the repository, the file's own text with the function in it, the analysers' versions,
and the sources and the Python that they read. An answer that was lost (timeout, crash) is not kept.
"""

import hashlib
from pathlib import Path

from lookuplab import python_sources
from lookuplab.models.answer_store import AnswerStore
from lookuplab.models.store import canonical, digest
from lookuplab.toolgen.functions import python_files

JUDGING_VERSION = 3  # raise it whenever the same question would get another answer than before


class JudgementStore(AnswerStore):
    """Key -> what an analyser said, in ``judgements.sqlite``."""

    name = "judgements"


def key(kind: str, repository: str, **question: object) -> str:
    """The key of a question of one ``kind``; ``repository`` is the repository's digest."""
    return digest(canonical({"kind": kind, "repository": repository, "version": JUDGING_VERSION, **question,
                             "read": python_sources.identity("jedi", "parso", "pylint", "astroid")}))


def repository_digest(root: Path) -> str:
    """The names and contents of all Python files below ``root``."""
    total = hashlib.sha256()
    for path in python_files(root):
        total.update(f"{path.relative_to(root).as_posix()}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
