"""Implements ``lookuplab run``, ``reproduce`` and ``sweep``, which execute notebooks under a
profile, ``list``, which names the notebooks, and ``draw``, which redraws their pictures.
"""

import io
import json
import shlex
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import click

from lookuplab import paths
from lookuplab.errors import UserError, check_choice
from lookuplab.models.names import is_mini
from lookuplab.models.record import RECORD_VARIABLE
from lookuplab.models.store import SCREEN
from lookuplab.results.provenance import git, relative
from lookuplab.run import downloads
from lookuplab.run.cli import claim, command, pairs
from lookuplab.run.cluster import connect
from lookuplab.run.execute import Failure
from lookuplab.run.notebooks import (
    Job,
    check,
    find,
    load_profile,
    needed_downloads,
    plan,
    problems,
    profile_with_figures,
    select,
    settable,
)
from lookuplab.run.runner import (
    USES,
    Part,
    RunResult,
    default_jobs,
    is_current,
    keep_answers,
    kept_runs,
    part_of,
    run_jobs,
    with_own_folder,
)
from lookuplab.work import say


@command()
def run(
    notebook: str,
    *,
    profile: str = "",
    parameter: tuple[str, ...] = (),
    dry_run: bool = False,
    shard: str = "",
    scheduler: str | None = None,
) -> None:
    """Execute one notebook under a profile.

    NOTEBOOK is the path of a notebook, its name, or the name of a table or figure that the notebook
    makes. A name may begin with the folder: `paper/name`. Figures, numbers and provenance go to
    figures/PROFILE/. With -p they go to runs/figures/PROFILE/, so that your own parameters never
    replace the committed numbers; in the paper profile, if -p changes only models, they go to
    figures/paper/MODEL/. The executed copy of the notebook is kept below runs/. Unknown parameters
    and values of the wrong type are rejected.

    \b
    Examples:
      lookuplab run table1_base_models
      lookuplab run cloudapibench/table1_base_models --profile paper -p models=bigcode/starcoder2-3b
      lookuplab run fig1_perplexity -p max_new_tokens=64
      lookuplab run table1_base_models --profile paper --dry-run
      lookuplab run path/to/own.ipynb
      accelerate launch --multi_gpu --num_processes 4 -m lookuplab run table1_base_models
      lookuplab run table1_base_models --profile paper --shard 3/8

    Args:
        profile: smoke, mini, gemma, paper, published, or the path of a YAML file. By default, the
            profile that the notebook's parameters cell names.
        parameter: NAME=VALUE sets a parameter; repeatable. VALUE is YAML, so a list is [A, B]
            ('questions=["sort, then reverse", b]').
        dry_run: Only print what would run, what would be fetched, what is missing (then the exit
            code is 2), and how many prompts the notebook has in the mini profile.
        shard: I/N, such as 3/8: answer part I of N of the prompts first, and write no figures. The
            same command without --shard then finds the answers (docs/cluster.md).
        scheduler: Run on a Dask cluster: local starts one on this machine, tcp://HOST:PORT is one
            that runs already (docs/cluster.md).
    """
    found = find(notebook)
    job = plan(found, load_profile(profile or found.home), pairs(parameter))
    part = part_of(shard)
    code = execute([job], 1, scheduler, dry_run, again=True, part=part)
    if code == 0 and part.writes_figures and not dry_run:
        if (screen := job.path_with_suffix(f".{SCREEN}")).is_file():
            click.echo(screen.read_text("utf-8"), nl=False)
        click.echo(f"executed copy: {job.output}\nfigures below: {job.place}")
        if kept_runs(job.output):
            click.echo(f"every answer: lookuplab view {job.notebook.id}")
        if line := undo_hint(job.place.parent / id for id in job.notebook.artifacts):
            click.echo(line)
    sys.exit(code)


def undo_hint(places: Iterable[Path]) -> str:
    """Return a line that says how to undo a run's changes to committed artifacts; "" if there are
    no such changes. ``places`` are the paths of the artifacts' files without suffix.

    Every run changes at least an artifact's JSON. The changed JSON tells ``lookuplab verify`` that
    the artifact was made again.
    """
    files = [f"{place}.*" for place in places]
    changed = files and git("diff", "--name-only", "--relative", "--", *files)
    told = "committed files that this run replaced (numbers are in the CSV, not in the JSON)"
    undo = f"git -C {shlex.quote(str(paths.ROOT))} checkout --"
    return f"{told}; to undo: {undo} {shlex.join(changed.splitlines())}" if changed else ""


