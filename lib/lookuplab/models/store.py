"""Answers on disk: what a model, an analyser or a grader once answered is never asked again.

A store is one SQLite file in WAL mode with one table, key -> answer as JSON, written by several
processes of one machine at once (WAL needs shared memory: no network file systems; with several
machines each has its own, merged by ``lookuplab store import``). What a key must cover is the asker's to
say: all that could change the answer. A transaction holds one batch: a kill at any moment loses the
batch in flight, no more. Only what is missing is written: a store that has it all may be read-only.
"""

import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from lookuplab import paths
from lookuplab.errors import UserError

SCHEMA = 3  # 3: one table; up to 2 a completion store had settings, prompts, completions, batches and uses
BUSY_SECONDS = (
    60.0  # other writers hold the file for milliseconds; a minute means that something is stuck
)
CHUNK = 500  # keys a SELECT: below the 999 variables that old SQLite builds allow


class AnswerStore:
    """Key -> answer (anything that JSON holds), one file, or ``":memory:"``; a context manager.

    A subclass gives the ``name`` of its file and table. UserError for a file that cannot be used.
    """

    name = "answers"

    def __init__(self, path: str | os.PathLike | None = None):
        self.path = path or self.default_path()
        with self._readable_errors():
            if str(self.path) != ":memory:":
                Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            # isolation_level None: each transaction is opened by hand. SQLite itself is built for threads
            self.db = sqlite3.connect(
                self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._open()
            except BaseException:
                self.db.close()
                raise

    def _open(self) -> None:
        """Make the table where there is none; refuse what is not ours before anything is changed in it."""
        # a killed process still loses nothing committed
        self.db.execute("PRAGMA synchronous = NORMAL")
        ((version,),) = self.db.execute("PRAGMA user_version")
        tables = {name for (name,) in self.db.execute("SELECT name FROM sqlite_master")}
        if version > SCHEMA or (tables and not version and self.name not in tables):
            raise UserError(
                f"{self.path} is no store of {self.name}, or a newer lookuplab wrote it; update lookuplab "
                "or name another file (LOOKUPLAB_STORE)"
            )
        if self.name in tables and "settings" not in tables:
            return
        with contextlib.suppress(sqlite3.OperationalError):  # another process may be at just this
            self.db.execute("PRAGMA journal_mode = WAL")
        with self._transaction():
            if old := self.db.execute(
                "SELECT 1 FROM sqlite_master WHERE name = 'settings'"
            ).fetchone():
                self._upgrade()
            table = f"CREATE TABLE IF NOT EXISTS {self.name} (key TEXT PRIMARY KEY, json TEXT) WITHOUT ROWID"
            self.db.execute(table)
            self.db.execute(f"PRAGMA user_version = {SCHEMA}")
        if old:
            self.db.execute("VACUUM")

    def _upgrade(self) -> None:
        """Take over the answers of a completion store of schema 1 or 2."""
        for statement in (
            "ALTER TABLE completions RENAME TO old",
            "CREATE TABLE IF NOT EXISTS batches (settings TEXT, model TEXT)",
            "CREATE TABLE completions (key TEXT PRIMARY KEY, json TEXT) WITHOUT ROWID",
            "INSERT INTO completions SELECT settings || '/' || prompt || '/' || sample, json_set(json, '$.model', "
            "coalesce((SELECT max(model) FROM batches b WHERE b.settings = old.settings), 'unknown')) FROM old",
            *(
                f"DROP TABLE IF EXISTS {name}"
                for name in ("old", "settings", "prompts", "batches", "uses")
            ),
        ):
            self.db.execute(statement)

    @classmethod
    def default_path(cls) -> Path:
        """Beside the completion store, wherever that is."""
        store = Path(os.environ.get("LOOKUPLAB_STORE") or paths.STORE)
        return store if cls is CompletionStore else store.with_name(f"{cls.name}.sqlite")

    def get(self, keys: Iterable[str]) -> dict[str, object]:
        """Those answers that there are."""
        keys, found = list(keys), {}
        with self._readable_errors():
            for start in range(0, len(keys), CHUNK):
                chunk = keys[start : start + CHUNK]
                marks = ",".join("?" * len(chunk))
                rows = self.db.execute(f"SELECT * FROM {self.name} WHERE key IN ({marks})", chunk)
                found |= {key: json.loads(text) for key, text in rows}
        return found

    def put(self, key: str, answer: object) -> None:
        """Keep one answer, in place of another one."""
        with self._readable_errors():
            row = key, json.dumps(answer)
            self.db.execute(f"INSERT OR REPLACE INTO {self.name} VALUES (?, ?)", row)

    def add(self, answers: Mapping[str, object]) -> None:
        """Keep a batch, in one transaction. An answer that another process has stored first stays as it is."""
        rows = [(key, json.dumps(answer)) for key, answer in answers.items()]
        with self._readable_errors(), self._transaction():
            self.db.executemany(f"INSERT OR IGNORE INTO {self.name} VALUES (?, ?)", rows)

    def __len__(self) -> int:
        return self.db.execute(f"SELECT count(*) FROM {self.name}").fetchone()[0]

    def take(self, file: Path, models: Sequence[str] = ()) -> int:
        """Add the answers of another file (of these models only), all or none; how many are new. Ours stay."""
        chosen = (
            f"json_extract(json, '$.model') IN ({','.join('?' * len(models))})" if models else "1"
        )
        with self._readable_errors():
            self.db.execute("ATTACH ? AS other", (str(file),))
            try:
                return self.db.execute(
                    f"INSERT OR IGNORE INTO {self.name} SELECT * FROM other.{self.name} WHERE {chosen}",
                    models,
                ).rowcount
            finally:
                self.db.execute("DETACH other")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        # a deferred one could fail when it turns from reading to writing
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.db.execute("COMMIT")
        except BaseException:
            if self.db.in_transaction:  # SQLite has rolled back by itself after some errors
                self.db.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def _readable_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, OSError) as error:
            raise UserError(
                f"store of {self.name} {self.path}: {error} (nothing that was stored is lost; "
                "LOOKUPLAB_STORE names another file)"
            ) from None

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.db.close()


