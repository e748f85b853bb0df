"""Stores answers on disk, so that no question to a model, an analyser or a grader is asked twice.

A store is a table in an SQLite file in WAL mode: key -> answer as JSON and a checksum. ``lookup``
searches the committed record first (``models.record``), then the file. Each kind of answer has a
separate file. The caller must build keys from everything that could change the answer.

Several processes may write to a store at once. On a local disk, they write to the SQLite file. On a
file system that other machines may share, each process writes to a separate journal (``Journals``)
beside the SQLite file. A transaction holds the answers of about a second, so a kill at any moment
loses only answers in progress. Only missing answers are written: the file is created with the first
of them, and a store that has all answers may be read-only.

Invalid answers are never stored (``AnswerStore.fault``). A row is not used if a flipped bit has
changed it, or if an earlier version stored an invalid answer in it. A warning then names the file,
and the answer is generated again.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import math
import mmap
import os
import platform
import shutil
import socket
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, Literal, Self, TypeVar

from lookuplab import paths
from lookuplab.errors import UserError, check_memory
from lookuplab.models import record
from lookuplab.work import share

# environment variable with the path of the completion store; other stores are in the same folder
STORE_VARIABLE = "LOOKUPLAB_STORE"
# Environment variable, set by the runner: the path of a log. Each line of the log counts answers
# that were found in the record, found in the file, and generated.
USES_VARIABLE = "LOOKUPLAB_USES"
SCHEMA, WITHOUT_CHECKSUMS = 4, 3  # versions of the file's format; other versions are refused
# The Python version with which the record was made. Answers depend on the version, because Jedi and
# pylint read Python's standard library, and because programs are executed.
PYTHON = "3.11"
# How long to wait for other writers. They lock the file for milliseconds, so after a minute
# something must be stuck.
BUSY_SECONDS = 60.0
OF_KEYS = "WHERE key IN (SELECT value FROM json_each(?))"  # the parameter is a JSON list of keys
COUNTED = ("tokens", "dropped")  # the fields prompt_tokens and prompt_dropped of a completion
ENDS = ("eos", "stop", "length", "scored")  # finish reasons of a completion
ROUNDING = 1e-4  # a log-probability may exceed 0 by this much
NOT_NUMBERS = (
    "its logits or log-probabilities are not numbers (in float16, large ones overflow: "
    "?dtype=bfloat16 or float32)"
)
# file systems that have no block device, but that no other machine sees: in memory, or the layers
# of a container
OF_THIS_MACHINE = ("tmpfs", "overlay")
# Errors that are raised in a folder where nothing can be written. Locks cannot be tried there, and
# are not needed to read answers.
UNWRITABLE = errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT
BEGAN = time.time_ns()  # distinguishes this process from a later one with the same process id
# KEEP inserts a row. The row replaces a later row with the same key. It is not inserted if its key
# was deleted after the row was written. FORGET deletes a key's row, and keeps the time of the
# deletion.
KEEP = """INSERT INTO rows VALUES (?, ?, ?, 0) ON CONFLICT DO UPDATE
    SET json = excluded.json, at = excluded.at
    WHERE excluded.at > gone AND (json IS NULL OR excluded.at < at)"""
FORGET = """INSERT INTO rows VALUES (?, NULL, 0, ?) ON CONFLICT DO UPDATE
    SET gone = max(gone, excluded.gone), json = CASE WHEN at > excluded.gone THEN json END"""
T = TypeVar("T")


class Journals:
    """The rows of a store on a file system that several machines share. Journals are files in
    ``folder``, which the first ``append`` creates. They need neither locks nor shared memory.

    Each process appends to a separate file, and all processes read all files. A line is ``[time in
    ns, key, text]``; a line whose text is null deletes the earlier row of that key. If two rows
    have the same key, all readers take the earlier one. A kill may leave half a line at the end of
    a file; this half is ignored.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._last = 0
        self._read = dict[Path, int]()  # file -> number of bytes that ``follow`` has read

    def append(self, rows: Iterable[tuple[str, str | None]]) -> None:
        """Append rows (key, text) to this process's file, and wait until they are on the disk. If
        the text is None, the key is deleted.
        """
        name = f"{socket.gethostname()}-{os.getpid()}-{BEGAN}.jsonl"
        lines = [""]  # the file may end in half a line, left by a full disk
        for key, text in rows:
            self._last = max(self._last + 1, time.time_ns())
            lines.append(json.dumps([self._last, key, text]))
        with (paths.made(self.folder) / name).open("ab", buffering=0) as own:
            own.write("\n".join([*lines, ""]).encode())
            os.fsync(own.fileno())

    def follow(self, db: sqlite3.Connection) -> None:
        """Read the lines that were added to any file since the last call, and insert them into the
        table ``rows`` (key, json, time of the row, time of the last deletion). The number of
        damaged lines is printed.
        """
        found: list[tuple[int, str, str | None]] = []
        damaged = 0
        for file in sorted(self.folder.glob("*.jsonl")):
            begin = self._read.get(file, 0)
            if file.stat().st_size == begin:
                continue
            with file.open("rb") as stream:
                stream.seek(begin)
                whole, end, _ = stream.read().rpartition(b"\n")
            self._read[file] = begin + len(whole + end)
            for line in filter(None, whole.split(b"\n")):
                try:
                    at, key, text = json.loads(line)
                    found.append((int(at), str(key), text))
                except (ValueError, TypeError):
                    damaged += 1
        if damaged:
            print(f"{self.folder}: {damaged} lines are damaged; left out", file=sys.stderr)
        with db:
            for at, key, text in sorted(found, key=lambda row: row[0]):
                db.execute(*((FORGET, (key, at)) if text is None else (KEEP, (key, text, at))))


