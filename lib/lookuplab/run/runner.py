"""Executes jobs. Papermill runs each notebook in a separate process (``execute``); several
notebooks may run at once.

``run_one`` runs one job, on this machine or on a worker of a Dask cluster. ``run_jobs`` runs
several jobs. If the process that waits for a notebook ends for any reason, the notebook's process
ends, too.
"""

import gzip
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from errno import ENOENT
from functools import cache, partial
from glob import escape
from operator import add
from pathlib import Path
from queue import SimpleQueue
from socket import SOCK_SEQPACKET, send_fds, socket, socketpair
from subprocess import Popen
from typing import NamedTuple

from lookuplab import paths
from lookuplab.errors import NO_MEMORY, UserError, explain, no_memory
from lookuplab.models.names import bare_name, is_mini, is_remote
from lookuplab.models.store import (
    ANSWERS,
    COUNTS,
    JUDGED,
    LOG_COLUMNS,
    LOG_VARIABLE,
    SCREEN,
)
from lookuplab.paths import canonical, digest
from lookuplab.results import provenance
from lookuplab.run.cluster import Cluster
from lookuplab.run.execute import Failure
from lookuplab.run.notebooks import Job, all_notebooks, path_of
from lookuplab.work import (
    SHARE_VARIABLE,
    LockHeld,
    Progress,
    env_int,
    free_memory,
    graphics_cards,
    hold_lock,
    processors,
    say,
    spread,
)

# Environment variables that a launcher (accelerate, torchrun) sets for its processes. A notebook
# does not get them, because a notebook that trains a model would wait for the launcher's other
# processes to train with it.
_LAUNCHER = re.compile(
    r"((LOCAL|GROUP|ROLE)_)?(RANK|WORLD_SIZE)$|MASTER_(ADDR|PORT)$|ROLE_|TORCHELASTIC_|ACCELERATE_"
)
# where answers and judgements came from: the names of the three counts in the log ``store.COUNTS``
USES = ("from the record", "found in the store", "new")
MOST_KEPT = 6  # the judged answers of this many runs of a notebook are kept
ALWAYS = {"PYTHONHASHSEED": "0", "TOKENIZERS_PARALLELISM": "false"}
# A kernel is started up to this many times, because two kernels that start at once may choose the
# same port, and then one of them fails.
STARTS = 3
# If at least MANY notebooks run, one process first imports the modules IMPORTED, and then forks the
# processes of all notebooks. With fewer notebooks this hardly saves time, because IMPORTED takes as
# long to import as the modules of two notebooks.
MANY = 8
IMPORTED = """pandas torch seaborn scipy.stats pyarrow.parquet ipykernel.kernelapp jedi pylint.lint
transformers.models.auto.tokenization_auto transformers.models.auto.modeling_auto
transformers.models.llama.modeling_llama transformers.models.gpt2.modeling_gpt2
transformers.models.t5.modeling_t5"""


class Part(NamedTuple):
    """This process's part of the work. ``number`` is the part's index, from 0, and ``of`` is the
    number of parts. Each process first answers the questions in its own part, and then any
    questions that no process has answered yet. So no process waits. If ``writes_figures`` is False,
    the process writes its artifacts to a separate folder (see ``with_own_folder``). ``in_array``
    says that the process belongs to a SLURM array.
    """

    number: int = 0
    of: int = 1
    writes_figures: bool = True
    in_array: bool = False
    local: int = 0  # the process's number, from 0, among the ``here`` processes on this machine
    here: int = 1

    def processors(self) -> list[int]:
        """Return the numbers of the processors to which this process's notebooks are bound. If the
        list is empty, the notebooks may use all processors.
        """
        visible = sorted(os.sched_getaffinity(0)) if self.here > 1 else []
        return visible[self.local :: self.here]


