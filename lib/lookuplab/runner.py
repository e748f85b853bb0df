"""Executes jobs: each notebook in a process of its own, forked with the slow imports done, so many
at a time.

``run_one`` runs one job, here or on a worker of a Dask cluster; ``run_jobs`` decides which may
start. A notebook's process (``cells.execute``) ends with the one that waits for it, however that
ends. Its progress is a line in a file beside the executed copy.
"""

import csv
import gzip
import hashlib
import io
import json
import multiprocessing
import os
import socket
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import connection, forkserver
from pathlib import Path

import click
from tqdm import tqdm

from lookuplab import paths, provenance
from lookuplab.cluster import Cluster
from lookuplab.errors import UserError
from lookuplab.models.answer_log import COLUMNS, LOG
from lookuplab.models.share import SHARE
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
    "statsmodels.stats.proportion",
]
STORE = "LOOKUPLAB_STORE"
ANSWERS = "answers.csv.gz"
_GPUS = ("nvidia[0-9]*", "kfd", "dxg")
# What a launcher says to its processes. A notebook must not see it: what trains there would wait.
_LAUNCHER = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
)


@dataclass(frozen=True)
class Failure:
    """``cell`` is the 1-based number among the notebook's code cells, 0 if no cell is to blame."""

    cell: int
    source: str
    ename: str
    evalue: str
    traceback: str


@dataclass(frozen=True)
class Result:
    """What became of a job; ``failure`` is None if every cell ran."""

    seconds: float
    failure: Failure | None = None


# 1. One notebook


def run_one(job: Job, threads: int = 1, host: str = "") -> Result:
    """Execute a notebook in a process of its own and wait for its end. ``host`` is the machine
    of a cluster's caller.
    """
    from lookuplab.cells import execute  # papermill and IPython take a second

    began = time.monotonic()
    if host not in ("", socket.gethostname()):
        if not os.environ.get(STORE):  # SQLite's WAL needs the memory of one machine
            raise UserError(
                f"the worker on {socket.gethostname()} shares {paths.STORE.name} with another machine, "
                f"which SQLite cannot do; start it with {STORE} set to a file on its own disk"
            )
        job = replace(job, environment={**job.environment, STORE: os.environ[STORE]})
    job.output.parent.mkdir(parents=True, exist_ok=True)
    for suffix in (".ran.json", ".answers.csv"):  # of an earlier run
        job.beside(suffix).unlink(missing_ok=True)
    receive, send = FORKS.Pipe(duplex=False)
    multiprocessing.current_process()._config["daemon"] = (
        False  # Dask's workers are, and daemons have no children
    )
    process = FORKS.Process(
        target=execute,
        args=(environment(job, threads), job.notebook.path, job.output, job.parameters, send),
    )
    process.start()
    send.close()
    connection.wait([receive, process.sentinel])
    said = []
    with suppress(EOFError):
        if receive.poll():
            said = [receive.recv()]
    process.join(60)  # what the notebook leaves behind has its time to end
    died = f"it ended with code {process.exitcode} (out of memory?); see {job.beside('.log')}"
    process.kill()
    job.beside(".progress").unlink(missing_ok=True)
    failure = said[0] if said else (0, "", "ProcessDied", died, "")
    return Result(time.monotonic() - began, failure and Failure(*failure))


def environment(job: Job, threads: int) -> dict[str, str]:
    """What a notebook's process sees: its share of the processors, where its artifacts and
    answers go.
    """
    found = {
        "PYTHONHASHSEED": "0",
        "TOKENIZERS_PARALLELISM": "false",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "IPYTHONDIR": str(paths.RUNS / ".ipython"),
    }  # your own start-up files do not belong to a reproduction
    for pool in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        found[pool] = os.environ.get(pool, str(threads))
    rank, count = launched()
    inherited = dict(os.environ)
    if count > 1:
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name not in _LAUNCHER and not name.startswith(("TORCHELASTIC_", "ACCELERATE_"))
        }
        found |= {SHARE: f"{rank}/{count}", **_devices(rank, count)}
    return (
        inherited
        | found
        | {
            "LOOKUPLAB_FIGURES": str(job.figures),
            "LOOKUPLAB_PARAMETERS": json.dumps(job.values),
            LOG: str(job.beside(".answers.csv")),
            **job.environment,
        }
    )


# 2. One of several processes that ``accelerate launch`` (or torchrun) started with the same command


def launched() -> tuple[int, int]:
    """(number of this process from 0, of how many). Raises UserError if they are on several
    machines.

    A scheduler of a cluster may set WORLD_SIZE alone: that is no launch.
    """
    names = ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
    if not all(name in os.environ for name in names):
        return 0, 1
    rank, count, here = (int(os.environ[name]) for name in names)
    if here != count:
        raise UserError(
            "the processes of one launch share a completion store, so they must run on one machine; "
            "for several, give notebooks to a cluster (--scheduler)"
        )
    return rank, count


