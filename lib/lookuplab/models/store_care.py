"""Care of the completion store: a selection of it in a file of its own, such a file merged, what is unused let go.

An exported file is a completion store itself. Every change is one transaction: a kill leaves all of it or nothing.
"""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from lookuplab.paths import replacing
from lookuplab.errors import UserError
from lookuplab.models.answer_store import AnswerStore
from lookuplab.models.store import DECODING_VERSION, SCHEMA_VERSION, CompletionStore
from lookuplab.models.store_log import OWN

DAY = 86_400.0
# The name that a model had when it answered; of answers from before names were kept, what its identity says
MODEL = """coalesce((SELECT max(b.model) FROM batches b WHERE b.settings = s.id AND b.model <> ''),
    json_extract(s.json, '$.model.checkpoint'), json_extract(s.json, '$.model.name'),
    'content ' || substr(json_extract(s.json, '$.model.content'), 1, 12), 'unknown')"""
# The last use; without one, the last time that the answer's settings were generated under; NULL where neither is known
USED = """coalesce((SELECT max(u.used) FROM uses u WHERE (u.settings, u.prompt, u.sample) =
    (c.settings, c.prompt, c.sample)), (SELECT max(b.ended) FROM batches b WHERE b.settings = c.settings))"""
_CHANGED = "json_remove(a.json, '$.seconds') <> json_remove(b.json, '$.seconds')"  # of judgements; times differ anyway
_FOREIGN = "settings, ended, model, NULL, answers, tokens"  # of a batch: another machine's seconds are not ours
Beside = Sequence[type[AnswerStore]]


@dataclass(frozen=True)
class Selection:
    """Answers that meet every condition given; none given selects all.

    models: names as ``status`` prints them. profile, notebook: of a notebook that asked ("paper/name"). older, newer:
    days since the last use; an answer whose use is not known is neither. unused: of a decoding version that this
    lookuplab does not ask for any more.
    """

    models: tuple[str, ...] = ()
    profile: str | None = None
    notebook: str | None = None
    older: float | None = None
    newer: float | None = None
    unused: bool = False

    @property
    def is_all(self) -> bool:
        return self == Selection()

    def where(self) -> tuple[str, list]:
        """An SQL condition on completions ``c`` and settings ``s``, and its values."""
        parts, values, now = ["1"], [], time.time()
        if self.models:
            parts.append(f"{MODEL} IN ({','.join('?' * len(self.models))})")
            values += self.models
        if self.profile or self.notebook:
            parts.append("EXISTS (SELECT 1 FROM uses u WHERE (u.settings, u.prompt, u.sample) = "
                         "(c.settings, c.prompt, c.sample) AND (u.user GLOB ? OR u.user GLOB ?))")
            user = f"{self.profile or '*'}/{self.notebook or '*'}"
            values += [user, user + OWN.replace("?", "[?]")]
        for days, sign in ((self.older, "<"), (self.newer, ">=")):
            if days is not None:
                parts.append(f"{USED} {sign} ?")
                values.append(now - days * DAY)
        if self.unused:
            parts.append("json_extract(s.json, '$.version') <> ?")
            values.append(DECODING_VERSION)
        return " AND ".join(parts), values


@dataclass(frozen=True)
class Merged:
    """What an import did: answers that are new, that were here, and that were here with another content (ours stay)."""

    new: int
    known: int
    conflicts: int


def select(store: CompletionStore, selection: Selection) -> tuple[int, int]:
    """Put the keys of the selected answers into the temporary table ``chosen``; how many they are, and their bytes.

    Raises UserError for a model that the store does not hold.
    """
    held = {name for name, in store.db.execute(f"SELECT DISTINCT {MODEL} FROM settings s")}
    if unknown := set(selection.models) - held:
        raise UserError(f"the store {store.path} holds nothing of the model {min(unknown)!r}; "
                        f"there are: {', '.join(sorted(held)) or 'none'}")
    condition, values = selection.where()
    store.db.execute("DROP TABLE IF EXISTS temp.chosen")
    store.db.execute("CREATE TEMP TABLE chosen AS SELECT c.settings, c.prompt, c.sample, "
                     f"length(CAST(c.json AS BLOB)) AS bytes FROM completions c JOIN settings s ON s.id = c.settings "
                     f"WHERE {condition}", values)
    store.db.execute("CREATE INDEX temp.chosen_key ON chosen (settings, prompt, sample)")
    return store.db.execute("SELECT count(*), coalesce(sum(bytes), 0) FROM chosen").fetchone()


