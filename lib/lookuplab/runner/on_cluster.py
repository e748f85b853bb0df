"""Notebooks as tasks of a cluster: each runs on a worker as it would here, in a process of its own."""

import os
import socket
import threading
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from lookuplab import paths
from lookuplab.cluster import Cluster
from lookuplab.errors import UserError
from lookuplab.runner.plan import Job

STORE = "LOOKUPLAB_STORE"


class ClusterWorkers:
    """In the place of ``execute``'s own worker processes; ``listener`` hears the same events, by the scheduler."""

    def __init__(self, cluster: Cluster, listener: Callable[[Job, dict], None]):
        self.cluster, self.listener = cluster, listener
        self._lock = threading.Lock()

    def __enter__(self) -> "ClusterWorkers":
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing to end: the cluster is its owner's, and a notebook that runs there goes to its end."""

    def run(self, jobs: dict[int, Job], parallel: int) -> dict:
        """The results of ``jobs``: as many at a time as there are workers, ``first`` ones before the others, and those
        that measure time one by one."""
        first = {i: job for i, job in jobs.items() if job.notebook.order == "first"}
        if 0 < len(first) < len(jobs):
            others = {i: job for i, job in jobs.items() if i not in first}
            return self.run(first, parallel) | self.run(others, parallel)
        if len(jobs) > 1 and any(job.notebook.order == "alone" for job in jobs.values()):
            return {i: result for i, job in jobs.items() for result in self.run({i: job}, parallel).values()}
        topic, running = f"lookuplab-{uuid.uuid4().hex[:8]}", {}
        self.cluster.client.subscribe_topic(topic, lambda event: self._heard(jobs, running, event[1]))
        numbers, results = list(jobs), {}
        sent = [(topic, i, _with_store(jobs[i]), socket.gethostname()) for i in numbers]
        try:
            for position, result in self.cluster.map(_run_here, sent):
                results[numbers[position]] = result
                self._ended(jobs, running, numbers[position], result)
        finally:
            self.cluster.client.unsubscribe_topic(topic)
        return results

    def _heard(self, jobs: dict[int, Job], running: dict[int, bool], event: dict) -> None:
        """An event of a worker; a notebook whose worker died starts twice, and words may come behind the result."""
        number = event.pop("job")
        with self._lock:
            if event["event"] == "start":
                event = {"event": "text", "text": "again: its worker was lost"} if number in running else event
                running.setdefault(number, True)
            if running.get(number):
                self.listener(jobs[number], event)

    def _ended(self, jobs: dict[int, Job], running: dict[int, bool], number: int, result) -> None:
        with self._lock:
            if number not in running:
                self.listener(jobs[number], {"event": "start"})
            running[number] = False
            self.listener(jobs[number], {"event": "end", "result": result})


def _with_store(job: Job) -> Job:
    """Processes of this machine write the caller's store."""
    here = os.environ.get(STORE)
    return replace(job, environment={STORE: here, **job.environment}) if here else job


def _run_here(task: tuple[str, int, Job, str]):
    """On a worker: one notebook, told by events under ``topic``; ``host`` is the caller's machine."""
    from distributed import get_worker

    from lookuplab.cluster import kept
    from lookuplab.runner.execute import cores, run_jobs
    from lookuplab.runner.prefork import gains

    topic, number, job, host = task
    if socket.gethostname() != host:
        job = replace(job, environment={**job.environment, STORE: _own_store()})
    worker = get_worker()

    def tell(_: Job, event: dict) -> None:
        if event["event"] != "end":  # the result itself says it
            worker.log_event(topic, {"job": number, **event})

    parallel = cores()  # a thread each, unless OMP_NUM_THREADS says more: workers share cores
    [result] = run_jobs([job], parallel, tell, kernels=kept(_kernels, parallel) if gains(job) else None)
    return result


def _kernels(parallel: int) -> AbstractContextManager[Path | None]:
    from lookuplab.runner.execute import environment
    from lookuplab.runner.prefork import prefork

    return prefork(environment(parallel))


def _own_store() -> str:
    """SQLite's WAL needs one machine's memory, so a store under the shared checkout must not be written from two."""
    if store := os.environ.get(STORE):
        return store
    raise UserError(f"the worker on {socket.gethostname()} shares {paths.STORE.name} with another machine, which "
                    f"SQLite cannot do; start it with {STORE} set to a file on a disk of its own (docs/cluster.md)")
