"""Executes jobs: each notebook by papermill in a process of its own (``execute``), several at once.

``run_one`` runs one job, here or on a worker of a Dask cluster; ``run_jobs`` all of them. A
notebook's process ends with the process that waits for it, however that ends.
"""

import json
import os
import re
import socket
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from subprocess import PIPE, Popen

from lookuplab import paths
from lookuplab.errors import UserError, explained
from lookuplab.models.completions import LOG_COLUMNS, LOG_VARIABLE
from lookuplab.models.store import STORE_VARIABLE, USES_VARIABLE, CompletionStore, canonical, digest
from lookuplab.results import provenance
from lookuplab.run.cluster import Cluster
from lookuplab.run.execute import Failure
from lookuplab.run.notebooks import Job, all_notebooks, path_of
from lookuplab.work.progress import Progress, say
from lookuplab.work.resources import SHARE_VARIABLE, memory, processors
from lookuplab.work.spread import spread

# Variables that a launcher sets for its processes. Notebooks must not see them: training there
# would wait for the others.
_LAUNCHER = re.compile(
    r"((LOCAL|GROUP|ROLE)_)?(RANK|WORLD_SIZE)$|MASTER_(ADDR|PORT)$|ROLE_|TORCHELASTIC_|ACCELERATE_"
)
# what the numbers of a store's line in ``USES_VARIABLE``'s file count
USES = ("from the record", "found in the store", "made anew", "for the audit")
HELD_BACK = Failure(
    0, "", "UserError", "not run: another notebook failed in a launched process", ""
)
ALWAYS = {"PYTHONHASHSEED": "0", "TOKENIZERS_PARALLELISM": "false"}


# 1. One notebook


def run_one(job: Job, threads: int = 1, host: str = "") -> Failure | None:
    """Execute a notebook in its own process and wait for its end. ``host`` is the machine of a
    cluster's caller.
    """
    if host not in ("", socket.gethostname()) and not os.environ.get(STORE_VARIABLE):
        raise UserError(  # SQLite's WAL needs the memory of one machine
            f"the worker on {socket.gethostname()} shares {paths.COMPLETIONS.name} with another "
            "machine, which SQLite cannot do; start it with LOOKUPLAB_STORE set to a file on its "
            "own disk"
        )
    paths.made(job.output.parent)
    for suffix in (".ran", ".answers.csv", ".uses", ".failure"):  # from an earlier run
        job.beside(suffix).unlink(missing_ok=True)
    told = json.dumps([str(job.notebook.path), str(job.output), job.parameters])
    command = [sys.executable, "-P", "-m", "lookuplab.run.execute", told]
    ran_with = fingerprint(job)
    with job.beside(".log").open("wb") as log:
        process = Popen(
            command,
            env=environment(job, job.profile.threads or threads),
            stdin=PIPE,  # it ends when this closes
            stdout=log,
            stderr=log,
            # an interrupt is for this process, which then ends the other
            start_new_session=True,
        )
        process.wait()
    with suppress(OSError):
        failure = json.loads(job.beside(".failure").read_text("utf-8"))
        job.beside(".failure").unlink()
        if not failure:
            job.beside(".ran").write_text(_record(job, ran_with), "utf-8")
        return failure and _plain(Failure(*failure))
    message = f"the notebook's process died (out of memory?); see {job.beside('.log')}"
    return Failure(0, "", "ProcessDied", message, "")


def _plain(failure: Failure) -> Failure:
    """A full disk or an unusable path in a cell is bad input, too: one line, no traceback."""
    text = failure.evalue
    if number := re.search(r"\b(?:errno|os error) (\d+)\b", text, re.IGNORECASE):
        file = re.search(r": b?'(.*)'$", text)
        error = OSError(int(number[1]), os.strerror(int(number[1])), file and file[1])
        if line := explained(error):
            return failure._replace(ename="UserError", evalue=line)
    return failure


