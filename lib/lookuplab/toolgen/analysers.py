"""Jedi and pylint: each in a process of its own, and the store of what they said.

An analyser may hang or crash on other people's code; the measurement goes on. Its answers are kept beside the completion
store, so that a second run asks nobody.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Timer

from lookuplab import python_sources
from lookuplab.models.store import AnswerStore, canonical, digest
from lookuplab.toolgen.functions import python_files

JUDGING_VERSION = 3  # raise it whenever the same question would get another answer than before
PATIENCE = 5  # wall-clock time over computing time: no result may depend on how busy the machine is


class WorkerLost(Exception):
    """No answer, because of a ``timeout`` or a ``crash``. The next question is asked of a fresh process."""


class Worker:
    """``python -m module``, which answers JSON lines (see ``serve``); started by the first question.

    ``-P``: a repository's own ``types.py`` must not stand in for the library's.
    """

    def __init__(self, module: str, limit: float = 60.0):
        self.module, self.limit = module, limit  # the limit: seconds of computing for one answer
        self.folder: Path | None = None  # where it runs
        self.process: subprocess.Popen | None = None

    def ask(self, question: dict, seconds: float) -> dict:
        """The answer within ``seconds`` on the clock; raises WorkerLost."""
        if self.process is None:
            command = [sys.executable, "-P", "-m", self.module]
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        began, late = time.monotonic(), Timer(seconds, self.process.kill)
        late.start()
        line = ""
        try:
            with suppress(OSError):
                print(json.dumps(question), file=self.process.stdin, flush=True)
                line = self.process.stdout.readline()
        finally:
            late.cancel()
        if not line.endswith("\n"):
            self.close()
            raise WorkerLost("timeout" if time.monotonic() - began >= seconds else "crash")
        return json.loads(line)

    def close(self) -> None:
        """End the process; harmless when there is none."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.close()


def serve(answer: Callable[[dict], dict]) -> None:
    """The worker's side: answer every line of standard input. What the analyser prints goes nowhere."""
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line))), file=out, flush=True)


class JudgementStore(AnswerStore):
    """Key -> what an analyser said, in ``judgements.sqlite``."""

    name = "judgements"


def key(kind: str, root: str, **question: object) -> str:
    """The key of a question of one ``kind``: it covers all Python files of the repository, whose digest is ``root``,
    the versions of the analysers, and the sources and the Python that they read."""
    read = python_sources.identity("jedi", "parso", "pylint", "astroid")
    return digest(
        canonical(
            {"kind": kind, "repository": root, "version": JUDGING_VERSION, **question, "read": read}
        )
    )


def repository_digest(root: Path) -> str:
    """The names and contents of all Python files below ``root``."""
    total = hashlib.sha256()
    for path in python_files(root):
        total.update(f"{path.relative_to(root).as_posix()}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def imports_begin(path: Path) -> Path:
    """The folder from which a file is imported: the first one above it that is no package."""
    folder = path.resolve().parent
    while (folder / "__init__.py").exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def within_imports(path: Path) -> str:
    """A file's path below ``imports_begin``: the same wherever the repository lies."""
    return path.resolve().relative_to(imports_begin(path)).as_posix()
