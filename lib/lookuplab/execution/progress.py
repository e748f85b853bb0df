"""Nobody waits without a word: a progress bar in a terminal, elsewhere a line every ten seconds."""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import AbstractContextManager
from typing import TypeVar

from tqdm import tqdm

LINE_SECONDS = 10.0
T = TypeVar("T")


class Progress(AbstractContextManager["Progress"]):
    """Shows on stderr how far some work has come, as ``mini-large: 120 of 622 answers, 40 found,
    about 2 min left``.

    total: how many of ``unit`` are to be done, None if nobody knows. found: how many more needed no
    work. note: what else there is to say, asked whenever something is shown.
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
        self.bar = self.thread = None
        if quiet or total == 0:
            return
        if sys.stderr.isatty():
            self.bar = tqdm(desc=what, total=total, unit=f" {unit}", dynamic_ncols=True)
        else:
            self.thread = threading.Thread(target=self._tell, daemon=True)
            self.thread.start()

    def update(self, n: int = 1) -> None:
        self.done += n
        if self.bar is not None:
            self.bar.update(n)

    def say(self, line: str) -> None:
        """Print a line of its own."""
        if self.bar is not None:
            self.bar.write(line, sys.stderr)
        else:
            print(line, file=sys.stderr, flush=True)

    def refresh(self) -> None:
        """Show the note in the bar; the lines elsewhere have it anyway."""
        if self.bar is not None and self.note:
            self.bar.set_postfix_str(self.note())

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
        while not self.ended.wait(LINE_SECONDS):
            print(self.line(), file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        if self.bar is not None:
            self.bar.close()


def watched(items: Iterable[T], what: str, unit: str = "", total: int | None = None) -> Iterator[T]:
    """The items one after the other, with a Progress; ``total`` is for those without a length."""
    size = len(items) if isinstance(items, Sized) else total
    with Progress(what, size, unit) as bar:
        for item in items:
            yield item
            bar.update()


def span(seconds: float) -> str:
    """A time in words: seconds up to a minute and a half, then minutes."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
