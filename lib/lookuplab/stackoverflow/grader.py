"""Does an answer pass its problem's test? Programs run in the grader's own Python, contained, a fork each.

DS-1000's references hold for the library versions of its time, not for the kit's: ``lookuplab data get ds1000-grader``
makes a virtual environment with the pins of ``data/ds1000-grader.txt``. Before any answer is scored, the reference of
every problem asked must pass here: where it does not, the library versions, the network or the grader are at fault, and
a verdict would say nothing about the answer.
"""

import hashlib
import os
import queue
import subprocess
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
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
            raise UserError(f"{name}: {error}; what came is kept, and the same command goes on from there") from None
        (folder(name) / "installed.txt").write_text(file_hash(pins), encoding="utf-8")
    return folder(name) / "bin/python"


def environment(name: str = NAME) -> Path:
    """The Python of an environment that was made, of a path, or the kit's own for "". Raises UserError without one."""
    if not name or Path(name).is_file():
        return Path(name or sys.executable).absolute()  # a virtual environment is known by its link's place
    if not (paths.DATA / f"{name}.txt").is_file():
        raise UserError(f"no grader environment {name!r}: neither a Python's path nor {name}.txt in data/")
    if not is_made(name):
        raise UserError(f"the grader environment {name} is incomplete: run `lookuplab data get {name}`")
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
    store: VerdictStore | str | os.PathLike | bool | None = None
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
        return digest(canonical({"program": one.text, "version": GRADER_VERSION, **self.conditions}))

    def outcomes(self, programs: Sequence[Program], what: str = "grading", keep_failures: bool = True) -> list[Outcome]:
        """Each program's outcome, in order. Equal texts run once; what the store has does not run.

        A program that was stopped is not stored: a time-out may be the fault of what else the machine does.
        """
        keys, given = [self.key(one) for one in programs], self.store
        path = ":memory:" if given is False else given
        with nullcontext(given) if isinstance(given, VerdictStore) else VerdictStore(path) as store:
            known = {one: Outcome(**answer) for one, answer in store.get(dict.fromkeys(keys)).items()}
            waiting = {one: program for one, program in zip(keys, programs, strict=True) if one not in known}
            with tqdm(total=len(waiting), desc=what, unit=" programs", disable=not self.progress, delay=1) as bar:
                for one, outcome in self._run(waiting):
                    if outcome.passed or keep_failures and not outcome.stopped:
                        store.put(one, asdict(outcome))
                    known[one] = outcome
                    bar.update()
        return [known[one] for one in keys]

    def _run(self, waiting: dict[str, Program]) -> Iterator[tuple[str, Outcome]]:
        """(key, outcome) as they come. Programs with like imports follow each other, so that few are made anew."""
        left = deque(sorted(waiting.items(), key=lambda item: (item[1].imports, item[0])))
        if self.cluster is not None:
            names = [one for one, _ in left]
            tasks = [(self.sandbox, self.python, self.limits, program) for _, program in left]
            yield from ((names[at], outcome) for at, outcome in self.cluster.map(_run_there, tasks))
            return
        done = queue.Queue()
        with ThreadPoolExecutor(self.workers) as threads:
            for number in range(min(self.workers, len(left))):
                threads.submit(self._serve, left, number % 2 == 1, done)
            try:
                for _ in waiting:
                    one, outcome = done.get()
                    if isinstance(outcome, BaseException):
                        raise outcome
                    yield one, outcome
            finally:
                left.clear()  # after an error or an interrupt each server ends with the program that it is at

    def _serve(self, left: deque, backwards: bool, done: queue.Queue) -> None:
        """One server: run one program after the other, from one end of the list."""
        try:
            with ForkServer(self.sandbox, self.python, self.limits) as server:
                while left:
                    try:
                        one, program = left.pop() if backwards else left.popleft()
                    except IndexError:  # another server was faster
                        return
                    done.put((one, server.run(program)))
        except BaseException as error:  # raised where the outcomes are taken
            done.put(("", error))


def _run_there(task: tuple[str, Path, Limits, Program]) -> Outcome:
    """One program on a worker of a cluster, which keeps its server for the next."""
    *conditions, program = task
    check_seen(conditions[1])
    return kept(ForkServer, *conditions).run(program)


def grade(
    problems: Sequence[Problem], answers: Sequence[Answer], grader: Grader, leave_out: Collection[str] = ()
) -> list[Verdict]:
    """The verdict of every answer, by problem id and sample, whatever the order of ``answers``.

    Answers to the problems named in ``leave_out`` are not scored. Raises UserError for an answer to an unknown problem,
    two answers of one sample, and for problems whose reference does not pass here and that are not left out.
    """
    known = {problem.id: problem for problem in problems}
    unknown = {*(answer.problem_id for answer in answers), *leave_out} - known.keys()
    if unknown:
        raise UserError(f"unknown problem {min(unknown)!r}: not one of the {len(known)} given")
    (place, count), *_ = *Counter((one.problem_id, one.sample) for one in answers).most_common(1), ((), 0)
    if count > 1:
        raise UserError(f"two answers to problem {place[0]} as sample {place[1]}")
    asked = sorted((answer for answer in answers if answer.problem_id not in leave_out), key=_place)
    failing = failing_references([known[one] for one in dict.fromkeys(answer.problem_id for answer in asked)], grader)
    if failing:
        reasons = "; ".join(f"{one} ({error})" for one, error in list(failing.items())[:5])
        raise UserError(
            f"the reference solutions of {len(failing)} of these problems fail here: {reasons}"
            f"{'; ...' if len(failing) > 5 else ''}; to score the others, leave out {','.join(failing)} (--leave-out)"
        )
    outcomes = grader.outcomes([program(known[answer.problem_id], answer.solution) for answer in asked])
    return [
        Verdict(answer.problem_id, answer.sample, outcome.passed, outcome.error)
        for answer, outcome in zip(asked, outcomes, strict=True)
    ]


def failing_references(problems: Sequence[Problem], grader: Grader) -> dict[str, str]:
    """Problem id -> error, of those whose own reference does not pass. The next run tries them again."""
    programs = [program(problem, problem.reference) for problem in problems]
    outcomes = grader.outcomes(programs, "checking references", keep_failures=False)
    return {one.id: outcome.error for one, outcome in zip(problems, outcomes, strict=True) if not outcome.passed}


def _place(answer: Answer) -> tuple:
    """Order by id, whole numbers as such and before names, then by sample."""
    number = int(answer.problem_id) if answer.problem_id.isdecimal() else None
    return number is None, number or 0, answer.problem_id, answer.sample


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
    return Outcome(done.returncode == 0, done.stderr.decode(errors="replace").strip().rpartition("\n")[2], 0)
