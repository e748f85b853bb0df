"""``lookuplab run``, ``reproduce``, ``sweep``, ``status`` and ``draw``: run notebooks under a
profile.
"""

import io
import json
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from itertools import product
from typing import Any

import click

from lookuplab.errors import UserError
from lookuplab.run.commands import command, pairs

WARM = 12.0  # seconds that a notebook takes on average if all its answers are there


@command()
def run(
    notebook: str,
    *,
    profile: str = "mini",
    parameter: tuple[str, ...] = (),
    dry_run: bool = False,
    anyway: bool = False,
    scheduler: str | None = None,
) -> None:
    """Execute one notebook under a profile and keep the executed copy under runs/.

    NOTEBOOK is the name of a notebook or of a table or figure that it makes (optionally with the
    folder: `paper/name`), or a path. Figures, numbers and provenance go to figures/PROFILE/. With
    -p they go to runs/figures/PROFILE/, so that your own parameters never replace the committed
    numbers; in the paper profile, if -p changes only models, they go to figures/paper/MODEL/.
    Unknown parameters and values of the wrong type are rejected.

    \b
    Examples:
      lookuplab run table1_base_models
      lookuplab run cloudapibench/table1_base_models --profile paper -p models=bigcode/starcoder2-3b
      lookuplab run fig1_perplexity -p max_new_tokens=64
      lookuplab run table1_base_models --profile paper --dry-run
      lookuplab run path/to/own.ipynb
      accelerate launch --multi_gpu --num_processes 4 -m lookuplab run table1_base_models --profile paper

    Args:
        profile: smoke, mini, gemma, paper, or the path of a YAML file.
        parameter: NAME=VALUE sets a parameter; repeatable.
        dry_run: Only print what would run, be fetched and be missing (exit code 2 if something is
            missing).
        anyway: Allow any model on the mini tasks, whose frequency classes are meaningful only for
            the mini models.
        scheduler: local or tcp://HOST:PORT: run on a Dask cluster, started here or already running
            (docs/cluster.md).
    """
    from lookuplab import paths
    from lookuplab.run.notebooks import find, plan, request
    from lookuplab.run.runner import rank_and_count

    rank, _ = rank_and_count()
    job = plan(find(notebook), request(profile), pairs(parameter))
    if rank:  # of several processes, only the first writes to the usual place
        own = paths.RUNS / "processes" / str(rank)
        job = replace(job, output=own / f"{job.notebook.id}.ipynb", figures=own / "figures")
    code = execute([job], 1, scheduler, dry_run, again=True, anyway=anyway)
    if code == 0 and rank == 0 and not dry_run:
        click.echo(f"executed copy: {job.output}\nfigures below: {job.place}")
    sys.exit(code)