def export(source: Path, target: Path, selection: Selection = Selection(), beside: Beside = ()) -> int:
    """Write the selected answers to the file ``target``, whole or not at all; return how many.

    The stores of the kinds ``beside`` go with it where everything is selected. Raises UserError for a store that is not
    there, and for a target that cannot be written.
    """
    if target.resolve() == source.resolve():
        raise UserError(f"{target} is the store itself; name another file")
    with opened(source) as store, _writing(target) as partial:
        db, (count, _) = store.db, select(store, selection)
        with CompletionStore(partial):
            pass  # makes the tables
        with _attached(db, partial), store._transaction():
            for settings in _each_settings(db, "chosen", "exporting"):
                chosen = "settings = :s AND (prompt, sample) IN (SELECT prompt, sample FROM chosen WHERE settings = :s)"
                for table, condition in (
                        ("settings", "id = :s"), ("completions", chosen), ("uses", chosen),
                        ("prompts", "id IN (SELECT prompt FROM chosen WHERE settings = :s)")):
                    db.execute(f"INSERT OR IGNORE INTO other.{table} SELECT * FROM main.{table} WHERE {condition}",
                               {"s": settings})
                db.execute(f"INSERT INTO other.batches SELECT {_FOREIGN} FROM main.batches WHERE settings = ?",
                           (settings,))
        for name, file in _files(source, beside if selection.is_all else ()):
            if file.is_file():
                with _attached(db, file, "beside"), _attached(db, partial), store._transaction():
                    db.execute(f"CREATE TABLE other.{name} AS SELECT key, json FROM beside.{name}")
        with closing(sqlite3.connect(partial)) as written:
            written.execute("PRAGMA journal_mode = DELETE")  # one file, that a reader without rights to write can open
    return count


def merge(target: Path, file: Path, beside: Beside = ()) -> dict[str, Merged]:
    """Add what ``file``, an export or another store, holds to the store ``target``; nothing is written over.

    One entry a table: completions, and those of the kinds ``beside`` that the file has. Raises UserError for a file
    that is no completion store.
    """
    check(file)
    with CompletionStore(target) as store, store._readable_errors(), _attached(store.db, file):
        db = store.db
        tables = {name for name, in db.execute("SELECT name FROM other.sqlite_master WHERE type = 'table'")}
        with store._transaction():
            found = {"completions": _compared(db, "completions", ("settings", "prompt", "sample"), "a.json <> b.json")}
            for settings in _each_settings(db, "other.completions", "importing"):
                for table, condition in (
                        ("settings", "id = :s"), ("completions", "settings = :s"),
                        ("prompts", "id IN (SELECT prompt FROM other.completions WHERE settings = :s)")):
                    db.execute(f"INSERT OR IGNORE INTO main.{table} SELECT * FROM other.{table} WHERE {condition}",
                               {"s": settings})
            if {"uses", "batches"} <= tables:
                db.execute("INSERT INTO main.uses SELECT * FROM other.uses WHERE 1 ON CONFLICT DO UPDATE SET "
                           "used = max(used, excluded.used)")
                db.execute(f"INSERT OR IGNORE INTO main.batches SELECT {_FOREIGN} FROM other.batches")
        for kind, (name, path) in zip(beside, _files(target, beside), strict=True):
            if name in tables:
                with kind(path):
                    pass  # makes the table
                with _attached(db, path, "beside"), store._transaction():
                    found[name] = _compared(db, name, ("key",), _CHANGED, "beside")
                    db.execute(f"INSERT OR IGNORE INTO beside.{name} SELECT key, json FROM other.{name}")
    return found


