"""Handles interruptions: an interrupted command ends at once, with all processes that it started,
and keeps the work that is finished.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

# Ctrl-C; the signal of a queue or container whose time has ended; a signal that SLURM can send
# some time before the end (--signal)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Stopped(BaseException):
    """Raised when one of SIGNALS arrives. It is not an Exception, so that no ``except Exception``
    takes it for an error of the work.
    """


def _stop(number: int, _frame: object) -> NoReturn:
    end_children()  # first, because this process may wait for one of them
    raise Stopped(number)


@contextmanager
def stoppable() -> Iterator[None]:
    """Run a command so that each of SIGNALS ends it cleanly: ``with`` and ``finally`` blocks are
    left as after an error, temporary folders are removed, and one line is printed. The exit code is
    128 plus the signal's number, as in shells.
    """
    for number in SIGNALS:
        signal.signal(number, _stop)
    try:
        yield
    except Stopped as stopped:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        end_children()
        with suppress(OSError):  # the terminal may be gone
            print("\ninterrupted; finished work is kept: repeat the command", file=sys.stderr)
        sys.exit(128 + stopped.args[0])


def end_children() -> None:
    """Kill all processes that this process has started, and their descendants."""
    import psutil  # slow to import

    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            child.kill()
