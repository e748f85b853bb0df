"""Helps commands that run for a long time: finds out how much of the machine they may use, shows
progress, runs tasks in threads or on a cluster, locks the files and folders to which the commands
write, and ends the commands cleanly when they are interrupted.
"""

import atexit
import math
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import islice, takewhile
from multiprocessing import resource_tracker
from multiprocessing.pool import ThreadPool
from pathlib import Path
from queue import SimpleQueue
from tempfile import gettempdir
from typing import Any, NoReturn, Protocol, TypeVar

from lookuplab import paths
from lookuplab.errors import UserError

T = TypeVar("T")
R = TypeVar("R")

# 1. The part of the machine that this job may use. All code that starts threads or processes calls
# these functions, so that it stays within the limits that a batch queue or a container sets.

# The runner sets this environment variable in processes that share the work. Numbers begin at 0, so
# "1/4" is the second of four processes.
SHARE_VARIABLE = "LOOKUPLAB_SHARE"
# in bytes; if the process's peak memory was this close to the limit, an allocation may have failed
MEMORY_MARGIN = 32 << 20


def shard() -> tuple[int, int]:
    """Return this process's number, counted from 0, and the number of processes that share the
    work: the processes of ``accelerate launch``, or those that were started with ``--shard``. A
    single process gets (0, 1).
    """
    number, count = os.environ.get(SHARE_VARIABLE, "0/1").split("/")
    return int(number), int(count)


def env_int(name: str, default: int, least: int = 1, most: int = 10**9) -> int:
    """Return the number in the environment variable ``name``, or ``default`` if the variable is not
    set or empty. If the variable has a list, such as ``OMP_NUM_THREADS=4,2``, return the first
    number. Raises UserError if the result is not a whole number from ``least`` to ``most``.
    """
    text = os.environ.get(name) or str(default)
    first = text.partition(",")[0]
    if not re.fullmatch(r"-?\d{1,10}", first) or not least <= int(first) <= most:
        raise UserError(f"{name} is {text!r}; it must be a whole number from {least} to {most}")
    return int(first)


def processors(root: Path = Path("/")) -> int:
    """Return how many processors this job may use. This is the smallest of three numbers: the
    processors to which the job is bound (``taskset``), the quota of its control groups (``docker
    --cpus 1.5`` counts as 2) and SLURM_CPUS_PER_TASK. Tests replace the root folder, ``root``.
    """
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = [here, env_int("SLURM_CPUS_PER_TASK", here)]
    for text in _limits("cpu.max", root):
        quota, period = text.split()
        if quota != "max":
            allowed.append(math.ceil(int(quota) / int(period)))
    return max(1, min(allowed))


def free_memory(root: Path = Path("/")) -> int:
    """Return how many bytes this job may still allocate: the machine's free memory, or the memory
    that the limit of a control group leaves, whichever is less.
    """
    import psutil  # slow to import

    left = [psutil.virtual_memory().available]
    limits, used = _limits("memory.max", root), _limits("memory.stat", root)
    for limit, stat in zip(limits, used, strict=False):
        if limit.strip() != "max":
            fields = dict(line.split() for line in stat.splitlines())
            # only anonymous memory counts as used; the kernel releases cached files when needed
            left.append(int(limit) - int(fields["anon"]))
    return int(max(0, min(left)))


def check_memory() -> None:
    """Raise MemoryError if this process has reached its limit of memory (``ulimit -v``).

    In such a process, a parser may have reported a failed allocation as a syntax error. Answers
    from the process must therefore be neither stored nor shown.
    """
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    limit = min((one for one in limits if one != resource.RLIM_INFINITY), default=0)
    if limit:
        with open("/proc/self/status") as file:
            (peak,) = (int(line.split()[1]) << 10 for line in file if line.startswith("VmPeak:"))
        if peak > limit - MEMORY_MARGIN:
            raise MemoryError(f"this process may use {limit >> 20} MB")


def _limits(name: str, root: Path) -> Iterator[str]:
    """Yield the contents of the files called ``name`` (such as "cpu.max") in the control groups
    (version 2) to which this process belongs, from the innermost group to the outermost.
    """
    with suppress(OSError):
        lines = (root / "proc/self/cgroup").read_text("utf-8").splitlines()
        for own in (line.removeprefix("0::/") for line in lines if line.startswith("0::/")):
            top = root / "sys/fs/cgroup"
            for folder in [top / own, *(top / own).parents]:
                if (file := folder / name).is_file():
                    yield file.read_text("utf-8")