def environment(job: Job, threads: int) -> dict[str, str]:
    """The environment of a notebook's process: its share of the processors, where its artifacts and
    answers go.
    """
    pools = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    preset = {} if job.profile.threads else os.environ
    # the kernel works in the notebook's folder, so that a relative path would be another one there
    sources = os.environ.get("LOOKUPLAB_SOURCES")
    return {
        **{name: value for name, value in os.environ.items() if not _LAUNCHER.match(name)},
        **_launch_environment(*rank_and_count()),
        **{pool: preset.get(pool, str(threads)) for pool in pools},
        **ALWAYS,
        # a kernel's own, not the user's: neither backend, nor kernels, nor start-up files
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "JUPYTER_PREFER_ENV_PATH": "1",
        "IPYTHONDIR": str(paths.RUNS / ".ipython"),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "LOOKUPLAB_SOURCES": str(Path(sources).expanduser().absolute()) if sources else "",
        "LOOKUPLAB_HOME": str(paths.ROOT),
        STORE_VARIABLE: str(CompletionStore.default_path()),
        USES_VARIABLE: str(job.beside(".uses")),
        "LOOKUPLAB_FIGURES": str(job.figures),
        "LOOKUPLAB_PARAMETERS": json.dumps(job.values),
        LOG_VARIABLE: str(job.beside(".answers.csv")),
        **job.environment,
    }


def rank_and_count() -> tuple[int, int]:
    """(number of this process from 0, number of processes) in one ``accelerate launch`` (or
    torchrun) command.

    Raises UserError if the processes are on several machines. A cluster's scheduler may set only
    WORLD_SIZE: that is not a launch.
    """
    names = ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
    if not all(name in os.environ for name in names):
        return 0, 1
    rank, count, here = (int(os.environ[name]) for name in names)
    if here != count:
        raise UserError(
            "the processes of one launch share a completion store, so they must run on one "
            "machine; for several, give notebooks to a cluster (--scheduler)"
        )
    return rank, count