@command("list")
def list_notebooks(names: tuple[str, ...] = ()) -> None:
    """List the notebooks, with id and title.

    NAMES are papers, or notebooks as for `lookuplab run`; without NAMES, all notebooks are listed.
    Nothing is run.

    \b
    Examples:
      lookuplab list
      lookuplab list toolgen
    """
    for notebook in select(names):
        click.echo(f"{notebook.id:45} {notebook.title}".rstrip())


@command()
def reproduce(
    names: tuple[str, ...] = (),
    *,
    profile: str = "",
    parameter: tuple[str, ...] = (),
    jobs: int = 0,
    again: bool = False,
    cold: bool = False,
    audit: str = "",
    dry_run: bool = False,
    shard: str = "",
    scheduler: str | None = None,
) -> None:
    """Execute every notebook, or only some.

    The command executes NAMES (papers, notebooks, or tables and figures that they make) or, without
    NAMES, every notebook, and writes figures/PROFILE/. A notebook is skipped if it is up to date:
    it has run on this machine, and its code, parameters, artifacts, data, library and packages have
    not changed since. These notebooks run only if they are named: lessons and templates (`course`,
    `own`), a few long ones, and those that measure speed (`performance`; one at a time whatever
    --jobs says). If a notebook fails, its cell and error are printed, the other notebooks still
    run, and the exit code is 1. Models of the profile whose API key is not set are left out; if a
    notebook has no other models, the command stops before anything runs.

    With -p, a parameter is set in each of the notebooks that declare it. Figures go where
    `lookuplab run` puts them.

    In the mini profile, answers and judgements come from the record in data/mini/record, if it has
    them. With --cold, everything is generated again, in separate stores (runs/cold), from which
    `python -m recipes.mini.record` writes a new record; that takes about two core-hours.

    With --audit, a random share of the record is drawn: of the answers of each model, and of the
    judgements of each type. A notebook that uses a drawn answer or judgement makes it anew. The
    command compares the new answers and judgements with the recorded ones. All tokens and verdicts
    must be equal. Log-probabilities must be equal up to their last digits, which depend on the
    batch and on the processor. Near ties are listed. Judgements are compared only under the
    record's Python. The exit code is 1 if something differs or, with --again, if nothing could be
    compared. To continue an interrupted audit, repeat the command.

    The models' answers behind the figures are listed in figures/PROFILE/answers.csv.gz, for
    `lookuplab verify`.

    \b
    Examples:
      lookuplab reproduce
      lookuplab reproduce cloudapibench -j 2
      lookuplab reproduce --audit 0.5%
      lookuplab reproduce table1_base_models --again --audit 100%
      lookuplab reproduce --cold
      lookuplab reproduce performance
      lookuplab reproduce cloudapibench --profile paper -p models=bigcode/starcoder2-3b
      lookuplab reproduce --profile paper --dry-run
      lookuplab reproduce --profile paper --scheduler tcp://head-node:8786
      accelerate launch --multi_gpu --num_processes 4 -m lookuplab reproduce cloudapibench

    Args:
        profile: smoke, mini, gemma, paper, published, or the path of a YAML file. By default, for
            each notebook the profile that its parameters cell names: published for answers that
            others published, otherwise mini.
        parameter: NAME=VALUE sets a parameter of the notebooks that declare it; repeatable.
        jobs: Number of notebooks to run at once, among which the GPUs are divided. By default, one
            per processor, but at most one per 2 GB of memory and, if models need GPUs, one per GPU.
        again: Also run notebooks that are up to date.
        cold: Generate every answer and judgement again, without the record.
        audit: Share of the record to generate again and compare, such as 2%, but at least 5 answers
            of each model and 5 judgements of each type. If one row in 200 is wrong, an audit of
            0.5% (640 rows) finds a wrong row with a probability of 95%. The commit is the seed, so
            each commit compares other rows.
        dry_run: Only print what would run, what would be fetched, what is missing (then the exit
            code is 2), and how many prompts each notebook has in the mini profile.
        shard: I/N, such as 3/8: answer part I of N of the prompts first, and write no figures. The
            same command without --shard then finds the answers (docs/cluster.md).
        scheduler: local or tcp://HOST:PORT: run on a Dask cluster (docs/cluster.md).
    """
    if cold and audit:
        raise UserError("--cold generates everything again: nothing is left to audit")
    part = part_of(shard)
    if cold or audit:
        from lookuplab.run import audit as auditing  # only here, because this takes a second

        if part.of > 1:
            raise UserError("--cold and --audit need a single process")
    wanted = select(names)
    given = pairs(parameter)
    planned = []
    for notebook in wanted:
        own = load_profile(profile or notebook.home)
        if names or (own.covers(notebook) and not notebook.on_demand):
            planned.append(plan(notebook, replace(own, given={**own.given, **given})))
    for name in given:
        check_choice("the parameter", name, settable(job.notebook for job in planned))
    if cold and not dry_run:
        claim(auditing.cold_folder())
    begun = auditing.begin(audit) if audit else None
    variables = {RECORD_VARIABLE: str(begun)} if begun else {}
    if cold:
        variables = auditing.cold_environment(dry_run)
    # the record has no judgements of published answers
    planned = [
        job if job.notebook.home == paths.PUBLISHED else replace(job, environment=variables)
        for job in planned
    ]
    # A shard also runs notebooks that are up to date, because it has to fill a store. This store
    # may lack the answers behind the figures of these notebooks.
    code = execute(planned, jobs, scheduler, dry_run, again or cold or bool(shard), part)
    if planned and not dry_run:
        if code == 0 and part.writes_figures:
            for place in {job.place.parent for job in planned}:
                keep_answers([job for job in planned if job.place.parent == place])
        if code == 0 and cold:
            auditing.mark_complete(is_whole=not names)
        if begun:
            code = auditing.finish(begun, code, every=again)
    sys.exit(code)