def graphics_cards() -> list[str]:
    """Return the GPUs that this job may use: the entries of CUDA_VISIBLE_DEVICES or, if this
    variable is not set, the numbers of all GPUs. These numbers are read from ``nvidia-smi``,
    because torch is slow to import.
    """
    if (stated := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        listed = [card.strip() for card in stated.split(",")]
        # like the driver, ignore the first invalid number and all numbers after it
        return [*takewhile(lambda card: card not in ("", "-1"), listed)]
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return []


# 2. Progress: a line every ten seconds

LINE_SECONDS = 10.0
# the remaining time is estimated only after this many items are done, because the first items may
# take longer than the others
FIRST = 5


class Progress(AbstractContextManager["Progress"]):
    """Prints a line of progress to stderr every ten seconds, such as ``mini-large: 120 of 622
    answers, 40 found, about 2 min left``. In a notebook that a user has open, the line is printed
    once and then updated.

    ``what`` is the name at the start of the line. ``total`` is the number of items to do, or None
    if it is unknown, and ``unit`` is the plural of an item's name ("answers"). ``found`` counts
    items that a store already had; they are not part of ``total``. If ``quiet`` is true, nothing is
    printed. ``parts`` is a function that returns more lines to print, such as one for each running
    notebook.
    """

    def __init__(
        self,
        what: str,
        total: int | None,
        unit: str = "",
        found: int = 0,
        quiet: bool = False,
        parts: Callable[[], Iterable[str]] = tuple,
    ):
        self.what = what
        self.total = total
        self.unit = unit
        self.found = found
        self.parts = parts
        self.done = 0
        self.began = time.monotonic()
        self.ended = threading.Event()
        self.thread = None
        if not quiet and total != 0:
            self.thread = threading.Thread(target=self._print_line, daemon=True)
            self.thread.start()

    def update(self, n: int = 1) -> None:
        self.done += n

    def line(self) -> str:
        took = time.monotonic() - self.began
        if self.total is None:
            parts = [f"{self.done:,} {self.unit}".rstrip()] if self.done else []
            parts.append(f"{duration(took)} so far")
        else:
            parts = [f"{self.done:,} of {self.total:,} {self.unit}".rstrip()]
            parts += [f"{self.found:,} found"] if self.found else []
            if FIRST <= self.done < self.total:
                parts.append(f"about {duration(took * (self.total - self.done) / self.done)} left")
        return f"{self.what}: {', '.join(parts)}"

    def _print_line(self) -> None:
        # If the runner executes this notebook, it expects progress on stderr. If a user has the
        # notebook open, Jupyter would show stderr like an error, so the line goes to stdout.
        in_cell = "ipykernel.kernelapp" in sys.modules and "LOOKUPLAB_FIGURES" not in os.environ
        width = 0
        while not self.ended.wait(LINE_SECONDS):
            line = "\n  ".join([self.line(), *self.parts()])
            if in_cell:
                width = max(width, len(line))
                print(f"\r{line:{width}}", end="", flush=True)
            else:
                say(line)
        if width:
            print(f"\r{self.line():{width}}")

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        if self.thread:
            self.thread.join()


def say(line: str) -> None:
    """Print a line to stderr, and flush stderr at once."""
    print(line, file=sys.stderr, flush=True)


def watched(items: Iterable[T], what: str, unit: str = "", total: int | None = None) -> Iterator[T]:
    """Yield the items, and show a ``Progress`` line that begins with ``what``. ``total``, the
    number of items, is used only if ``items`` has no length.
    """
    size = len(items) if isinstance(items, Sized) else total
    with Progress(what, size, unit) as bar:
        for item in items:
            yield item
            bar.update()


def duration(seconds: float) -> str:
    """Return a duration as text: in seconds if it is below 90 s, in minutes if it is below 2 h, and
    otherwise in hours ("2.5 h").
    """
    if seconds >= 7200:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


# 3. Tasks in threads on this machine, or on the workers of a cluster (``run.cluster``)


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
    it is None, in ``workers`` threads on this machine (by default, one for each processor that this
    job may use). The next task is taken from ``tasks`` only when a thread is free. If a task raises
    an error, ``spread`` raises that error.
    """
    if cluster is not None:
        given = list(tasks)
        yield from ((given[at], result) for at, result in cluster.map(function, given))
        return
    done: SimpleQueue[Any] = SimpleQueue()

    def work(task: T) -> None:
        try:
            done.put((task, function(task), None))
        except BaseException as error:  # the thread that reads the results raises it again
            done.put((task, None, error))

    # at most 256 threads, because the pool starts all of them at once, even for a few tasks
    count = min(workers or processors(), 256)
    waiting = iter(tasks)
    running = 0
    # a ThreadPool, unlike an executor, does not make an interrupted caller wait for running tasks
    with ThreadPool(count) as pool:
        while True:
            for task in islice(waiting, count - running):
                pool.apply_async(work, (task,))
                running += 1
            if not running:
                break
            task, result, error = done.get()
            running -= 1
            if error:
                raise error
            yield task, result
        pool.close()
        # wait for the threads, because the processes that tasks have started may end only together
        # with their threads (``sandbox.server.ForkServer``)
        pool.join()


def check_visible(place: Path) -> None:
    """Raise UserError if ``place``, a folder or file that a task needs, does not exist on the
    machine where the task runs, such as a worker of a cluster.
    """
    if not place.exists():
        raise UserError(
            f"the worker on {socket.gethostname()} does not see {place}; a cluster needs a file "
            "system that all its machines share (docs/cluster.md)"
        )


# 4. Locks, so that two commands never write to the same file or folder. A lock is another file in
# the same folder, and it names the process that owns the lock. The owner touches the lock file
# regularly to show that it is alive. With locks of the operating system, no process would have to
# show this, but not every shared file system supports such locks.

# an owner on another machine counts as dead if it has not touched the lock file for SILENCE seconds
SILENCE = 30.0


class LockHeld(UserError):
    """Raised if another process holds the lock."""


@contextmanager
def hold_lock(place: Path, does: str, wait: bool = False) -> Iterator[None]:
    """Hold a lock on ``place`` (a file or folder) while the block runs. The lock is the file
    ``.NAME.lock`` in the same folder. ``does`` says what the block does ("writes scores.jsonl");
    the error of a process that cannot get the lock quotes these words.

    The lock of a dead process is taken over. If a living process holds the lock and ``wait`` is
    true, the function waits until the lock is free. Otherwise it raises LockHeld, whose message
    names the other process and its machine.
    """
    from filelock import SoftFileLease, Timeout  # slow to import

    file = paths.make_folder(place.parent) / f".{place.name}.lock"
    lease = SoftFileLease(file, lease_duration=SILENCE)
    try:
        try:
            lease.acquire(timeout=-1 if wait else 0)
        except Timeout as error:
            if lease.owner and "cannot probe" not in str(error):
                if not _is_zombie(lease.pid):
                    raise
                lease.force_break()
            # If another process has just created the lock file, it names itself there within a
            # second. Otherwise the file is damaged, and this process takes the lock.
            if not lease.owner:
                time.sleep(1)
                if not lease.owner:
                    lease.force_break()
            lease.acquire(timeout=1.2 * SILENCE)
    except Timeout:
        who = f"process {lease.pid} on {lease.owner and lease.owner.hostname}"
        raise LockHeld(f"another lookuplab {does}: {who}; wait until it ends, or stop it") from None
    try:
        yield
    finally:
        lease.release()


def _is_zombie(pid: int | None) -> bool:
    """Return whether a process has ended, but its parent has not asked for its exit code yet. In a
    container whose first process never asks, it stays so, and filelock takes it for alive.
    """
    import psutil  # slow to import

    with suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    return False


# 5. Interruptions: a command ends at once, and so do all processes that it started; finished work
# is kept

# Ctrl-C sends SIGINT. A queue or container sends SIGTERM when the job's time is over. SLURM can
# send SIGUSR1 some time before that (--signal). ``stoppable`` itself requests SIGALRM.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM)


class Stopped(BaseException):
    """Raised when one of SIGNALS arrives. It is not an Exception, so that no ``except Exception``
    catches it as if it were an ordinary error.
    """


@contextmanager
def stoppable() -> Iterator[None]:
    """Run the block so that each of SIGNALS ends the process cleanly: ``finally`` blocks run as
    after an error, temporary folders are removed, and one line is printed. The exit code is 128
    plus the signal's number, as in shells.
    """
    # `end_children` needs psutil. It is imported here, because a signal that interrupts the import
    # would leave a half-initialised module for `end_children`.
    import psutil  # noqa: F401

    received: list[int] = []

    def stop(number: int, _frame: object) -> NoReturn:
        end_children()  # before the exception, because this process may be waiting for one of them
        received.append(number)
        # code in C may drop the exception, and then the command would go on: raise it again
        signal.setitimer(signal.ITIMER_REAL, 2)
        raise Stopped

    for number in SIGNALS:
        signal.signal(number, stop)
    try:
        yield
    except BaseException:  # an import that was interrupted may raise another exception
        if not received:
            raise
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        end_children()
        with suppress(OSError):  # the terminal may be gone
            print("\ninterrupted; finished work is kept: repeat the command", file=sys.stderr)
            sys.stdout.flush()
        # An ordinary exit would free all objects one by one, which may take seconds. The process
        # therefore ends by os._exit, which runs no exit functions, so they run here.
        atexit._run_exitfuncs()
        # os._exit also ends the threads, before they can remove their temporary folders
        for folder in Path(gettempdir()).glob(f"{paths.TEMPORARY}*"):
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(128 + received[0])


def end_children() -> None:
    """Kill all processes that this process has started, and their descendants. Only the resource
    tracker of ``multiprocessing`` is left. It ends by itself when this process ends.
    """
    import psutil  # slow to import

    # Since Python 3.14, even thread pools have a tracker. If it is killed, they start it again.
    tracker = getattr(resource_tracker._resource_tracker, "_pid", None)
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if child.pid != tracker:
                child.kill()
