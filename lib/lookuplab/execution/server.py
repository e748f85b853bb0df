"""Programs in forked children of a process that has made their imports once.

A program that imports numpy and pandas so starts in a fraction of the time. Its child holds the imports that its own
context names, made in the same order, and no others: nothing passes here that fails in a fresh process.
"""

import hashlib
import json
import os
import select
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lookuplab.errors import UserError
from lookuplab.execution.sandbox import CODE, Limits, Sandbox, outermost, python_places, start

GRACE = 30.0  # seconds beyond a program's own after which the server itself is taken to hang


@dataclass(frozen=True)
class Program:
    """``text`` ends without an exception if what it tests is right.

    ``imports`` are lines that the server may have executed before: only such as ``text`` executes before a solution,
    for what it does not import must not be there.
    """

    text: str
    imports: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """Passed: the program came to its end without an exception. ``seconds`` of wall-clock time.

    ``stopped``: it was not let come to its end, which may be a busy machine's fault; another run may tell.
    """

    passed: bool
    error: str
    seconds: float
    stopped: bool = False


class ForkServer:
    """A server for one program at a time; use it in a ``with`` block. Programs sorted by imports share most of them."""

    def __init__(self, sandbox: Sandbox, python: str | Path, limits: Limits = Limits(),
                 readable: Sequence[str | Path] = ()):
        self.sandbox, self.python, self.limits = sandbox, Path(os.path.abspath(python)), limits
        self.readable = outermost([*python_places(self.python), *CODE, *readable])
        self._process: subprocess.Popen | None = None
        self._imports: list[str] = []
        self._folder = ""

    def __enter__(self) -> "ForkServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server, in order if it answers: then the CPU time of the programs counts as of this one's children.
        """
        if self._process is not None:
            process, self._process = self._process, None
            process.stdin.close()
            try:
                process.wait(1)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
            self._errors.close()
            shutil.rmtree(self._folder, ignore_errors=True)
        self._imports = []

    def preload(self, imports: Iterable[str]) -> None:
        """Make these imports, in this order, and forget others. Raises UserError if Python does not survive one."""
        wanted = list(imports)
        self._start()
        same = len(os.path.commonprefix([self._imports, wanted]))
        try:
            for _ in self._imports[same:]:
                self._ask({"pop": True}, GRACE)
            del self._imports[same:]
            for line in wanted[same:]:
                self._ask({"push": line}, 10 * GRACE)
                self._imports.append(line)
        except (EOFError, TimeoutError):
            self.close()
            raise UserError(f"{self.python} ends or hangs in {wanted}; repair its environment") from None

    def run(self, program: Program) -> Outcome:
        """Run one program with its imports made before. Whatever it does, the next one finds a working server."""
        self.preload(program.imports)
        seed = int.from_bytes(hashlib.sha256(program.text.encode("utf-8", "replace")).digest()[:4], "big")
        started = time.monotonic()
        try:
            found = self._ask({"run": program.text, "seed": seed}, self.limits.seconds + GRACE)
        except (EOFError, TimeoutError):
            self.close()
            found = {"passed": False, "error": "took its server down", "stopped": True}
        return Outcome(**found, seconds=time.monotonic() - started)

    def _start(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        self._folder = tempfile.mkdtemp(prefix="lookuplab-")
        task = {"limits": asdict(self.limits), "private": self.sandbox.name != "none", "folder": self._folder,
                "readable": self.readable}
        argv = [str(self.python), *start("inside"), json.dumps(task)]
        self._errors = tempfile.TemporaryFile()  # no pipe, which what the imports print could fill
        self._process = self.sandbox.popen(argv, self._folder, self.readable, None, stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE, stderr=self._errors)
        try:
            self.private = self._receive(2 * GRACE)["private"]
        except (EOFError, TimeoutError):
            self._errors.seek(0)
            words = self._errors.read().decode(errors="replace").strip().splitlines()
            self.close()
            raise UserError(f"the server of {self.python} does not start in the sandbox {self.sandbox.name}: "
                            f"{words[-1] if words else 'it ended without a word'}") from None

    def _ask(self, request: dict, seconds: float) -> dict:
        content = json.dumps(request).encode()
        try:
            self._process.stdin.write(struct.pack(">I", len(content)) + content)
            self._process.stdin.flush()
        except OSError:
            raise EOFError from None
        return self._receive(seconds)

    def _receive(self, seconds: float) -> dict:
        deadline, found, needed = time.monotonic() + seconds, b"", 4
        stream = self._process.stdout.fileno()
        while len(found) < needed:
            ready, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            more = os.read(stream, needed - len(found))
            if not more:
                raise EOFError
            found += more
            if len(found) == 4:
                needed = 4 + struct.unpack(">I", found)[0]
        return json.loads(found[4:])