def _compared(db: sqlite3.Connection, table: str, key: tuple[str, ...], changed: str, mine: str = "main") -> Merged:
    same = " AND ".join(f"a.{name} = b.{name}" for name in key)
    total = db.execute(f"SELECT count(*) FROM other.{table}").fetchone()[0]
    known, conflicts = db.execute(f"SELECT count(*), coalesce(sum({changed}), 0) FROM other.{table} a "
                                  f"JOIN {mine}.{table} b ON {same}").fetchone()
    return Merged(total - known, known - conflicts, conflicts)


def prune(source: Path, selection: Selection, dry_run: bool = False) -> tuple[int, int]:
    """Delete the selected answers, and prompts and settings that no answer is left of; give the space back.

    Returns how many answers and bytes of content (answers, prompts, settings) that is; ``dry_run`` changes nothing.
    Raises UserError for a selection of everything, and where another process holds the store.
    """
    if selection.is_all:
        raise UserError("prune needs a condition; to let go of everything, delete the store's file")
    with opened(source) as store:
        db = store.db
        count, size = select(store, selection)
        left = "SELECT settings, prompt, sample FROM completions EXCEPT SELECT settings, prompt, sample FROM chosen"
        db.execute(f"CREATE TEMP TABLE kept AS {left}")
        unused = {table: f"id NOT IN (SELECT {column} FROM kept)"
                  for table, column in (("prompts", "prompt"), ("settings", "settings"))}
        for table, condition in unused.items():
            size += db.execute(f"SELECT coalesce(sum(length(CAST(json AS BLOB))), 0) FROM {table} WHERE {condition}"
                               ).fetchone()[0]
        if count and not dry_run:
            with store._transaction():
                for settings in _each_settings(db, "chosen", "pruning"):
                    db.execute("DELETE FROM completions WHERE settings = :s AND (prompt, sample) IN "
                               "(SELECT prompt, sample FROM chosen WHERE settings = :s)", {"s": settings})
                for table, condition in unused.items():
                    db.execute(f"DELETE FROM {table} WHERE {condition}")
            db.execute("VACUUM")
    return count, size


def _each_settings(db: sqlite3.Connection, table: str, what: str) -> Iterator[str]:
    """The settings in a table of answers, one after the other, with the time to go."""
    counts = db.execute(f"SELECT settings, count(*) FROM {table} GROUP BY settings ORDER BY settings").fetchall()
    with tqdm(total=sum(count for _, count in counts), desc=what, unit=" answers", delay=1) as bar:
        for settings, count in counts:
            yield settings
            bar.update(count)


@contextmanager
def opened(path: Path) -> Iterator[CompletionStore]:
    """A store that is there, with its errors in words. Raises UserError where there is none."""
    if not path.is_file():
        raise UserError(f"there is no completion store at {path}; a first run makes it (LOOKUPLAB_STORE names another)")
    with CompletionStore(path) as store, store._readable_errors():
        yield store


def check(file: Path) -> Path:
    """The file, if it is a completion store that this lookuplab can read. Raises UserError."""
    if not file.is_file():
        raise UserError(f"there is no file {file}")
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            tables = {name for name, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            whole = db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
    except sqlite3.DatabaseError as error:
        raise UserError(f"{file} is no completion store ({error}); give a file of `lookuplab store export`") from None
    if not {"settings", "prompts", "completions"} <= tables:
        raise UserError(f"{file} is no completion store; give a file of `lookuplab store export`")
    if not whole:
        raise UserError(f"{file} is damaged; export or copy it again")
    if version > SCHEMA_VERSION:
        raise UserError(f"{file} was written by a newer lookuplab; update this one")
    return file


@contextmanager
def _writing(target: Path) -> Iterator[Path]:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as partial:
            yield partial
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}") from None


@contextmanager
def _attached(db: sqlite3.Connection, file: Path, name: str = "other") -> Iterator[None]:
    db.execute(f"ATTACH ? AS {name}", (str(file),))
    try:
        yield
    finally:
        db.execute(f"DETACH {name}")


def _files(store: Path, kinds: Beside) -> list[tuple[str, Path]]:
    """(name of the table, file) of each kind of store beside a completion store."""
    return [(kind.name, store.with_name(f"{kind.name}.sqlite")) for kind in kinds]
