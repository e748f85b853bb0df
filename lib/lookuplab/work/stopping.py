"""A command that is interrupted ends at once, with all that it started, and keeps what is done."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

# Ctrl-C; a queue's or a container's end; what SLURM can send before it (--signal)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Stopped(BaseException):
    """One of SIGNALS came. It is no Exception: nothing takes it for a failure of its own."""


def _stop(number: int, _frame: object) -> NoReturn:
    end_children()  # first: whatever waits for one of them goes on
    raise Stopped(number)


@contextmanager
def stoppable() -> Iterator[None]:
    """Run a command so that each of SIGNALS ends it: blocks are left and temporary folders removed,
    one line is printed, and the exit code is 128 and the signal's number, as shells have it.
    """
    for number in SIGNALS:
        signal.signal(number, _stop)
    try:
        yield
    except Stopped as stopped:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        end_children()
        with suppress(OSError):  # the terminal is gone
            print("\ninterrupted; what is done is kept: repeat the command", file=sys.stderr)
        sys.exit(128 + stopped.args[0])


def end_children() -> None:
    """Kill all processes that this one has started, and those that they have."""
    import psutil  # takes time

    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            child.kill()