class CompletionStore(AnswerStore):
    """What models answered; ``complete.key_of`` makes the keys. Each answer also names its ``model``."""

    name = "completions"

    def held(self) -> list[tuple[str, int, int]]:
        """(model, answers, bytes of them) by model."""
        return self.db.execute(
            "SELECT json_extract(json, '$.model'), count(*), sum(length(json)) FROM completions GROUP BY 1 ORDER BY 1"
        ).fetchall()


def export(target: Path, kinds: Sequence[type[AnswerStore]], models: Sequence[str] = ()) -> int:
    """Write the answers of these models, or all, to the file ``target``; return how many completions.

    ``kinds`` are stores at their default places; what their tables hold goes into the one file. UserError
    where there is no completion store.
    """
    source = existing(CompletionStore.default_path())
    if target.resolve() == source.resolve():
        raise UserError(f"{target} is the store itself; name another file")
    target.parent.mkdir(parents=True, exist_ok=True)
    with paths.replacing(target) as partial:
        for kind in kinds:
            if kind.default_path().is_file():
                with kind(partial) as written:
                    written.take(kind.default_path(), models)
        with CompletionStore(
            partial
        ) as written:  # one file, that a reader without rights to write can open
            written.db.execute("PRAGMA journal_mode = DELETE")
            return len(written)


def merge(file: Path, kinds: Sequence[type[AnswerStore]]) -> dict[str, int]:
    """Add what ``file``, an export or another store, holds to the stores of these ``kinds``: name -> new answers."""
    existing(file)
    with TemporaryDirectory() as folder:  # one of an older schema is upgraded in the copy
        for part in (file, file.with_name(f"{file.name}-wal")):  # what is not in the file yet
            if part.is_file():
                shutil.copy(part, folder)
        copy, found = Path(folder) / file.name, {}
        with CompletionStore(copy) as read:
            tables = {name for (name,) in read.db.execute("SELECT name FROM sqlite_master")}
        for kind in kinds:
            if kind.name in tables:
                with kind() as store:
                    found[kind.name] = store.take(copy)
    return found


def existing(file: Path) -> Path:
    """The file, if it is there. Raises UserError."""
    if not file.is_file():
        raise UserError(
            f"there is no store at {file}; a first run makes it (LOOKUPLAB_STORE names another)"
        )
    return file


def canonical(fields: object) -> str:
    """JSON that is equal for equal content, whatever the order of its keys."""
    return json.dumps(fields, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def digest(text: str) -> str:
    """128 bits of sha256: no collision to fear below 10^15 answers."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]
