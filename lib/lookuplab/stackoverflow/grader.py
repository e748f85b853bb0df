"""Grades answers. An answer runs against its problem's test, in a sandbox, in the Python
environment of the benchmark.

DS-1000's reference solutions need library versions from the time of DS-1000, not the kit's.
``lookuplab data get ds1000-grader`` makes a virtual environment with the pins of
``data/ds1000-grader.txt``. If a problem's reference solution does not pass here, the library
versions, the network or the grader are at fault, and a verdict would say nothing about an answer.
Answers to such a problem are not judged.

Test and solution run in two forked processes, so that a solution cannot change its verdict. There
are two exceptions. Programs whose test looks at figures (Matplotlib's) run in one process, and
their verdict counts. An answer that fails in two processes runs again in one; if it passes there,
it is not judged.
"""

import hashlib
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib import metadata
from itertools import takewhile
from operator import eq
from pathlib import Path
from typing import Any, Literal

from lookuplab import paths, python_sources
from lookuplab.errors import UserError
from lookuplab.models.store import AnswerStore, key_suffix
from lookuplab.sandbox.server import (
    KILLED,
    NOT_JUDGED,
    ForkServer,
    Limits,
    Outcome,
    Program,
    choose_sandbox,
)
from lookuplab.stackoverflow.ds1000 import Problem, program
from lookuplab.work import Progress, Workers, check_visible, processors, say, shard, spread

GRADER_ENVIRONMENT = "ds1000-grader"
GRADER_VERSION = 3  # increase it whenever the same program would get a different verdict
# the libraries that the programs of the mini problems use
OWN_LIBRARIES = ("numpy", "pandas", "scipy", "scikit-learn")
_VERSIONS = """import sys
from importlib.metadata import distributions
print(sys.version, sorted({(one.metadata["Name"], one.version) for one in distributions()}))"""
_thread = threading.local()


def environment(name: str = GRADER_ENVIRONMENT) -> Path:
    """Return the path of an environment's Python interpreter. ``name`` is the name of an installed
    environment, the path of an interpreter, or "" for the kit's own environment. Raises UserError
    if there is no such environment.
    """
    if not name or Path(name).is_file():
        # absolute but not resolved: Python recognises a virtual environment by the link's path
        return Path(name or sys.executable).absolute()
    if not python_sources.has_environment(name):
        raise UserError(
            f"no grader environment {name!r}: run `lookuplab data get {GRADER_ENVIRONMENT}`, or "
            "give a Python's path"
        )
    return python_sources.environment(name)


def own_libraries() -> str:
    """Return the versions of the libraries that programs use under the kit's own Python. Verdicts
    depend on these versions.
    """
    return ", ".join(f"{name} {metadata.version(name)}" for name in OWN_LIBRARIES)


class VerdictStore(AnswerStore):
    """The store of outcomes, {key: fields of an Outcome}. By default it is the file
    ``verdicts.sqlite`` in the folder of the completion store.
    """

    name = "verdicts"


