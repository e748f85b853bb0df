"""Runs tasks in threads on this machine, or on the workers of a cluster (``run.cluster``)."""

import socket
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from lookuplab.errors import UserError
from lookuplab.work.resources import processors

_END = object()
_thread = threading.local()
T = TypeVar("T")
R = TypeVar("R")


class Workers(Protocol):
    """Workers on other machines, such as ``run.cluster.Cluster``."""

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
        """Yield (index of a task, ``function(task)``) as the tasks finish."""


def spread(
    function: Callable[[T], R],
    tasks: Iterable[T],
    workers: int | None = None,
    cluster: Workers | None = None,
) -> Generator[tuple[T, R], None, None]:
    """Yield (task, ``function(task)``) as the tasks finish. The tasks run on the ``cluster`` or, if
    it is None, in ``workers`` threads on this machine (by default, as many as it has processors for
    this job). The next task is taken from ``tasks`` only when a thread is free. An error of a task
    is raised here.
    """
    if cluster is not None:
        given = list(tasks)
        yield from ((given[at], result) for at, result in cluster.map(function, given))
        return
    todo: SimpleQueue[Any] = SimpleQueue()
    done: SimpleQueue[Any] = SimpleQueue()

    def work() -> None:
        for task in iter(todo.get, _END):
            try:
                done.put((task, function(task), None))
            except BaseException as error:  # raised again in the thread that reads the results
                done.put((task, None, error))

    count = workers or processors()
    # daemon threads, so that an interrupted caller does not wait for them
    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    waiting = iter(tasks)
    running = 0
    try:
        while True:
            for task in islice(waiting, count - running):
                if not threads[running].ident:
                    threads[running].start()
                todo.put(task)
                running += 1
            if not running:
                break
            task, result, error = done.get()
            running -= 1
            if error:
                raise error
            yield task, result
    finally:
        for _ in threads:
            todo.put(_END)
    for thread in filter(threading.Thread.is_alive, threads):
        thread.join()  # with a thread, its tools (``kept``) end, too


def kept(make: Callable[..., AbstractContextManager[R]], *arguments: object) -> R:
    """Return the tool ``make(*arguments)`` of this worker's thread: an entered context manager,
    such as a server. The first task that needs the tool creates it. Later tasks of the same thread
    share it, until the thread ends.
    """
    tools: dict[Any, Any] = vars(_thread)
    if (make, arguments) not in tools:
        tools[make, arguments] = make(*arguments).__enter__()
    tool: R = tools[make, arguments]
    return tool


def check_seen(place: Path) -> None:
    """Raise UserError if a folder or file that a task needs does not exist on this machine, which
    may be a cluster's worker.
    """
    if not place.exists():
        raise UserError(
            f"the worker on {socket.gethostname()} does not see {place}; a cluster needs a file "
            "system that all its machines share (docs/cluster.md)"
        )
