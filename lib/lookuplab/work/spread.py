"""Spreads tasks over the threads of this machine, over the workers of a cluster (``run.cluster``),
or over the processes of one launch (``accelerate launch``), which share what they have made.
"""

import socket
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from lookuplab.errors import UserError
from lookuplab.work.resources import processors

_thread = threading.local()
T = TypeVar("T")
R = TypeVar("R")


class Workers(Protocol):
    """Workers on other machines, such as ``run.cluster.Cluster``."""

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
        """(position, ``function(task)``) as they finish."""


def spread(
    function: Callable[[T], R],
    tasks: Iterable[T],
    workers: int | None = None,
    cluster: Workers | None = None,
) -> Generator[tuple[T, R], None, None]:
    """(task, ``function(task)``) as they finish, from the cluster or from ``workers`` threads on
    this machine, by default ``processors``; there, a task is taken from ``tasks`` as it begins.
    """
    if cluster is not None:
        given = list(tasks)
        yield from ((given[at], result) for at, result in cluster.map(function, given))
        return
    workers = workers or processors()
    running = dict[Future[R], T]()
    with ThreadPoolExecutor(workers) as threads:
        try:
            waiting = iter(tasks)
            while True:
                for task in islice(waiting, workers - len(running)):
                    running[threads.submit(function, task)] = task
                if not running:
                    return
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(done), done.result()
        finally:  # after an error or an interrupt, threads end with their current tasks
            threads.shutdown(cancel_futures=True)


def kept(make: Callable[..., AbstractContextManager[R]], *arguments: object) -> R:
    """A tool of this worker's thread, created by the first task that needs it; it lives as long as
    the worker.
    """
    tools: dict[Any, Any] = vars(_thread)
    if (make, arguments) not in tools:
        tools[make, arguments] = make(*arguments).__enter__()
    tool: R = tools[make, arguments]
    return tool


def check_seen(place: Path) -> None:
    """Check that a folder or file named by a task also exists on this machine. Raises UserError."""
    if not place.exists():
        raise UserError(
            f"the worker on {socket.gethostname()} does not see {place}; a cluster needs a file "
            "system that all its machines share (docs/cluster.md)"
        )