class RunResult(NamedTuple):
    """The outcome of a notebook's run. ``failure`` is None if the notebook did not fail. ``uses``
    are the numbers of answers and judgements that the notebook found or generated, in the order of
    USES. ``warnings`` are the lines of the notebook's log that begin with "warning: ".
    """

    failure: Failure | None
    uses: tuple[int, ...] = (0,) * len(USES)
    warnings: tuple[str, ...] = ()


# 1. One notebook


@contextmanager
def fork_server(job: Job, threads: int, part: Part, imported: str = "") -> Iterator[socket]:
    """Start the process from which the processes of notebooks are forked (``execute.main``), and
    yield the socket through which it gets requests. The process first imports the modules
    ``imported`` (names separated by spaces), with the environment variables of ``job``. If the
    process will run several jobs, ``job`` may be any of them.
    """
    ours, theirs = socketpair(type=SOCK_SEQPACKET)
    command = [sys.executable, "-P", "-m", "lookuplab.run.execute", *imported.split()]
    env = environment(job, threads, paths.RUNS, part)
    # the new process gets its own session, so that Ctrl-C reaches only this process
    process = Popen(command, env=env, stdin=theirs.fileno(), start_new_session=True)
    theirs.close()
    yield ours
    # There is no ``finally`` here, so the socket stays open after an interrupt. If it were closed,
    # a thread that still uses it would fail, and remove the run's folder while this process exits.
    ours.close()
    process.wait()


def run_one(
    job: Job, threads: int = 1, part: Part = Part(), requests: socket | None = None
) -> RunResult:
    """Execute a notebook in a separate process and wait for its end. ``requests`` is the socket of
    a ``fork_server``; without it, one is started for this notebook.

    The process reports on the run through files in a temporary folder, which are copied only when
    the run is complete. Two runs of one notebook never write to the same place: the second run
    fails or, in a SLURM array, writes to a separate folder.
    """
    try:
        with (
            hold_lock(job.output, f"runs {job.title}"),
            paths.temporary_folder() as run_folder,
            nullcontext(requests) if requests else fork_server(job, threads, part) as started,
        ):
            return _run(job, threads, part, Path(run_folder), started)
    except LockHeld as error:
        if part.in_array:
            return run_one(
                with_own_folder(job, part.number), threads, part._replace(in_array=False)
            )
        return RunResult(Failure(0, "", "UserError", str(error), ""))


def with_own_folder(job: Job, number: int) -> Job:
    """Return a copy of the job that writes to a separate folder for process ``number``, for a
    process that must not write to the job's own folder.
    """
    own = paths.RUNS / "shards" / str(number)
    return replace(job, output=own / job.output.relative_to(paths.RUNS), figures=own / "figures")


