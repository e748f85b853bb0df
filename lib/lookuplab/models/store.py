"""The completion store: what a model once answered is never generated again.

One SQLite file in WAL mode, written by several processes at once. Three tables, so that a long prompt that is asked
under many settings is kept once:

    settings     everything but the prompt that changes an answer: kind, model identity, decoding, decoding version
    prompts      the exact text and system text (and the id, where sampling seeds depend on it)
    completions  (settings, prompt, sample) -> the answer as JSON

``store_log`` adds who asked, and how long it took.

Both ids are hashes of their content, so the key of an answer covers every field and two processes agree on it
without asking each other. A transaction holds one batch: a kill at any moment loses the batch in flight, no more.
Not covered: WAL needs shared memory, so the processes must run on one machine (network file systems do not do).
"""

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from lookuplab.errors import UserError
from lookuplab.models import store_log
from lookuplab.models.types import Completion, Decoding, Prompt

DECODING_VERSION = 1  # raise it whenever the same model and parameters would give another answer than before
SCHEMA_VERSION = 2  # 2: answers may have a margin
BUSY_SECONDS = 60.0  # other writers hold the file for milliseconds; a minute means that something is stuck
CHUNK = 500  # prompts a SELECT: below the 999 variables that old SQLite builds allow

SCHEMA = """
CREATE TABLE settings (id TEXT PRIMARY KEY, json TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE prompts (id TEXT PRIMARY KEY, json TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE completions (settings TEXT, prompt TEXT, sample INTEGER, json TEXT NOT NULL,
                          PRIMARY KEY (settings, prompt, sample)) WITHOUT ROWID;
"""

EXPLANATIONS = {
    "SQLITE_FULL": "the disk is full; free some space and run again (nothing that was stored is lost)",
    "SQLITE_READONLY": "it is read-only; make it writable or name another file in LOOKUPLAB_STORE",
    "SQLITE_CANTOPEN": "it cannot be opened for writing; check its folder and permissions or set LOOKUPLAB_STORE",
    "SQLITE_PERM": "access is denied; check its permissions or name another file in LOOKUPLAB_STORE",
    "SQLITE_NOTADB": "it is no SQLite database; move it away or name another file in LOOKUPLAB_STORE",
    "SQLITE_CORRUPT": "it is damaged; move it away and run again",
    "SQLITE_BUSY": f"another process has held it for {BUSY_SECONDS:.0f} s; wait for that process or stop it",
    "SQLITE_IOERR": "it cannot be read or written (disk full, quota or a lost mount?); check the disk and run again",
}


@dataclass(frozen=True)
class Key:
    """Where one answer lies: hashes of the settings and of the prompt, and the sample index."""

    settings: str
    prompt: str
    sample: int


@dataclass(frozen=True)
class Question:
    """One request in the store's words. ``continuation`` is given for scoring only (then there is no decoding)."""

    prompt: Prompt
    sample: int = 0
    continuation: str | None = None


class Asked:
    """A model under one decoding: turns questions into keys and remembers the readable form behind the hashes.

    ``identity`` is the model's own account of what changes its answers; ``decoding`` is None for scoring. ``name`` is
    for people: no part of the key.
    """

    def __init__(self, identity: dict[str, str], decoding: Decoding | None, name: str = ""):
        self.name = name
        fields = asdict(decoding) if decoding else {}
        fields.pop("n", None)  # the sample index says it: the first 5 of 20 samples are those of n=5
        for added in ("choices_below", "beams"):  # at its default left out: keys are those from before it existed
            if decoding and fields[added] == getattr(Decoding, added):
                del fields[added]
        kind = "generate" if decoding else "score"
        settings = {"kind": kind, "model": identity, "decoding": fields, "version": DECODING_VERSION}
        self.decoding = canonical(fields) if decoding else None
        self.settings_json = canonical(settings)
        self.settings = digest(self.settings_json)
        self.seeded = decoding is not None and decoding.temperature > 0

    def prompt_json(self, question: Question) -> str:
        """The prompt as it is hashed. A sample's seed depends on the prompt's id, a greedy answer does not."""
        fields = {"text": question.prompt.text, "system": question.prompt.system}
        if question.continuation is not None:
            fields["continuation"] = question.continuation
        elif question.prompt.choices:
            fields["choices"] = sorted(set(question.prompt.choices))
        if question.prompt.place is not None:
            fields["place"] = question.prompt.place
        if self.seeded:
            fields["id"] = question.prompt.id
        return canonical(fields)

    def key(self, question: Question) -> Key:
        """The key of one answer."""
        return Key(self.settings, digest(self.prompt_json(question)), question.sample)


