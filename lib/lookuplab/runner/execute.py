"""Executes jobs in parallel worker processes, tries again when a kernel does not start, and ends them all on Ctrl-C."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from lookuplab import paths
from lookuplab.cluster import Cluster
from lookuplab.models.answer_log import LOG
from lookuplab.runner import launch
from lookuplab.runner.answers import log_of
from lookuplab.runner.on_cluster import ClusterWorkers
from lookuplab.runner.plan import Job
from lookuplab.runner.prefork import gains, prefork

ATTEMPTS = 3  # kernels that are started at the same time can collide on a port (papermill #239, #511)
START_TIMEOUT = 120  # seconds; a loaded machine needs more than papermill's 60


@dataclass(frozen=True)
class Failure:
    """``cell`` is the 1-based number among the notebook's code cells, 0 where no cell is to blame."""

    cell: int
    source: str
    ename: str
    evalue: str
    traceback: str = ""

    @property
    def is_user_error(self) -> bool:
        return self.ename == "UserError"


@dataclass(frozen=True)
class Result:
    """What became of a job; ``failure`` is None when every cell ran."""

    job: Job
    seconds: float
    failure: Failure | None = None


Listener = Callable[[Job, dict], None]  # told each event of a worker: start, cell, text, retry, end


def run_jobs(jobs: Sequence[Job], parallel: int = 1, listener: Listener = lambda job, event: None,
             cluster: Cluster | None = None, kernels: Path | None = None) -> list[Result]:
    """Run all jobs, those of a paper after its ``first`` ones, the ``alone`` ones by themselves at the end.

    A failing job stops no other. Results are in the order of ``jobs``. KeyboardInterrupt ends all workers and kernels,
    then goes on to the caller. ``cluster`` runs them on its workers, as many at a time as it has. ``kernels`` is a
    folder of ``prefork``; without it several jobs that gain by it share one.
    """
    alone = {i: job for i, job in enumerate(jobs) if job.notebook.order == "alone"}
    others = {i: job for i, job in enumerate(jobs) if i not in alone}
    with ClusterWorkers(cluster, listener) if cluster else _Workers(kernels, listener) as workers:
        results = workers.run(others, parallel) | workers.run(alone, 1)
    return [results[i] for i in range(len(jobs))]