def _run(job: Job, threads: int, part: Part, run_folder: Path, requests: socket) -> RunResult:
    """Run a job with ``run_folder`` as its temporary folder. If the job does not fail, keep its
    judged answers, its list of answers, its lines for the terminal and, last, its fingerprint in
    the folder of the executed copy.
    """
    job.path_with_suffix(".ran").unlink(missing_ok=True)  # from an earlier run
    kernel = paths.make_folder(run_folder / "kernels" / "python3") / "kernel.json"
    # This kernel specification replaces all specifications that are registered on the machine. Its
    # command only reads a pipe. The kernel itself is the forked process that opens the pipe for
    # writing (``become_kernel``).
    os.mkfifo(run_folder / "alive")
    spec = {
        "argv": ["sh", "-c", 'exec cat "$0"', f"{run_folder}/alive"],
        "display_name": "Python 3 (ipykernel)",
    }
    kernel.write_text(json.dumps(spec | {"language": "python"}), "utf-8")
    env = environment(job, threads, run_folder, part)
    request = [job.notebook.path, job.output, job.parameters, part.processors(), env]
    (run_folder / "request").write_text(json.dumps(request, default=str), "utf-8")
    ran_with = fingerprint(job)
    for _ in range(STARTS):
        ours, theirs = socketpair()
        with ours, job.path_with_suffix(".log").open("wb") as log:
            with theirs:
                send_fds(requests, [bytes(run_folder)], [theirs.fileno(), log.fileno()])
            ours.recv(1)  # nothing is sent, so this returns when the process ends
        try:
            failure = json.loads((run_folder / "failure").read_text("utf-8"))
        except OSError:
            message = f"the notebook's process died (out of memory?); see {log.name}"
            failure = Failure(0, "", "ProcessDied", message, "")
        # nbclient raises RuntimeError if the kernel did not start; only then is it started again
        if not failure or failure[0] or failure[2] != "RuntimeError":
            break
    lines = job.path_with_suffix(".log").read_text("utf-8", "replace").splitlines()
    warned = tuple(dict.fromkeys(line for line in lines if line.startswith("warning: ")))
    counts = [0] * len(USES)
    with suppress(OSError):
        for line in (run_folder / COUNTS).read_text("utf-8").splitlines():
            counts = [*map(add, counts, map(int, line.split()[1:]))]
    if failure:
        return RunResult(_as_user_error(Failure(*failure)), tuple(counts), warned)
    keep_judged(job, run_folder / JUDGED)
    for name in (ANSWERS, SCREEN):
        job.path_with_suffix(f".{name}").unlink(missing_ok=True)
        if (written := run_folder / name).is_file():
            with paths.replacing(job.path_with_suffix(f".{name}")) as kept:
                shutil.copyfile(written, kept)
    job.path_with_suffix(".ran").write_text(_record(job, ran_with), "utf-8")
    return RunResult(None, tuple(counts), warned)


def keep_judged(job: Job, judged: Path) -> None:
    """Keep the run's judged answers (the file ``judged``) and the numbers in the run's artifacts as
    two files in the folder of the executed copy, for `lookuplab view` and `lookuplab compare`. If
    ``judged`` does not exist, keep nothing.

    The first line of the judged answers states the run's parameters. A digest of this line is part
    of the files' names, so a run replaces only an earlier run with the same parameters. The
    MOST_KEPT latest runs are kept.
    """
    about = {"notebook": job.notebook.id, "profile": job.profile.name, "parameters": job.values}
    head = json.dumps(provenance.publishable(about), default=str) + "\n"
    target = job.path_with_suffix(f".{digest(head)[:8]}.{JUDGED}")
    target.unlink(missing_ok=True)
    if not judged.is_file():
        return
    with paths.replacing(target) as part:
        part.write_bytes(gzip.compress(head.encode()) + judged.read_bytes())
    files = [job.place.parent / f"{name}.csv" for name in job.notebook.artifacts]
    lines = [file.read_text("utf-8").splitlines() for file in files if file.is_file()]
    if rows := dict.fromkeys(line for text in lines for line in text):  # keeps the header once
        paths.write_lines(numbers_of(target), rows)
    for old in kept_runs(job.output)[MOST_KEPT:]:
        old.unlink()
        numbers_of(old).unlink(missing_ok=True)


def kept_runs(*copies: Path) -> list[Path]:
    """Return the files with judged answers that ``keep_judged`` wrote for these executed copies,
    the latest first.
    """
    files = (
        file
        for copy in copies
        for file in copy.parent.glob(f"{escape(copy.stem)}.{'?' * 8}.{JUDGED}")
    )
    return sorted(files, key=lambda file: -file.stat().st_mtime_ns)


def numbers_of(judged: Path) -> Path:
    """Return the file with a run's numbers: the rows of all its artifacts. ``judged`` is the file
    with the judged answers of the same run.
    """
    return judged.with_name(judged.name.replace(JUDGED, "numbers.csv"))