@command()
def sweep(
    notebook: str,
    *,
    parameter: tuple[str, ...] = (),
    profile: str = "",
    jobs: int = 0,
    shard: str = "",
    scheduler: str | None = None,
) -> None:
    """Execute one notebook for several values of its parameters.

    The notebook runs once for every combination of the values. Everything goes to one folder in
    runs/sweeps/. The file sweep.csv in this folder has all numbers, with the columns of an
    artifact. Parameters with several values become part of each row's condition (`all, k=2`). To
    resume an interrupted sweep, repeat the command: runs that are up to date are skipped.

    \b
    Examples:
      lookuplab sweep table1_base_models -p 'max_new_tokens=[16,32,64]'
      lookuplab sweep fig1_perplexity -p 'models=[mini-small,mini-large]' -p 'limit=[100,300]' -j 2
      lookuplab sweep fig7a_retriever_precision -p 'k=[1,2,3]' --scheduler tcp://head-node:8786

    Args:
        parameter: 'NAME=[A, B, C]' gives the values of a parameter; repeatable. If the parameter is
            a list, a value that is not a list becomes a list with one item.
        profile: smoke, mini, gemma, paper, published, or the path of a YAML file. By default, the
            profile that the notebook's parameters cell names.
        jobs: Number of notebooks to run at once (default: as for `lookuplab reproduce`).
        shard: I/N, such as 3/8: answer part I of N of the prompts first, and write neither figures
            nor sweep.csv. The same command without --shard then finds the answers
            (docs/cluster.md).
        scheduler: local or tcp://HOST:PORT: run on a Dask cluster (docs/cluster.md).
    """
    import pandas as pd

    from lookuplab.results.artifact import read_csv, to_csv

    swept, grid = find(notebook), pairs(parameter)
    chosen = load_profile(profile or swept.home)
    key = paths.digest(paths.canonical([chosen.name, grid]))[:8]
    folder = paths.RUNS / "sweeps" / swept.id / key
    values = {
        name: given if isinstance(given, list) and given else [given]
        for name, given in grid.items()
    }
    for name, items in values.items():
        if len({*map(str, items)}) < len(items):  # a repeated value would count twice
            raise UserError(f"{name}={items} has a value twice: give each value once")
    cases = []
    tables = []
    for number, case in enumerate(product(*values.values())):
        given = dict(zip(grid, case, strict=True))
        own = folder / f"{number:03d}"
        job = plan(swept, chosen, given)
        job = replace(job, output=own / f"{swept.name}.ipynb", figures=own / "figures")
        varied = [f"{name}={value}" for name, value in given.items() if values[name][1:]]
        cases.append((job, varied))
    part = part_of(shard)
    code = execute([job for job, _ in cases], jobs, scheduler, again=bool(shard), part=part)
    if not part.writes_figures:
        sys.exit(code)
    # the folder of a failed run may still have the numbers of an earlier run
    for job, varied in (case for case in cases if case[0].path_with_suffix(".ran").is_file()):
        for file in sorted(job.figures.rglob("*.csv")):
            table = read_csv(file)
            conditions = [", ".join(filter(None, (old, *varied))) for old in table.condition]
            tables.append(table.assign(condition=conditions))
    if tables:
        paths.write_text(folder / "sweep.csv", to_csv(pd.concat(tables)))
    click.echo(f"numbers and executed copies: {folder}")
    sys.exit(code)


