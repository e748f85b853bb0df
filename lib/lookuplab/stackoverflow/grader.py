"""Does an answer pass its problem's test? Programs run in the grader's own Python, in a sandbox, a fork each.

Before any answer is scored, the reference of every problem asked must pass here: where it does not, the library
versions, the network or the grader are at fault, and a verdict would say nothing about the answer.
"""

import os
import queue
from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from tqdm import tqdm

from lookuplab.cluster import Cluster, check_seen, kept
from lookuplab.errors import UserError
from lookuplab.execution.sandbox import Limits, Sandbox, choose
from lookuplab.execution.server import ForkServer, Outcome, Program
from lookuplab.stackoverflow import environment
from lookuplab.stackoverflow.ds1000 import Problem, program
from lookuplab.stackoverflow.verdicts import VerdictStore, key


def limited(seconds: float = 120.0) -> Limits:
    """DS-1000's own limit, as CPU time, which other work on the machine does not change; what waits is stopped later.
    """
    return Limits(seconds=2 * seconds, cpu_seconds=seconds)


LIMITS = limited()


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


@dataclass
class Grader:
    """Runs programs and keeps their outcomes.

    python: the grader's Python (``environment.environment``). sandbox: None takes the best that works here. store: None
    is the file beside the completion store, False keeps nothing. workers: servers at a time, by default one a CPU; with
    a cluster, one a worker's thread.
    """

    python: Path
    sandbox: Sandbox | None = None
    store: VerdictStore | str | os.PathLike | bool | None = None
    workers: int | None = None
    limits: Limits = LIMITS
    progress: bool = True
    cluster: Cluster | None = None
    identity: str = field(init=False)

    def __post_init__(self) -> None:
        self.sandbox = self.sandbox or choose()
        self.workers = self.workers or os.cpu_count() or 1
        self.identity = environment.identity(self.python)

    @property
    def conditions(self) -> dict[str, object]:
        """What verdicts depend on beside the programs, for the provenance."""
        return {"grader": self.identity, "sandbox": self.sandbox.name, "limits": asdict(self.limits)}

    def outcomes(self, programs: Sequence[Program], what: str = "grading", keep_failures: bool = True
                 ) -> list[Outcome]:
        """Each program's outcome, in order. Equal texts run once; what the store has does not run.

        A program that was stopped is not stored: a time-out may be the fault of what else the machine does.
        """
        keys = [key(one, self.identity, self.sandbox, self.limits) for one in programs]
        with self._opened() as store:
            known = {one: Outcome(**answer) for one, answer in store.get(dict.fromkeys(keys)).items()}
            waiting = {one: program for one, program in zip(keys, programs, strict=True) if one not in known}
            with tqdm(total=len(waiting), desc=what, unit=" programs", disable=not self.progress, delay=1) as bar:
                for one, outcome in self._run(waiting):
                    if outcome.passed or keep_failures and not outcome.stopped:
                        store.put(one, asdict(outcome))
                    known[one] = outcome
                    bar.update()
        return [known[one] for one in keys]

    @contextmanager
    def _opened(self) -> Iterator[VerdictStore]:
        given = self.store
        path = ":memory:" if given is False else None if given is True else given
        with nullcontext(given) if isinstance(given, VerdictStore) else VerdictStore(path) as store:
            yield store

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
                    done.put((one, _in_one_line(server.run(program))))
        except BaseException as error:  # raised where the outcomes are taken
            done.put(("", error))


def _run_there(task: tuple[Sandbox, Path, Limits, Program]) -> Outcome:
    """One program on a worker of a cluster, which keeps its server for the next."""
    *conditions, program = task
    check_seen(conditions[1])
    return _in_one_line(kept(ForkServer, *conditions).run(program))


def _in_one_line(outcome: Outcome) -> Outcome:
    return replace(outcome, error=" ".join(outcome.error.split()))


def grade(problems: Sequence[Problem], answers: Sequence[Answer], grader: Grader,
          leave_out: Collection[str] = ()) -> list[Verdict]:
    """The verdict of every answer, by problem id and sample, whatever the order of ``answers``.

    Answers to the problems named in ``leave_out`` are not scored. Raises UserError for an answer to an unknown problem,
    two answers of one sample, and for problems whose reference does not pass here and that are not left out.
    """
    known = {problem.id: problem for problem in problems}
    _check(known, answers, leave_out)
    asked = sorted((answer for answer in answers if answer.problem_id not in leave_out), key=_place)
    failing = failing_references([known[one] for one in dict.fromkeys(answer.problem_id for answer in asked)], grader)
    if failing:
        reasons = "; ".join(f"{one} ({error})" for one, error in list(failing.items())[:5])
        raise UserError(f"the reference solutions of {len(failing)} of these problems fail here: {reasons}"
                        f"{'; ...' if len(failing) > 5 else ''}; to score the others, leave out "
                        f"{','.join(failing)} (--leave-out)")
    programs = [program(known[answer.problem_id], answer.solution) for answer in asked]
    return [Verdict(answer.problem_id, answer.sample, outcome.passed, outcome.error)
            for answer, outcome in zip(asked, grader.outcomes(programs), strict=True)]


def failing_references(problems: Sequence[Problem], grader: Grader) -> dict[str, str]:
    """Problem id -> error, of those whose own reference does not pass. Failures are not kept: the next run tries again.
    """
    programs = [program(problem, problem.reference) for problem in problems]
    outcomes = grader.outcomes(programs, "checking references", keep_failures=False)
    return {problem.id: outcome.error for problem, outcome in zip(problems, outcomes, strict=True)
            if not outcome.passed}


def _check(known: dict[str, Problem], answers: Sequence[Answer], leave_out: Collection[str]) -> None:
    unknown = [one for one in [*(answer.problem_id for answer in answers), *leave_out] if one not in known]
    if unknown:
        raise UserError(f"unknown problem {unknown[0]!r}: not one of the {len(known)} given")
    twice = [one for one, count in Counter((a.problem_id, a.sample) for a in answers).items() if count > 1]
    if twice:
        raise UserError(f"two answers to problem {twice[0][0]} as sample {twice[0][1]}")


def _place(answer: Answer) -> tuple:
    """Order by id, whole numbers as such and before names, then by sample."""
    number = int(answer.problem_id) if answer.problem_id.isdecimal() else None
    return number is None, number or 0, answer.problem_id, answer.sample
