"""Library examples run in a forked child each; finished problems are judged by the grader, as answers are."""

import multiprocessing
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from tqdm import tqdm

from lookuplab.execution.server import Limits
from lookuplab.mini.packages import EXAMPLE_PACKAGES
from lookuplab.mini.problems.examples import Example
from lookuplab.stackoverflow.ds1000 import Problem, program
from lookuplab.stackoverflow.grader import Grader

SECONDS = 300  # for all runs of one example together, against what hangs without computing
PROCESSOR_SECONDS = 40  # for the same, against library code in which no signal is heard
MEMORY = 8 << 30  # bytes of address space
PRELOADED = ["lookuplab.mini.problems.perturbations", "scipy.stats", "scipy.signal", "scipy.ndimage", "scipy.linalg",
             "scipy.sparse", "scipy.optimize", "scipy.special", "sklearn.linear_model", "sklearn.ensemble"]


def examined(examples: list[Example], progress: bool = True) -> Iterator[list | str]:
    """``perturbations.examine`` of every example, in their order: its drafts, or why there are none."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with quiet_threads():
        for example in tqdm(examples, desc="examples", disable=not progress):
            receiving, sending = context.Pipe(duplex=False)
            child = context.Process(target=_examine, args=(sending, example))
            child.start()
            sending.close()
            try:
                yield receiving.recv() if receiving.poll(SECONDS) else "slow"
            except EOFError:
                child.join()
                yield "slow" if child.exitcode == -signal.SIGXCPU else "does not run on its own"
            finally:
                child.kill()
                child.join()


def _examine(sending, example: Example) -> None:
    """Child process: no file is written outside a folder that goes away, no connection opened."""
    from lookuplab.mini.problems.perturbations import examine

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.dont_write_bytecode = True
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS + 1))
        sys.addaudithook(_refuse)
        done = examine(example)
        os.chdir("/")
        sending.send(done)


def _refuse(event: str, arguments: tuple) -> None:
    """Audit hook. Raises PermissionError for connections, other programs, and files opened for writing."""
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if writes or event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec"):
        raise PermissionError(f"{event} is not for examples")


class quiet_threads:
    """While it lasts, new processes compute on one thread: many small examples, and the same last bits each time."""

    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

    def __enter__(self) -> None:
        self.before = {name: os.environ.get(name) for name in self.names}
        os.environ.update(dict.fromkeys(self.names, "1"))

    def __exit__(self, *_: object) -> None:
        for name, value in self.before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def faults(tried: Sequence[tuple[dict, list[str]]]) -> list[str]:
    """For each (record, wrong answers), judged by the grader: empty where the reference passes and they all fail."""
    problems = [Problem(id=str(number), prompt=record["prompt"], reference=record["reference_code"],
                        context=record["code_context"], library="", perturbation="", origin="")
                for number, (record, _) in enumerate(tried)]
    grader = Grader(own=True, store=False, limits=Limits(seconds=30), progress=False)
    references = grader.outcomes([program(problem, problem.reference) for problem in problems])
    answers = [(number, answer) for number, (_, wrong) in enumerate(tried) for answer in wrong]
    outcomes = grader.outcomes([program(problems[number], answer) for number, answer in answers])
    passing = {number for (number, _), outcome in zip(answers, outcomes, strict=True) if outcome.passed}
    return ["gives another value in a second process" if not reference.passed else
            "a wrong answer passes" if number in passing else "" for number, reference in enumerate(references)]


def versions() -> dict[str, str]:
    """Version of each of the four libraries, by the name of its distribution."""
    return {name: metadata.version(name) for name in EXAMPLE_PACKAGES}
