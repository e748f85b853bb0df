"""Jedi and pylint in processes of their own, and the store of what they said.

An analyser may hang or crash on other people's code; the measurement goes on. Each kind is loaded once, in a parent
process (``serve``), which forks a worker for whoever asks. Answers are kept beside the completion store, so that a
second run asks nobody.
"""

import functools
import gc
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from pathlib import Path

from lookuplab import python_sources
from lookuplab.models.store import AnswerStore, canonical, digest
from lookuplab.toolgen.functions import python_files

JUDGING_VERSION = 3  # raise it whenever the same question would get another answer than before
PATIENCE = 5  # wall-clock time over computing time: no result may depend on how busy the machine is


class WorkerLost(Exception):
    """No answer, because of a ``timeout`` or a ``crash``. The next question is asked of a fresh process."""


class Worker:
    """A process that answers questions: a fork, made by the first question, of ``python -m module``."""

    def __init__(self, module: str, limit: float = 60.0):
        self.module, self.limit = module, limit  # the limit: seconds of computing for one answer
        self.channel: Connection | None = None
        self.sources = ""  # that it reads
        self.seen: set = set()  # what it has been asked about, for whoever chooses among workers

    def ask(self, question: dict, seconds: float) -> dict:
        """The answer within ``seconds`` on the clock; raises WorkerLost."""
        began, sources = time.monotonic(), str(python_sources.folder())
        try:
            if self.sources != sources:
                self.close()
            if self.channel is None:
                self.sources, (self.channel, theirs) = sources, Pipe()
                with theirs:
                    send_handle(parent(self.module, sources)[1], theirs.fileno(), 0)
            self.channel.send_bytes(json.dumps([seconds, question]).encode())
            return json.loads(self.channel.recv_bytes())
        except (EOFError, OSError):
            self.close()
            late = time.monotonic() - began >= seconds
            raise WorkerLost("timeout" if late else "crash") from None

    def close(self) -> None:
        """The process ends, when it has finished what it is at; harmless when there is none."""
        if self.channel is not None:
            self.channel.close()
            self.channel = None
            self.seen.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.close()


@functools.cache
def parent(module: str, sources: str) -> tuple[subprocess.Popen, Connection]:
    """The process that forks the workers of a kind, and where it takes their channels. It ends with this one.

    ``-P``: a repository's own ``types.py`` must not stand in for the library's.
    """
    ours, theirs = Pipe()
    with theirs, open(os.devnull, "w") as nowhere:
        command = [sys.executable, "-P", "-m", module]
        return subprocess.Popen(command, stdin=theirs, stdout=nowhere, stderr=nowhere), ours


def serve(answer: Callable[[dict], dict]) -> None:
    """The parent's side: fork a worker for each channel that comes in on standard input. It answers what it is asked
    there, and ends if that takes too long. What the analyser prints goes nowhere."""
    gc.freeze()
    with Connection(0) as control:
        try:
            handle = recv_handle(control)
            while os.fork():
                os.close(handle)
                handle = recv_handle(control)
                with suppress(ChildProcessError):
                    while os.waitpid(-1, os.WNOHANG)[0]:  # a worker has ended
                        pass
        except EOFError:
            return
    with Connection(handle) as channel, suppress(EOFError):
        while True:
            seconds, question = json.loads(channel.recv_bytes())
            signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))  # its signal ends the process
            found = answer(question)
            signal.setitimer(signal.ITIMER_REAL, 0)
            channel.send_bytes(json.dumps(found).encode())


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


def imports_begin(folder: Path) -> Path:
    """The folder from which the files of a folder are imported: the first one, going up, that is no package."""
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        folder = folder.parent
    return folder


def within_imports(path: Path) -> str:
    """A file's path below ``imports_begin``: the same wherever the repository lies."""
    path = path.resolve()
    return path.relative_to(imports_begin(path.parent)).as_posix()
