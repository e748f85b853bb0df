"""Runs tasks on a Dask cluster. No other module uses Dask (``pip install -e '.[cluster]'``,
docs/cluster.md).

Without ``--scheduler`` no Dask code runs, and ``work.spread`` uses threads. If a worker dies,
another worker repeats the task, which is safe because tasks are idempotent; the caller keeps the
results that have already arrived. A worker must have the same library, packages and checkout as the
caller. Each task checks this before it begins, so workers that join late are checked, too.
"""

import logging
import platform
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, as_completed
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

from lookuplab import paths
from lookuplab.errors import UserError, needs
from lookuplab.results import provenance

CONNECT_SECONDS = 10  # ample: a scheduler answers within one second, even across a network
_HERE = "finished work is kept: repeat the command to continue"


class Cluster:
    """A Dask cluster, to which ``client`` (a ``distributed.Client``) is connected."""

    def __init__(self, client: Any, scheduler: str):
        self.client = client
        self.scheduler = scheduler

    def map(self, function: Callable[..., Any], tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Run ``function`` on each task, and yield (index of the task, ``function(task)``) as the
        tasks finish. Function and tasks are pickled.

        Raises whatever the function raises. Raises UserError if the scheduler is gone, if a worker
        has a different installation, or if every worker that tried a task died. After any error,
        the tasks that have not finished are cancelled.
        """
        from distributed.scheduler import KilledWorker

        executor = self.client.get_executor(pure=False)
        futures: dict[Future[Any], int] = {}
        try:
            for number, task in enumerate(tasks):
                futures[executor.submit(_on_worker, function, installation(), task)] = number
            for future in as_completed([*futures]):
                number, result = futures.pop(future), future.result()
                # The future is released at once: if a worker dies, the scheduler recomputes the
                # results of all futures that are still held.
                del future
                yield number, result
        except KilledWorker as error:
            raise UserError(
                f"a task killed {error.allowed_failures + 1} workers, the last one "
                f"{error.last_worker.address} (out of memory?); see their logs: {_HERE}"
            ) from None
        except Exception as error:
            if self.client.status == "running" and not isinstance(error, CancelledError):
                raise
            gone = f"the scheduler {self.scheduler} no longer answers; {_HERE}"
            raise UserError(gone) from error
        finally:
            for future in futures:
                future.cancel()


@contextmanager
def connect(scheduler: str | None, workers: int = 1) -> Iterator[Cluster | None]:
    """Yield the cluster that ``--scheduler`` names. "local" starts ``workers`` processes on this
    machine. Without ``--scheduler``, yield None.

    Raises UserError if Dask is missing, the address is malformed, or nothing answers within
    CONNECT_SECONDS.
    """
    if scheduler is None:
        yield None
        return
    # for a malformed address, Dask would wait for twice its time limit and end in a traceback
    if scheduler != "local" and not re.fullmatch(r"((tcp|tls)://)?[^\s/]+:\d{1,5}", scheduler):
        raise UserError(f"--scheduler is {scheduler!r}; it must be local or like tcp://HOST:8786")
    with needs("cluster"):
        from distributed import Client, LocalCluster
    for name in logging.root.manager.loggerDict:
        if name.startswith("distributed"):  # our one-line errors replace Dask's long messages
            logging.getLogger(name).setLevel(logging.CRITICAL)
    cluster: AbstractContextManager[Any] = nullcontext(scheduler)
    if scheduler == "local":
        cluster = LocalCluster(
            n_workers=workers, threads_per_worker=1, memory_limit=0, dashboard_address=None
        )
    with cluster as address:
        try:
            client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise UserError(
                f"no scheduler answers at {scheduler} ({error}); start one with `dask scheduler` "
                "and check address and firewall, or use --scheduler local"
            ) from None
        with client:
            yield Cluster(client, scheduler)


@cache
def installation() -> dict[str, str]:
    """Return the paths and versions on which results depend, such as {"Python": "3.11.9"}. They
    must be the same on all machines.
    """
    return {
        "checkout": str(paths.ROOT),
        "Python": platform.python_version(),
        "library": provenance.library_hash()[:12],
        "packages": str(provenance.package_versions()),
    }


def _on_worker(function: Callable[..., Any], expected: dict[str, str], *arguments: object) -> Any:
    """Call ``function`` on a worker. ``expected`` is the caller's ``installation``. Raises
    UserError if the worker's installation differs.
    """
    for what, here in installation().items():
        if here != expected[what]:
            raise UserError(
                f"the worker on {socket.gethostname()} has a different {what}: {here}, not "
                f"{expected[what]}; start it from the same checkout and environment"
            )
    return function(*arguments)
