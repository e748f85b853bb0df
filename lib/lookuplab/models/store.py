"""Stores the answers of models, code analysers and graders, so that each is computed only once.

A store is a table in an SQLite file in WAL mode. It maps keys to answers; an answer is JSON with a
checksum. ``lookup`` searches the committed record first (``models.record``), then the file. Each
kind of answer has a separate file. The caller must build keys from everything that could change the
answer.

Several processes may write to a store at once. On a local disk, they write to the SQLite file. On a
file system that other machines may share, each process writes to a journal of its own
(``Journals``), in a folder next to the SQLite file. Answers are stored within about a second, so a
kill at any moment loses only answers in progress. The file is created only if an answer is missing.
If no answer is missing, nothing is written, so the store may be read-only.

Invalid answers are never stored (``AnswerStore.fault``). A row is not used if its checksum is
wrong (for example, because a bit was flipped), or if it has an invalid answer that an earlier
version of the kit stored. A warning then names the file, and the answer is generated again.
"""

import contextlib
import errno
import fcntl
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
from lookuplab.errors import UserError
from lookuplab.models import record
from lookuplab.paths import digest, hashed
from lookuplab.work import check_memory, shard

# Environment variable, set by the runner: the folder to which a notebook writes four logs. A line
# of COUNTS has a store's name and three counts of answers: found in the record, found in the file,
# and generated. ANSWERS has the columns LOG_COLUMNS and a row for each use of an answer. JUDGED has
# the judged answers (``benchmark.append_judged``). SCREEN has the tables and sentences that
# `lookuplab run` prints at its end.
LOG_VARIABLE = "LOOKUPLAB_LOGS"
COUNTS, ANSWERS, JUDGED, SCREEN = "uses", "answers.csv", "judged.jsonl.gz", "screen.txt"
LOG_COLUMNS = ("model", "prompt", "sample", "question", "answer", "margin")
SCHEMA = 4  # the version of the file's format; a file of any other version is refused
# The Python version with which the record was made. Answers depend on the version, because Jedi and
# pylint read Python's standard library, and because programs are executed.
PYTHON = "3.11"
# How long to wait for other processes that write to the file. Each process locks the file for
# milliseconds, so after a minute something must be stuck.
BUSY_SECONDS = 60.0
OF_KEYS = "WHERE key IN (SELECT value FROM json_each(?))"  # the parameter is a JSON list of keys
COUNTED = ("tokens", "dropped")  # the fields prompt_tokens and prompt_dropped of a completion
FINISH_REASONS = ("eos", "stop", "length", "scored")
ROUNDING = 1e-4  # because of rounding, a log-probability may exceed 0 by this much
NOT_NUMBERS = (
    "its logits or log-probabilities are not finite numbers (in float16, large ones overflow: "
    "use ?dtype=bfloat16 or float32)"
)
# Types of file systems that belong to this machine alone, although the device number of their files
# is not the number of a block device. tmpfs is in memory, overlay consists of a container's layers,
# and the others may spread over several disks.
LOCAL_FILE_SYSTEMS = ("tmpfs", "overlay", "btrfs", "zfs", "bcachefs")
# errors that are raised in a folder where nothing can be written; locks cannot be tried in such a
# folder, and reading answers needs no locks
UNWRITABLE = errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT
# raised for an answer that is no JSON, or whose parts have unexpected types
INVALID_ANSWER_ERRORS = ValueError, KeyError, TypeError, AttributeError, RecursionError
BEGAN = time.time_ns()  # tells this process from a later one with the same process id
# KEEP inserts a row. Of several rows with the same key, the one that was written first stays,
# whichever is inserted first, so that all processes use the same row. A row is not inserted if its
# key was deleted after the row was written. FORGET deletes a key's row, and keeps the time of the
# deletion.
KEEP = """INSERT INTO rows VALUES (?, ?, ?, 0) ON CONFLICT DO UPDATE
    SET json = excluded.json, at = excluded.at
    WHERE excluded.at > gone AND (json IS NULL OR excluded.at < at)"""
