"""Judges programs in processes that are forked from a server, which has already run the programs'
imports.

A program that imports numpy and pandas thus starts in a fraction of the time. Before the fork, the
server has run exactly the imports with which the program begins, in the same order. A program that
passes here would therefore pass in a fresh process, too.
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
import threading
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
GRACE = 30.0  # the server counts as hung this many seconds after a program's time limit
# Environment variables of the server. Libraries use one thread, because many programs run at the
# same time, and because a forked process does not have the threads of its parent.
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
# folders of downloaded data sets for seaborn and scikit-learn; programs in the sandbox can read
# them, but cannot download any, because the sandbox has no network
FETCHED = paths.DOWNLOADS / "fetched"
CACHES = {"SEABORN_DATA": FETCHED / "seaborn", "SCIKIT_LEARN_DATA": FETCHED / "scikit_learn"}
NOT_JUDGED = "not judged"  # the error of an outcome that is not judged begins with these words
DOWN = "took its server down"  # the error of a program after which the server gave no answer
# errors of a program that was killed, perhaps by the kernel because the machine ran out of memory
KILLED = re.compile(rf"{DOWN}|({inside.GONE}|{inside.ENDED}) .(-9|137)")
# errors that a program may get because the machine has too few resources
SHORTAGE = r"MemoryError|can't start new thread|\[Errno (5|11|12|27|28|122)\]"
DRAWS = ("matplotlib", "seaborn")  # packages that draw figures (``Program.draws``)


@dataclass(frozen=True)
class Limits:
    """The limits of one program: ``seconds`` of wall-clock time, ``cpu_seconds`` of CPU time, bytes
    of ``memory``, number of ``processes``, and bytes in each file that the program writes
    (``file_size``).
    """

    seconds: float = 240.0
    cpu_seconds: float = 120.0
    memory: int = 4 << 30
    processes: int = 64
    file_size: int = 64 << 20


@dataclass(frozen=True)
class Program:
    """A program that tests a solution. ``text`` passes the solution to ``exec``, and ends without
    an exception if the solution is right.

    ``imports`` are lines of code that the server executes in advance. They must be lines that
    ``text`` itself executes before the solution, because the solution must find only what the text
    has imported. ``about`` names the problem in the store of outcomes.
    """

    text: str
    imports: tuple[str, ...] = ()
    about: str = ""

    @property
    def draws(self) -> bool:
        """Return whether the program draws figures. A figure contains functions and cannot be sent
        from one process to another, so test and solution of such a program run in one process.
        """
        return any(name in line for line in self.imports for name in DRAWS)

    @property
    def joined(self) -> str:
        """Return the text of a program that runs test and solution together in the solution's
        process (the solver).

        The solver, too, is in the sandbox. A solution that ends the process early does not pass,
        because the program's last line must set a variable to a secret random word. But a malicious
        solution can search for the word, or change how the test compares values.
        """
        word = secrets.token_hex()
        code = f"exec({self.text!r}, {{'__name__': '__main__'}})\nended = {word!r}"
        return f"env = {{}}\nexec({code!r}, env)\nassert env['ended'] == {word!r}"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a program. ``passed`` says whether the program ended without an exception, and
    ``error`` describes the exception, or is "". ``seconds`` is always 0; the field stays because
    stored outcomes have it.

    ``stopped`` says whether the program was stopped before its end, perhaps because the machine was
    busy; a second run may then have another outcome. If ``judged`` is False, it is unknown whether
    the solution or the grader is at fault, and ``error`` says why.
    """

    passed: bool
    error: str
    seconds: float = 0.0
    stopped: bool = False

    @property
    def judged(self) -> bool:
        return not self.error.startswith(NOT_JUDGED)


