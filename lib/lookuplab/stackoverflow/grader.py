"""Does an answer pass its problem's test? Programs run sandboxed in the grader's own Python, each
in a forked process.

DS-1000's reference solutions need the library versions of its time, not the kit's: ``lookuplab data
get ds1000-grader`` makes a virtual environment with the pins of ``data/ds1000-grader.txt``. Before
any answer is scored, the reference solution of every problem asked must pass here. If one does not,
the library versions, the network or the grader are at fault, and a verdict would say nothing about
the answer.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from pathlib import Path

from lookuplab.errors import UserError
from lookuplab.execution import environments
from lookuplab.execution.progress import Progress
from lookuplab.execution.server import ForkServer, Limits, Outcome, Program, choose
from lookuplab.execution.spread import Workers, check_seen, kept, spread
from lookuplab.models.store import AnswerStore, canonical, digest, elsewhere
from lookuplab.stackoverflow.ds1000 import Problem, program

NAME = "ds1000-grader"
GRADER_VERSION = 3  # increase it whenever the same program would get a different verdict
OWN = ("numpy", "pandas", "scipy", "scikit-learn")  # what the mini benchmark's programs import
_VERSIONS = """import sys
from importlib.metadata import distributions
print(sys.version, sorted({(one.metadata["Name"], one.version) for one in distributions()}))"""


def environment(name: str = NAME) -> Path:
    """The Python of an installed environment, at a path, or for "" the kit's own. Raises UserError
    if there is none.
    """
    if not name or Path(name).is_file():
        # absolute, not resolved: Python recognises a virtual environment by the link's path
        return Path(name or sys.executable).absolute()
    if not environments.is_made(name):
        raise UserError(
            f"no grader environment {name!r}: run `lookuplab data get {NAME}`, or give a Python's path"
        )
    return environments.make(name)


def own_libraries() -> str:
    """What verdicts under the kit's own Python depend on."""
    return ", ".join(f"{name} {metadata.version(name)}" for name in OWN)


@dataclass(frozen=True)
class Answer:
    """One answer's code, as it is inserted into the program; ``sample`` counts a problem's answers
    from 0.

    After ``grade``: whether it passed, and the reason in one line if it did not ("" if it did).
    """

    problem_id: str
    sample: int
    solution: str
    passed: bool = False
    error: str = ""


class VerdictStore(AnswerStore):
    """Key -> an Outcome's fields, in ``verdicts.sqlite`` beside the completion store."""

    name = "verdicts"


@dataclass
class Grader:
    """Runs programs and keeps their outcomes.

    python: see ``environment``. sandbox, own: see ``execution.server.choose``. store: None means
    the file next to the completion store, False keeps nothing. workers: the number of servers at
    once, by default one per CPU; with a cluster, one per worker thread. limits: DS-1000's own, as
    CPU time, which other work on the machine does not change.
    """

    python: Path = Path(sys.executable).absolute()
    sandbox: str = ""
    own: bool = False
    store: Path | bool | None = None
    workers: int = 0
    limits: Limits = Limits()
    cluster: Workers | None = None
    identity: str = field(init=False)

    def __post_init__(self) -> None:
        self.sandbox = choose(self.sandbox, self.own)
        self.workers = self.workers or os.cpu_count() or 1
        if self.python == environment(""):
            self.identity = own_libraries()
            return
        call = [self.python, "-I", "-c", _VERSIONS]
        try:
            versions = subprocess.run(call, capture_output=True, check=True, cwd="/").stdout
        except (OSError, subprocess.CalledProcessError):
            raise UserError(
                f"{self.python} does not run as a Python: give another path, or {NAME}"
            ) from None
        self.identity = hashlib.sha256(versions).hexdigest()

    @property
    def conditions(self) -> dict[str, object]:
        """What verdicts depend on besides the programs, for the provenance."""
        return {"grader": self.identity, "sandbox": self.sandbox, "limits": asdict(self.limits)}

    def key(self, one: Program) -> str:
        """The key of a program's verdict in the store; five equal samples share it and run once.

        The kit's own Python is told by the ending of the key, another one by ``identity``.
        """
        fields = {"program": one.text, "version": GRADER_VERSION, **self.conditions}
        del fields["sandbox"]
        ending = elsewhere(self.sandbox != "none")
        return f"program {one.about} {digest(canonical(fields))}{ending}"

    def outcomes(
        self, programs: Sequence[Program], what: str = "grading", keep_failures: bool = True
    ) -> list[Outcome]:
        """Each program's outcome, in order. Equal texts run once; programs whose outcome is stored
        do not run.

        The outcome of a program that was stopped is not stored, because other work on the machine
        may have caused a time-out.
        """
        keys = [self.key(one) for one in programs]
        with VerdictStore(":memory:" if self.store is False else self.store) as store:
            by_key = dict(zip(keys, programs, strict=True))
            found, missing = store.lookup(by_key, self)
            known = {key: Outcome(**outcome) for key, outcome in found.items()}
            waiting = {key: by_key[key] for key in missing}
            with Progress(what, len(waiting), "programs", len(known)) as bar:
                for one, outcome in self._run(waiting):
                    if outcome.passed or keep_failures and not outcome.stopped:
                        store.put(one, asdict(replace(outcome, seconds=0.0)))
                    known[one] = outcome
                    bar.update()
        return [known[one] for one in keys]

    def _run(self, waiting: dict[str, Program]) -> Iterator[tuple[str, Outcome]]:
        """(key, outcome) as they arrive. Programs with similar imports run one after the other, so
        that few imports are repeated.
        """
        left = sorted(waiting, key=lambda one: (waiting[one].imports, one))
        tasks = [(self.sandbox, self.python, self.limits, waiting[one]) for one in left]
        for at, outcome in spread(_run_there, tasks, self.workers, self.cluster):
            yield left[at], outcome


def _run_there(task: tuple[str, Path, Limits, Program]) -> Outcome:
    """Run one program in a worker's thread, which keeps its server for the next."""
    *conditions, program = task
    check_seen(conditions[1])
    return kept(ForkServer, *conditions).run(program)


def grade(problems: Sequence[Problem], answers: Sequence[Answer], grader: Grader) -> list[Answer]:
    """The answers with their verdicts. Raises UserError if the reference solution of a problem does
    not pass here.
    """
    known = {problem.id: problem for problem in problems}
    asked = dict.fromkeys(known[one.problem_id] for one in answers)
    if failing := failing_references(list(asked), grader):
        reasons = [f"{one} ({error})" for one, error in failing.items()]
        some = "; ".join(reasons[:5] + ["..."] * (len(reasons) > 5))
        raise UserError(
            f"the reference solutions of {len(failing)} of these problems fail here: {some}; to score the others "
            f"with `lookuplab score`: --leave-out {','.join(failing)}"
        )
    outcomes = grader.outcomes([program(known[one.problem_id], one.solution) for one in answers])
    pairs = zip(answers, outcomes, strict=True)
    return [replace(one, passed=outcome.passed, error=outcome.error) for one, outcome in pairs]


def failing_references(problems: Sequence[Problem], grader: Grader) -> dict[str, str]:
    """Problem id -> error, for problems whose own reference does not pass. The next run tries them
    again.
    """
    programs = [program(one, one.reference) for one in problems]
    outcomes = grader.outcomes(programs, "checking references", keep_failures=False)
    pairs = zip(problems, outcomes, strict=True)
    return {one.id: outcome.error for one, outcome in pairs if not outcome.passed}
