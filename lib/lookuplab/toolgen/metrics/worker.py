"""A helper process that answers JSON lines: analysers may hang or crash, the measurement goes on.

The process runs with ``-P``: a repository's own ``types.py`` must not stand in for the library's.
"""

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


PATIENCE = 5  # waiting over computing: on a busy machine an answer takes longer, and no result may depend on that


class WorkerLost(Exception):
    """No answer: ``reason`` is ``timeout`` or ``crash``. The next question is asked of a fresh process."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


class Worker:
    """``python -m module`` for one folder, started by the first question; a context manager."""

    def __init__(self, module: str, folder: Path):
        self.module, self.folder = module, Path(folder)
        self._process: subprocess.Popen | None = None

    def ask(self, question: dict, limit: float) -> dict:
        """The answer within ``limit`` seconds; raises WorkerLost."""
        if self._process is None:
            self._process = subprocess.Popen([sys.executable, "-P", "-m", self.module], cwd=self.folder,
                                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
            return json.loads(self._line(time.monotonic() + limit))
        except WorkerLost:
            self.close()
            raise
        except (OSError, ValueError):
            self.close()
            raise WorkerLost("crash") from None

    def _line(self, end: float) -> bytes:
        found, stream = b"", self._process.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while not found.endswith(b"\n"):
                if not selector.select(max(end - time.monotonic(), 0)):
                    raise WorkerLost("timeout")
                if not (part := os.read(stream, 1 << 16)):
                    raise WorkerLost("crash")
                found += part
        return found

    def close(self) -> None:
        """End the process; harmless when there is none."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_) -> None:
        self.close()


def serve(answer: Callable[[dict], dict]) -> None:
    """The other side: answer every line of standard input. What the analyser prints goes nowhere."""
    with os.fdopen(os.dup(1), "wb") as out:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        for line in sys.stdin.buffer:
            out.write(json.dumps(answer(json.loads(line))).encode() + b"\n")
            out.flush()