class ForkServer(contextlib.AbstractContextManager["ForkServer"]):
    """A server that runs one program at a time; use it in a ``with`` block. Sort the programs by
    their imports: the server then runs an import only once for programs that share it.

    ``sandbox`` is one of SANDBOXES. "none" limits the time, memory and file sizes of well-meaning
    programs, but gives no security. ``python`` is the path of the Python that runs the programs.
    """

    def __init__(self, sandbox: str, python: str | Path, limits: Limits = Limits()):
        self.sandbox = sandbox
        self.python = Path(os.path.abspath(python))
        self.limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    def __exit__(self, *_: object) -> None:
        self.close()

    # each thread of ``stackoverflow.grader`` has a server; this method ends it when the thread ends
    __del__ = __exit__

    def close(self) -> None:
        """End the server. If it does not end by itself within a second, it is killed. If it ends by
        itself, the CPU time of the programs counts as CPU time of this process's children.
        """
        if self._process is not None:
            process = self._process
            self._process = None
            with process:  # closes the pipes and waits
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.communicate(timeout=1)
                process.kill()  # has no effect if the process has ended
            self._folder.cleanup()

    def preload(self, imports: Iterable[str]) -> None:
        """Make the server run these imports, in this order, and drop all others. Raises UserError
        if Python ends or hangs in an import.
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
        """Run one program after its imports, and return its outcome. Whatever the program does, the
        next program finds a working server.

        A right solution may fail because test and solution run in two processes: an object cannot
        be sent to the test, a library's setting stays in the solution's process, or a file is too
        large to send. A program that fails is therefore run again with test and solution in one
        process. If it passes there, the outcome is "not judged": the grader may have caused the
        failure, but in one process the solution may have changed the test.
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
        """Return the outcome of one program. A program that was killed is run a second time. Raises
        UserError if the machine, and not the program, may have caused the failure.
        """
        self.preload(program.imports)
        outcome = self._run(program, text)
        if KILLED.search(outcome.error):
            self.preload(program.imports)  # starts a new server if the old server has died
            outcome = self._run(program, text)
        fault = ""
        if self.sandbox != "none" and re.match(rf"{DOWN}|{inside.ENDED} .-9", outcome.error):
            fault = "its server or test was killed twice: is there enough memory?"
        elif less := re.search(SHORTAGE, outcome.error) and self._shortages():
            fault = f"{outcome.error}; programs get less than they need here: {', '.join(less)}"
        if fault:
            raise UserError(f"program {program.about} cannot be judged: {fault}")
        return outcome

    def _shortages(self) -> list[str]:
        """Return a text such as "processes 32 of 64" for each resource that this machine limits
        more strictly than ``self.limits``.
        """
        less = []
        for name, kind in namespaces.LIMITS.items():
            limit = resource.getrlimit(kind)[1]
            if name == "memory" and (all := resource.getrlimit(resource.RLIMIT_AS)[0]) >= 0:
                # RLIMIT_AS also counts the address space of libraries; half is kept for them
                limit = all // 2 if limit < 0 else min(limit, all // 2)
            if 0 <= limit < vars(self.limits)[name]:
                less.append(f"{name} {limit:,} of {vars(self.limits)[name]:,}")
        free = shutil.disk_usage(self._folder.name).free
        if self.sandbox == "none" and free < self.limits.file_size:
            less.append(f"disk {free:,} of {self.limits.file_size:,}")
        return less

    def _run(self, program: Program, text: str) -> Outcome:
        # the same program always gets the same seed
        seed = hashlib.sha256(program.text.encode("utf-8", "replace")).digest()[:4]
        try:
            verdict = self._ask(
                self.limits.seconds + GRACE, {"run": int.from_bytes(seed, "big")}, text
            )
        except (EOFError, OSError):
            self.close()
            verdict = {"passed": False, "error": DOWN, "stopped": True}
        error = " ".join(verdict["error"].split())  # one line
        # if an error of the program itself begins with NOT_JUDGED, it is put in parentheses, so
        # that the outcome does not count as "not judged"
        verdict["error"] = f"({error})" if error.startswith(NOT_JUDGED) else error
        return Outcome(**verdict)

    def _start(self) -> None:
        self.close()
        self._folder = paths.temporary_folder()
        contained = self.sandbox != "none"
        shown = [*map(str, CACHES.values())]
        task = {"limits": asdict(self.limits), "contained": contained, "shown": shown}
        root = str(Path(lookuplab.__file__).parents[1])
        code = f"import sys; sys.path[0] = {root!r}\n"
        code += "from lookuplab.sandbox.inside import main\nmain()"
        home = namespaces.WORK_FOLDER if contained else self._folder.name
        given = {name: str(place) for name, place in CACHES.items() if place.exists()}
        # stderr goes to a file, because the messages of imports could fill a pipe and block the
        # server
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
                words = errors.read().strip().splitlines() or ["it ended without an error message"]
                raise UserError(
                    f"the server of {self.python} does not start ({self.sandbox}): {words[-1]}"
                ) from None

    def _ask(self, seconds: float, *requests: object) -> Any:
        """Send the requests, and return the server's next answer. If the answer takes longer than
        ``seconds``, the server is killed. Raises EOFError if the server ends without an answer.
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
def why_no_namespaces() -> str:
    """Return why processes cannot create namespaces on this machine, or "" if they can."""
    try:
        with ForkServer("namespaces", sys.executable) as server:
            return server.run(Program("exec('1', {})")).error
    except UserError as error:
        return str(error)


def choose_sandbox(sandbox: str = "", own: bool = False) -> str:
    """Return the sandbox for generated programs, one of SANDBOXES. ``sandbox`` is the user's
    choice, or "". ``own`` says that the kit's own mini models wrote the programs.

    The result is "namespaces", unless the user chose "none" or this machine has no namespaces. If
    it has none, the result for the mini models' programs is "none". For other programs, or if the
    user chose "namespaces", UserError is raised. Whenever the result is "none", a warning says that
    programs run unprotected, and why.
    """
    check_choice("sandbox", sandbox, ("", *SANDBOXES))
    reason = "as requested" if sandbox == "none" else why_no_namespaces()
    if not reason:
        return "namespaces"
    if sandbox != "none" and (sandbox or not own):
        raise UserError(
            f"no sandbox for generated programs works here ({reason}); allow user namespaces, or "
            "run the programs without protection: --sandbox none, in a notebook -p sandbox=none"
        )
    print(f"warning: generated programs run unprotected: {reason}", file=sys.stderr, flush=True)
    return "none"
