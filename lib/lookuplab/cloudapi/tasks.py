"""The tasks of CloudAPIBench; ``recipes.cloudapi.tasks`` makes them.

The class sizes are the only ones that fit the paper's tables: 205 high, 150 medium and 267 low, 622
in total.
"""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

from lookuplab import paths
from lookuplab.cloudapi.specs import readable_file
from lookuplab.errors import UserError
from lookuplab.models.store import hashed

TASKS = paths.MINI / "cloudapi" / "tasks.jsonl"
T = TypeVar("T")
COMPOSITION = {"high": 205, "medium": 150, "low": 267}
BOUNDS = 10, 100  # the highest counts of low and medium (Section 2.2)


@dataclass(frozen=True)
class ApiTask:
    """Complete ``prompt`` with a valid call of any of ``targets`` (API ids; the first is
    the one asked for).

    ``frequency`` is the class given by the frequency table, or else the class of ``count_name``
    (calls and definitions with the API's name, the paper's count); ``count_bound`` counts only
    calls resolved to the API's own client.
    ``n_required`` is the number of required arguments. If the table has them, ``repositories`` is
    the number of counted repositories that use the API's name, and ``class_stability`` the share of
    resamples of the repositories in which the API keeps its class.
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
        """The API asked for; intervals are clustered by it."""
        return self.targets[0]


def frequency_class(count: int) -> str:
    """Low 0-10, medium 11-100, high from 101 (Section 2.2)."""
    return ("low", "medium", "high")[bisect_left(BOUNDS, count)]


def stable_order(key: str, seed: int) -> str:
    """Return a hash to sort by: the same on every machine, unrelated to the key's spelling."""
    return hashed(f"{seed} {key}")


def in_turn(buckets: list[list[T]]) -> list[T]:
    """Return the first of every bucket, then the second of every bucket ..."""
    return [item for row in zip_longest(*buckets) for item in row if item is not None]


def load_tasks(path: Path | str = TASKS, limit: int | None = None) -> list[ApiTask]:
    """Return the benchmark; with ``limit``, that many tasks, spread over the classes by a hash.

    Raises UserError for a file without tasks, one that holds something else, and a negative limit.
    """
    path = paths.located(path)
    message = "holds no CloudAPIBench tasks ({}): run `python -m recipes.mini.corpus tasks`"
    with readable_file(path, message):
        rows = paths.json_lines(path)
        tasks = [ApiTask(**row | {"targets": tuple(row["targets"])}) for _, row in rows]
        if not tasks:
            raise UserError("no line")
    if limit is None:
        return tasks
    if limit < 0:
        raise UserError(f"a limit of {limit} tasks: give a number from 0")
    shuffled = sorted(tasks, key=lambda task: stable_order(task.id, 0))
    classes = dict.fromkeys([*COMPOSITION, *(task.frequency for task in shuffled)])
    dealt = in_turn([[task for task in shuffled if task.frequency == name] for name in classes])
    kept = {task.id for task in dealt[:limit]}
    return [task for task in tasks if task.id in kept]
