"""What Jedi and pylint said, kept on disk beside the completion store: a second run asks neither.

A key covers all Python files of the repository, the file's own text with the function in it, and the versions of all
installed packages: the analysers, and the libraries that they read. An answer that was lost (timeout, crash) is not
kept.
"""

import contextlib
import functools
import hashlib
import json
import os
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import distributions
from pathlib import Path

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models.store import BUSY_SECONDS, CHUNK, EXPLANATIONS, canonical, digest
from lookuplab.toolgen.files import python_files

JUDGING_VERSION = 1  # raise it whenever the same question would get another answer than before


def default_path() -> Path:
    """Beside the completion store, wherever that is."""
    return Path(os.environ.get("LOOKUPLAB_STORE") or paths.STORE).with_name("judgements.sqlite")


class JudgementStore:
    """Key -> answer (anything that JSON holds), one SQLite file, or ``":memory:"``; a context manager.

    Each answer is a transaction of its own, written while the next function is judged. Raises UserError for a file that
    cannot be used.
    """

    def __init__(self, path: str | os.PathLike | None = None):
        self.path = path or default_path()
        try:
            if str(self.path) != ":memory:":
                Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            self.db = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
            with contextlib.suppress(sqlite3.OperationalError):  # another process may be at just this
                self.db.execute("PRAGMA journal_mode = WAL")
            self.db.execute("PRAGMA synchronous = NORMAL")  # with WAL a killed process still loses nothing committed
            self.db.execute("CREATE TABLE IF NOT EXISTS judgements (key TEXT PRIMARY KEY, json TEXT) WITHOUT ROWID")
        except (sqlite3.DatabaseError, OSError) as error:
            raise self._readable(error) from None

    def get(self, keys: Iterable[str]) -> dict[str, object]:
        """Those answers that there are."""
        keys, found = list(keys), {}
        for start in range(0, len(keys), CHUNK):
            chunk = keys[start:start + CHUNK]
            marks = ",".join("?" * len(chunk))
            found |= dict(self.db.execute(f"SELECT key, json FROM judgements WHERE key IN ({marks})", chunk))
        return {key: json.loads(text) for key, text in found.items()}

    def put(self, key: str, answer: object) -> None:
        try:
            self.db.execute("INSERT OR REPLACE INTO judgements VALUES (?, ?)", (key, json.dumps(answer)))
        except sqlite3.DatabaseError as error:
            raise self._readable(error) from None

    def _readable(self, error: Exception) -> UserError:
        name = getattr(error, "sqlite_errorname", "")
        known = next((text for start, text in EXPLANATIONS.items() if name.startswith(start)), str(error))
        return UserError(f"judgement store {self.path}: {known}")

    def __enter__(self) -> "JudgementStore":
        return self

    def __exit__(self, *_) -> None:
        self.db.close()


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
