"""Judges programs in forked children of a process that has already run their imports.

A program that imports numpy and pandas thus starts in a fraction of the time. Its processes have
exactly the imports of its own context, run in the same order, so a program that passes here would
also pass in a fresh process.
"""

import contextlib
import hashlib
import json
import os
import re
import resource
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import lookuplab
from lookuplab import paths
from lookuplab.errors import UserError, check_choice
from lookuplab.sandbox import inside, namespaces

SANDBOXES = ("namespaces", "none")
GRACE = 30.0  # seconds beyond a program's limit after which the server itself is considered hung
# one thread, because many programs run at once, and a fork does not copy its parent's threads
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "USER": "user",
    "TZ": "UTC",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "MPLBACKEND": "Agg",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "CUDA_VISIBLE_DEVICES": "",
}
# the caches of seaborn and scikit-learn for data sets from the network; programs in the sandbox can
# read them
FETCHED = paths.DOWNLOADS / "fetched"
CACHES = {"SEABORN_DATA": FETCHED / "seaborn", "SCIKIT_LEARN_DATA": FETCHED / "scikit_learn"}
NOT_JUDGED = "not judged"  # the beginning of the error of an outcome that is not judged
DOWN = "took its server down"
# perhaps by the kernel, because the machine ran out of memory
KILLED = re.compile(rf"{DOWN}|({inside.GONE}|{inside.ENDED}) .(-9|137)")
SHORT = r"MemoryError|can't start new thread|\[Errno (5|11|12|27|28|122)\]"
DRAWS = ("matplotlib", "seaborn")


@dataclass(frozen=True)
class Limits:
    """Limits of one program: wall-clock and CPU seconds, bytes of memory, processes, bytes per
    file.
    """

    seconds: float = 240.0
    cpu_seconds: float = 120.0
    memory: int = 4 << 30
    processes: int = 64
    file_size: int = 64 << 20


