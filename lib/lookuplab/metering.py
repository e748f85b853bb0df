"""What a piece of work costs: on the clock, and of all processors."""

import resource
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import psutil

T = TypeVar("T")


@dataclass(frozen=True)
class Spent:
    """``seconds`` on the clock, and of all processors: those of this process and of all that it started."""

    seconds: float
    processor_seconds: float


def metered(run: Callable[[], T]) -> tuple[T, Spent]:
    """What ``run`` returns, and what it took. On a busy machine the clock depends on the others, processors hardly."""
    start, before = time.perf_counter(), _processor_seconds()
    result = run()
    return result, Spent(time.perf_counter() - start, _processor_seconds() - before)


def _processor_seconds() -> float:
    ended = [resource.getrusage(which) for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    total = sum(used.ru_utime + used.ru_stime for used in ended)
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has just ended
            used = child.cpu_times()
            total += used.user + used.system + used.children_user + used.children_system
    return total