@command()
def draw(artifact: str | None = None, *, profile: str = "") -> None:
    """Redraw pictures from the numbers.

    The command draws the pictures and writes the result sentences again, from the artifacts' CSVs:
    for all artifacts, or only for those of the notebook that makes ARTIFACT. Only the notebooks'
    cells tagged `draw` run, with the parameters recorded in the artifacts' JSON files, so no model
    is loaded.

    \b
    Examples:
      lookuplab draw
      lookuplab draw fig9_confidence
      lookuplab draw --profile paper

    Args:
        profile: smoke, mini, gemma, paper, published, or the path of a YAML file. By default, the
            profile that the parameters cell of ARTIFACT's notebook names; mini without ARTIFACT.
    """
    from lookuplab.results.artifact import Artifact, read_record

    notebooks = select([artifact] if artifact else [])
    if notebooks[0].is_copy:
        raise UserError(f"{artifact} is a copy: name the original")
    chosen = profile_with_figures(profile or (notebooks[0].home if artifact else "mini"))
    drawn: list[str] = []
    made = {"Artifact": partial(Artifact, figures=chosen.figures)}
    for notebook in notebooks:
        places = [chosen.figures / chosen.name / id for id in notebook.artifacts]
        if places and all(place.with_suffix(".json").is_file() for place in places):
            recorded = read_record(places[0])["parameters"]
            # the JSON file sorts the names in a dictionary; restore the notebook's order, which a
            # result sentence may use
            for name, value in notebook.parameters.items():
                if isinstance(value, dict) and name in recorded:
                    known = recorded[name]
                    recorded[name] = dict.fromkeys(k for k in value if k in known) | known
            # outside a notebook, displaying a figure would only print its name
            with redirect_stdout(io.StringIO()):
                exec(notebook.drawing, made | notebook.parameters | recorded)
            drawn += notebook.artifacts
    if not drawn:
        raise UserError(
            f"no numbers of {artifact or 'any notebook'} in profile {chosen.name!r}: make them "
            "with `lookuplab run`"
        )
    click.echo(f"drawn: {', '.join(drawn)}")


def _preview(planned: list[Job]) -> int:
    """Print each job's parameters, downloads, number of prompts and problems. A problem that
    several jobs share is printed once.

    Return the exit code: 2 if the same command without --dry-run would be refused, otherwise 0.
    """
    printed: set[str] = set()
    for job in sorted(planned, key=lambda job: job.notebook.order != "first"):
        click.echo(f"{job.notebook.id} -> {relative(job.place)}")
        for name, value in job.parameters.items():
            if name not in ("profile", "roles"):
                click.echo(f"     {name} = {value!s:.110}")
        for source in needed_downloads(job):
            click.echo(f"  {'has' if downloads.is_fetched(source) else 'fetches'}: {source}")
        for line in prompt_counts(job):
            click.echo(f"  {line}")
        for problem in problems(job):
            if problem not in printed:
                click.echo(f"  problem: {' '.join(problem.splitlines())}")
                printed.add(problem)
    return 2 if printed else 0


def prompt_counts(job: Job) -> Iterator[str]:
    """Yield a line that helps to estimate a job's cost: how many prompts the notebook gave to one
    model in the committed run of the mini profile, and how many tokens an answer may have. Yield
    nothing if no answers of the notebook are committed, or if all of the job's models are mini
    models, which cost nothing.
    """
    from lookuplab.results.verify import ANSWERS_FILE, read_answers

    file = paths.FIGURES / "mini" / ANSWERS_FILE
    if file.is_file() and not all(map(is_mini, job.models())):
        rows = read_answers(file)
        rows = rows[rows.notebook == job.notebook.id]
        for _, of_model in list(rows.groupby("model", sort=False))[:1]:
            count, tasks, most = (
                len(of_model),
                of_model.prompt.nunique(),
                job.values.get("max_new_tokens"),
            )
            text = f"prompts: {count / tasks:.1f} for each task and model ({count:,} for {tasks:,}"
            yield f"{text} in the mini profile)" + (f"; at most {most} tokens out" if most else "")