@command()
def reproduce(
    paper: str | None = None,
    *,
    profile: str = "mini",
    parameter: tuple[str, ...] = (),
    jobs: int = 0,
    again: bool = False,
    cold: bool = False,
    audit: str = "",
    dry_run: bool = False,
    anyway: bool = False,
    scheduler: str | None = None,
) -> None:
    """Execute every notebook of PAPER (without PAPER, of all papers) and write figures/PROFILE/.

    A notebook is skipped if it has run here and neither it nor its parameters, the data, the
    library, the packages or its artifacts have changed since. Notebooks that measure speed run only
    if PAPER is ``performance``, one at a time whatever --jobs says; lessons and templates run only
    if PAPER is ``course`` or ``own``. If a notebook fails, its cell and error are printed, the
    others continue, and the exit code is 1. A notebook whose models all need a missing API key is
    skipped; if only some of its models do, it runs with the remaining ones.

    With -p, each notebook of PAPER takes the parameters that it declares; figures go where
    `lookuplab run` puts them.

    In the mini profile, answers and judgements come from the record in data/mini/record as far as
    they fit; with --audit, a share of them is made anew afterwards and compared. With --cold,
    everything is made anew, in stores of its own (runs/cold), from which `lookuplab record` writes
    a new record; that takes about two core-hours.

    The models' answers behind the figures are listed in figures/PROFILE/answers.csv.gz, for
    `lookuplab verify`.

    \b
    Examples:
      lookuplab reproduce
      lookuplab reproduce cloudapibench -j 2
      lookuplab reproduce --audit 2%
      lookuplab reproduce --cold
      lookuplab reproduce performance
      lookuplab reproduce cloudapibench --profile paper -p models=bigcode/starcoder2-3b
      lookuplab reproduce --profile paper --dry-run
      lookuplab reproduce --profile paper --scheduler tcp://head-node:8786

    Args:
        profile: smoke, mini, gemma, paper, or the path of a YAML file.
        parameter: NAME=VALUE sets a parameter of the notebooks of PAPER; repeatable.
        jobs: Number of notebooks to run at once (default: the number of cores).
        again: Also run notebooks that are up to date.
        cold: Make every answer and judgement anew, without the record.
        audit: Share of the record to make anew and compare (see `lookuplab audit`), such as 2%.
        dry_run: Only print what would run, be fetched and be missing (exit code 2 if something is
            missing).
        anyway: Allow any model on the mini tasks, whose frequency classes are meaningful only for
            the mini models.
        scheduler: local or tcp://HOST:PORT: run on a Dask cluster (docs/cluster.md).
    """
    from lookuplab import paths
    from lookuplab.results import provenance
    from lookuplab.run import audit as auditing
    from lookuplab.run.notebooks import all_notebooks, plan, request
    from lookuplab.run.runner import keep_answers

    if cold and audit:
        raise UserError("--cold makes everything anew: nothing is left to audit")
    begun = auditing.begin(audit) if audit else None
    given, chosen, planned = pairs(parameter), request(profile), []
    if given and not paper:
        raise UserError("papers differ in their parameters: name the PAPER that -p is for")
    notebooks = [one for one in all_notebooks(paper) if paper or not one.on_demand]
    if unknown := given.keys() - {name for one in notebooks for name in one.parameters}:
        raise UserError(f"the notebooks of {paper} have no parameter {min(unknown)!r}")
    for notebook in notebooks:
        job = plan(notebook, replace(chosen, given={**chosen.given, **given}))
        if job.needs:
            click.echo(f"left out: {notebook.id}: no key for {', '.join(job.needs)}", err=True)
        else:
            planned.append(job)
    variables = cold_environment(dry_run) if cold else auditing_environment(begun)
    planned = [replace(job, environment=variables) for job in planned]
    code = execute(planned, jobs, scheduler, dry_run, again or cold, anyway)
    if dry_run or not planned:
        sys.exit(code)
    if code == 0:
        keep_answers(planned)
    if code == 0 and cold:
        seconds = {job.notebook.id: _seconds(job) for job in planned}
        told = {**provenance.describe(), "seconds": sum(seconds.values())}
        text = json.dumps(told, indent=1, sort_keys=True)
        paths.write_lines(auditing.cold() / "run.json", [text])
    if begun:
        code = auditing.finish(begun, code)
    sys.exit(code)


@command()
def sweep(
    notebook: str,
    *,
    parameter: tuple[str, ...] = (),
    profile: str = "mini",
    jobs: int = 0,
    anyway: bool = False,
    scheduler: str | None = None,
) -> None:
    """Execute one notebook for every combination of the given values.

    Everything goes to one folder in runs/sweeps/; its sweep.csv has all numbers, with the
    parameters in the first columns. To resume an interrupted sweep, repeat the command: cases that
    are up to date are not run again.

    \b
    Examples:
      lookuplab sweep table1_base_models -p max_new_tokens=16,32,64
      lookuplab sweep fig1_perplexity -p models=mini-small,mini-large -p limit=100,300 -j 2
      lookuplab sweep fig7a_retriever_precision -p k=1,2,3 --scheduler tcp://head-node:8786

    Args:
        parameter: NAME=A,B,C: the values of a parameter (put lists in brackets); repeatable.
        profile: smoke, mini, gemma, paper, or the path of a YAML file.
        jobs: Number of notebooks to run at once (default: the number of cores).
        anyway: Allow any model on the mini tasks, whose frequency classes are meaningful only for
            the mini models.
        scheduler: local or tcp://HOST:PORT: run on a Dask cluster (docs/cluster.md).
    """
    import pandas as pd

    from lookuplab import paths
    from lookuplab.models.store import canonical, digest
    from lookuplab.run.notebooks import find, plan, request

    found, chosen, grid = find(notebook), request(profile), pairs(parameter)
    folder = paths.RUNS / "sweeps" / found.id / digest(canonical([chosen.name, grid]))[:8]
    # commas inside brackets do not separate values
    cases = product(*(re.split(r",(?![^\[]*\])", text) for text in grid.values()))
    planned, frames = [], []
    for number, case in enumerate(cases):
        own, given = folder / f"{number:03d}", dict(zip(grid, case, strict=True))
        job = plan(found, chosen, given)
        planned.append(replace(job, output=own / f"{found.name}.ipynb", figures=own / "figures"))
    code = execute(planned, jobs, scheduler, anyway=anyway)
    for job in planned:
        values = {f"parameter_{name}": str(job.values[name]) for name in grid}
        for file in sorted(job.figures.rglob("*.csv")):
            frame = pd.read_csv(file, dtype=str, keep_default_na=False)
            frames.append(pd.DataFrame(values, frame.index).join(frame))
    if frames:
        table = pd.concat(frames).to_csv(index=False)
        paths.write_lines(folder / "sweep.csv", [table.removesuffix("\n")])
    click.echo(f"numbers and executed copies: {folder}")
    sys.exit(code)