def canonical(fields: dict) -> str:
    """JSON that is equal for equal content, whatever the order of its keys."""
    return json.dumps(fields, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def digest(text: str) -> str:
    """128 bits of sha256: no collision to fear below 10^15 answers."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class CompletionStore:
    """Answers on disk, or in memory with the path ``":memory:"``. Use it as a context manager or ``close`` it.

    UserError for a file or folder that cannot be written, a full disk, a file that is no completion store, or one
    that a newer version wrote.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = path if str(path) == ":memory:" else Path(path)
        if self.path != ":memory:":
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UserError(f"completion store {path}: cannot make its folder ({error.strerror}); "
                                "name another file in LOOKUPLAB_STORE") from None
        with self._readable_errors():
            # isolation_level None: transactions are opened by hand, so that each holds exactly one batch
            self.db = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
            try:
                self._open()
            except BaseException:
                self.db.close()
                raise

    def _open(self) -> None:
        """Check or create the schema; refuse what is not ours before anything is changed in it."""
        self._check_version()
        self._switch_to_wal()
        self.db.execute("PRAGMA synchronous = NORMAL")  # with WAL a killed process still loses nothing committed
        with self._transaction():
            if self._check_version() == 0:  # again: another process may have created the tables meanwhile
                for statement in filter(str.strip, SCHEMA.split(";")):
                    self.db.execute(statement)
            store_log.create(self.db)
            # written at every opening: a read-only store or a full disk shows before any token is generated
            self.db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _check_version(self) -> int:
        version = self.db.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise UserError(f"completion store {self.path}: written by a newer lookuplab (schema {version}, this one "
                            f"knows {SCHEMA_VERSION}); update lookuplab or name another file in LOOKUPLAB_STORE")
        if version == 0 and self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise UserError(f"completion store {self.path}: an SQLite database of another program; "
                            "name another file in LOOKUPLAB_STORE")
        return version

    def _switch_to_wal(self) -> None:
        """SQLite does not wait for the lock of this one switch, so two first openers must try again themselves."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self.db.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    @contextmanager
    def _readable_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            name = getattr(error, "sqlite_errorname", "")
            known = next((text for start, text in EXPLANATIONS.items() if name.startswith(start)), None)
            if known is None:
                raise
            raise UserError(f"completion store {self.path}: {known}") from None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.db.execute("BEGIN IMMEDIATE")  # a deferred one could fail when it turns from reading to writing
        try:
            yield
            self.db.execute("COMMIT")
        except BaseException:
            if self.db.in_transaction:  # SQLite has rolled back by itself after some errors
                self.db.execute("ROLLBACK")
            raise

    def get(self, asked: Asked, questions: Iterable[Question]) -> dict[Key, Completion]:
        """Those answers that exist. Each carries the id of the question that was last asked with its key."""
        wanted = {asked.key(question): question for question in questions}
        prompts = sorted({key.prompt for key in wanted})
        found = {}
        with self._readable_errors():
            for start in range(0, len(prompts), CHUNK):
                chunk = prompts[start:start + CHUNK]
                rows = self.db.execute("SELECT prompt, sample, json FROM completions WHERE settings = ? AND prompt IN "
                                       f"({','.join('?' * len(chunk))})", [asked.settings, *chunk])
                for prompt, sample, answer in rows:
                    key = Key(asked.settings, prompt, sample)
                    if key in wanted:
                        found[key] = _from_json(wanted[key].prompt.id, sample, answer)
        return found

    def note_uses(self, asked: Asked, questions: Iterable[Question]) -> None:
        """Remember that these were asked, and by which notebook."""
        with self._readable_errors(), self._transaction():
            store_log.note_uses(self.db, map(asked.key, questions))

    def put(self, asked: Asked, answers: Sequence[tuple[Question, Completion]], seconds: float | None = None) -> None:
        """Store one batch in one transaction. An answer that another process has stored first stays as it is.

        ``seconds`` is what generating the batch took.
        """
        with self._readable_errors(), self._transaction():
            if seconds is not None:
                store_log.note_batch(self.db, asked.settings, asked.name, seconds, [answer for _, answer in answers])
            self.db.execute("INSERT OR IGNORE INTO settings VALUES (?, ?)", (asked.settings, asked.settings_json))
            for question, completion in answers:
                text = asked.prompt_json(question)
                prompt = digest(text)
                self.db.execute("INSERT OR IGNORE INTO prompts VALUES (?, ?)", (prompt, text))
                self.db.execute("INSERT OR IGNORE INTO completions VALUES (?, ?, ?, ?)",
                                (asked.settings, prompt, question.sample, _to_json(completion)))

    def __len__(self) -> int:
        with self._readable_errors():
            return self.db.execute("SELECT count(*) FROM completions").fetchone()[0]

    def stats(self) -> list[dict]:
        """One row per settings: kind, model identity, decoding, version and the number of answers under it."""
        with self._readable_errors():
            rows = self.db.execute("SELECT s.json, count(*) FROM completions c JOIN settings s ON s.id = c.settings "
                                   "GROUP BY s.id ORDER BY s.json").fetchall()
        return [{**json.loads(settings), "answers": count} for settings, count in rows]

    def export(self, path: str | os.PathLike) -> int:
        """Write every answer with its settings and prompt as JSON Lines; return how many."""
        with self._readable_errors(), open(path, "w", encoding="utf-8") as out:
            rows = self.db.execute("SELECT s.json, p.json, c.sample, c.json FROM completions c "
                                   "JOIN settings s ON s.id = c.settings JOIN prompts p ON p.id = c.prompt "
                                   "ORDER BY c.settings, c.prompt, c.sample")
            count = 0
            for count, (settings, prompt, sample, answer) in enumerate(rows, 1):
                out.write(canonical({"settings": json.loads(settings), "prompt": json.loads(prompt),
                                     "sample": sample, "answer": json.loads(answer)}) + "\n")
        return count

    def close(self) -> None:
        """Let go of the file. What was put is stored already."""
        self.db.close()

    def __enter__(self) -> "CompletionStore":
        return self

    def __exit__(self, *_) -> None:
        self.close()


def _to_json(completion: Completion) -> str:
    fields = asdict(completion)
    del fields["id"], fields["sample"]  # the key has them
    return canonical(fields)


def _from_json(prompt_id: str, sample: int, answer: str) -> Completion:
    fields = json.loads(answer)
    fields["tokens"] = tuple(fields["tokens"])
    fields["token_ids"] = tuple(fields["token_ids"])
    if fields["token_logprobs"] is not None:
        fields["token_logprobs"] = tuple(fields["token_logprobs"])
    return Completion(id=prompt_id, sample=sample, **fields)