def execute(
    planned: list[Job],
    jobs: int,
    scheduler: str | None,
    dry_run: bool = False,
    again: bool = False,
    part: Part = Part(),
) -> int:
    """Run the planned jobs, ``jobs`` at once (0 means the default), or print what would run. Print
    failures and return the exit code.

    Without ``again``, jobs that are up to date are skipped, unless they measure time. The exit code
    is 0 if no job failed, 2 if all failures were UserErrors (bad input that was found only while
    running), and otherwise 1.

    If several processes share the work, each runs the same jobs. A process that does not draw the
    figures writes to a folder of its own.
    """
    if part.of > 1 and scheduler:
        raise UserError("--scheduler cannot be combined with --shard or several processes")
    for line in dict.fromkeys(line for job in planned for line in job.notes):
        say(line)
    if dry_run:
        return _preview(planned)
    for job in planned:
        check(job)
    due = [job for job in planned if again or job.notebook.order == "alone" or not is_current(job)]
    if current := len(planned) - len(due):
        say(f"{current} of {len(planned)} notebooks are up to date")
    jobs = jobs or default_jobs(due)
    if not part.writes_figures:
        due = [with_own_folder(job, part.number) for job in due]
    began = time.monotonic()
    with connect(scheduler, jobs) if scheduler else nullcontext() as cluster:
        ended = run_jobs(due, jobs, cluster, part)
    failures = [(job, one.failure) for job, one in ended if one.failure]
    for job, failure in failures:
        say(_failure_text(job, failure))
    took = time.monotonic() - began
    say(f"{len(due) - len(failures)} of {len(due)} notebooks ran in {took:.1f} s")
    if len(due) > 1:
        say("\n".join(time_table(ended)))
    counts = [*map(sum, zip(*(one.uses for _, one in ended), strict=True))]
    if any(counts):
        told = ", ".join(f"{count:,} {what}" for count, what in zip(counts, USES, strict=True))
        say(f"answers and judgements: {told}")
    return min((2 if failure.ename == "UserError" else 1 for _, failure in failures), default=0)


def time_table(ended: Iterable[tuple[Job, RunResult]]) -> Iterator[str]:
    """Yield the lines of a table with one line for each notebook, the slowest first. The columns
    are the seconds that the notebook took, the seconds outside its cells (mostly before the first
    cell), the seconds in its drawing cells, and how many answers and judgements the notebook found
    and how many it made. The times come from papermill's metadata in the executed copy.
    """
    lines = []
    for job, (failure, (recorded, stored, made), _) in ended:
        if failure:
            continue
        copy = json.loads(job.output.read_bytes())
        spent = {True: 0.0, False: 0.0}
        for cell in copy["cells"]:
            about = cell["metadata"]
            spent["draw" in about["tags"]] += about["papermill"]["duration"] or 0
        whole = copy["metadata"]["papermill"]["duration"]
        times = whole, whole - sum(spent.values()), spent[True]
        lines.append((*times, recorded + stored, made, job.title))
    yield f"{'seconds':>8}{'start':>8}{'drawing':>9}{'found':>9}{'made':>8}  notebook"
    for whole, start, drawing, found, made, title in sorted(lines, reverse=True):
        yield f"{whole:8.1f}{start:8.1f}{drawing:9.1f}{found:9,}{made:8,}  {title}"


def _failure_text(job: Job, failure: Failure) -> str:
    """Return a failure as text for the terminal. For bad input this is one line. For other failures
    it is the cell, the error and the end of the traceback.
    """
    if failure.ename == "UserError":
        return f"error: {job.title}: {failure.evalue}"
    cell = f"In [{failure.cell}]: " if failure.cell else ""
    traceback = "\n".join(failure.traceback.splitlines()[-12:])
    return (
        f"\n{job.title}: {cell}{failure.ename}: {failure.evalue}\n"
        f"{textwrap.indent(failure.source, '    ')}\n{textwrap.indent(traceback, '    | ')}\n"
        f"the executed copy: {job.output}"
    )
