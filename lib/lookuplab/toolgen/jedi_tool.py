"""The completion tool (paper, Section II-B): Jedi in worker processes, with a time limit a call.

The limit is one of the worker's own computing time, so that a busy machine gives the same marks as an idle one. A call
that exceeds it is given up and counted, and its worker goes on. A call that hangs, or takes its process down, costs
that process; the next call has a new one.
"""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import lookuplab
from lookuplab.toolgen.jedi_answers import JediAnswers

TIME_LIMIT = 10.0  # CPU seconds a call: a few hundred times the usual one, and more than a first one in pandas needs
PATIENCE = 6  # wall-clock time, as a multiple of the limit, after which a call hangs; at least a second
VERSION = 2  # raise it whenever the same question would get another answer than before
LOST = ("timed out", "crashed")  # failures of the machine: another time there may be an answer
_START = "from lookuplab.toolgen.jedi_worker import main; main()"


@dataclass(frozen=True)
class Answer:
    """``names`` and, in the same order, what completing each would insert (``alpha`` and ``alpha=``); or a failure."""

    names: tuple[str, ...] = ()
    inserted: tuple[str, ...] = ()
    failure: str = ""  # "timed out", "crashed", "error in Jedi: <type>"

    @property
    def identifiers(self) -> list[str]:
        """The identifiers among the suggestions, in Jedi's order: no dict keys, no ``=`` behind a keyword argument."""
        return list(dict.fromkeys(plain for name in self.names if (plain := name.removesuffix("=")).isidentifier()))


class Worker:
    """One process. Calls come one at a time. ``places`` are the (root, file) that it has parsed."""

    def __init__(self, time_limit: float = TIME_LIMIT):
        self.time_limit = time_limit
        self.places: set[tuple[str, str]] = set()
        self.failures: Counter = Counter()
        self._process: subprocess.Popen | None = None

    def complete(self, root: str | Path, file: str, text: str, line: int, column: int, wanted: str | None = None
                 ) -> Answer:
        """Completions at a caret in an unsaved buffer.

        ``text`` stands for the file ``file`` under ``root``; ``line`` counts from 1, ``column`` from 0 in characters.
        With ``wanted`` only that name is looked for, which is many times faster: the answer holds it iff the full
        answer does (and may hold others).
        """
        request = dict(root=str(root), file=file, text=text, line=line, column=column, wanted=wanted)
        answer = self._ask(json.dumps({"limit": self.time_limit, "question": request}))
        self.places.add((str(root), file))
        if answer.failure:
            self.failures[answer.failure] += 1
        return answer

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
        self.places.clear()

    def _ask(self, request: str) -> Answer:
        process = self._started()
        expired = threading.Event()

        def end() -> None:
            expired.set()
            process.kill()

        timer = threading.Timer(max(1.0, PATIENCE * self.time_limit), end)
        timer.start()
        line = ""
        try:
            with suppress(OSError, ValueError):
                print(request, file=process.stdin, flush=True)
                line = process.stdout.readline()
        finally:
            timer.cancel()
        if not line.endswith("\n"):
            self.close()
            return Answer(failure="timed out" if expired.is_set() else "crashed")
        answer = json.loads(line)
        if "failure" in answer:
            return Answer(failure=answer["failure"])
        return Answer(tuple(name for name, _ in answer["names"]), tuple(rest for _, rest in answer["names"]))

    def _started(self) -> subprocess.Popen:
        if self._process is None or self._process.poll() is not None:
            self.close()
            places = [str(Path(lookuplab.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
            # -P: the folder that we happen to stand in is no part of the repository
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _START], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True, encoding="utf-8",
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))})
            self._process.stdout.readline()  # "ready": importing Jedi is not part of a call's time
        return self._process


class JediTool:
    """A number of workers for a number of threads; use it in a ``with`` block.

    Full answers are remembered: runs that differ in a gate or a rule ask mostly the same. ``store`` is the file that
    keeps them, None the one beside the completion store, False memory alone. A repository must not change while the
    tool is open; ``lease`` gives a worker that asks Jedi every time.
    """

    def __init__(self, workers: int | None = None, time_limit: float = TIME_LIMIT,
                 store: Path | Literal[False] | None = False):
        self.workers = [Worker(time_limit) for _ in range(workers or os.cpu_count() or 1)]
        self._free = list(self.workers)
        self._freed = threading.Condition()
        self._answers = JediAnswers(":memory:" if store is False else store)

    def __enter__(self) -> "JediTool":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.close()
        self._answers.db.close()

    @contextmanager
    def lease(self, root: str | Path = "", file: str = "") -> Iterator[Worker]:
        """A worker for a run of calls on one file: best of all, one that has parsed it already."""
        with self._freed:
            self._freed.wait_for(lambda: self._free)
            worker = next((one for one in self._free if (str(root), file) in one.places), self._free[0])
            self._free.remove(worker)
        try:
            yield worker
        finally:
            with self._freed:
                self._free.append(worker)
                self._freed.notify()

    def complete(self, root: str | Path, file: str, text: str, line: int, column: int, wanted: str | None = None
                 ) -> Answer:
        """As Worker.complete, on whichever worker is free."""
        if wanted is not None:
            with self.lease(root, file) as worker:
                return worker.complete(root, file, text, line, column, wanted)
        key = self._answers.key(root, file, text=text, line=line, column=column, tool=VERSION)
        for names, inserted in self._answers.get([key]).values():
            return Answer(tuple(names), tuple(inserted))
        with self.lease(root, file) as worker:
            answer = worker.complete(root, file, text, line, column)
        if not answer.failure:
            self._answers.put(key, [answer.names, answer.inserted])
        return answer

    @property
    def failures(self) -> Counter:
        """How many calls failed, by reason."""
        return sum((worker.failures for worker in self.workers), Counter())