def _launch_environment(rank: int, count: int) -> dict[str, str]:
    """A launched process's share of the prompts and of the GPUs. Raises UserError if there are too
    few.
    """
    if count == 1:
        return {}
    import torch

    every = ",".join(map(str, range(torch.cuda.device_count())))
    visible = [gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", every).split(",") if gpu]
    if visible and len(visible) < count:
        raise UserError(
            f"{count} processes on {len(visible)} GPUs: launch at most one process a GPU"
        )
    share = {"CUDA_VISIBLE_DEVICES": ",".join(visible[rank::count])} if visible else {}
    return {SHARE_VARIABLE: f"{rank}/{count}", **share}


# 2. All of them


def run_jobs(
    jobs: Sequence[Job], parallel: int = 1, cluster: Cluster | None = None
) -> list[Failure | None]:
    """Run all jobs, with progress; a failure stops no other job. Results are in the order of
    ``jobs``.

    The ``first`` ones of all papers come first; ``alone`` jobs come last, one by one. Launched
    processes all run the same jobs, one by one, up to the first failure: the others wait for what
    the failed one would answer.
    """
    is_launched = rank_and_count()[1] > 1
    parallel = 1 if is_launched else parallel
    threads = max(1, processors() // parallel)
    host = socket.gethostname() if cluster else ""
    first, alone = (
        [job for job in jobs if job.notebook.order == one] for one in ("first", "alone")
    )
    others = [job for job in jobs if job.notebook.order not in ("first", "alone")]
    phases = [first, others, *([job] for job in alone)]
    if is_launched:
        phases = [[job] for phase in phases for job in phase]
    results: dict[int, Failure | None] = {}
    under_way = partial(_under_way, jobs, results, time.time())
    with Progress("notebooks", len(jobs), parts=under_way) as progress:
        for phase in phases:
            if is_launched and any(results.values()):
                results |= {id(job): HELD_BACK for job in phase}
                continue
            run = partial(run_one, threads=threads, host=host)
            for job, failure in spread(run, phase, parallel, cluster):
                results[id(job)] = failure
                progress.update()
                say(f"{'failed' if failure else 'done'} {job.title}")
    return [results[id(job)] for job in jobs]


def _under_way(jobs: Sequence[Job], ended: Collection[int], began: float) -> Iterator[str]:
    """The last line of the log of each job that has begun and not ended: its own progress."""
    for job in jobs:
        log = job.beside(".log")
        with suppress(OSError):
            if id(job) not in ended and log.stat().st_mtime >= began:
                lines = log.read_text("utf-8", "replace").splitlines()
                yield f"{job.title}: {next(filter(str.strip, lines[::-1]), 'begins').strip(' -')}"


def default_jobs() -> int:
    """Return how many notebooks to run at once: as many as there are processors, and memory for;
    each may take two gigabytes.
    """
    return int(max(1, min(processors(), memory() // 2_000_000_000)))


def uses(jobs: Iterable[Job]) -> dict[str, int]:
    """How many answers and judgements the jobs found and made, in the order of ``USES``."""
    total = dict.fromkeys(USES, 0)
    for job in jobs:
        with suppress(OSError):
            for line in job.beside(".uses").read_text("utf-8").splitlines():
                for what, count in zip(USES, line.split()[1:], strict=True):
                    total[what] += int(count)
    return total


# 3. What need not run again


def state(job: Job) -> str:
    """Whether a job would write the same artifacts again: "up to date", "out of date" or "not run
    here".
    """
    record = job.beside(".ran")
    if not record.is_file():
        return "not run here"
    is_same = record.read_text("utf-8") == _record(job, fingerprint(job))
    return "up to date" if is_same else "out of date"


def fingerprint(job: Job) -> str:
    """A digest of what the job's numbers depend on: notebook, parameters, data, library and
    packages.

    For files named in its parameters, size and modification time stand for the content.
    """
    places = [path_of(named.text) for named in job.named()]
    files = [file for place in places for file in (place, *sorted(place.rglob("*")))]
    stats = [
        (str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.exists()
    ]
    beside = sorted(job.notebook.path.parent.glob("*.py"))  # it may import them
    notebook = _hashes([job.notebook.path, *beside])
    return digest(canonical([surroundings(), notebook, job.values, job.profile.threads, stats]))


@cache
def surroundings() -> str:
    """A digest of what all notebooks depend on."""
    made = {paths.DOWNLOADS, *paths.DATA.rglob("__pycache__")}
    files = sorted(file for file in paths.DATA.rglob("*") if made.isdisjoint(file.parents))
    return digest(
        canonical([_hashes(files), provenance.library_hash(), provenance.package_versions()])
    )


def _record(job: Job, ran_with: str) -> str:
    """The content of the ``.ran`` file: the fingerprint that the job ran with, and hashes of what
    it wrote.
    """
    files = (job.place.parent / f"{name}.csv" for name in job.notebook.artifacts)
    return ran_with + canonical(_hashes(files))


def _hashes(files: Iterable[Path]) -> dict[str, str]:
    return {str(file): paths.file_hash(file) for file in files if file.is_file()}


# 4. The answers behind the figures


def keep_answers(jobs: Sequence[Job]) -> None:
    """Write which answers the jobs used to ``figures/<profile>/answers.csv.gz``, except notebooks
    run on demand.

    Equal runs write equal bytes. Rows of other notebooks in the file are kept.
    """
    import pandas as pd

    from lookuplab.results.verify import ANSWERS_FILE, read_answers

    chosen = {job.notebook.id: job for job in jobs if not job.notebook.on_demand}
    target = jobs[0].place.parent / ANSWERS_FILE
    columns = [*LOG_COLUMNS, "notebook"]
    others = {notebook.id for notebook in all_notebooks()} - chosen.keys()
    frames = [pd.DataFrame(columns=columns)]
    if target.is_file():
        kept = read_answers(target)
        frames.append(kept[kept.notebook.isin(others)])
    for id, job in chosen.items():
        if (log := job.beside(".answers.csv")).is_file():
            frames.append(read_answers(log, names=LOG_COLUMNS).assign(notebook=id))
    rows = pd.concat(frames).drop_duplicates().sort_values(columns)
    paths.write_lines(target, [rows.to_csv(index=False).removesuffix("\n")])
