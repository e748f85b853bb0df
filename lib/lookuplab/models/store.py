"""Answers on disk: once a model, an analyser or a grader has answered a question, it is never asked
again.

A store is a table in an SQLite file in WAL mode, key -> answer as JSON. ``lookup`` asks the
committed record first (``models.record``), then the file. Each kind of answer has a file of its
own. Several processes on one machine may write to a store at once (WAL needs shared memory, so
network file systems do not work; with several machines, each has its own store: docs/cluster.md).
The caller must build keys from everything that could change the answer. A transaction holds one
batch: a kill at any moment loses only the batch in flight. Only missing answers are written, so a
store that has them all may be read-only.
"""

import contextlib
import hashlib
import json
import os
import platform
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models import record
from lookuplab.work.resources import share

STORE_VARIABLE = "LOOKUPLAB_STORE"  # the completion store's file; the others lie beside it
USES_VARIABLE = "LOOKUPLAB_USES"  # a file for how many answers were found where; set by the runner
SCHEMA = 3  # a file with another number is refused
PYTHON = "3.11"  # of the record: Jedi and pylint read the standard library, and programs run on it
# other writers lock the file for milliseconds; a minute means that something is stuck
BUSY_SECONDS = 60.0
OF_KEYS = "WHERE key IN (SELECT value FROM json_each(?))"  # a list of keys, as JSON
T = TypeVar("T")


class AnswerStore:
    """Key -> answer (anything that JSON holds), one file, or in memory (``":memory:"``, False); a
    context manager.

    A subclass sets the ``name`` of its file and table. UserError for a file that cannot be used. A
    store in memory knows nothing of the record.
    """

    name = "answers"

    def __init__(self, path: str | os.PathLike[str] | Literal[False] | None = None):
        self.path = ":memory:" if path is False else path or self.default_path()
        with self._readable_errors():
            if str(self.path) != ":memory:":
                paths.made(Path(self.path).parent)
            # IMMEDIATE: even a transaction that adds nothing finds a full disk or a read-only file
            self.db = sqlite3.connect(self.path, BUSY_SECONDS, isolation_level="IMMEDIATE")
            # even so, a killed process loses nothing that was committed
            self.db.execute("PRAGMA synchronous = NORMAL")
            ((version, tables),) = self.db.execute(
                "SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version"
            )
            # a foreign file is left as it is
            if version != SCHEMA and (version or tables):
                raise UserError(
                    f"{self.path} is no store of {self.name}, or another version of lookuplab "
                    "wrote it; name another file (LOOKUPLAB_STORE)"
                )
            if not version:
                # another process may be doing the same at this moment
                with contextlib.suppress(sqlite3.OperationalError):
                    self.db.execute("PRAGMA journal_mode = WAL")
                self.db.execute(f"PRAGMA user_version = {SCHEMA}")
            self.db.execute(
                f"CREATE TABLE IF NOT EXISTS {self.name} (key TEXT PRIMARY KEY, json TEXT) "
                "WITHOUT ROWID"
            )

    @classmethod
    def default_path(cls) -> Path:
        """Beside the completion store, wherever that is."""
        return CompletionStore.default_path().with_name(f"{cls.name}.sqlite")

    def lookup(self, questions: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
        """The answers that the record or the file has to questions with these keys, and the keys
        whose answers are to be made.

        In an audit, the latter include the sampled ones, except where Python or the sandbox is
        another one than the record's. Whoever makes them adds them to the file, but uses the
        record's.
        """
        keys = [*questions]
        is_file = str(self.path) != ":memory:"
        recorded = record.rows(self.name, keys) if is_file else {}
        stored = self.get(keys)
        answers = stored | recorded
        new = [key for key in keys if key not in answers]
        audit = record.Audit.stated() if recorded else None
        asked = audit.asked(self.name, recorded) if audit else []
        again = [key for key in asked if "@" not in key and key not in stored]
        if is_file and (file := os.environ.get(USES_VARIABLE)):
            counts = len(recorded), len(answers) - len(recorded), len(new), len(again)
            with open(file, "a", encoding="utf-8") as log:
                print(self.name, *counts, file=log)
        return answers, new + again

    def get(self, keys: Iterable[str]) -> dict[str, Any]:
        """The answers that the file has for these keys."""
        return self._select(OF_KEYS, json.dumps([*keys]))

    def unmade(self, tasks: Mapping[tuple[str, ...], T]) -> Iterator[T]:
        """Tasks, by the keys that they make: the share of this process in a launch, then those of
        others that nobody has made by then. A process alone has all, in their order.

        So none waits, a slow process is helped, and what is not kept (a lost answer) is asked for
        by each. Each comes to others' tasks in an order of its own: few are done twice.
        """
        number, count = share()

        def turn(keys: tuple[str, ...]) -> str:
            is_own = int(hashed(keys[0]), 16) % count == number
            return "" if is_own else hashed(f"{number} {keys[0]}")

        for keys in sorted(tasks, key=turn):
            if count == 1 or len(self.get(keys)) < len(keys):
                yield tasks[keys]

    def everything(self) -> dict[str, Any]:
        """All answers of the file."""
        return self._select("")

    def _select(self, condition: str, *values: str) -> dict[str, Any]:
        with self._readable_errors():
            rows = self.db.execute(f"SELECT * FROM {self.name} {condition}", values)
            return {key: json.loads(text) for key, text in rows}

    def add(self, answers: Mapping[str, object]) -> None:
        """Keep a batch, in one transaction. An answer that another process stored first is kept."""
        rows = [(key, json.dumps(answer)) for key, answer in answers.items()]
        with self._readable_errors(), self.db:
            self.db.executemany(f"INSERT OR IGNORE INTO {self.name} VALUES (?, ?)", rows)

    def forget(self, keys: Iterable[str]) -> None:
        """Delete the file's answers for these keys."""
        with self._readable_errors(), self.db:
            self.db.execute(f"DELETE FROM {self.name} {OF_KEYS}", [json.dumps([*keys])])

    @contextlib.contextmanager
    def _readable_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, OSError) as error:
            raise UserError(
                f"store of {self.name} {self.path}: {error} (nothing that was stored is lost; "
                "LOOKUPLAB_STORE names another file)"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.db.close()


class CompletionStore(AnswerStore):
    """Answers of models, each with the ``model``; ``completions.keys_of`` makes the keys."""

    name = "completions"

    @classmethod
    def default_path(cls) -> Path:
        # a relative path means one file for all: a kernel works in its notebook's folder, $PWD is
        # where the user was
        stated = paths.expanded(os.environ.get(STORE_VARIABLE) or paths.COMPLETIONS)
        return Path(os.environ.get("PWD", ""), stated).absolute()


def elsewhere(sandbox: bool = True) -> str:
    """What ends the key of an answer that may depend on Python's version or the sandbox; "" where
    both are the record's.

    The record has no such endings, so its answers are found everywhere; one made under other
    conditions never takes the place of one made under the record's.
    """
    python = ".".join(platform.python_version_tuple()[:2])
    ending = "" if python == PYTHON else f"@{python}"
    return ending if sandbox else ending + "@unprotected"


def canonical(fields: object) -> str:
    """JSON that is equal for equal content, whatever the order of the keys."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def digest(text: str) -> str:
    """128 bits of sha256: collisions are negligible below 10^15 answers."""
    return hashed(text)[:32]


def hashed(text: str) -> str:
    """sha256 as hexadecimal digits. To sort by it gives an order that is the same on every machine
    and unrelated to the spelling.
    """
    return hashlib.sha256(text.encode()).hexdigest()