def is_local(folder: Path) -> bool:
    """Return whether SQLite's locks and shared memory work for every process that may write to
    ``folder``. The folder's file system must support both, and must belong to this machine alone.
    File systems on a block device or in memory count as belonging to this machine; NFS, Lustre,
    FUSE and unknown file systems count as shared with other machines.
    """
    import psutil  # imported here, because the import takes time

    place = next(one for one in (folder.resolve(), *folder.resolve().parents) if one.exists())
    if not _has_locks(place):
        return False
    if os.major(place.stat().st_dev):
        return True
    mounts = {Path(one.mountpoint): one for one in psutil.disk_partitions(all=True)}
    mount = next((mounts[one] for one in (place, *place.parents) if one in mounts), None)
    return mount is not None and (
        # for btrfs, say, whose files have a device number that belongs to no device
        Path(mount.device).is_block_device() or mount.fstype in OF_THIS_MACHINE
    )


def _has_locks(folder: Path) -> bool:
    """Return whether the folder's file system supports locks and shared memory. Both are tried on a
    temporary file. If nothing can be written in the folder, the answer is True.
    """
    try:
        with TemporaryFile(dir=folder) as probe:
            probe.truncate(1)
            fcntl.lockf(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mmap.mmap(probe.fileno(), 1).close()
    except OSError as error:
        return error.errno in UNWRITABLE
    return True


class AnswerStore:
    """A store, key -> answer (any JSON value), in the file ``path``. ``":memory:"`` and False mean
    a store in memory, which does not use the record. Use the store in a ``with`` block, which
    closes the file.

    A subclass sets the ``name`` of its file and table. Raises UserError for a file that cannot be
    used.
    """

    name = "answers"

    def __init__(self, path: str | os.PathLike[str] | Literal[False] | None = None):
        self.path = ":memory:" if path is False else path or self.default_path()
        self._is_file = str(self.path) != ":memory:"
        self._damaged = set[str]()  # keys of damaged rows, which ``add`` replaces
        self._asked = set[str]()  # keys that ``lookup`` has returned as missing

    @cached_property
    def journals(self) -> Journals | None:
        """Return the journals to which rows are added, or None if rows are added to the SQLite
        file. Once the folder of journals exists, all processes use journals.
        """
        folder = Path(f"{self.path}.journals")
        is_shared = self._is_file and (folder.exists() or not is_local(folder.parent))
        return Journals(folder) if is_shared else None

    @cached_property
    def db(self) -> sqlite3.Connection:
        """Return the connection to the SQLite file. If there are journals, return the connection to
        a private copy of the file, to which ``Journals.follow`` adds the rows in the journals. The
        file is opened when the record cannot answer a question for the first time, and created with
        the first answer.
        """
        with self._readable_errors():
            # reading a device or a pipe might never end
            if self._is_file and (file := Path(self.path)).exists() and not file.is_file():
                raise OSError("not a regular file")
            return self._followed() if self.journals else self._opened(self.path)

    def _opened(self, path: str | os.PathLike[str]) -> sqlite3.Connection:
        if self._is_file:
            paths.made(Path(path).parent)
        # IMMEDIATE: even a transaction that adds nothing finds a full disk or a read-only file
        db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level="IMMEDIATE")
        # a flipped bit may leave bytes that are not text
        db.text_factory = lambda text: text.decode(errors="replace")
        # faster than FULL; even so, a killed process loses nothing that was committed
        db.execute("PRAGMA synchronous = NORMAL")
        ((version, tables),) = db.execute(
            "SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version"
        )
        # refused before anything is changed: it may be another program's file
        if version not in (SCHEMA, WITHOUT_CHECKSUMS) and (version or tables):
            raise UserError(
                f"{self.path} is not a store of {self.name}, or another version of lookuplab "
                "wrote it; name another file (LOOKUPLAB_STORE)"
            )
        if not version:
            # fails without harm if another process is doing the same at this moment
            with contextlib.suppress(sqlite3.OperationalError):
                db.execute("PRAGMA journal_mode = WAL")
            db.execute(f"PRAGMA user_version = {SCHEMA}")
        db.execute(
            f"CREATE TABLE IF NOT EXISTS {self.name} (key TEXT PRIMARY KEY, json TEXT) "
            "WITHOUT ROWID"
        )
        return db

    def _followed(self) -> sqlite3.Connection:
        db = sqlite3.connect("")  # a temporary database, which SQLite deletes when it is closed
        db.execute(
            "CREATE TABLE rows (key TEXT PRIMARY KEY, json TEXT, at INT, gone INT) WITHOUT ROWID"
        )
        shown = "SELECT key, json FROM rows WHERE json NOT NULL"
        db.execute(f"CREATE VIEW {self.name} AS {shown}")
        with TemporaryDirectory() as folder:
            copy = Path(folder) / "copy"
            # SQLite's own log and journal are copied, too, because they may hold the latest rows
            for ending in ("", "-wal", "-journal"):
                if Path(f"{self.path}{ending}").exists():
                    shutil.copyfile(f"{self.path}{ending}", f"{copy}{ending}")
            if copy.exists():
                with contextlib.closing(self._opened(copy)) as file, db:
                    rows = file.execute(f"SELECT * FROM {self.name}")
                    db.executemany("INSERT INTO rows VALUES (?, ?, 0, 0)", rows)
        return db

    @classmethod
    def default_path(cls) -> Path:
        """Return the default path of this kind of store, in the folder of the completion store."""
        return CompletionStore.default_path().with_name(f"{cls.name}.sqlite")

    def lookup(self, questions: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
        """Look up the answers to the questions with these keys. Return {key: answer} for those that
        are in the record or the file, and the keys whose answers must be generated.

        During an audit, keys in the audit's sample must also be generated, unless the file already
        has them. The new answers go to the file, but the recorded answers are returned, because the
        last digits of an answer depend on the batch.
        """
        keys = [*questions]
        recorded = record.rows(self.name, keys) if self._is_file else {}
        # Under another Python or sandbox than the record's, keys have a suffix. The keys in the
        # sample have none, so nothing is audited then.
        sample = record.Audit.sample(self.name) if recorded else ()
        stored = self.get(key for key in keys if key in sample or key not in recorded)
        answers = stored | recorded
        new = [key for key in keys if key not in stored and (key in sample or key not in recorded)]
        self._asked.update(new)
        self._count(len(recorded), len(answers) - len(recorded), 0)
        return answers, new

    def _count(self, *counts: int) -> None:
        """Append three counts to the log that USES_VARIABLE names, if the variable is set: answers
        found in the record, found in the file, and generated.
        """
        if self._is_file and any(counts) and (file := os.environ.get(USES_VARIABLE)):
            with open(file, "a", encoding="utf-8") as log:
                print(self.name, *counts, file=log)

    def get(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the answers in the file for these keys."""
        asked = [*keys]
        found = {}
        damaged = set()
        with self._readable_errors():
            query = f"SELECT * FROM {self.name} {OF_KEYS}"
            for key, text in self._rows(query, json.dumps(asked)) if asked else ():
                said, _, checksum = str(text).partition("\n")
                try:
                    answer = json.loads(said)
                    is_whole = checksum in ("", digest(key + said)) and not self.fault(answer)
                except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                    is_whole = False
                if is_whole:
                    found[key] = answer
                else:
                    damaged.add(str(key))
        if damaged - self._damaged:
            print(
                f"store of {self.name} {self.path}: {len(damaged)} of "
                f"{len(damaged) + len(found)} rows are damaged (the first: {min(damaged)}); they "
                "are left out and generated again; a copy of the file may still have them",
                file=sys.stderr,
            )
        self._damaged |= damaged
        return found

    def present(self, keys: Iterable[str] | None = None) -> set[str]:
        """Return which of the keys have a row in the file or, without ``keys``, all keys that have
        one. Rows already found to be damaged do not count. The rows' content is not read.
        """
        query = f"SELECT key FROM {self.name}"
        with self._readable_errors():
            if keys is None:
                rows = self._rows(query)
            else:
                rows = self._rows(f"{query} {OF_KEYS}", json.dumps([*keys]))
            return {key for (key,) in rows} - self._damaged

    def unmade(self, tasks: Mapping[tuple[str, ...], T]) -> Iterator[T]:
        """Yield the tasks that this process should do. ``tasks`` is {keys of the task's answers:
        task}. If several processes share the work, a process's own share comes first, and then the
        tasks of other processes that are still without answers. A single process gets all tasks, in
        their order.

        No process waits for another, and a slow process holds up nothing. If a task gives no answer
        that can be stored, every process tries it. Each process goes through the tasks of others in
        a different order, so few tasks are done twice.
        """
        number, count = share()

        def turn(keys: tuple[str, ...]) -> str:
            is_own = int(hashed(keys[0]), 16) % count == number
            return "" if is_own else hashed(f"{number} {keys[0]}")

        for keys in sorted(tasks, key=turn):
            if count == 1 or len(self.get(keys)) < len(keys):
                yield tasks[keys]

    def _rows(self, query: str, *values: str) -> Iterator[Any]:
        """Yield the rows that a query finds in the file and in the journals. Yield nothing if the
        file does not exist yet.
        """
        if self.journals:
            self.journals.follow(self.db)
        if "db" in vars(self) or not self._is_file or Path(self.path).exists():
            yield from self.db.execute(query, values)

    def fault(self, _: Any) -> str:
        """Return why an answer must not be stored, or "" if it is valid."""
        return ""

    def add(self, answers: Mapping[str, object]) -> None:
        """Store the answers in one transaction. An answer that another process stored first stays.

        Raises UserError for the first invalid answer (``fault``), after the valid ones are stored.
        """
        check_memory()
        faults = {}
        texts = {}
        for key, answer in answers.items():
            try:
                if not (said := self.fault(answer)):
                    texts[key] = json.dumps(answer, allow_nan=False)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                said = f"{self.name} {key}: an answer that cannot be stored ({error})"
            if said:
                faults[key] = said
        rows = [(key, f"{text}\n{digest(key + text)}") for key, text in texts.items()]
        damaged = self._damaged & texts.keys()
        with self._readable_errors():
            if self.journals:
                self.journals.append([*((key, None) for key in sorted(damaged)), *rows])
            else:
                with self.db:
                    self._delete(damaged)
                    self.db.executemany(f"INSERT OR IGNORE INTO {self.name} VALUES (?, ?)", rows)
                    self.db.execute(f"PRAGMA user_version = {SCHEMA}")
        self._damaged -= damaged
        # a flipped bit may have changed the order of keys; SQLite then no longer finds some of them
        if texts.keys() - self.present(texts):
            raise UserError(
                f"store of {self.name} {self.path}: answers that were just stored are not in it; "
                "restore it from a copy, or name another file (LOOKUPLAB_STORE)"
            )
        self._count(0, 0, len(self._asked & texts.keys()))
        self._asked -= texts.keys()
        for said in faults.values():
            raise UserError(f"{said}; the answer is not stored")

    def forget(self, keys: Iterable[str]) -> None:
        """Delete the file's answers for these keys."""
        with self._readable_errors():
            if self.journals:
                self.journals.append((key, None) for key in keys)
            else:
                with self.db:
                    self._delete(keys)

    def _delete(self, keys: Iterable[str]) -> None:
        self.db.execute(f"DELETE FROM {self.name} {OF_KEYS}", [json.dumps([*keys])])

    @contextlib.contextmanager
    def _readable_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, OSError) as error:
            advice = "nothing that was stored is lost; LOOKUPLAB_STORE names another file"
            # this type itself means that the file is damaged; if the disk or another process is the
            # cause, the error is of a subclass
            if type(error) is sqlite3.DatabaseError:
                advice = "restore it from a copy, or name another file (LOOKUPLAB_STORE)"
            raise UserError(f"store of {self.name} {self.path}: {error} ({advice})") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "db" in vars(self):
            self.db.close()


class CompletionStore(AnswerStore):
    """The store of models' answers: the fields of ``Completion``, and ``model``, the model's name.
    ``completions.keys_of`` makes the keys.
    """

    name = "completions"

    def fault(self, answer: Any) -> str:
        """Return why a completion is invalid (a number is not finite, something is missing, or
        fields contradict each other), or "" if it is valid.
        """
        text, tokens, numbers = (answer[name] for name in ("text", "tokens", "token_logprobs"))
        margin = answer["margin"]
        counts = [*answer["token_ids"], *(answer.get(f"prompt_{what}", 0) for what in COUNTED)]
        said = "" if margin is None or _is_finite(margin) else NOT_NUMBERS
        said = said or ("" if numbers is None else faulty(numbers, tokens))
        if said:
            pass
        elif not all(type(one) is int and one >= 0 for one in counts):
            said = "its token ids or token counts are not whole numbers from 0"
        elif len(answer["token_ids"]) not in (0, len(tokens)) or (
            # a scored text may be a special token, which adds no text
            tokens and answer["finish_reason"] != "scored" and "".join(tokens) != text
        ):
            said = "its tokens do not spell its text"
        elif answer["finish_reason"] not in ENDS:
            said = f"an unknown finish_reason ({answer['finish_reason']!r})"
        return said and f"model {answer['model']}, prompt {answer['id']!r}: {said}"

    @classmethod
    def default_path(cls) -> Path:
        # A relative path starts at $PWD, the folder where the user typed the command. A notebook's
        # kernel works in another folder, but inherits $PWD.
        stated = paths.expanded(os.environ.get(STORE_VARIABLE) or paths.COMPLETIONS)
        return Path(os.environ.get("PWD", ""), stated).absolute()


def faulty(logprobs: Any, tokens: Any = None) -> str:
    """Return why a text's log-probabilities are invalid, or "" if they are valid. Each must be
    finite and, up to rounding, at most 0. If ``tokens`` is a list, each token must have one.
    """
    if not isinstance(logprobs, list | tuple) or not all(map(_is_finite, logprobs)):
        return NOT_NUMBERS
    if isinstance(tokens, list | tuple) and len(logprobs) != len(tokens):
        return f"{len(logprobs)} log-probabilities of {len(tokens)} tokens"
    if max(logprobs, default=0) > ROUNDING:
        return f"a log-probability above 0 ({max(logprobs)})"
    return ""


def _is_finite(number: Any) -> bool:
    return type(number) in (int, float) and abs(number) < math.inf


def elsewhere(sandbox: bool = True) -> str:
    """Return the suffix for keys of answers that may depend on Python's version or on the sandbox:
    "@3.12" for Python 3.12, "@unprotected" without a sandbox, and "" under the record's conditions.

    The record's keys have no suffix, and a lookup in the record ignores suffixes, so recorded
    answers are found under all conditions. An answer that was made under other conditions never
    replaces a recorded one.
    """
    python = ".".join(platform.python_version_tuple()[:2])
    ending = "" if python == PYTHON else f"@{python}"
    return ending if sandbox else ending + "@unprotected"


def canonical(fields: object) -> str:
    """Return JSON that is the same for equal content, whatever the order of the keys."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def digest(text: str) -> str:
    """Return 128 bits of a text's sha256 as hexadecimal digits. Collisions are negligible below
    10^15 answers.
    """
    return hashed(text)[:32]


def hashed(text: str) -> str:
    """Return a text's sha256 as hexadecimal digits. Sorting texts by their hashes gives an order
    that is the same on every machine and unrelated to what the texts say.
    """
    return hashlib.sha256(text.encode()).hexdigest()