def _as_user_error(failure: Failure) -> Failure:
    """Return the failure as it should be reported. A lack of memory, a full disk or an unusable
    path is not a bug of the notebook. Such a failure is returned as a UserError, which is reported
    in one line without a traceback.
    """
    text = failure.evalue
    if failure.ename != "ProcessDied" and no_memory(f"{failure.ename}: {text}"):
        return failure._replace(ename="UserError", evalue=f"{NO_MEMORY}: {text}")
    if number := re.search(r"\b(?:errno|os error) (\d+)\b", text, re.IGNORECASE):
        file = re.search(r": b?'(.*)'$", text)
        error = OSError(int(number[1]), os.strerror(int(number[1])), file and file[1])
        # a missing file may be the fault of the cell's code, so the traceback is kept
        if error.errno != ENOENT and (line := explain(error)):
            return failure._replace(ename="UserError", evalue=line)
    return failure


def environment(job: Job, threads: int, run_folder: Path, part: Part = Part()) -> dict[str, str]:
    """Return the environment variables of a notebook's process. Among other things, they set the
    number of threads, and the folders of artifacts and answers. ``run_folder`` is the run's
    temporary folder.
    """
    pools = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    # the kernel works in the notebook's folder, where a relative path would mean something else
    sources = os.environ.get("LOOKUPLAB_SOURCES")
    return {
        **{name: value for name, value in os.environ.items() if not _LAUNCHER.match(name)},
        **{pool: str(job.profile.threads or env_int(pool, threads)) for pool in pools},
        **ALWAYS,
        # override the user's own backend, kernels and start-up files
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "JUPYTER_PATH": str(run_folder),
        "JUPYTER_RUNTIME_DIR": str(run_folder),
        "TMPDIR": str(run_folder),
        "IPYTHONDIR": str(paths.RUNS / ".ipython"),
        "LOOKUPLAB_SOURCES": str(paths.expand_path(sources).absolute()) if sources else "",
        "LOOKUPLAB_HOME": str(paths.ROOT),
        SHARE_VARIABLE: f"{part.number}/{part.of}",
        paths.STORE_VARIABLE: str(paths.completions_file()),
        "LOOKUPLAB_FIGURES": str(job.figures),
        LOG_VARIABLE: str(run_folder),
        **job.environment,
    }