@dataclass
class Grader:
    """Runs programs and stores their outcomes.

    - ``python`` is the interpreter that runs the programs (see ``environment``).
    - ``sandbox`` and ``own`` are as in ``sandbox.server.choose_sandbox``.
    - ``store`` is the file of a ``VerdictStore``. None stands for the default file; False means
      that nothing is stored.
    - ``workers`` is the number of servers that run in parallel, by default ``work.processors``. On
      a ``cluster``, every worker thread has one server.
    - ``limits`` are the limits of one program. The default for CPU time is DS-1000's time limit.
      CPU time is used, so that other programs on the machine do not change a verdict.
    - ``identity`` has the versions of the libraries on which verdicts depend, or a hash of them.
    """

    python: Path = field(default_factory=lambda: environment(""))
    sandbox: str = ""
    own: bool = False
    store: Path | Literal[False] | None = None
    workers: int = 0
    limits: Limits = field(default_factory=Limits)
    cluster: Workers | None = None
    identity: str = field(init=False)

    def __post_init__(self) -> None:
        self.sandbox = choose_sandbox(self.sandbox, self.own)
        self.workers = self.workers or processors()
        if self.python == environment(""):
            self.identity = own_libraries()
            return
        # another Python must be asked for the versions of its libraries
        call = [str(self.python), "-I", "-c", _VERSIONS]
        try:
            versions = subprocess.run(call, capture_output=True, check=True, cwd="/").stdout
        except (OSError, subprocess.CalledProcessError):
            raise UserError(
                f"{self.python} is not a Python that runs: give another path, or "
                f"{GRADER_ENVIRONMENT}"
            ) from None
        self.identity = hashlib.sha256(versions).hexdigest()

    @property
    def conditions(self) -> dict[str, object]:
        """Return everything on which a verdict depends, apart from the program itself. The
        provenance of a table contains this dict.
        """
        return {"grader": self.identity, "sandbox": self.sandbox, "limits": asdict(self.limits)}

    def key(self, program: Program) -> str:
        """Return the key of a program's verdict in the store. Equal programs, such as those of
        equal samples, share a key and run once.

        The hash in the key covers the ``identity``. If the programs run under the kit's own Python,
        the identity lacks the version of Python, which the key's suffix shows (``key_suffix``).
        """
        fields = {"program": program.text, "version": GRADER_VERSION, **self.conditions}
        del fields["sandbox"]
        # In the past, programs that draw figures ran in two processes, where even right answers
        # failed. The store may still have such verdicts of version 3. Their keys lack the field
        # "processes", so they are not found.
        if program.draws:
            fields["processes"] = 1
        ending = key_suffix(self.sandbox != "none")
        return f"program {program.about} {paths.digest(paths.canonical(fields))}{ending}"

    def outcomes(
        self, programs: Sequence[Program], what: str = "grading", keep_failures: bool = True
    ) -> list[Outcome]:
        """Return each program's outcome, in order. Equal programs run once; stored outcomes are
        reused. ``what`` is the label of the progress bar.

        The outcome of a program that was stopped is not stored, because other programs on the
        machine may have caused the time-out. If ``keep_failures`` is False, other failures are not
        stored, either. If several processes share the work, they divide the programs among
        themselves.
        """
        keys = [self.key(one) for one in programs]
        with VerdictStore(":memory:" if self.store is False else self.store) as store:
            by_key = dict(zip(keys, programs, strict=True))
            stored, missing = store.lookup(by_key)
            outcomes = {key: Outcome(**outcome) for key, outcome in stored.items()}
            waiting = {key: by_key[key] for key in missing}
            with Progress(what, len(waiting), "programs", len(outcomes)) as bar:
                for key, outcome in self._run(waiting, store):
                    # only an audit runs a stored program again, to compare the two outcomes
                    is_kept = keep_failures or key in stored
                    if outcome.passed or (is_kept and not outcome.stopped):
                        store.add({key: asdict(replace(outcome, seconds=0.0))})
                    outcomes.setdefault(key, outcome)
                    bar.update()
            for key, fields in store.get(missing).items():  # outcomes of other processes
                outcomes.setdefault(key, Outcome(**fields))
        killed = sum(KILLED.search(outcome.error) is not None for outcome in outcomes.values())
        if killed:
            say(f"warning: {killed} programs were killed twice; they fail now and will run again")
        return [outcomes[key] for key in keys]

    def _run(
        self, waiting: dict[str, Program], store: VerdictStore
    ) -> Iterator[tuple[str, Outcome]]:
        """Yield (key, outcome) for each program as soon as it has ended. Programs with similar
        imports run one after the other, so that few imports are repeated.
        """
        left = sorted(waiting, key=lambda one: (waiting[one].imports, one))
        tasks = store.pending_tasks({(one,): (one, waiting[one]) for one in left})
        run = partial(_run_on_server, self.sandbox, self.python, self.limits)
        results: Iterator[tuple[Any, tuple[str, Outcome]]]
        # A queue takes all tasks in advance. If several machines or processes share the work,
        # another process may finish a task that is still in the queue, and the queue would run this
        # task again.
        if self.cluster is None and shard()[1] == 1:
            queue = _Queue(tasks)
            results = spread(lambda _: run(queue.take(threading.get_ident())), left, self.workers)
        else:
            results = spread(run, tasks, self.workers, self.cluster)
        for _, found in results:
            yield found


