"""Reads the tasks of CloudAPIBench, which ``recipes.cloudapi.tasks`` generates.

There are 205 tasks of high frequency, 150 of medium and 267 of low frequency, 622 in total. The
paper states only the total; no other sizes of the classes fit its Tables 1 to 4.
"""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

from lookuplab import paths
from lookuplab.cloudapi.specs import report_unreadable
from lookuplab.errors import UserError

TASKS = paths.MINI / "cloudapi" / "tasks.jsonl"
T = TypeVar("T")
COMPOSITION = {"high": 205, "medium": 150, "low": 267}
BOUNDS = 10, 100  # the highest counts of the frequency classes low and medium (Section 2.2)


@dataclass(frozen=True)
class ApiTask:
    """One task: to complete ``prompt`` with a valid call of any of ``targets``. The targets are API
    ids; the first is the API that the comment in the prompt describes.

    ``frequency`` is the API's class ("high", "medium" or "low"). It comes from the table of
    frequencies from which the task was made or, if this table has no classes, from ``count_name``.
    ``count_name`` is the number of calls and definitions with the API's name, as in the paper.
    ``count_bound`` is the number of calls on the API's own client, or 0 if only names were counted.
    ``n_required`` is the number of required arguments.

    ``repositories`` is the number of repositories that use the API's name. ``class_stability`` is
    the share of random resamples of the repositories in which the API keeps its class. Both are
    None if the table of frequencies lacks them.
    """

    id: str
    prompt: str
    comment: str
    targets: tuple[str, ...]
    provider: str
    service: str
    client: str
    frequency: str
    count_name: int
    count_bound: int
    n_required: int
    repositories: int | None = None
    class_stability: float | None = None

    @property
    def target(self) -> str:
        """Return the API that the comment describes. Intervals are clustered by this API."""
        return self.targets[0]


def frequency_class(count: int) -> str:
    """Return the class of a count: low for 0-10, medium for 11-100, high from 101 (Section 2.2)."""
    return ("low", "medium", "high")[bisect_left(BOUNDS, count)]


def stable_order(key: str, seed: int) -> str:
    """Return a hash of a key. Sorting keys by this hash gives an order that is the same on every
    machine and unrelated to what the keys say.
    """
    return paths.hashed(f"{seed} {key}")


def interleave(buckets: list[list[T]]) -> list[T]:
    """Return the first item of every bucket, then the second of every bucket, and so on."""
    return [item for row in zip_longest(*buckets) for item in row if item is not None]


def load_tasks(path: Path | str = TASKS, limit: int | None = None) -> list[ApiTask]:
    """Return the benchmark's tasks. If ``limit`` is given, return only that many tasks. They are
    taken from the frequency classes in turn, in the order of a hash.

    Raises UserError for a file without tasks, a file of another format, and a negative limit.
    """
    path = paths.located(path)
    message = "holds no CloudAPIBench tasks ({}): run `python -m recipes.mini.corpus tasks`"
    with report_unreadable(path, message):
        rows = paths.json_lines(path)
        tasks = [ApiTask(**row | {"targets": tuple(row["targets"])}) for _, row in rows]
        if not tasks:
            raise UserError("no lines")
    if limit is None:
        return tasks
    if limit < 0:
        raise UserError(f"limit is {limit}; it must be 0 or more")
    shuffled = sorted(tasks, key=lambda task: stable_order(task.id, 0))
    classes = dict.fromkeys([*COMPOSITION, *(task.frequency for task in shuffled)])
    dealt = interleave([[task for task in shuffled if task.frequency == name] for name in classes])
    kept = {task.id for task in dealt[:limit]}
    return [task for task in tasks if task.id in kept]
