"""Tasks over a Dask cluster: the one place that knows of Dask (``pip install -e '.[cluster]'``, docs/cluster.md).

Without ``--scheduler`` nothing here runs. Tasks are idempotent: one whose worker dies is run again by another, and
what came back before is kept by the caller. Workers run the same library, packages and checkout as the caller; each
task looks before it begins, so that a worker that joins late is held to it, too.
"""

import functools
import hashlib
import logging
import platform
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from lookuplab import paths, provenance
from lookuplab.errors import UserError

if TYPE_CHECKING:
    from distributed import Client

LOCAL = "local"
CONNECT_SECONDS = 10  # a scheduler on the other side of a network answers in one
_HERE = "what was done is kept, and the same command goes on from there"
_thread = threading.local()
Task, Done = TypeVar("Task"), TypeVar("Done")


class Cluster:
    """A connected client. ``map`` is what rooms use; ``client`` is for the events of notebooks."""

    def __init__(self, client: "Client", scheduler: str):
        self.client, self.scheduler = client, scheduler

    def map(self, function: Callable[[Task], Done], tasks: Sequence[Task]) -> Iterator[tuple[int, Done]]:
        """(position, ``function(task)``) as they come. Function and tasks are pickled; equal tasks run once each.

        What ``function`` raises is raised here. Raises UserError for a scheduler that is gone, a worker of another
        installation, and a task that took down every worker that tried it.
        """
        from distributed import as_completed
        from distributed.scheduler import KilledWorker

        name, expected = f"{function.__name__}-{uuid.uuid4().hex[:8]}", account()
        try:
            futures = {self.client.submit(_on_worker, function, expected, task, key=f"{name}-{number}"): number
                       for number, task in enumerate(tasks)}
        except Exception as error:  # noqa: BLE001  Dask raises its own, asyncio's and the operating system's
            raise self._gone(error) if self._is_gone() else error
        done = as_completed(list(futures), loop=self.client.loop, with_results=True)
        try:
            for future, result in done:
                if future.cancelled():
                    raise self._gone()
                number = futures.pop(future)
                future.release()  # else the scheduler would make it again, should its worker die
                yield number, result
        except KilledWorker as error:
            raise UserError(f"a task took down {error.allowed_failures + 1} workers, the last one "
                            f"{error.last_worker.address} (out of memory?); see their logs: {_HERE}") from None
        finally:
            done.clear()
            if futures and not self._is_gone():
                self.client.cancel(list(futures))

    def _is_gone(self) -> bool:
        return self.client.status != "running"

    def _gone(self, error: Exception | None = None) -> UserError:
        why = f" ({type(error).__name__})" if error else ""
        return UserError(f"the scheduler {self.scheduler} does not answer any more{why}; {_HERE}")


@contextmanager
def joined(scheduler: str | None, workers: int = 1) -> Iterator[Cluster | None]:
    """The cluster behind ``--scheduler``: None without one, for ``"local"`` one of ``workers`` processes here.

    Raises UserError without Dask, for what is no address, and where nothing answers within CONNECT_SECONDS.
    """
    if scheduler is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise UserError("--scheduler needs Dask: pip install -c constraints.txt -e '.[cluster]'") from None
    for name in ("distributed", *filter(lambda name: name.startswith("distributed."), logging.root.manager.loggerDict)):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what they tell at length is an error of ours, in one line
    with _local(workers) if scheduler == LOCAL else _address(scheduler) as place:
        try:
            client = Client(place, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise UserError(f"no scheduler answers at {scheduler} ({type(error).__name__}); start one with "
                            "`dask scheduler` and check address and firewall, or say --scheduler local") from None
        with client:
            yield Cluster(client, scheduler)


@contextmanager
def _local(workers: int) -> Iterator[object]:
    from distributed import LocalCluster

    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster:
        yield cluster


@contextmanager
def _address(scheduler: str) -> Iterator[str]:
    try:
        place = urlsplit(scheduler)
        known = place.scheme in ("tcp", "tls", "ws", "wss", "ucx") and place.hostname and place.port
    except ValueError:  # a port that is no number
        known = False
    if not known:
        raise UserError(f"--scheduler {scheduler!r} is no address; write tcp://HOST:PORT, or {LOCAL}")
    yield scheduler


def account() -> dict[str, str]:
    """What has to be equal on all machines for their results to be: the checkout's place, Python, library, packages."""
    return {"checkout": str(paths.ROOT), "Python": platform.python_version(), **_installed()}


@functools.cache
def _installed() -> dict[str, str]:
    library = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        library.update(file.read_bytes())
    packages = [f"{name} {version}" for name, version in provenance.package_versions().items()]
    return {"library": library.hexdigest()[:12], "packages": ", ".join(packages)}


def kept(make: Callable[..., AbstractContextManager[Done]], *arguments: object) -> Done:
    """A tool of this worker's thread, made by the first task that needs it; it ends with the worker."""
    tools = vars(_thread).setdefault("tools", {})
    if (make, arguments) not in tools:
        tools[make, arguments] = make(*arguments).__enter__()
    return tools[make, arguments]


def check_seen(place: Path) -> None:
    """A folder or file that tasks name is there on this machine, too. Raises UserError."""
    if not place.exists():
        raise UserError(f"the worker on {socket.gethostname()} does not see {place}; a cluster needs a file system "
                        "that all its machines share (docs/cluster.md)")


def _on_worker(function: Callable[[Task], Done], expected: dict[str, str], task: Task) -> Done:
    for what, here in account().items():
        if here != expected[what]:
            raise UserError(f"the worker on {socket.gethostname()} has another {what}: {here}, not {expected[what]}; "
                            "start it from the same checkout and environment")
    return function(task)
