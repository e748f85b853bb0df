"""Does an answer pass its problem's test? Programs run in the grader's own Python, contained, a fork each.

DS-1000's references hold for the library versions of its time, not for the kit's: ``lookuplab data get ds1000-grader``
makes a virtual environment with the pins of ``data/ds1000-grader.txt``. Before any answer is scored, the reference of
every problem asked must pass here: where it does not, the library versions, the network or the grader are at fault, and
a verdict would say nothing about the answer.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tqdm import tqdm

from lookuplab import paths
from lookuplab.cluster import Cluster, check_seen, kept
from lookuplab.errors import UserError
from lookuplab.execution.server import ENVIRONMENT, ForkServer, Limits, Outcome, Program, choose
from lookuplab.models.store import AnswerStore, canonical, digest
from lookuplab.provenance import file_hash
from lookuplab.stackoverflow.ds1000 import Problem, program

NAME = "ds1000-grader"
GRADER_VERSION = 3  # raise it whenever the same program would get another verdict than before
_VERSIONS = """import sys
from importlib.metadata import distributions
print(sys.version, sorted({(one.metadata["Name"], one.version) for one in distributions()}))"""


def folder(name: str = NAME) -> Path:
    """The place of a pinned environment; it need not exist."""
    return paths.DOWNLOADS / name / "venv"


def is_made(name: str = NAME) -> bool:
    """Whether all of today's pins were installed."""
    mark, pins = folder(name) / "installed.txt", paths.DATA / f"{name}.txt"
    return mark.is_file() and mark.read_text(encoding="utf-8") == file_hash(pins)


def make(name: str = NAME) -> Path:
    """Install the pins of an environment; what is there stays. Raises UserError where venv or pip fail."""
    pins, pip = paths.DATA / f"{name}.txt", ["-m", "pip", "install", "--no-input", "-r"]
    if not is_made(name):
        try:
            subprocess.run([sys.executable, "-m", "venv", folder(name)], check=True)
            subprocess.run([folder(name) / "bin/python", *pip, pins], check=True)
        except subprocess.CalledProcessError as error:
            raise UserError(
                f"{name}: {error}; what came is kept, and the same command goes on from there"
            ) from None
        (folder(name) / "installed.txt").write_text(file_hash(pins), encoding="utf-8")
    return folder(name) / "bin/python"


def environment(name: str = NAME) -> Path:
    """The Python of an environment that was made, of a path, or the kit's own for "". Raises UserError without one."""
    if not name or Path(name).is_file():
        return Path(
            name or sys.executable
        ).absolute()  # a virtual environment is known by its link's place
    if not (paths.DATA / f"{name}.txt").is_file():
        raise UserError(
            f"no grader environment {name!r}: neither a Python's path nor {name}.txt in data/"
        )
    if not is_made(name):
        raise UserError(
            f"the grader environment {name} is incomplete: run `lookuplab data get {name}`"
        )
    return folder(name) / "bin/python"


@dataclass(frozen=True)
class Answer:
    """One answer's code, as it is put into the program; ``sample`` counts a problem's answers from 0."""

    problem_id: str
    sample: int
    solution: str


@dataclass(frozen=True)
class Verdict:
    """Whether one answer passed; ``error`` says in one line why not ("" if it did)."""

    problem_id: str
    sample: int
    passed: bool
    error: str


class VerdictStore(AnswerStore):
    """Key -> {passed, error, seconds}, in ``verdicts.sqlite`` beside the completion store."""

    name = "verdicts"