@command()
def status(*, profile: str = "mini") -> None:
    """List every notebook with its state, tables and figures, and the contents of the completion
    store.

    A notebook is out of date if it, its parameters, the data, the library, the packages or its
    artifacts have changed since it ran here. No model is loaded and nothing is run.

    \b
    Examples:
      lookuplab status
      lookuplab status --profile paper
      lookuplab status --profile paper/bigcode/starcoder2-3b

    Args:
        profile: smoke, mini, gemma, paper, or the path of a YAML file.
    """
    from lookuplab.models.store import CompletionStore
    from lookuplab.run.notebooks import all_notebooks, plan, request
    from lookuplab.run.runner import state

    chosen, place = request(profile), CompletionStore.default_path()
    for one in all_notebooks():
        made = " ".join(id.split("/")[1] for id in one.artifacts)
        click.echo(f"{one.id:44}  {state(plan(one, chosen)):12}  {made}".rstrip())
    click.echo(f"\nstore {place}")
    with CompletionStore(place if place.exists() else ":memory:") as store:
        for model, count, size in store.held():
            click.echo(f"{model:44}  {count:,} answers, {size / 1e6:,.1f} MB")


@command()
def draw(artifact: str | None = None, *, profile: str = "mini") -> None:
    """Redraw the pictures and rewrite the result sentences from the artifacts' CSVs.

    All artifacts are redrawn, or only those of the notebook that makes ARTIFACT. No model is
    loaded: only the notebook's cells tagged `draw` run, with the parameters recorded in the
    artifact's JSON.

    \b
    Examples:
      lookuplab draw
      lookuplab draw fig9_confidence
      lookuplab draw --profile paper

    Args:
        profile: smoke, mini, gemma, paper, or the path of a YAML file.
    """
    from lookuplab.results.artifact import Artifact, read_record
    from lookuplab.run.notebooks import all_notebooks, find, made_request

    chosen, drawn = made_request(profile), []
    os.environ["LOOKUPLAB_FIGURES"] = str(chosen.figures)
    for notebook in [find(artifact)] if artifact else all_notebooks():
        places = [chosen.figures / chosen.name / id for id in notebook.artifacts]
        if places and all(place.with_suffix(".json").is_file() for place in places):
            recorded = read_record(places[0])["parameters"]
            # outside a notebook, displaying a figure would only print its name
            with redirect_stdout(io.StringIO()):
                exec(notebook.drawing, {"Artifact": Artifact, **notebook.parameters, **recorded})
            drawn += notebook.artifacts
    if not drawn:
        raise UserError(f"no numbers of {artifact or 'any notebook'} in profile {profile!r}")
    click.echo(f"drawn: {', '.join(drawn)}")


def cold_environment(dry_run: bool) -> dict[str, str]:
    """Variables for a run without the record, with stores of its own: empty ones unless an earlier
    run was interrupted.
    """
    from lookuplab.models.record import RECORD
    from lookuplab.models.store import STORE_VARIABLE
    from lookuplab.run import audit

    if (audit.cold() / "run.json").is_file() and not dry_run:  # that run is complete
        shutil.rmtree(audit.cold())
    return {RECORD: "off", STORE_VARIABLE: str(audit.cold() / "completions.sqlite")}


def auditing_environment(begun: Any) -> dict[str, str]:
    """Variables for a run with an audit; none without one."""
    from lookuplab.models.record import AUDIT

    return {AUDIT: json.dumps(begun._asdict())} if begun else {}


def _seconds(job: Any) -> float:
    """How long the notebook took, by the provenance of its artifacts."""
    from lookuplab.results.artifact import wall_seconds

    return wall_seconds(job.place.parent / id for id in job.notebook.artifacts)


