"""Answers of a slow tool (an analyser, a grader) kept on disk beside the completion store: a second run asks neither.

What the key of a question must cover is the asker's to say: all that could change the answer.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models.store import BUSY_SECONDS, CHUNK, EXPLANATIONS


class AnswerStore:
    """Key -> answer (anything that JSON holds), one SQLite file, or ``":memory:"``; a context manager.

    A subclass says the ``name`` of its file and table, and in errors. Each answer is a transaction of its own, written
    while the next is computed. Raises UserError for a file that cannot be used.
    """

    name = "answers"

    def __init__(self, path: str | os.PathLike | None = None):
        self.path = path or self.default_path()
        try:
            if str(self.path) != ":memory:":
                Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            # sqlite is built for several threads at a time, as its ``threadsafety`` says
            self.db = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            with contextlib.suppress(sqlite3.OperationalError):  # another process may be at just this
                self.db.execute("PRAGMA journal_mode = WAL")
            self.db.execute("PRAGMA synchronous = NORMAL")  # with WAL a killed process still loses nothing committed
            self.db.execute(f"CREATE TABLE IF NOT EXISTS {self.name} (key TEXT PRIMARY KEY, json TEXT) WITHOUT ROWID")
        except (sqlite3.DatabaseError, OSError) as error:
            raise self._readable(error) from None

    @classmethod
    def default_path(cls) -> Path:
        """Beside the completion store, wherever that is."""
        return Path(os.environ.get("LOOKUPLAB_STORE") or paths.STORE).with_name(f"{cls.name}.sqlite")

    def get(self, keys: Iterable[str]) -> dict[str, object]:
        """Those answers that there are."""
        keys, found = list(keys), {}
        for start in range(0, len(keys), CHUNK):
            chunk = keys[start:start + CHUNK]
            marks = ",".join("?" * len(chunk))
            found |= dict(self.db.execute(f"SELECT key, json FROM {self.name} WHERE key IN ({marks})", chunk))
        return {key: json.loads(text) for key, text in found.items()}

    def put(self, key: str, answer: object) -> None:
        try:
            self.db.execute(f"INSERT OR REPLACE INTO {self.name} VALUES (?, ?)", (key, json.dumps(answer)))
        except sqlite3.DatabaseError as error:
            raise self._readable(error) from None

    def _readable(self, error: Exception) -> UserError:
        name = getattr(error, "sqlite_errorname", "")
        known = next((text for start, text in EXPLANATIONS.items() if name.startswith(start)), str(error))
        return UserError(f"{self.name.removesuffix('s')} store {self.path}: {known}")

    def __enter__(self) -> "AnswerStore":
        return self

    def __exit__(self, *_) -> None:
        self.db.close()