class _Workers:
    """The running worker processes, so that they can be ended together."""

    def __init__(self, kernels: Path | None, listener: Listener):
        self.kernels, self.listener = kernels, listener
        self._running: set[subprocess.Popen] = set()
        self._lock = threading.Lock()
        self._stopping = False

    def __enter__(self) -> "_Workers":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def run(self, jobs: dict[int, Job], parallel: int) -> dict[int, Result]:
        if not jobs:
            return {}
        gaining = {i for i, job in jobs.items() if gains(job)}
        is_worth_it = self.kernels is None and len(gaining) > 1
        with prefork(environment(parallel)) if is_worth_it else nullcontext(self.kernels) as kernels, \
                ThreadPoolExecutor(parallel) as pool:
            try:
                futures: dict[int, Future[Result]] = {}
                while pending := [i for i in jobs if i not in futures or not futures[i].done()]:
                    first = [i for i in pending if jobs[i].notebook.order == "first"]
                    filling = {jobs[i].notebook.paper for i in first}
                    ready = [*first, *(i for i in pending if jobs[i].notebook.paper not in filling)]
                    futures |= {i: pool.submit(self._run_one, jobs[i], environment(
                        parallel, jobs[i], kernels if i in gaining else None)) for i in ready if i not in futures}
                    # short waits: a signal is handled between them
                    wait([futures[i] for i in pending if i in futures], timeout=0.2, return_when=FIRST_COMPLETED)
                return {i: future.result() for i, future in futures.items()}
            except BaseException:
                self.stop()
                pool.shutdown(cancel_futures=True)
                raise

    def stop(self) -> None:
        """Close the lifelines (each worker then ends its kernel) and kill what has not ended after that."""
        with self._lock:
            self._stopping = True
            running = list(self._running)
        for process in running:
            process.stdin.close()
        for process in running:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                _kill_tree(process.pid)

    def _run_one(self, job: Job, surroundings: dict[str, str]) -> Result:
        began = time.monotonic()
        self.listener(job, {"event": "start"})
        for attempt in range(1, ATTEMPTS + 1):
            end = self._execute(job, surroundings)
            if end["event"] != "kernel" or attempt == ATTEMPTS or self._stopping:
                break
            self.listener(job, {"event": "retry", "attempt": attempt + 1, "why": end["evalue"]})
        failure = None
        if end["event"] != "done":
            failure = Failure(end["cell"], end["source"], end["ename"], end["evalue"], end["traceback"])
        result = Result(job, time.monotonic() - began, failure)
        self.listener(job, {"event": "end", "result": result})
        return result

    def _execute(self, job: Job, surroundings: dict[str, str]) -> dict:
        """Run one worker to its end; return its last event (``done``, ``failed`` or ``kernel``)."""
        job.output.parent.mkdir(parents=True, exist_ok=True)
        log_of(job).unlink(missing_ok=True)
        log = job.output.with_suffix(".log")
        with open(log, "w", encoding="utf-8") as errors:
            process = self._start(job, surroundings, errors)
            last: dict = {}
            for line in process.stdout:
                event = json.loads(line)
                if event["event"] in ("done", "failed", "kernel"):
                    last = event
                else:
                    self.listener(job, event)
            code = process.wait()
        with self._lock:
            self._running.discard(process)
        return last or {"event": "failed", "cell": 0, "source": "", "ename": "WorkerDied", "traceback": "",
                        "evalue": f"the process ended with code {code} (out of memory?); see {log}"}

    def _start(self, job: Job, surroundings: dict[str, str], errors: object) -> subprocess.Popen:
        with self._lock:
            if self._stopping:
                raise KeyboardInterrupt
            process = subprocess.Popen(
                [sys.executable, "-m", "lookuplab.runner.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=errors, text=True, env=surroundings, start_new_session=True)
            self._running.add(process)
        process.stdin.write(json.dumps(_message(job)) + "\n")
        process.stdin.flush()
        return process


def environment(parallel: int, job: Job | None = None, kernels: Path | None = None) -> dict[str, str]:
    """What a worker and its kernel see: this interpreter's kernel or one in ``kernels``, a share of the cores; of a
    ``job`` where its artifacts go, too."""
    threads = str(max(1, cores() // parallel))
    places = [kernels, Path(sys.prefix) / "share" / "jupyter", os.environ.get("JUPYTER_PATH")]
    fixed = {
        "JUPYTER_PATH": os.pathsep.join(str(place) for place in places if place), "JUPYTER_PREFER_ENV_PATH": "1",
        "IPYTHONDIR": str(paths.RUNS / ".ipython"),  # a user's own start-up files do not belong to a reproduction
        "PYDEVD_DISABLE_FILE_VALIDATION": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONHASHSEED": "0",
    }
    if job:
        fixed |= {"LOOKUPLAB_FIGURES": str(job.figures), "LOOKUPLAB_PARAMETERS": json.dumps(job.values),
                  LOG: str(log_of(job)), **job.environment}
    pools = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    shared = {name: os.environ.get(name, threads) for name in pools}
    return {**launch.kernel_environment(), **shared, **fixed}


def _message(job: Job) -> dict:
    return {"input": str(job.notebook.path), "output": str(job.output), "cwd": str(job.notebook.path.parent),
            "parameters": job.parameters, "kernel": job.kernel, "start_timeout": START_TIMEOUT}


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _kill_tree(pid: int) -> None:
    import psutil

    try:
        parent = psutil.Process(pid)
        for process in [*parent.children(recursive=True), parent]:
            process.kill()
    except psutil.NoSuchProcess:
        pass
