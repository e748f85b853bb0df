"""Reports the progress of long work, with a line every ten seconds."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import AbstractContextManager
from typing import TypeVar

LINE_SECONDS = 10.0
# the time left is not estimated before this number of parts is done, because the first parts may
# take longest
FIRST = 5
T = TypeVar("T")


class Progress(AbstractContextManager["Progress"]):
    """Prints the progress of some work to stderr every ten seconds, such as ``mini-large: 120 of
    622 answers, 40 found, about 2 min left``. In a notebook that a user works in, it prints one
    line that updates.

    ``total`` is the number of parts to do, None if unknown, and ``unit`` what a part is
    ("answers"). ``found`` is the number of further parts that were found in a store. ``parts`` is a
    function that returns further lines, on the work in progress.
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
            self.thread = threading.Thread(target=self._tell, daemon=True)
            self.thread.start()

    def update(self, n: int = 1) -> None:
        self.done += n

    def line(self) -> str:
        took = time.monotonic() - self.began
        if self.total is None:
            parts = [f"{self.done:,} {self.unit}".rstrip()] if self.done else []
            parts.append(f"{span(took)} so far")
        else:
            parts = [f"{self.done:,} of {self.total:,} {self.unit}".rstrip()]
            parts += [f"{self.found:,} found"] if self.found else []
            if FIRST <= self.done < self.total:
                parts.append(f"about {span(took * (self.total - self.done) / self.done)} left")
        return f"{self.what}: {', '.join(parts)}"

    def _tell(self) -> None:
        # If the runner executes the notebook, it reads stderr. If a user works in the notebook,
        # lines on stderr would look like errors, so the line is printed to stdout.
        in_cell = "ipykernel" in sys.modules and "LOOKUPLAB_FIGURES" not in os.environ
        width = 0
        while not self.ended.wait(LINE_SECONDS):
            line = "\n  ".join([self.line(), *self.parts()])
            if in_cell:
                width = max(width, len(line))
                print(f"\r{line:{width}}", end="", flush=True)
            else:
                say(line)
        if width:
            print()

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        if self.thread:
            self.thread.join()


def say(line: str) -> None:
    """Print a line to stderr at once."""
    print(line, file=sys.stderr, flush=True)


def watched(items: Iterable[T], what: str, unit: str = "", total: int | None = None) -> Iterator[T]:
    """Yield the items, and show a Progress of ``what``. ``total`` is the number of items, if the
    items have no length.
    """
    size = len(items) if isinstance(items, Sized) else total
    with Progress(what, size, unit) as bar:
        for item in items:
            yield item
            bar.update()


def span(seconds: float) -> str:
    """Return a duration as text with a unit: seconds below 90 s, minutes below 2 h, else hours
    ("2.5 h").
    """
    if seconds >= 7200:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
