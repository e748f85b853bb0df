"""Spreads tasks over the threads of this machine, or over the workers of a cluster
(``run.cluster``).
"""

import os
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from lookuplab.errors import UserError

_thread = threading.local()
T = TypeVar("T")
R = TypeVar("R")


class Workers(Protocol):
    """Workers on other machines, such as ``run.cluster.Cluster``."""

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
        """(position, ``function(task)``) as they finish."""


def spread(
    function: Callable[[T], R],
    tasks: Sequence[T],
    workers: int | None = None,
    cluster: Workers | None = None,
) -> Generator[tuple[int, R], None, None]:
    """(position, ``function(task)``) as they finish, from the cluster or from ``workers`` threads
    on this machine.

    The default is one thread per processor.
    """
    if cluster is not None:
        yield from cluster.map(function, tasks)
        return
    with ThreadPoolExecutor(workers or os.cpu_count()) as threads:
        try:
            turns = {threads.submit(function, task): at for at, task in enumerate(tasks)}
            yield from ((turns[done], done.result()) for done in as_completed(turns))
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