def part_of(shard: str = "") -> Part:
    """Return this process's part of the work. ``shard`` states the part as text: "3/8" is the third
    of eight parts. Without a shard, the part follows from the environment variables that
    ``accelerate launch``, torchrun, ``srun`` or a SLURM array sets.

    Raises UserError for an invalid shard, and for a launch on several machines. WORLD_SIZE alone
    does not count as a launch, because a cluster's scheduler may set it, too.
    """
    given = os.environ.get
    if shard:
        found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", shard)
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise UserError(f"--shard is {shard!r}; it must be like 3/8, the third of eight")
        return Part(int(found[1]) - 1, int(found[2]), writes_figures=False)
    launch = "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"
    if all(map(given, launch)):
        count = env_int("WORLD_SIZE", 1)
        rank = env_int("RANK", 0, 0, count - 1)
        if env_int("LOCAL_WORLD_SIZE", 1) != count:
            raise UserError(
                "the processes of one launch must run on one machine; for several, use srun, "
                "--shard, or give notebooks to a cluster (--scheduler)"
            )
        return Part(rank, count, rank == 0, local=rank, here=count)
    count = env_int("SLURM_NTASKS", 1)
    if given("SLURM_PROCID") and count > 1:
        rank = env_int("SLURM_PROCID", 0, 0, count - 1)
        return Part(rank, count, rank == 0)
    count = env_int("SLURM_ARRAY_TASK_COUNT", 1)
    if given("SLURM_ARRAY_TASK_ID") and count > 1:
        number, first = (env_int(f"SLURM_ARRAY_TASK_{name}", 1, 0) for name in ("ID", "MIN"))
        step = env_int("SLURM_ARRAY_TASK_STEP", 1)
        return Part((number - first) // step % count, count, in_array=True)
    return Part()


# 2. Several notebooks


def run_jobs(
    jobs: Sequence[Job], parallel: int = 1, cluster: Cluster | None = None, part: Part = Part()
) -> list[tuple[Job, RunResult]]:
    """Run all jobs, at most ``parallel`` at once, and show progress. If a job fails, the other jobs
    still run. Return each job with its outcome, in the order in which the jobs ended.

    Notebooks with the order ``first`` run before all others. Notebooks with the order ``alone`` run
    last, one by one. If models need GPUs, the GPUs are divided among the notebooks that run at
    once. If several processes share the work, each runs its notebooks one by one.
    """
    mine = cards_of(part)
    on_cards = bool(mine) and any(map(needs_card, jobs)) and cluster is None
    parallel = 1 if part.of > 1 else min(parallel, len(mine)) if on_cards else parallel
    threads = max(1, processors() // part.here // parallel)
    first, last = ([job for job in jobs if job.notebook.order == one] for one in ("first", "alone"))
    # the longest notebooks begin first, so that no processor is idle while the last one runs
    others = sorted(
        (job for job in jobs if job.notebook.order not in ("first", "alone")),
        key=lambda job: -job.notebook.seconds(job.place.parent),
    )
    # a notebook takes a share of the GPUs from the queue, and returns it at its end
    shares: SimpleQueue[str] = SimpleQueue()
    for number in range(parallel):
        shares.put(",".join(mine[number::parallel]))

    def run(job: Job) -> RunResult:
        share = shares.get()
        try:
            own = {"CUDA_VISIBLE_DEVICES": share, **job.environment}
            return run_one(replace(job, environment=own), threads, part, requests)
        finally:
            shares.put(share)

    results: list[tuple[Job, RunResult]] = []
    under_way = partial(_progress_lines, jobs, results, time.time())
    # With GPUs, modules are not imported in advance, because a forked process cannot use a GPU that
    # its parent has used.
    is_many = cluster is None and not mine and len(jobs) >= MANY
    preparing = fork_server(jobs[0], threads, part, IMPORTED) if is_many else nullcontext()
    with preparing as requests, Progress("notebooks", len(jobs), parts=under_way) as progress:
        for phase in (first, others, *([job] for job in last)):
            one = (
                run if on_cards else partial(run_one, threads=threads, part=part, requests=requests)
            )
            for job, ended in spread(one, phase, parallel, cluster):
                results.append((job, ended))
                progress.update()
                say(f"{'failed' if ended.failure else 'done'} {job.title}")
                for line in ended.warnings:
                    say(f"{job.title}: {line}")
    return results


def needs_card(job: Job) -> bool:
    """Return whether any of a job's models runs on a GPU. The kit's own models are too small to
    need one, and the models of a server run elsewhere.
    """
    return not all(is_mini(bare_name(name)) or is_remote(name) for name in job.models())


def cards_of(part: Part) -> list[str]:
    """Return the GPUs that this process may use. If several processes were launched together on
    this machine, each gets a share of the GPUs; otherwise, return all GPUs. Raises UserError if
    there are fewer GPUs than processes.
    """
    visible = graphics_cards()
    if part.here > 1 and 0 < len(visible) < part.here:
        raise UserError(
            f"{part.here} processes on {len(visible)} GPUs: launch at most one process per GPU"
        )
    return visible[part.local :: part.here]


def _progress_lines(
    jobs: Iterable[Job], results: Iterable[tuple[Job, RunResult]], began: float
) -> Iterator[str]:
    """Yield the last line in the log of each running job, which shows the job's progress. A job is
    running if it has written to its log since ``began`` and has no result.
    """
    ended = [job for job, _ in results]
    for job in jobs:
        log = job.path_with_suffix(".log")
        with suppress(OSError):
            if job not in ended and log.stat().st_mtime >= began:
                lines = log.read_text("utf-8", "replace").splitlines()
                yield f"{job.title}: {next(filter(str.strip, lines[::-1]), 'begins').strip(' -')}"


def default_jobs(jobs: Collection[Job] = ()) -> int:
    """Return how many notebooks to run at once: as many as there are processors, but no more than
    one per two gigabytes of memory and, if models need GPUs, no more than one per GPU.
    """
    most = [processors(), free_memory() // 2_000_000_000]
    if any(map(needs_card, jobs)) and (visible := graphics_cards()):
        most.append(len(visible))
    return max(1, min(most))


# 3. Jobs that are up to date


def is_current(job: Job) -> bool:
    """Return whether a job has run on this machine and would write the same artifacts again."""
    record = job.path_with_suffix(".ran")
    return record.is_file() and record.read_text("utf-8") == _record(job, fingerprint(job))


def fingerprint(job: Job) -> str:
    """Return a digest of everything on which the job's numbers depend: notebook, parameters, data,
    library and packages. If a parameter names a file, only the file's size and modification time
    are included, because the file may be large.
    """
    places = [path_of(named.text) for named in job.named_texts()]
    files = [file for place in places for file in (place, *sorted(place.rglob("*")))]
    stats = [
        (str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.exists()
    ]
    beside = sorted(job.notebook.path.parent.glob("*.py"))  # the notebook may import them
    notebook = _hashes([job.notebook.path, *beside])
    return digest(canonical([surroundings(), notebook, job.values, job.profile.threads, stats]))


@cache
def surroundings() -> str:
    """Return a digest of everything on which all notebooks depend: data, library and packages."""
    # downloads are left out, because listing 100,000 files would take seconds
    places = (place for place in paths.DATA.glob("*") if place != paths.DOWNLOADS)
    files = (file for place in places for file in (place, *place.rglob("*")))
    own = sorted(file for file in files if file.parent.name != "__pycache__")
    return digest(
        canonical([_hashes(own), provenance.library_hash(), provenance.package_versions()])
    )


def _record(job: Job, ran_with: str) -> str:
    """Return the content of the ``.ran`` file: ``ran_with``, which is the job's fingerprint at the
    time of its run, and the hashes of the CSVs that the run wrote.
    """
    files = (job.place.parent / f"{name}.csv" for name in job.notebook.artifacts)
    return ran_with + canonical(_hashes(files))


def _hashes(files: Iterable[Path]) -> dict[str, str]:
    """Return {path: hash of the content} for the files that exist."""
    return {str(file): paths.file_hash(file) for file in files if file.is_file()}


# 4. The answers behind the figures


def keep_answers(jobs: Sequence[Job]) -> None:
    """Write a list of the answers that the jobs used to ``figures/<profile>/answers.csv.gz``. The
    answers of notebooks that run only on demand are not listed.

    Equal runs write equal bytes. The file's rows about other notebooks are kept. If there are no
    answers, no file is made.
    """
    import pandas as pd

    from lookuplab.results.verify import ANSWERS_FILE, read_answers

    chosen = {job.notebook.id: job for job in jobs if not job.notebook.on_demand}
    target = jobs[0].place.parent / ANSWERS_FILE
    columns = [*LOG_COLUMNS, "notebook"]
    others = {notebook.id for notebook in all_notebooks()} - chosen.keys()
    frames = [pd.DataFrame(columns=columns)]
    for id, job in chosen.items():
        if (log := job.path_with_suffix(f".{ANSWERS}")).is_file():
            frames.append(read_answers(log, names=LOG_COLUMNS).assign(notebook=id))
    with hold_lock(target, f"writes {target.name}", wait=True):
        if target.is_file():
            kept = read_answers(target)
            frames.append(kept[kept.notebook.isin(others)])
        rows = pd.concat(frames).drop_duplicates().sort_values(columns)
        if len(rows) or target.is_file():
            paths.write_text(target, rows.to_csv(index=False))
