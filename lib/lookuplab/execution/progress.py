"""Nobody waits without a word: in a terminal one line that changes, elsewhere a line every ten
seconds.
"""

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import AbstractContextManager
from typing import TypeVar

LINE_SECONDS = 10.0
BAR_SECONDS = 0.5  # between two changes of the line in a terminal
CLEAR = "\r\x1b[K"  # go to the beginning of a terminal's line and empty it
T = TypeVar("T")


class Progress(AbstractContextManager["Progress"]):
    """Says on stderr how far some work has come, as ``mini-large: 120 of 622 answers, 40 found,
    about 2 min left``.

    total: how many of ``unit`` are to be done, None if nobody knows. found: how many more needed no
    work. note: what else there is to say, asked for each line.
    """

    def __init__(
        self,
        what: str,
        total: int | None,
        unit: str = "",
        found: int = 0,
        note: Callable[[], str] | None = None,
        quiet: bool = False,
    ):
        self.what, self.total, self.unit, self.found, self.note = what, total, unit, found, note
        self.done, self.began, self.ended = 0, time.monotonic(), threading.Event()
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
            if 0 < self.done < self.total:
                parts.append(f"about {span(took * (self.total - self.done) / self.done)} left")
        parts += [note] if self.note and (note := self.note()) else []
        return f"{self.what}: {', '.join(parts)}"

    def _tell(self) -> None:
        in_terminal = sys.stderr.isatty()
        while not self.ended.wait(BAR_SECONDS if in_terminal else LINE_SECONDS):
            if in_terminal:
                line = self.line()[: shutil.get_terminal_size().columns - 1]
                print(CLEAR + line, end="", file=sys.stderr, flush=True)
            else:
                say(self.line())

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        if self.thread:
            self.thread.join()
            if sys.stderr.isatty():
                print(CLEAR, end="", file=sys.stderr, flush=True)


def say(line: str) -> None:
    """Print a line to stderr at once, in a terminal in the place of the changing one."""
    print((CLEAR if sys.stderr.isatty() else "") + line, file=sys.stderr, flush=True)


def watched(items: Iterable[T], what: str, unit: str = "", total: int | None = None) -> Iterator[T]:
    """The items one after the other, with a Progress; ``total`` is for those without a length."""
    size = len(items) if isinstance(items, Sized) else total
    with Progress(what, size, unit) as bar:
        for item in items:
            yield item
            bar.update()


def span(seconds: float) -> str:
    """A time in words: seconds up to a minute and a half, minutes up to two hours, then hours."""
    if seconds >= 7200:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
