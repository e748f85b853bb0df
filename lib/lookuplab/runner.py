"""Executes jobs: each notebook in a process of its own, forked with the slow imports done, so many at a time.

``run_one`` runs one job, here or on a worker of a Dask cluster; ``run_jobs`` decides which may start. A notebook's
process (``cells.execute``) ends with the one that waits for it, however that ends.
"""

import csv
import gzip
import io
import json
import multiprocessing
import os
import re
import socket
import sys
import textwrap
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from functools import cache
from multiprocessing import connection, forkserver
from pathlib import Path
from typing import NamedTuple

import click
from tqdm import tqdm

from lookuplab import paths, provenance
from lookuplab.cluster import Cluster
from lookuplab.errors import UserError
from lookuplab.models.complete import COLUMNS, LOG, SHARE
from lookuplab.models.store import canonical, digest
from lookuplab.notebooks import Job, all_notebooks, folder_of, named

FORKS = multiprocessing.get_context("forkserver")
# What most notebooks import: some eight seconds of a processor, done once for a run of several.
IMPORTS = [
    "lookuplab.cells",
    "pandas",
    "torch",
    "transformers.modeling_utils",
    "scipy.stats",
    "accelerate",
    "peft",
]
STORE = "LOOKUPLAB_STORE"
ANSWERS = "answers.csv.gz"
# What a launcher says to its processes. A notebook must not see it: what trains there would wait for the others.
_LAUNCHER = re.compile(
    r"((LOCAL|GROUP|ROLE)_)?(RANK|WORLD_SIZE)$|MASTER_(ADDR|PORT)$|ROLE_|TORCHELASTIC_|ACCELERATE_"
)


class Failure(NamedTuple):
    """``cell`` is the 1-based number among the notebook's code cells, 0 if no cell is to blame."""

    cell: int
    source: str
    ename: str
    evalue: str
    traceback: str


# 1. One notebook


def run_one(job: Job, threads: int = 1, host: str = "") -> Failure | None:
    """Execute a notebook in a process of its own and wait for its end. ``host`` is the machine of a cluster's caller."""
    from lookuplab.cells import execute  # papermill and IPython take a second

    if host not in ("", socket.gethostname()):
        if not os.environ.get(STORE):  # SQLite's WAL needs the memory of one machine
            raise UserError(
                f"the worker on {socket.gethostname()} shares {paths.STORE.name} with another machine, which SQLite "
                f"cannot do; start it with {STORE} set to a file on its own disk"
            )
        job = replace(job, environment={**job.environment, STORE: os.environ[STORE]})
    job.output.parent.mkdir(parents=True, exist_ok=True)
    for suffix in (".ran", ".answers.csv"):  # of an earlier run
        job.beside(suffix).unlink(missing_ok=True)
    receive, send = FORKS.Pipe(duplex=False)
    multiprocessing.current_process()._config["daemon"] = (
        False  # Dask's workers are, and daemons have no children
    )
    arguments = environment(job, threads), job.notebook.path, job.output, job.parameters, send
    process = FORKS.Process(target=execute, args=arguments)
    process.start()
    send.close()
    connection.wait([receive, process.sentinel])
    said = [
        (
            0,
            "",
            "ProcessDied",
            f"the notebook's process died (out of memory?); see {job.beside('.log')}",
            "",
        )
    ]
    with suppress(EOFError):
        if receive.poll():
            said = [receive.recv()]
    process.join(60)  # what the notebook leaves behind has its time to end
    process.kill()
    return said[0] and Failure(*said[0])


def environment(job: Job, threads: int) -> dict[str, str]:
    """What a notebook's process sees: its share of the processors, where its artifacts and answers go."""
    rank, count = launched()
    pools = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return {
        **{name: value for name, value in os.environ.items() if not _LAUNCHER.match(name)},
        **({SHARE: f"{rank}/{count}", **_devices(rank, count)} if count > 1 else {}),
        **{pool: os.environ.get(pool, str(threads)) for pool in pools},
        "PYTHONHASHSEED": "0",
        "TOKENIZERS_PARALLELISM": "false",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "IPYTHONDIR": str(
            paths.RUNS / ".ipython"
        ),  # your own start-up files do not belong to a reproduction
        "LOOKUPLAB_FIGURES": str(job.figures),
        "LOOKUPLAB_PARAMETERS": json.dumps(job.values),
        LOG: str(job.beside(".answers.csv")),
        **job.environment,
    }