@dataclass
class Grader:
    """Runs programs and keeps their outcomes.

    python: see ``environment``. sandbox, own: see ``execution.server.choose``. store: None is the file beside the
    completion store, False keeps nothing. workers: servers at a time, by default one a CPU; with a cluster, one a
    worker's thread. limits: DS-1000's own, as CPU time, which other work on the machine does not change.
    """

    python: Path = Path(sys.executable)
    sandbox: str = ""
    own: bool = False
    store: Path | bool | None = None
    workers: int = 0
    limits: Limits = Limits()
    progress: bool = True
    cluster: Cluster | None = None
    identity: str = field(init=False)

    def __post_init__(self) -> None:
        self.sandbox = choose(self.sandbox, self.own)
        self.workers = self.workers or os.cpu_count() or 1
        call = [self.python, "-I", "-c", _VERSIONS]
        versions = subprocess.run(call, capture_output=True, check=True, cwd="/").stdout
        self.identity = hashlib.sha256(versions).hexdigest()

    @property
    def conditions(self) -> dict[str, object]:
        """What verdicts depend on beside the programs, for the provenance."""
        return {"grader": self.identity, "sandbox": self.sandbox, "limits": asdict(self.limits)}

    def key(self, one: Program) -> str:
        """Of a program's verdict in the store: five equal samples are run once."""
        return digest(
            canonical({"program": one.text, "version": GRADER_VERSION, **self.conditions})
        )

    def outcomes(
        self, programs: Sequence[Program], what: str = "grading", keep_failures: bool = True
    ) -> list[Outcome]:
        """Each program's outcome, in order. Equal texts run once; what the store has does not run.

        A program that was stopped is not stored: a time-out may be the fault of what else the machine does.
        """
        keys = [self.key(one) for one in programs]
        with VerdictStore(":memory:" if self.store is False else self.store) as store:
            known = {one: Outcome(**found) for one, found in store.get(dict.fromkeys(keys)).items()}
            both = zip(keys, programs, strict=True)
            waiting = {one: program for one, program in both if one not in known}
            bar = tqdm(
                self._run(waiting),
                desc=what,
                total=len(waiting),
                unit=" programs",
                disable=not self.progress,
                delay=1,
            )
            for one, outcome in bar:
                if outcome.passed or keep_failures and not outcome.stopped:
                    store.put(one, asdict(outcome))
                known[one] = outcome
        return [known[one] for one in keys]

    def _run(self, waiting: dict[str, Program]) -> Iterator[tuple[str, Outcome]]:
        """(key, outcome) as they come. Programs with like imports follow each other, so that few are made anew."""
        left = sorted(waiting, key=lambda one: (waiting[one].imports, one))
        tasks = [(self.sandbox, self.python, self.limits, waiting[one]) for one in left]
        if self.cluster is not None:
            yield from ((left[at], outcome) for at, outcome in self.cluster.map(_run_there, tasks))
            return
        with ThreadPoolExecutor(self.workers) as threads:
            yield from zip(left, threads.map(_run_there, tasks), strict=True)


def _run_there(task: tuple[str, Path, Limits, Program]) -> Outcome:
    """One program in a worker's thread, which keeps its server for the next."""
    *conditions, program = task
    check_seen(conditions[1])
    return kept(ForkServer, *conditions).run(program)


def grade(
    problems: Sequence[Problem],
    answers: Sequence[Answer],
    grader: Grader,
    leave_out: Collection[str] = (),
) -> list[Verdict]:
    """The verdict of every answer, by problem id and sample, whatever the order of ``answers``.

    Answers to the problems named in ``leave_out`` are not scored. Raises UserError for an answer to an unknown problem,
    two answers of one sample, and for problems whose reference does not pass here and that are not left out.
    """
    known = {problem.id: problem for problem in problems}
    if unknown := {*(answer.problem_id for answer in answers), *leave_out} - known.keys():
        raise UserError(f"unknown problem {min(unknown)!r}: not one of the {len(known)} given")
    asked = {(one.problem_id, one.sample): one for one in answers}
    if len(asked) < len(answers):
        raise UserError("two answers to one problem as one sample")
    asked = [asked[place] for place in sorted(asked, key=_place) if place[0] not in leave_out]
    failing = failing_references(
        [known[one] for one in dict.fromkeys(one.problem_id for one in asked)], grader
    )
    if failing:
        reasons = "; ".join(f"{one} ({error})" for one, error in list(failing.items())[:5])
        raise UserError(
            f"the reference solutions of {len(failing)} of these problems fail here: {reasons}, ...; to score the "
            f"others, leave out {','.join(failing)} (--leave-out)"
        )
    outcomes = grader.outcomes([program(known[one.problem_id], one.solution) for one in asked])
    pairs = zip(asked, outcomes, strict=True)
    return [
        Verdict(one.problem_id, one.sample, outcome.passed, outcome.error) for one, outcome in pairs
    ]


def failing_references(problems: Sequence[Problem], grader: Grader) -> dict[str, str]:
    """Problem id -> error, of those whose own reference does not pass. The next run tries them again."""
    programs = [program(problem, problem.reference) for problem in problems]
    outcomes = grader.outcomes(programs, "checking references", keep_failures=False)
    return {
        one.id: outcome.error
        for one, outcome in zip(problems, outcomes, strict=True)
        if not outcome.passed
    }


def _place(place: tuple[str, int]) -> tuple:
    """Order by id, whole numbers as such and before names, then by sample."""
    return (0, int(place[0]), *place) if place[0].isdecimal() else (1, 0, *place)


def fresh_process(one: Program, python: Path, seconds: float = 240) -> Outcome:
    """The literal way of DS-1000, for comparison: a process that imports all anew, without a sandbox."""
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run(
            [python, "-"],
            input=one.text.encode(),
            capture_output=True,
            cwd=place,
            env=ENVIRONMENT,
            timeout=seconds,
        )
    return Outcome(
        done.returncode == 0, done.stderr.decode(errors="replace").strip().rpartition("\n")[2], 0
    )