FORGET = """INSERT INTO rows VALUES (?, NULL, 0, ?) ON CONFLICT DO UPDATE
    SET gone = max(gone, excluded.gone), json = CASE WHEN at > excluded.gone THEN json END"""
T = TypeVar("T")


def log_file(name: str) -> Path | None:
    """Return the path of the log ``name`` (see LOG_VARIABLE) of the notebook that this process
    runs, or None if the runner has not started this process.
    """
    folder = os.environ.get(LOG_VARIABLE)
    return Path(folder, name) if folder else None


class Journals:
    """The rows of a store on a file system that several machines share. Journals are files in
    ``folder``. The first ``append`` creates the folder. Journals need neither locks nor shared
    memory.

    Each process appends to a file of its own, and all processes read all files. A line is ``[time
    in ns, key, text]``; a line whose text is null deletes the earlier row with that key. If two
    rows have the same key, all readers take the earlier row. A kill may leave half a line at the
    end of a file; this half is ignored.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._last = 0
        self._read = dict[Path, int]()  # file -> number of bytes that ``follow`` has read

    def append(self, rows: Iterable[tuple[str, str | None]]) -> None:
        """Append rows (key, text) to this process's file, and wait until they are on the disk. A
        row whose text is None deletes the earlier row with that key.
        """
        name = f"{socket.gethostname()}-{os.getpid()}-{BEGAN}.jsonl"
        lines = [""]  # begins a new line, because a full disk may have left half a line
        for key, text in rows:
            self._last = max(self._last + 1, time.time_ns())
            lines.append(json.dumps([self._last, key, text]))
        with (paths.make_folder(self.folder) / name).open("ab", buffering=0) as own:
            own.write("\n".join([*lines, ""]).encode())
            os.fsync(own.fileno())

    def follow(self, db: sqlite3.Connection) -> None:
        """Read the lines that were added to any of the files since the last call, and insert them
        into the table ``rows`` (key, json, time of the row, time of the last deletion). If lines
        are damaged, a message on stderr says how many.
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
    import psutil  # slow to import

    place = next(one for one in (folder.resolve(), *folder.resolve().parents) if one.exists())
    try:
        with TemporaryFile(dir=place) as probe:
            probe.truncate(1)
            fcntl.lockf(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mmap.mmap(probe.fileno(), 1).close()
    except OSError as error:
        if error.errno not in UNWRITABLE:
            return False
    if os.major(place.stat().st_dev):  # a file system on a block device
        return True
    kinds = {Path(one.mountpoint): one.fstype for one in psutil.disk_partitions(all=True)}
    mount = next((one for one in (place, *place.parents) if one in kinds), None)
    return mount is not None and kinds[mount] in LOCAL_FILE_SYSTEMS


class AnswerStore:
    """A store in the file ``path``. It maps keys to answers, which may be any JSON values. If
    ``path`` is ``":memory:"`` or False, the store is in memory, and ignores the committed record of
    answers (``models.record``). If ``path`` is None, the file is in the folder of
    ``paths.completions_file``. Use the store in a ``with`` block, which closes the file.

    A subclass sets the ``name`` of its file and table. Raises UserError for a file that cannot be
    used.
    """

    name = "answers"

    def __init__(self, path: str | os.PathLike[str] | Literal[False] | None = None):
        self.path = (
            ":memory:" if path is False else path or self.file_beside(paths.completions_file())
        )
        self._is_file = str(self.path) != ":memory:"
        self._damaged = set[str]()  # keys of damaged rows; ``add`` replaces these rows
        self._asked = set[str]()  # keys that ``lookup`` found missing and ``add`` has not added yet

    @cached_property
    def journals(self) -> Journals | None:
        """Return the journals to which rows are added, or None if rows are added to the SQLite
        file. Journals are used if the file system is not local (``is_local``). Once the folder of
        journals exists, they are always used, so that all processes add rows in the same way. They
        are also used if nothing can be written in the store's folder, because SQLite would write
        there even to read the file.
        """
        if not self._is_file:
            return None
        folder = Path(f"{self.path}.journals")
        is_read_only = Path(self.path).exists() and not os.access(folder.parent, os.W_OK)
        is_used = folder.exists() or is_read_only or not is_local(folder.parent)
        return Journals(folder) if is_used else None

    @cached_property
    def db(self) -> sqlite3.Connection:
        """Return the connection to the SQLite file. If there are journals, return the connection to
        a private copy of the file, to which ``Journals.follow`` adds the rows of the journals. If
        all answers are in the record, the file is never opened.
        """
        with self._readable_errors():
            # reading a device or a pipe might never end
            if self._is_file and (file := Path(self.path)).exists() and not file.is_file():
                raise OSError("not a regular file")
            return self._open_with_journals() if self.journals else self._open_file(self.path)

    def _open_file(self, path: str | os.PathLike[str]) -> sqlite3.Connection:
        if self._is_file:
            paths.make_folder(Path(path).parent)
        # IMMEDIATE: a transaction asks for the right to write when it begins. On a full disk or a
        # read-only file, even ``add({})`` therefore fails, although it adds no rows.
        db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level="IMMEDIATE")
        # a flipped bit may leave bytes that are not text
        db.text_factory = lambda text: text.decode(errors="replace")
        # NORMAL is faster than FULL, and a killed process still loses nothing that was committed
        db.execute("PRAGMA synchronous = NORMAL")
        ((version, tables),) = db.execute(
            "SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version"
        )
        # refused before anything is changed, because it may be another program's file
        if version != SCHEMA and (version or tables):
            raise UserError(
                f"{self.path} is not a store of {self.name}, or another version of lookuplab "
                "wrote it; name another file (LOOKUPLAB_STORE)"
            )
        if not version:
            # may fail, without harm, if another process is doing the same at this moment
            with contextlib.suppress(sqlite3.OperationalError):
                db.execute("PRAGMA journal_mode = WAL")
            db.execute(f"PRAGMA user_version = {SCHEMA}")
        db.execute(
            f"CREATE TABLE IF NOT EXISTS {self.name} (key TEXT PRIMARY KEY, json TEXT) "
            "WITHOUT ROWID"
        )
        return db

    def _open_with_journals(self) -> sqlite3.Connection:
        db = sqlite3.connect("")  # a temporary database, which SQLite deletes on closing
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
                with contextlib.closing(self._open_file(copy)) as file, db:
                    rows = file.execute(f"SELECT * FROM {self.name}")
                    db.executemany("INSERT INTO rows VALUES (?, ?, 0, 0)", rows)
        return db

    @classmethod
    def file_beside(cls, completions: Path) -> Path:
        """Return the file of this class's store. ``completions`` is the completion store's file,
        which is in the same folder.
        """
        return completions.with_name(f"{cls.name}.sqlite")

    def lookup(self, questions: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
        """Look up the answers with these keys. Return {key: answer} for those that are in the
        record or the file, and the list of keys whose answers must be generated.

        During an audit, answers in the audit's sample must also be generated, unless the file
        already has them. They are stored in the file, but the recorded answers are returned:
        results must not depend on the last digits of the new answers, which differ with the batch.
        """
        keys = [*questions]
        recorded = record.rows(self.name, keys) if self._is_file else {}
        # Answers that are made without a sandbox, or with another Python version than the record's,
        # have keys with a suffix (``key_suffix``). The sample's keys have no suffix, so such
        # answers are not audited.
        sample = record.Audit.sample(self.name) if recorded else ()
        stored = self.get(key for key in keys if key in sample or key not in recorded)
        answers = stored | recorded
        new = [key for key in keys if key not in stored and (key in sample or key not in recorded)]
        self._asked.update(new)
        self._count(len(recorded), len(answers) - len(recorded), 0)
        return answers, new

    def _count(self, *counts: int) -> None:
        """Append three ``counts`` to the log COUNTS, if the runner started this process: the
        numbers of answers found in the record, found in the file, and generated.
        """
        if self._is_file and any(counts) and (file := log_file(COUNTS)):
            with open(file, "a", encoding="utf-8") as log:
                print(self.name, *counts, file=log)

    def get(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return {key: answer} for those keys that have a valid row in the file."""
        wanted = [*keys]
        found = {}
        damaged = set()
        with self._readable_errors():
            query = f"SELECT * FROM {self.name} {OF_KEYS}"
            for key, text in self._rows(query, json.dumps(wanted)) if wanted else ():
                json_text, _, checksum = str(text).partition("\n")
                try:
                    answer = json.loads(json_text)
                    is_whole = checksum == digest(key + json_text) and not self.fault(answer)
                except INVALID_ANSWER_ERRORS:
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
        """Return those of the ``keys`` that have a row in the file; without ``keys``, return all
        keys in the file. Rows that were already found to be damaged do not count. The content of
        the rows is not read.
        """
        query = f"SELECT key FROM {self.name}"
        with self._readable_errors():
            if keys is None:
                rows = self._rows(query)
            else:
                rows = self._rows(f"{query} {OF_KEYS}", json.dumps([*keys]))
            return {key for (key,) in rows} - self._damaged

    def pending_tasks(self, tasks: Mapping[tuple[str, ...], T]) -> Iterator[T]:
        """Yield the tasks that this process should do. ``tasks`` is {keys of a task's answers:
        task}. If several processes share the work, this process's own share comes first, followed
        by those tasks of other processes whose answers are still missing. A single process gets all
        tasks, in the given order.

        No process waits for another, so a slow process holds up nothing. If a task gives no answer
        that can be stored, every process tries it.
        """
        for keys in sorted(tasks, key=lambda keys: turn(keys[0])):
            if shard()[1] == 1 or len(self.get(keys)) < len(keys):
                yield tasks[keys]

    def _rows(self, query: str, *values: str) -> Iterator[Any]:
        """Yield the rows that a query finds in the file and in the journals. If neither exists yet,
        yield nothing.
        """
        if self.journals:
            self.journals.follow(self.db)
        if "db" in vars(self) or not self._is_file or Path(self.path).exists():
            yield from self.db.execute(query, values)

    def fault(self, _: Any) -> str:
        """Return why an answer is invalid and must not be stored, or "" if it is valid."""
        return ""

    def add(self, answers: Mapping[str, object]) -> None:
        """Store the answers in one transaction. If another process has already stored an answer
        with the same key, that answer stays.

        Valid answers are stored even if others are invalid (``fault``). Then UserError is raised
        for the first invalid answer.
        """
        check_memory()
        faults = {}
        texts = {}
        for key, answer in answers.items():
            try:
                if not (fault := self.fault(answer)):
                    texts[key] = json.dumps(answer, allow_nan=False)
            except INVALID_ANSWER_ERRORS as error:
                fault = f"{self.name} {key}: an answer that cannot be stored ({error})"
            if fault:
                faults[key] = fault
        rows = [(key, f"{text}\n{digest(key + text)}") for key, text in texts.items()]
        damaged = self._damaged & texts.keys()
        self._write(sorted(damaged), rows)
        self._damaged -= damaged
        # if a flipped bit has changed the order of the keys, SQLite no longer finds all of them
        if texts.keys() - self.present(texts):
            raise UserError(
                f"store of {self.name} {self.path}: answers that were just stored are not in it; "
                "restore it from a copy, or name another file (LOOKUPLAB_STORE)"
            )
        self._count(0, 0, len(self._asked & texts.keys()))
        self._asked -= texts.keys()
        for fault in faults.values():
            raise UserError(f"{fault}; the answer is not stored")

    def forget(self, keys: Iterable[str]) -> None:
        """Delete the answers with these keys from the file. The record is not changed."""
        self._write([*keys], [])

    def _write(self, deleted: list[str], rows: list[tuple[str, str]]) -> None:
        """Delete the rows with the keys ``deleted``, and then add ``rows``, at once."""
        with self._readable_errors():
            if self.journals:
                self.journals.append([*((key, None) for key in deleted), *rows])
            else:
                with self.db:
                    self.db.execute(f"DELETE FROM {self.name} {OF_KEYS}", [json.dumps(deleted)])
                    self.db.executemany(f"INSERT OR IGNORE INTO {self.name} VALUES (?, ?)", rows)

    @contextlib.contextmanager
    def _readable_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, OSError) as error:
            advice = "nothing that was stored is lost; LOOKUPLAB_STORE names another file"
            # exactly this type means that the file is damaged; a full disk or another process's
            # lock, for example, would raise a subclass
            if type(error) is sqlite3.DatabaseError:
                advice = "restore it from a copy, or name another file (LOOKUPLAB_STORE)"
            raise UserError(f"store of {self.name} {self.path}: {error} ({advice})") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "db" in vars(self):
            self.db.close()


class CompletionStore(AnswerStore):
    """The store of models' answers. A row has the fields of ``Completion``, and ``model``, the
    model's name. ``completions.keys_of`` makes the keys.
    """

    name = "completions"

    def fault(self, answer: Any) -> str:
        """Return why a completion is invalid, or "" if it is valid. It is invalid if a number is
        not finite, if something is missing, or if fields contradict each other.
        """
        text, tokens, numbers = (answer[name] for name in ("text", "tokens", "token_logprobs"))
        margin = answer["margin"]
        counts = [*answer["token_ids"], *(answer.get(f"prompt_{what}", 0) for what in COUNTED)]
        reason = "" if margin is None or _is_finite(margin) else NOT_NUMBERS
        reason = reason or ("" if numbers is None else logprobs_fault(numbers, tokens))
        if reason:
            pass
        elif not all(type(count) is int and count >= 0 for count in counts):
            reason = "its token ids or token counts are not whole numbers of at least 0"
        elif len(answer["token_ids"]) not in (0, len(tokens)) or (
            # a scored text may be a special token, which adds no text
            tokens and answer["finish_reason"] != "scored" and "".join(tokens) != text
        ):
            reason = "its tokens do not spell its text"
        elif answer["finish_reason"] not in FINISH_REASONS:
            reason = f"an unknown finish_reason ({answer['finish_reason']!r})"
        return reason and f"model {answer['model']}, prompt {answer['id']!r}: {reason}"

    @classmethod
    def file_beside(cls, completions: Path) -> Path:
        return completions


def logprobs_fault(logprobs: Any, tokens: Any = None) -> str:
    """Return why a text's log-probabilities are invalid, or "" if they are valid. Each of them must
    be finite and, apart from rounding, at most 0. If ``tokens`` is a list, each token must have a
    log-probability.
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


def key_suffix(sandbox: bool = True) -> str:
    """Return the suffix for keys of answers that may depend on Python's version or on the sandbox:
    "@3.12" for Python 3.12, "@unprotected" without a sandbox, and "" for the record's Python
    version with a sandbox.

    A lookup in the record ignores suffixes, so recorded answers are always found. Answers with a
    suffix never become part of the record, because the record's keys have no suffix.
    """
    python = ".".join(platform.python_version_tuple()[:2])
    ending = "" if python == PYTHON else f"@{python}"
    return ending if sandbox else ending + "@unprotected"


def turn(unit: str) -> str:
    """Return "" if a unit of work belongs to this process's share. Otherwise return a hash. A
    process that has done its share takes over units of other processes in the order of these
    hashes. The order differs from process to process, so few units are done twice.
    """
    number, count = shard()
    return "" if int(hashed(unit), 16) % count == number else hashed(f"{number} {unit}")