@dataclass(frozen=True)
class Program:
    """A program whose ``text`` ends without an exception if the solution, which it passes to
    ``exec``, is right.

    ``imports`` are lines that the server may execute in advance. They must be lines that ``text``
    itself executes before the solution, since nothing else may be imported. ``about`` names the
    problem in the store of outcomes.
    """

    text: str
    imports: tuple[str, ...] = ()
    about: str = ""

    @property
    def draws(self) -> bool:
        """Whether the test looks at figures. Figures are full of functions and cannot be sent to
        another process, so such a program runs in one process.
        """
        return any(name in line for line in self.imports for name in DRAWS)

    @property
    def joined(self) -> str:
        """The text as a program that runs completely in the solution's process.

        The sandbox protects there, too, and leaving early does not pass, because the test ends with
        a word that nobody can guess. But a malicious solution can search for the word, or change
        how the test compares.
        """
        word = secrets.token_hex()
        code = f"exec({self.text!r}, {{'__name__': '__main__'}})\nended = {word!r}"
        return f"env = {{}}\nexec({code!r}, env)\nassert env['ended'] == {word!r}"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a program. ``passed``: it ended without an exception. ``seconds`` is
    wall-clock time, which is not stored.

    ``stopped``: the program was stopped before its end, perhaps because the machine was busy, so a
    second run may differ. Not ``judged``: it is unknown whether the solution or the grader is at
    fault; ``error`` says why.
    """

    passed: bool
    error: str
    seconds: float = 0.0
    stopped: bool = False

    @property
    def judged(self) -> bool:
        return not self.error.startswith(NOT_JUDGED)


class ForkServer(contextlib.AbstractContextManager["ForkServer"]):
    """A server that runs one program at a time; use it in a ``with`` block. If programs are sorted
    by imports, they share most of them.

    sandbox: one of SANDBOXES. "none" limits time, memory and file size of well-meaning programs,
    but gives no security.
    """

    def __init__(self, sandbox: str, python: str | Path, limits: Limits = Limits()):
        self.sandbox = sandbox
        self.python = Path(os.path.abspath(python))
        self.limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    def __exit__(self, *_: object) -> None:
        self.close()

    __del__ = __exit__  # ends the server when its thread ends without closing it

    def close(self) -> None:
        """End the server. If it answers, it ends cleanly, so that its programs' CPU time is counted
        among this process's children.
        """
        if self._process is not None:
            process = self._process
            self._process = None
            with process:  # closes the pipes and waits
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.communicate(timeout=1)
                process.kill()  # has no effect if it has ended
            self._folder.cleanup()

    def preload(self, imports: Iterable[str]) -> None:
        """Run these imports, in this order, and drop all others. Raises UserError if an import ends
        or hangs Python.
        """
        lines = list(imports)
        if self._process is None or self._process.poll() is not None:
            self._start()
        try:
            while not self._ask(10 * GRACE, {"imports": lines}):
                pass  # each request adds one import or drops one
        except (EOFError, OSError):
            self.close()
            raise UserError(
                f"{self.python} ends or hangs in {lines}; repair its environment"
            ) from None

    def run(self, program: Program) -> Outcome:
        """Run one program after its imports. Whatever it does, the next program finds a working
        server.

        A failure may be the grader's: an object that cannot be sent to the test, a library's
        setting, a file of 1 GB. A program that fails is therefore run again with test and solution
        in one process. If it passes there, it is not judged, because in one process a solution
        could change the test.
        """
        if program.draws:
            return self._certain(program, program.joined)
        outcome = self._certain(program, program.text)
        final = outcome.passed or outcome.stopped or "SyntaxError" in outcome.error
        if not final and self._certain(program, program.joined).passed:
            why = f"{NOT_JUDGED}: passes only in one process with its test, apart {outcome.error}"
            return replace(outcome, error=why)
        return outcome

    def _certain(self, program: Program, text: str) -> Outcome:
        """Return the outcome of one program; if it was killed, of a second attempt. Raises
        UserError if it failed because of the machine, which says nothing about the program.
        """
        self.preload(program.imports)
        outcome = self._run(program, text)
        if KILLED.search(outcome.error):
            self.preload(program.imports)  # of a new server, if the old one has died
            outcome = self._run(program, text)
        fault = ""
        if self.sandbox != "none" and re.match(rf"{DOWN}|{inside.ENDED} .-9", outcome.error):
            fault = "its server or test was killed twice: is there enough memory?"
        elif less := re.search(SHORT, outcome.error) and self._less():
            fault = f"{outcome.error}; programs get less than they need here: {', '.join(less)}"
        if fault:
            raise UserError(f"program {program.about} cannot be judged: {fault}")
        return outcome

    def _less(self) -> list[str]:
        """Return the limits of a program that this machine does not allow."""
        less = []
        for name, kind in namespaces.LIMITS.items():
            limit = resource.getrlimit(kind)[1]
            if name == "memory" and (all := resource.getrlimit(resource.RLIMIT_AS)[0]) >= 0:
                # libraries are part of this limit, too
                limit = all // 2 if limit < 0 else min(limit, all // 2)
            if 0 <= limit < vars(self.limits)[name]:
                less.append(f"{name} {limit:,} of {vars(self.limits)[name]:,}")
        free = shutil.disk_usage(self._folder.name).free
        if self.sandbox == "none" and free < self.limits.file_size:
            less.append(f"disk {free:,} of {self.limits.file_size:,}")
        return less

    def _run(self, program: Program, text: str) -> Outcome:
        started = time.monotonic()
        seed = hashlib.sha256(program.text.encode("utf-8", "replace")).digest()[:4]
        try:
            verdict = self._ask(
                self.limits.seconds + GRACE, {"run": int.from_bytes(seed, "big")}, text
            )
        except (EOFError, OSError):
            self.close()
            verdict = {"passed": False, "error": DOWN, "stopped": True}
        error = " ".join(verdict["error"].split())  # one line
        # the parentheses keep a program from writing NOT_JUDGED itself
        verdict["error"] = f"({error})" if error.startswith(NOT_JUDGED) else error
        return Outcome(**verdict, seconds=time.monotonic() - started)

    def _start(self) -> None:
        self.close()
        self._folder = tempfile.TemporaryDirectory(prefix="lookuplab-")
        contained = self.sandbox != "none"
        shown = [*map(str, CACHES.values())]
        task = {"limits": asdict(self.limits), "contained": contained, "shown": shown}
        root = str(Path(lookuplab.__file__).parents[1])
        code = f"import sys; sys.path[0] = {root!r}\n"
        code += "from lookuplab.sandbox.inside import main\nmain()"
        home = namespaces.WORK_FOLDER if contained else self._folder.name
        given = {name: str(place) for name, place in CACHES.items() if place.exists()}
        # a file, because output of the imports could fill a pipe
        with open(f"{self._folder.name}/errors", "w+") as errors:
            self._process = subprocess.Popen(
                [self.python, "-s", "-B", "-c", code, json.dumps(task)],
                cwd=self._folder.name,
                env={**ENVIRONMENT, **given, "HOME": home, "TMPDIR": home},
                start_new_session=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
            try:
                self._ask(2 * GRACE)
            except EOFError:
                self.close()
                errors.seek(0)
                words = errors.read().strip().splitlines() or ["it ended without a word"]
                raise UserError(
                    f"the server of {self.python} does not start ({self.sandbox}): {words[-1]}"
                ) from None

    def _ask(self, seconds: float, *requests: object) -> Any:
        """Return the server's answer. If it takes longer than ``seconds``, the server is killed and
        EOFError is raised.
        """
        if self._process is None:
            raise EOFError
        assert self._process.stdin and self._process.stdout
        timer = threading.Timer(seconds, self._process.kill)
        timer.start()
        try:
            for request in requests:
                inside.write(self._process.stdin.fileno(), request)
            return inside.read(self._process.stdout.fileno())
        finally:
            timer.cancel()


@cache
def refusal() -> str:
    """Return why this machine does not let processes create namespaces; "" if it does."""
    try:
        with ForkServer("namespaces", sys.executable) as server:
            return server.run(Program("exec('1', {})")).error
    except UserError as error:
        return str(error)


def choose(sandbox: str = "", own: bool = False) -> str:
    """Return one of SANDBOXES: "namespaces" unless "none" is requested.

    If the machine has no namespaces, programs of the kit's own mini models (``own``) run without a
    sandbox; for all other programs, UserError is raised. A warning says that programs run
    unprotected, and why.
    """
    check_choice("sandbox", sandbox, ("", *SANDBOXES))
    reason = "as asked for" if sandbox == "none" else refusal()
    if not reason:
        return "namespaces"
    if sandbox != "none" and (sandbox or not own):
        raise UserError(
            f"no sandbox for generated programs works here ({reason}); allow user namespaces, or "
            "run the programs without protection: --sandbox none, in a notebook -p sandbox=none"
        )
    print(f"warning: generated programs run unprotected: {reason}", file=sys.stderr, flush=True)
    return "none"
