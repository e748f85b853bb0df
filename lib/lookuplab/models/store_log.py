"""What the completion store knows about its answers: when and how fast they were generated, and who asked for them.

Two tables more in the same file, which a lookuplab that does not know them passes over:

    batches  (settings, ended) -> model's name, seconds of generating, answers, tokens; seconds is NULL where another
             machine measured them
    uses     (settings, prompt, sample, user) -> when last; ``user`` is PROFILE/PAPER/NOTEBOOK, with OWN behind it where
             parameters were given by hand, and "" outside of a notebook

Times are seconds since 1970. A use is noted when it is asked for, before there is an answer: after a kill, or after
answers were pruned, uses without an answer say what a notebook still has to generate.
"""

import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from typing import Any

USER = "LOOKUPLAB_USER"  # set by the runner for each notebook
OWN = "?own"
FRESH_SECONDS = 3600  # a use is not noted again within the hour: reading stays reading
TABLES = """
CREATE TABLE IF NOT EXISTS batches (settings TEXT, ended REAL, model TEXT, seconds REAL, answers INTEGER,
                                    tokens INTEGER, PRIMARY KEY (settings, ended)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS uses (settings TEXT, prompt TEXT, sample INTEGER, user TEXT, used REAL,
                                 PRIMARY KEY (settings, prompt, sample, user)) WITHOUT ROWID;
"""


def create(db: sqlite3.Connection) -> None:
    """Make the tables where there are none; inside a transaction."""
    for statement in filter(str.strip, TABLES.split(";")):
        db.execute(statement)


def note_uses(db: sqlite3.Connection, keys: Iterable[Any]) -> None:
    """Remember who asks, and when; ``keys`` are the store's."""
    user, now = os.environ.get(USER, ""), time.time()
    db.executemany(
        "INSERT INTO uses VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET used = excluded.used "
        f"WHERE excluded.used > used + {FRESH_SECONDS}",
        ((key.settings, key.prompt, key.sample, user, now) for key in keys))


def note_batch(db: sqlite3.Connection, settings: str, model: str, seconds: float, completions: Sequence[Any]) -> None:
    """Remember what a batch took; its end is now."""
    tokens = sum(len(one.tokens) for one in completions)
    db.execute("INSERT OR IGNORE INTO batches VALUES (?, ?, ?, ?, ?, ?)",
               (settings, time.time(), model, seconds, len(completions), tokens))