def launched() -> tuple[int, int]:
    """(number of this process from 0, of how many) that ``accelerate launch`` (or torchrun) started with one command.

    Raises UserError if they are on several machines. A scheduler of a cluster may set WORLD_SIZE alone: that is no
    launch.
    """
    names = ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
    if not all(name in os.environ for name in names):
        return 0, 1
    rank, count, here = (int(os.environ[name]) for name in names)
    if here != count:
        raise UserError(
            "the processes of one launch share a completion store, so they must run on one machine; for several, give "
            "notebooks to a cluster (--scheduler)"
        )
    return rank, count


def _devices(rank: int, count: int) -> dict[str, str]:
    """This process's share of the GPUs, at least one. Raises UserError if there are too few."""
    import torch

    visible = list(filter(None, os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")))
    visible = visible or list(map(str, range(torch.cuda.device_count())))
    if visible and len(visible) < count:
        raise UserError(
            f"{count} processes on {len(visible)} GPUs: launch at most one process a GPU"
        )
    return {"CUDA_VISIBLE_DEVICES": ",".join(visible[rank::count])} if visible else {}


# 2. All of them


def run_jobs(
    jobs: Sequence[Job], parallel: int = 1, cluster: Cluster | None = None
) -> list[Failure | None]:
    """Run all jobs, with a progress bar; one that fails stops no other. Results are in the order of ``jobs``.

    Those of a paper start after its ``first`` ones have ended, the ``alone`` ones after all others and one by one.
    """
    share, host = max(1, cores() // parallel), socket.gethostname() if cluster else ""
    store = {name: os.environ[name] for name in (STORE,) if name in os.environ}
    jobs = [replace(job, environment=store | job.environment) for job in jobs]
    if not cluster:
        _start_forks(jobs, share)
    pool, results = ThreadPoolExecutor(parallel), {}
    running: dict[Future, tuple[int, str, float]] = {}
    with tqdm(total=len(jobs), desc="notebooks", unit="", disable=None) as bar:
        while len(results) < len(jobs):
            started = {at for at, *_ in running.values()}
            waiting = {at: job for at, job in enumerate(jobs) if at not in started | results.keys()}
            for at in startable(waiting, [jobs[at] for at in started]):
                job, submit = jobs[at], cluster.submit if cluster else pool.submit
                future = submit(run_one, job, job.profile.threads or share, host)
                running[future] = at, fingerprint(job), time.monotonic()
            bar.set_postfix_str(
                ", ".join(_last_words(jobs[at]) for at, *_ in running.values())[:200]
            )
            for future in wait(running, 0.5, FIRST_COMPLETED).done:
                at, ran_with, began = running.pop(future)
                results[at] = failure = cluster.result(future) if cluster else future.result()
                if failure is None:
                    record = ran_with + _artifacts(jobs[at])
                    jobs[at].beside(".ran").write_text(record, encoding="utf-8")
                bar.update()
                word = "failed" if failure else "done"
                bar.write(f"{word} {_title(jobs[at])} {time.monotonic() - began:.1f} s", sys.stderr)
            future = (
                None  # a result that is still referred to would be made again if its worker died
            )
    pool.shutdown()
    return [results[at] for at in range(len(jobs))]


def startable(waiting: dict[int, Job], running: Sequence[Job]) -> list[int]:
    """Which of the jobs that wait may start beside those that run; the pool holds back what is too many."""
    filling = {
        job.notebook.paper for job in (*waiting.values(), *running) if job.notebook.order == "first"
    }
    ready = [
        at
        for at, job in waiting.items()
        if job.notebook.order == "first"
        or (job.notebook.order != "alone" and job.notebook.paper not in filling)
    ]
    return ready if ready or running else list(waiting)[:1]  # what is left measures time


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start_forks(jobs: Sequence[Job], threads: int) -> None:
    """Start the server that notebooks are forked from, in their environment: libraries read it when imported."""
    before = dict(os.environ)
    os.environ.update(environment(jobs[0], jobs[0].profile.threads or threads))
    # elsewhere, what the imports have begun (macOS's frameworks, a GPU's driver) may not survive a fork
    is_safe = sys.platform == "linux" and not list(Path("/dev").glob("nvidia[0-9]*"))
    forkserver.set_forkserver_preload(IMPORTS if len(jobs) > 1 and is_safe else [])
    forkserver.ensure_running()
    os.environ.clear()
    os.environ.update(before)


def _last_words(job: Job) -> str:
    log = job.beside(".log")
    said = log.read_text(encoding="utf-8", errors="replace").split() if log.is_file() else []
    return " ".join([job.notebook.name, *said[-8:]])


# 3. What need not run again


def state(job: Job) -> str:
    """Whether a job's artifacts are what it would write again: up to date, out of date, or not run here."""
    record = job.beside(".ran")
    if not record.is_file():
        return "not run here"
    now = fingerprint(job) + _artifacts(job)
    return "up to date" if record.read_text(encoding="utf-8") == now else "out of date"


def fingerprint(job: Job) -> str:
    """A digest of what the job's numbers depend on: notebook, parameters, data, library and packages.

    Of files that its parameters name, sizes and times stand for the content.
    """
    places = [folder_of(item) for _, item in named(job)]
    files = [
        file for place in places if place.exists() for file in (place, *sorted(place.rglob("*")))
    ]
    stats = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    own = provenance.file_hash(job.notebook.path), job.values, job.profile.threads, stats
    return digest(canonical([surroundings(), *own]))


@cache
def surroundings() -> str:
    """A digest of what all notebooks depend on."""
    files = [
        file
        for file in sorted(paths.DATA.rglob("*"))
        if paths.DOWNLOADS not in file.parents and file.is_file()
    ]
    data = [(str(file), provenance.file_hash(file)) for file in files]
    return digest(canonical([data, provenance.library_hash(), provenance.package_versions()]))


def _artifacts(job: Job) -> str:
    files = [job.figures / job.profile.name / f"{name}.csv" for name in job.notebook.artifacts]
    hashes = [provenance.file_hash(file) if file.is_file() else None for file in files]
    return digest(canonical(hashes))


# 4. For the command line


def run_and_report(
    jobs: Sequence[Job], parallel: int, cluster: Cluster | None = None, again: bool = False
) -> int:
    """Run the jobs; print failures and return the exit code.

    Without ``again``, what has not changed since it last ran here is left out, unless it measures time. 0: all is well.
    1: some failed. 2: all that failed did so because of a UserError, bad input that only they could find.
    """
    due = [
        job for job in jobs if again or job.notebook.order == "alone" or state(job) != "up to date"
    ]
    began = time.monotonic()
    if len(due) < len(jobs):
        click.echo(f"{len(jobs) - len(due)} of {len(jobs)} notebooks are up to date", err=True)
    try:
        found = zip(due, run_jobs(due, parallel, cluster) if due else [], strict=True)
    except KeyboardInterrupt:
        click.echo(
            "\ninterrupted; what was generated is kept, the same command goes on from there",
            err=True,
        )
        os._exit(130)  # what still runs ends with this process
    failures = [(job, failure) for job, failure in found if failure]
    for job, failure in failures:
        if failure.ename == "UserError":
            click.echo(f"error: {_title(job)}: {failure.evalue}", err=True)
            continue
        where = f"cell {failure.cell}: " if failure.cell else ""
        click.echo(f"\n{_title(job)}: {where}{failure.ename}: {failure.evalue}", err=True)
        click.echo(textwrap.indent(failure.source, "    "), err=True)
        click.echo(
            textwrap.indent("\n".join(failure.traceback.splitlines()[-12:]), "    | "), err=True
        )
        click.echo(f"the executed copy: {job.output}", err=True)
    took = time.monotonic() - began
    click.echo(f"{len(due) - len(failures)} of {len(due)} notebooks ran in {took:.1f} s", err=True)
    if not failures:
        return 0
    return 2 if all(failure.ename == "UserError" for _, failure in failures) else 1


def keep_answers(jobs: Sequence[Job]) -> None:
    """Write which answers the jobs used to ``figures/<profile>/answers.csv.gz``; notebooks on demand do not count.

    Equal runs write equal bytes. What the file says of other notebooks stays.
    """
    chosen = {job.notebook.id: job for job in jobs if not job.notebook.on_demand}
    target = jobs[0].figures / jobs[0].profile.name / ANSWERS
    others = {notebook.id for notebook in all_notebooks()} - chosen.keys()
    rows = (
        {row for row in read_answers(target.read_bytes()) if row[-1] in others}
        if target.is_file()
        else set()
    )
    for id, job in chosen.items():
        if (log := job.beside(".answers.csv")).is_file():
            rows |= {(*row, id) for row in csv.reader(io.StringIO(log.read_text(encoding="utf-8")))}
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([(*COLUMNS, "notebook"), *sorted(rows)])
    target.parent.mkdir(parents=True, exist_ok=True)
    with paths.replacing(target) as part:
        part.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def read_answers(content: bytes) -> list[tuple[str, ...]]:
    """The rows of such a file: ``complete.COLUMNS`` and the notebook."""
    return [tuple(row) for row in csv.reader(io.StringIO(gzip.decompress(content).decode()))][1:]


def _title(job: Job) -> str:
    """Cases of a sweep share the notebook; the number of their folder tells them apart."""
    case = job.output.parent.name
    return f"{job.notebook.id} [{case}]" if case.isdigit() else job.notebook.id