def _devices(rank: int, count: int) -> dict[str, str]:
    """This process's share of the GPUs, at least one. Raises UserError if there are too few."""
    visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    if not visible:
        import torch

        visible = [str(number) for number in range(torch.cuda.device_count())]
    if visible and len(visible) < count:
        raise UserError(
            f"{count} processes on {len(visible)} GPUs: launch at most one process a GPU"
        )
    return {"CUDA_VISIBLE_DEVICES": ",".join(visible[rank::count])} if visible else {}


# 3. All of them


def run_jobs(
    jobs: Sequence[Job],
    parallel: int = 1,
    cluster: Cluster | None = None,
    watch: Callable[[dict[int, Job], dict[int, Result]], None] = lambda running, ended: None,
) -> list[Result]:
    """Run all jobs; one that fails stops no other. Results are in the order of ``jobs``.

    Those of a paper start after its ``first`` ones have ended, the ``alone`` ones after all others
    and one by one. ``watch`` is called twice a second with the jobs that are under way and the
    results so far, by their number.
    """
    share = 1 if cluster else max(1, cores() // parallel)
    pool = ThreadPoolExecutor(parallel)
    host, store = "", {}
    if cluster:
        host, store = (
            socket.gethostname(),
            {name: os.environ[name] for name in (STORE,) if name in os.environ},
        )
    else:
        _start_forks(jobs, share)
    results: dict[int, Result] = {}
    futures: dict[Future, int] = {}
    while len(results) < len(jobs):
        running = {number: jobs[number] for number in futures.values()}
        for number in startable(
            {at: job for at, job in enumerate(jobs) if at not in running | results}, running
        ):
            job = replace(jobs[number], environment={**store, **jobs[number].environment})
            submit = cluster.submit if cluster else pool.submit
            futures[submit(run_one, job, job.profile.threads or share, host)] = number
            running[number] = job
        watch(running, results)
        for future in wait(futures, 0.5, FIRST_COMPLETED).done:
            results[futures.pop(future)] = cluster.result(future) if cluster else future.result()
        future = None  # a result that is still referred to would be made again if its worker died
    watch({}, results)
    pool.shutdown()
    return [results[number] for number in range(len(jobs))]


def startable(waiting: dict[int, Job], running: dict[int, Job]) -> list[int]:
    """Which of the jobs that wait may start beside those that run; the pool holds back what is
    too many.
    """
    filling = {
        job.notebook.paper
        for job in (*waiting.values(), *running.values())
        if job.notebook.order == "first"
    }
    ready = [
        number
        for number, job in waiting.items()
        if job.notebook.order == "first"
        or (job.notebook.order != "alone" and job.notebook.paper not in filling)
    ]
    if ready or running:
        return ready
    return list(waiting)[:1]  # they measure time


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start_forks(jobs: Sequence[Job], threads: int) -> None:
    """Start the server that notebooks are forked from, in their environment: libraries read it
    when imported.
    """
    before = dict(os.environ)
    os.environ.update(environment(jobs[0], jobs[0].profile.threads or threads))
    # elsewhere, what the imports have begun (macOS's frameworks, a GPU's driver) may not survive a fork
    is_safe = sys.platform == "linux" and not any(map(list, map(Path("/dev").glob, _GPUS)))
    forkserver.set_forkserver_preload(IMPORTS if len(jobs) > 1 and is_safe else [])
    forkserver.ensure_running()
    os.environ.clear()
    os.environ.update(before)


# 4. What need not run again


def changed(job: Job, now: dict[str, str]) -> list[str]:
    """What differs since the job last ran here, of notebook, parameters, data, library, packages
    and artifacts.

    Empty if nothing does: then its artifacts are what it would write again. ``now`` is
    ``surroundings()``.
    """
    try:
        then = json.loads(job.beside(".ran.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ["not run here"]
    return [
        kind
        for kind, digest in (_fingerprint(job, now) | {"artifacts": _artifacts(job)}).items()
        if then.get(kind) != digest
    ]


def surroundings() -> dict[str, str]:
    """Digests of what all notebooks depend on."""
    data = sorted(
        file
        for file in paths.DATA.rglob("*")
        if paths.DOWNLOADS not in file.parents and file.is_file()
    )
    return {
        "data": _digest([(str(file), provenance.file_hash(file)) for file in data]),
        "library": provenance.library_hash(),
        "packages": _digest(provenance.package_versions()),
    }


def _fingerprint(job: Job, now: dict[str, str]) -> dict[str, str]:
    """``now`` and what the job adds to it; of files that its parameters name, sizes and times
    stand for the content.
    """
    named_files = [
        file
        for _, item in named(job)
        for place in [folder_of(item)]
        if place.exists()
        for file in (place, *place.rglob("*"))
    ]
    stats = [
        (str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in sorted(named_files)
    ]
    return now | {
        "notebook": provenance.file_hash(job.notebook.path),
        "parameters": _digest([job.values, job.profile.threads, stats]),
    }


def _artifacts(job: Job) -> str:
    files = [job.figures / job.profile.name / f"{name}.csv" for name in job.notebook.artifacts]
    return _digest([provenance.file_hash(file) if file.is_file() else None for file in files])


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


# 5. For the command line


def run_and_report(
    jobs: Sequence[Job], parallel: int, cluster: Cluster | None = None, again: bool = False
) -> int:
    """Run the jobs, with a progress bar; print failures and return the exit code.

    Without ``again``, what has not changed since it last ran here is left out, unless it measures
    time. 0: all is well. 1: some failed. 2: all that failed did so because of a UserError, bad
    input that only they could find.
    """
    now = surroundings()
    prints = [_fingerprint(job, now) for job in jobs]
    due = [
        at
        for at, job in enumerate(jobs)
        if again or job.notebook.order == "alone" or changed(job, now)
    ]
    began, told = time.monotonic(), set()
    if len(due) < len(jobs):
        click.echo(f"{len(jobs) - len(due)} of {len(jobs)} notebooks are up to date", err=True)
    with tqdm(total=len(due), desc="notebooks", unit="", disable=None) as bar:

        def watch(running: dict[int, Job], ended: dict[int, Result]) -> None:
            said = [
                f"{job.notebook.name} {_read(job.beside('.progress'))}" for job in running.values()
            ]
            bar.set_postfix_str(
                ", ".join(text[: 200 // len(said)] for text in said if not text.endswith(" "))
            )
            for number in ended.keys() - told:
                job, result = jobs[due[number]], ended[number]
                told.add(number)
                bar.update()
                bar.write(
                    f"{'failed' if result.failure else 'done'} {_title(job)} {result.seconds:.1f} s",
                    sys.stderr,
                )
                if not result.failure:
                    record = prints[due[number]] | {"artifacts": _artifacts(job)}
                    job.beside(".ran.json").write_text(json.dumps(record), encoding="utf-8")

        try:
            results = (
                run_jobs([jobs[at] for at in due], parallel, cluster, watch=watch) if due else []
            )
        except KeyboardInterrupt:
            click.echo(
                "\ninterrupted; what was generated is kept, the same command goes on from there",
                err=True,
            )
            os._exit(130)  # what still runs ends with this process
    failures = [
        (jobs[at], result.failure)
        for at, result in zip(due, results, strict=True)
        if result.failure
    ]
    for job, failure in failures:
        _print_failure(job, failure)
    click.echo(
        f"{len(due) - len(failures)} of {len(due)} notebooks ran in {time.monotonic() - began:.1f} s",
        err=True,
    )
    return (
        0
        if not failures
        else 2
        if all(failure.ename == "UserError" for _, failure in failures)
        else 1
    )


def keep_answers(jobs: Sequence[Job]) -> None:
    """Write which answers the jobs used to ``figures/<profile>/answers.csv.gz``; notebooks on
    demand do not count.

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
    for notebook, job in chosen.items():
        rows |= {
            (*row, notebook) for row in csv.reader(io.StringIO(_read(job.beside(".answers.csv"))))
        }
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([(*COLUMNS, "notebook"), *sorted(rows)])
    target.parent.mkdir(parents=True, exist_ok=True)
    with paths.replacing(target) as part:
        part.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def read_answers(content: bytes) -> list[tuple[str, ...]]:
    """The rows of such a file: ``answer_log.COLUMNS`` and the notebook."""
    return [tuple(row) for row in csv.reader(io.StringIO(gzip.decompress(content).decode()))][1:]


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _print_failure(job: Job, failure: Failure) -> None:
    if failure.ename == "UserError":
        click.echo(f"error: {_title(job)}: {failure.evalue}", err=True)
        return
    where = f"cell {failure.cell}: " if failure.cell else ""
    click.echo(f"\n{_title(job)}: {where}{failure.ename}: {failure.evalue}", err=True)
    tail = "\n".join(failure.traceback.splitlines()[-12:])
    click.echo(
        textwrap.indent(failure.source, "    ") + "\n" + textwrap.indent(tail, "    | "), err=True
    )
    click.echo(f"the executed copy: {job.output}", err=True)


def _title(job: Job) -> str:
    """Cases of a sweep share the notebook; the number of their folder tells them apart."""
    case = job.output.parent.name
    return f"{job.notebook.id} [{case}]" if case.isdigit() else job.notebook.id