def _preview(planned: list, anyway: bool) -> int:
    """Print each job's settings, downloads and missing inputs, then the total to fetch and the
    steps left to the user.

    Return the exit code: 2 if the same command without --dry-run would be refused.
    """
    from lookuplab.results.provenance import relative
    from lookuplab.run import downloads
    from lookuplab.run.notebooks import foreign_tasks, from_network, missing

    due, steps, code = {}, {}, 0
    for job in sorted(planned, key=lambda job: job.notebook.order != "first"):
        click.echo(f"{job.notebook.id} -> {relative(job.place)}")
        for name, value in job.parameters.items():
            if name not in ("profile", "roles"):
                click.echo(f"     {name} = {str(value):.110}")
        for source in from_network(job):
            is_here = downloads.is_fetched(source)
            click.echo(f"  {'has' if is_here else 'fetches'}: {source}")
            due |= {} if is_here else {(source.name, source.revision): source.bytes}
        refused = "" if anyway else foreign_tasks(job)
        problems = [*missing(job)]
        steps |= {step: None for _, step in problems if step}
        said = [f"  missing: {problem}" for problem, _ in problems]
        said += [f"  refused: {refused}"] if refused else []
        for line in said:
            click.echo(line)
        code = 2 if said else code
    unknown = f" and {list(due.values()).count(0)} of unknown size" * (0 in due.values())
    click.echo(
        f"to fetch in all: {len(due)} downloads, {downloads.size(sum(due.values()))}{unknown}"
    )
    for step in steps:
        click.echo(f"yours to do first: {step}")
    return code


def _foretold(due: list, jobs: int) -> Iterator[str]:
    """What to expect: how much of the record fits, and how long it may take."""
    from lookuplab.models.record import RECORD
    from lookuplab.run import audit

    is_warm = False
    if len(due) > 1:
        is_cold = {**os.environ, **due[0].environment}.get(RECORD) == "off"
        if due[0].request.profile.file.stem == "mini" and not is_cold:
            yield from audit.fit((job.notebook.id for job in due), jobs)
            is_warm = bool(audit.about())
        took = sum(WARM if is_warm else _seconds(job) for job in due) / jobs
        if took:
            yield f"{len(due)} notebooks: about {max(1, round(took / 60))} min, less if answers are stored"


def execute(
    planned: list,
    jobs: int,
    scheduler: str | None,
    dry_run: bool = False,
    again: bool = False,
    anyway: bool = False,
) -> int:
    """Run the planned jobs, ``jobs`` at once, or print what would run; print failures and return
    the exit code.

    Without ``again``, jobs that have not changed since they last ran here are skipped, unless they
    measure time. Exit
    codes: 0, all is well; 1, some failed; 2, every failure was a UserError (bad input found only
        while running).
    """
    from lookuplab.run.cluster import joined
    from lookuplab.run.notebooks import check
    from lookuplab.run.runner import default_jobs, rank_and_count, run_jobs, state, uses

    if rank_and_count()[1] > 1 and (len(planned) > 1 or scheduler):
        raise UserError(
            "only `lookuplab run` can be launched in several processes; others would write the same files"
        )
    for job in planned:
        if job.without:
            click.echo(
                f"{job.notebook.id}: left out, no key for {', '.join(job.without)}", err=True
            )
    if dry_run:
        return _preview(planned, anyway)
    for job in planned:
        check(job, anyway)
    due = [
        job
        for job in planned
        if again or job.notebook.order == "alone" or state(job) != "up to date"
    ]
    if len(due) < len(planned):
        click.echo(
            f"{len(planned) - len(due)} of {len(planned)} notebooks are up to date", err=True
        )
    jobs = jobs or default_jobs()
    for line in _foretold(due, jobs):
        click.echo(line, err=True)
    began = time.monotonic()
    try:
        with joined(scheduler, jobs) as cluster:
            found = run_jobs(due, jobs, cluster)
    except KeyboardInterrupt:
        click.echo("\ninterrupted; generated answers are kept: repeat the command", err=True)
        os._exit(130)  # whatever still runs ends with this process
    failures = [(job, failure) for job, failure in zip(due, found, strict=True) if failure]
    for job, failure in failures:
        if failure.ename == "UserError":
            click.echo(f"error: {job.title}: {failure.evalue}", err=True)
            continue
        where = f"cell {failure.cell}: " if failure.cell else ""
        last = "\n".join(failure.traceback.splitlines()[-12:])
        said = (
            f"\n{job.title}: {where}{failure.ename}: {failure.evalue}",
            textwrap.indent(failure.source, "    "),
            textwrap.indent(last, "    | "),
            f"the executed copy: {job.output}",
        )
        click.echo("\n".join(said), err=True)
    took = time.monotonic() - began
    click.echo(f"{len(due) - len(failures)} of {len(due)} notebooks ran in {took:.1f} s", err=True)
    counts = uses(due)
    if sum(counts.values()):
        click.echo(
            "answers and judgements: {recorded:,} from the record, {stored:,} stored here before, {new:,} made "
            "anew, {again:,} for the audit".format(**counts),
            err=True,
        )
    codes = {2 if failure.ename == "UserError" else 1 for _, failure in failures}
    return min(codes, default=0)