class _Queue:
    """A queue of programs. A thread takes the programs that have one set of imports, and then the
    programs of another set, so that most imports run in only one thread.
    """

    def __init__(self, tasks: Iterable[tuple[str, Program]]) -> None:
        self.sets: dict[tuple[str, ...], list[tuple[str, Program]]] = defaultdict(list)
        for task in tasks:
            self.sets[task[1].imports].append(task)
        self.served: dict[int, tuple[str, ...]] = {}  # thread -> the set of its last program
        self.lock = threading.Lock()

    def take(self, thread: int) -> tuple[str, Program]:
        """Return the next (key, program) for a thread: one with the same set of imports as the
        thread's last program. If there is none, choose another set. Each of these rules decides
        only between sets that are equal by the rules above it:

        - Prefer a set that no other thread serves.
        - Prefer a set that begins with many imports of this thread's last program, and with few
          imports of another thread's last program.
        - Prefer a set of several imports. Sets of one import are left for the end, when threads
          share sets, because one import costs little if several threads run it.
        - Prefer the set with the most programs.
        """
        with self.lock:
            last = self.served.pop(thread, ())
            others = [(), *self.served.values()]

            def fitness(imports: tuple[str, ...]) -> tuple[bool, bool, int, bool, int]:
                own, *theirs = (
                    sum(takewhile(bool, map(eq, imports, one))) for one in [last, *others]
                )
                more, size = len(imports) > 1, len(self.sets[imports])
                return imports == last, imports not in others, own - max(theirs), more, size

            chosen = max(self.sets, key=fitness)
            self.served[thread] = chosen
            task = self.sets[chosen].pop()
            if not self.sets[chosen]:
                del self.sets[chosen]
        return task


def _run_on_server(
    sandbox: str, python: Path, limits: Limits, task: tuple[str, Program]
) -> tuple[str, Outcome]:
    """Run one program in a worker's thread, on a server that belongs to this thread alone, and
    return (key, outcome). The thread's later programs use the same server, which ends with the
    thread.
    """
    key, program = task
    check_visible(python)
    kind = sandbox, python, limits
    servers: dict[Any, ForkServer] = vars(_thread)
    if kind not in servers:
        servers[kind] = ForkServer(*kind)
    return key, servers[kind].run(program)


def verdicts(solutions: Sequence[tuple[Problem, str]], grader: Grader) -> list[Outcome]:
    """Return the outcome of each solution on its problem's test. If the problem's own reference
    solution does not pass here, the outcome is "not judged".
    """
    failing = failing_references(list(dict.fromkeys(problem for problem, _ in solutions)), grader)
    left = [(problem, code) for problem, code in solutions if problem.id not in failing]
    outcomes = iter(grader.outcomes([program(problem, code) for problem, code in left]))
    return [
        Outcome(False, f"{NOT_JUDGED}: the reference fails here, too: {failing[problem.id]}")
        if problem.id in failing
        else next(outcomes)
        for problem, _ in solutions
    ]


def failing_references(problems: Sequence[Problem], grader: Grader) -> dict[str, str]:
    """Return {problem id: error} for problems whose own reference solution does not pass. Only
    passes are stored. A reference that passes therefore runs once in an environment, and a
    reference that fails runs every time, because the cause of the failure may be gone.
    """
    programs = [program(problem, problem.reference) for problem in problems]
    what = "checking references, once in this environment"
    outcomes = grader.outcomes(programs, what, keep_failures=False)
    pairs = zip(problems, outcomes, strict=True)
    return {problem.id: outcome.error for problem, outcome in pairs if not outcome.passed}


def lines_by_error(errors: Iterable[tuple[str, str]]) -> list[str]:
    """Return one line per distinct error, with the ids of the problems that have this error.
    ``errors`` are pairs (problem id, error).
    """
    ids: dict[str, dict[str, None]] = defaultdict(dict)
    for id, error in errors:
        ids[error][id] = None
    return [f"{', '.join(some)}: {error}" for error, some in ids.items()]


def problem_ids(problems: Sequence[Problem], ids: str) -> set[str]:
    """Return the problem ids in a comma-separated text. Raises UserError for an unknown id."""
    found = {id.strip() for id in ids.split(",")} - {""}
    if unknown := found - {problem.id for problem in problems}:
        raise UserError(f"there is no problem {', '.join(sorted(unknown))}")
    return found
