"""What the completion store holds, model by model, and what a notebook still has to generate: no model is loaded."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lookuplab.models.store import CompletionStore
from lookuplab.models.store_care import MODEL, opened


@dataclass(frozen=True)
class Held:
    """One model's part. Times in seconds since 1970, None where the answers are from before times were kept.

    ``speed`` is answers a second of generating on this machine, None where nothing was measured.
    """

    model: str
    prompts: int
    answers: int
    size: int  # bytes of the answers
    oldest: float | None
    newest: float | None
    speed: float | None


@dataclass(frozen=True)
class Pending:
    """Of the answers that a notebook asked one model for, ``missing`` are not in the store."""

    model: str
    asked: int
    missing: int
    speed: float | None

    @property
    def seconds(self) -> float | None:
        """How long generating would take, at the speed measured here; None where none is known."""
        return 0.0 if not self.missing else self.missing / self.speed if self.speed else None


class StoreReport:
    """Reads one store; use ``reading``. An empty one stands for a store that is not there yet."""

    def __init__(self, store: CompletionStore):
        self.db = store.db
        speeds = self.db.execute("SELECT model, sum(answers) / sum(seconds) FROM batches WHERE seconds > 0 "
                                 "AND model <> '' GROUP BY model")
        self.speeds = dict(speeds.fetchall())

    def held(self) -> list[Held]:
        """One row a model, by name."""
        rows = self.db.execute(
            f"WITH named AS (SELECT s.id, {MODEL} AS model FROM settings s), times AS (SELECT n.model, min(b.ended) AS "
            "oldest, max(b.ended) AS newest FROM batches b JOIN named n ON n.id = b.settings GROUP BY n.model) "
            "SELECT n.model, count(DISTINCT c.prompt), count(*), sum(length(CAST(c.json AS BLOB))), t.oldest, t.newest "
            "FROM completions c JOIN named n ON n.id = c.settings LEFT JOIN times t ON t.model = n.model "
            "GROUP BY n.model ORDER BY n.model")
        return [Held(*row, self.speeds.get(row[0])) for row in rows]

    def totals(self) -> tuple[int, int]:
        """(answers, prompts)."""
        return self.db.execute("SELECT (SELECT count(*) FROM completions), (SELECT count(*) FROM prompts)").fetchone()

    def pending(self, user: str) -> list[Pending]:
        """What ``user`` (PROFILE/PAPER/NOTEBOOK) asked, by model; empty where it never ran with this store."""
        rows = self.db.execute(
            "SELECT coalesce((SELECT max(b.model) FROM batches b WHERE b.settings = u.settings), 'unknown') AS model, "
            "count(*), sum(c.settings IS NULL) FROM uses u LEFT JOIN completions c ON (c.settings, c.prompt, c.sample) "
            "= (u.settings, u.prompt, u.sample) WHERE u.user = ? GROUP BY model ORDER BY model", (user,))
        return [Pending(model, asked, missing, self.speeds.get(model)) for model, asked, missing in rows]


@contextmanager
def reading(path: Path) -> Iterator[StoreReport]:
    """The report on the store at ``path``; on an empty one where there is none, which is not made."""
    with opened(path) if path.is_file() else CompletionStore(":memory:") as store:
        yield StoreReport(store)


def day(seconds: float | None) -> str:
    """A time as a date; "unknown" for None."""
    return "unknown" if seconds is None else time.strftime("%Y-%m-%d", time.localtime(seconds))
