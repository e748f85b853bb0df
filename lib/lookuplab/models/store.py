"""Answers on disk: once a model, an analyser or a grader has answered a question, it is never asked
again.

A store is a table in an SQLite file in WAL mode, key -> answer as JSON and a checksum. ``lookup``
asks the committed record first (``models.record``), then the file. Each kind of answer has a file
of its own. Several processes may write to a store at once: on a disk of this machine as SQLite
does; on a file system that other machines may share, each to a journal of its own
(``models.journals``), beside what an SQLite file there may have. The caller must build keys from
everything that could change the answer. A transaction holds one batch: a kill at any moment loses
only the batch in flight. Only missing answers are written: the file is made with the first one, and
a store that has them all may be read-only.

What is no answer never enters (``AnswerStore.fault``). A row that a flipped bit has changed, or
that an earlier version should not have kept, is never read: one line names its file, and the
question is asked again.
"""

import contextlib
import hashlib
import json
import math
import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Self, TypeVar

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models import record
from lookuplab.models.journals import Journals, is_local
from lookuplab.work.resources import share

STORE_VARIABLE = "LOOKUPLAB_STORE"  # the completion store's file; the others lie beside it
USES_VARIABLE = "LOOKUPLAB_USES"  # a file for how many answers were found where; set by the runner
SCHEMA, WITHOUT_CHECKSUMS = 4, 3  # a file with another number is refused
PYTHON = "3.11"  # of the record: Jedi and pylint read the standard library, and programs run on it
# other writers lock the file for milliseconds; a minute means that something is stuck
BUSY_SECONDS = 60.0
OF_KEYS = "WHERE key IN (SELECT value FROM json_each(?))"  # a list of keys, as JSON
COUNTED = ("tokens", "dropped")  # of a prompt
ENDS = ("eos", "stop", "length", "scored")  # of a completion
ROUNDING = 1e-4  # by so much a log-probability may be above 0
NOT_NUMBERS = (
    "its logits or log-probabilities are not numbers (in float16, large ones overflow: "
    "?dtype=bfloat16 or float32)"
)
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
        self._is_file = str(self.path) != ":memory:"
        self._damaged = set[str]()  # keys of rows to be replaced
        self._asked = set[str]()  # keys of answers that are to be made

    @cached_property
    def journals(self) -> Journals | None:
        """Where rows are added, unless SQLite does it; once there are any, all use them."""
        folder = Path(f"{self.path}.journals")
        is_shared = self._is_file and (folder.exists() or not is_local(folder.parent))
        return Journals(folder) if is_shared else None

    @cached_property
    def db(self) -> sqlite3.Connection:
        """The file, which is opened when the first question is asked that the record cannot answer,
        and made with the first answer; or a private copy, which follows the journals.
        """
        with self._readable_errors():
            return self._followed() if self.journals else self._opened(self.path)

    def _opened(self, path: str | os.PathLike[str]) -> sqlite3.Connection:
        if self._is_file:
            paths.made(Path(path).parent)
        # IMMEDIATE: even a transaction that adds nothing finds a full disk or a read-only file
        db = sqlite3.connect(path, BUSY_SECONDS, isolation_level="IMMEDIATE")
        # a flipped bit may leave bytes that are no text
        db.text_factory = lambda text: text.decode(errors="replace")
        # even so, a killed process loses nothing that was committed
        db.execute("PRAGMA synchronous = NORMAL")
        ((version, tables),) = db.execute(
            "SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version"
        )
        # a foreign file is left as it is
        if version not in (SCHEMA, WITHOUT_CHECKSUMS) and (version or tables):
            raise UserError(
                f"{self.path} is no store of {self.name}, or another version of lookuplab "
                "wrote it; name another file (LOOKUPLAB_STORE)"
            )
        if not version:
            # another process may be doing the same at this moment
            with contextlib.suppress(sqlite3.OperationalError):
                db.execute("PRAGMA journal_mode = WAL")
            db.execute(f"PRAGMA user_version = {SCHEMA}")
        db.execute(
            f"CREATE TABLE IF NOT EXISTS {self.name} (key TEXT PRIMARY KEY, json TEXT) "
            "WITHOUT ROWID"
        )
        return db

    def _followed(self) -> sqlite3.Connection:
        db = sqlite3.connect("")  # SQLite's own temporary file
        db.execute(
            "CREATE TABLE rows (key TEXT PRIMARY KEY, json TEXT, at INT, gone INT) WITHOUT ROWID"
        )
        shown = "SELECT key, json FROM rows WHERE json NOT NULL"
        db.execute(f"CREATE VIEW {self.name} AS {shown}")
        with TemporaryDirectory() as folder:
            copy = Path(folder) / "copy"
            for ending in ("", "-wal", "-journal"):  # without them, what was last added is lost
                if Path(f"{self.path}{ending}").exists():
                    shutil.copyfile(f"{self.path}{ending}", f"{copy}{ending}")
            if copy.exists():
                with contextlib.closing(self._opened(copy)) as file, db:
                    rows = file.execute(f"SELECT * FROM {self.name}")
                    db.executemany("INSERT INTO rows VALUES (?, ?, 0, 0)", rows)
        return db

    @classmethod
    def default_path(cls) -> Path:
        """Beside the completion store, wherever that is."""
        return CompletionStore.default_path().with_name(f"{cls.name}.sqlite")

    def lookup(self, questions: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
        """Return the answers that the record or the file has to questions with these keys, and the
        keys whose answers are to be made.

        The latter include the sample of an audit, which is added to the file; the record's answers
        are used all the same, since the last digits of others depend on the batch.
        """
        keys = [*questions]
        recorded = record.rows(self.name, keys) if self._is_file else {}
        # no sample where Python or the sandbox is another one than the record's: keys with endings
        sample = record.Audit.sample(self.name) if recorded else ()
        stored = self.get(key for key in keys if key in sample or key not in recorded)
        answers = stored | recorded
        new = [key for key in keys if key not in stored and (key in sample or key not in recorded)]
        self._asked.update(new)
        self._count(len(recorded), len(answers) - len(recorded), 0)
        return answers, new

    def _count(self, *counts: int) -> None:
        """Note how many answers were found in the record, found in the file, and made."""
        if self._is_file and any(counts) and (file := os.environ.get(USES_VARIABLE)):
            with open(file, "a", encoding="utf-8") as log:
                print(self.name, *counts, file=log)

    def get(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the answers that the file has for these keys."""
        asked = [*keys]
        return self._select(OF_KEYS, json.dumps(asked)) if asked else {}

    def present(self, keys: Iterable[str] | None = None) -> set[str]:
        """Return those of the keys, or all, for which the file has a row, which is not read;
        without those that were found damaged.
        """
        query = f"SELECT key FROM {self.name}"
        with self._readable_errors():
            if keys is None:
                rows = self._rows(query)
            else:
                rows = self._rows(f"{query} {OF_KEYS}", json.dumps([*keys]))
            return {key for (key,) in rows} - self._damaged

    def unmade(self, tasks: Mapping[tuple[str, ...], T]) -> Iterator[T]:
        """Return tasks, by the keys that they make: the share of this process in a launch, then
        those of others that nobody has made by then. A process alone has all, in their order.

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
        """Return all answers of the file."""
        return self._select("")

    def _rows(self, query: str, *values: str) -> Iterator[Any]:
        """Yield the rows of the file; none where there is no file yet."""
        if self.journals:
            self.journals.follow(self.db)
        if "db" in vars(self) or not self._is_file or Path(self.path).exists():
            yield from self.db.execute(query, values)

    def _select(self, condition: str, *values: str) -> dict[str, Any]:
        found = {}
        damaged = set()
        with self._readable_errors():
            for key, text in self._rows(f"SELECT * FROM {self.name} {condition}", *values):
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
                "are left out and made anew; a copy of the file has them, if there is one",
                file=sys.stderr,
            )
        self._damaged |= damaged
        return found

    def fault(self, _: Any) -> str:
        """Return what keeps an answer out of the store, in words; "" for a sound one."""
        return ""

    def add(self, answers: Mapping[str, object]) -> None:
        """Keep a batch, in one transaction. An answer that another process stored first is kept.

        Raises UserError for the first that is none (``fault``), after the others are stored.
        """
        faults = {}
        texts = {}
        for key, answer in answers.items():
            try:
                if not (said := self.fault(answer)):
                    texts[key] = json.dumps(answer, allow_nan=False)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                said = f"{self.name} {key}: an answer of a form that cannot be kept ({error})"
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
        if texts.keys() - self.present(texts):  # a flipped bit has changed their order
            raise UserError(
                f"store of {self.name} {self.path}: answers that it has taken are not found in it; "
                "restore it from a copy, or name another file (LOOKUPLAB_STORE)"
            )
        self._count(0, 0, len(self._asked & texts.keys()))
        self._asked -= texts.keys()
        for said in faults.values():
            raise UserError(f"{said}; it is not stored")

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
            # a page of the file, not the disk or another process
            if type(error) is sqlite3.DatabaseError:
                advice = "restore it from a copy, or name another file (LOOKUPLAB_STORE)"
            raise UserError(f"store of {self.name} {self.path}: {error} ({advice})") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "db" in vars(self):
            self.db.close()


class CompletionStore(AnswerStore):
    """Answers of models, each with the ``model``; ``completions.keys_of`` makes the keys."""

    name = "completions"

    def fault(self, answer: Any) -> str:
        """Return why a completion is none: not finite, not complete, or at odds with itself."""
        text, tokens, numbers = (answer[name] for name in ("text", "tokens", "token_logprobs"))
        margin = answer["margin"]
        measured = [*(numbers or ()), *([] if margin is None else [margin])]
        counts = [*answer["token_ids"], *(answer.get(f"prompt_{what}", 0) for what in COUNTED)]
        said = ""
        if not all(type(one) in (int, float) and abs(one) < math.inf for one in measured):
            said = NOT_NUMBERS
        elif not all(type(one) is int and one >= 0 for one in counts):
            said = "its token ids or counts of tokens are no numbers of tokens"
        elif numbers is not None and len(numbers) != len(tokens):
            said = f"{len(numbers)} log-probabilities of {len(tokens)} tokens"
        elif numbers and max(numbers) > ROUNDING:
            said = f"a log-probability above 0 ({max(numbers)})"
        elif len(answer["token_ids"]) not in (0, len(tokens)) or (
            # a given text may be a special token, which spells nothing
            tokens and answer["finish_reason"] != "scored" and "".join(tokens) != text
        ):
            said = "its tokens are not those of its text"
        elif answer["finish_reason"] not in ENDS:
            said = f"an answer without an end ({answer['finish_reason']!r})"
        return said and f"model {answer['model']}, prompt {answer['id']!r}: {said}"

    @classmethod
    def default_path(cls) -> Path:
        # a relative path means one file for all: a kernel works in its notebook's folder, $PWD is
        # where the user was
        stated = paths.expanded(os.environ.get(STORE_VARIABLE) or paths.COMPLETIONS)
        return Path(os.environ.get("PWD", ""), stated).absolute()


def elsewhere(sandbox: bool = True) -> str:
    """Return what ends the key of an answer that may depend on Python's version or the sandbox; ""
    where both are the record's.

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
