"""``lookuplab run``, ``reproduce``, ``sweep`` and ``status``: notebooks under a profile."""

import hashlib
import json
import sys
from itertools import product

import click

from lookuplab.cli import aligned, pairs, profile_option, scheduler_option
from lookuplab.errors import UserError

parameter_option = click.option(
    "-p",
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a parameter; repeatable. A sweep takes several values: NAME=A,B,C.",
)
jobs_option = click.option(
    "-j",
    "--jobs",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="Notebooks at a time.",
)
dry_option = click.option(
    "--dry-run",
    is_flag=True,
    help="Only say what would run, what is missing, and how large the models are.",
)


@click.command(
    short_help="Run one notebook under a profile.",
    epilog="""\b
Examples:
  lookuplab run table1_base_models
  lookuplab run cloudapibench/table1_base_models --profile paper -p models=bigcode/starcoder2-3b
  lookuplab run fig1_perplexity -p max_new_tokens=64
  lookuplab run table1_base_models --profile paper --dry-run
  lookuplab run path/to/own.ipynb
  accelerate launch --multi_gpu --num_processes 4 -m lookuplab run table1_base_models --profile paper""",
)
@click.argument("notebook")
@profile_option
@parameter_option
@dry_option
@scheduler_option
def run(
    notebook: str, profile: str, parameters: tuple[str, ...], dry_run: bool, scheduler: str | None
) -> None:
    """Execute NOTEBOOK and keep the executed copy under runs/.

    NOTEBOOK is its name, that of a table or figure which it makes (either with its folder before
    it: `paper/name`), or a path. Figure, numbers and provenance go to figures/PROFILE/; with -p to
    runs/figures/PROFILE/, so that your own parameters never replace the committed numbers. An
    unknown parameter or a value of another type is refused.
    """
    from lookuplab import paths
    from lookuplab.notebooks import find, load_profile, plan
    from lookuplab.runner import launched

    rank, _ = launched()
    # of several processes, the first writes where a single one would
    own = paths.RUNS / "processes" / str(rank)
    found, chosen = find(notebook), load_profile(profile)
    places = (
        {"output": own / found.paper / f"{found.name}.ipynb", "figures": own / "figures"}
        if rank
        else {}
    )
    job = plan(found, chosen, pairs(parameters), **places)
    code = _execute([job], 1, scheduler, dry_run, again=True)
    if code == 0 and rank == 0 and not dry_run:
        click.echo(
            f"executed copy: {job.output}\nfigures below: {job.figures / chosen.name / found.paper}"
        )
    sys.exit(code)


@click.command(
    short_help="Run every notebook (of one paper).",
    epilog="""\b
Examples:
  lookuplab reproduce
  lookuplab reproduce cloudapibench -j 2
  lookuplab reproduce performance
  lookuplab reproduce --profile paper --dry-run
  lookuplab reproduce --profile paper --scheduler tcp://head-node:8786""",
)
@click.argument("paper", required=False)
@profile_option
@jobs_option
@click.option("--again", is_flag=True, help="Also what is up to date.")
@dry_option
@scheduler_option
def reproduce(
    paper: str | None, profile: str, jobs: int, again: bool, dry_run: bool, scheduler: str | None
) -> None:
    """Execute every notebook of PAPER (all papers without it) and write figures/PROFILE/.

    A notebook is left out if it ran here and neither it nor its parameters, the data, the library,
    the packages or its artifacts have changed since. Notebooks that measure speed run only if PAPER
    is ``performance``, one at a time whatever --jobs says. If a notebook fails, its cell and error
    are printed, the others go on, and the exit code is 1.

    The models' answers behind the figures are listed in figures/PROFILE/answers.csv.gz, for
    `lookuplab verify`.
    """
    from lookuplab import paths, runner
    from lookuplab.notebooks import all_notebooks, load_profile, plan

    chosen = load_profile(profile)
    planned = [
        plan(notebook, chosen)
        for notebook in all_notebooks(paper)
        if paper or not notebook.on_demand
    ]
    if not planned:
        raise UserError(f"no notebook to run under {paths.NOTEBOOKS}")
    code = _execute(planned, jobs, scheduler, dry_run, again)
    if code == 0 and not dry_run:
        runner.keep_answers(planned)
    sys.exit(code)


@click.command(
    short_help="Run one notebook over a grid of parameters.",
    epilog="""\b
Examples:
  lookuplab sweep table1_base_models -p max_new_tokens=16,32,64
  lookuplab sweep fig1_perplexity -p models=mini-small,mini-large -p limit=100,300 -j 2
  lookuplab sweep fig7a_retriever_precision -p k=1,2,3 --scheduler tcp://head-node:8786""",
)
@click.argument("notebook")
@parameter_option
@profile_option
@jobs_option
@scheduler_option
def sweep(
    notebook: str, parameters: tuple[str, ...], profile: str, jobs: int, scheduler: str | None
) -> None:
    """Execute NOTEBOOK once for every combination of the values given.

    Everything goes to one folder below runs/sweeps/; its sweep.csv holds all numbers, the
    parameters as first columns. A sweep that was stopped goes on where it was: cases that are up to
    date are not run again.
    """
    import pandas as pd

    from lookuplab import paths
    from lookuplab.notebooks import find, load_profile, plan

    found, chosen, grid = find(notebook), load_profile(profile), pairs(parameters)
    name = hashlib.sha256(json.dumps([chosen.name, grid]).encode()).hexdigest()[:8]
    folder = paths.RUNS / "sweeps" / found.id / name
    cases = [dict(zip(grid, values, strict=True)) for values in product(*map(split, grid.values()))]
    planned = [
        plan(
            found,
            chosen,
            case,
            output=folder / f"{number:03d}" / f"{found.name}.ipynb",
            figures=folder / f"{number:03d}" / "figures",
        )
        for number, case in enumerate(cases)
    ]
    code = _execute(planned, jobs, scheduler)
    frames = []
    for job in planned:
        for file in sorted(job.figures.rglob("*.csv")):
            table = pd.read_csv(file, dtype=str, keep_default_na=False)
            chosen_values = {f"parameter_{name}": str(job.values[name]) for name in grid}
            frames.append(
                pd.concat([pd.DataFrame([chosen_values] * len(table)), table], axis="columns")
            )
    if not frames and code == 0:
        raise UserError(
            f"{notebook} ran {len(planned)} times but wrote no artifact: there are no numbers to collect"
        )
    if frames:
        pd.concat(frames, ignore_index=True).to_csv(
            folder / "sweep.csv", index=False, lineterminator="\n"
        )
    click.echo(f"numbers: {folder / 'sweep.csv'}" if frames else f"executed copies: {folder}")
    sys.exit(code)


def split(text: str) -> list[str]:
    """``a,b,c`` at its commas; those inside brackets do not separate."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[({") - (character in "])}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


@click.command(
    short_help="Which notebooks are up to date; what the store holds.",
    epilog="""\b
Examples:
  lookuplab status
  lookuplab status table1_base_models
  lookuplab status --profile paper""",
)
@click.argument("notebook", required=False)
@profile_option
def status(notebook: str | None, profile: str) -> None:
    """Say how the profile's notebooks (or NOTEBOOK) stand, and what the completion store holds.

    A notebook is out of date if itself, its parameters, the data, the library, the packages or its
    artifacts are not what they were when it ran here. No model is loaded, nothing is run.
    """
    from lookuplab import runner
    from lookuplab.commands.results import store_text
    from lookuplab.notebooks import all_notebooks, find, load_profile, plan

    now = runner.surroundings()
    rows = []
    for one in [find(notebook)] if notebook else all_notebooks():
        reasons = runner.changed(plan(one, load_profile(profile)), now)
        rows.append(
            (
                one.id,
                ", ".join(reasons)
                if len(reasons) == 1 and " " in reasons[0]
                else f"out of date: {', '.join(reasons)}"
                if reasons
                else "up to date",
            )
        )
    click.echo(f"{aligned(rows)}\n\n{store_text()}")


def _execute(
    jobs: list, parallel: int, scheduler: str | None, dry_run: bool = False, again: bool = False
) -> int:
    """Run the jobs, or say what would run; returns the exit code."""
    from lookuplab.cluster import joined
    from lookuplab.notebooks import check
    from lookuplab.runner import launched, run_and_report

    if launched()[1] > 1 and (len(jobs) > 1 or scheduler):
        raise UserError(
            "only `lookuplab run` can be launched in several processes; others would write the same files"
        )
    if dry_run:
        click.echo(dry_text(jobs))
        return 0
    for job in jobs:
        check(job)
    with joined(scheduler, parallel) as cluster:
        return run_and_report(jobs, parallel, cluster, again)


def dry_text(jobs: list) -> str:
    """The notebooks in the order in which they start, with their parameters, what is missing,
    and the models. Reads local files only.
    """
    from lookuplab.notebooks import missing, models_of

    ordered = sorted(jobs, key=lambda job: {"first": 0, "alone": 2}.get(job.notebook.order, 1))
    profile = ordered[0].profile
    lines, problems, users = (
        [f"profile {profile.name}: {profile.description}".rstrip(": "), ""],
        {},
        {},
    )
    for number, job in enumerate(ordered, 1):
        lines.append(f"{number:2} {job.notebook.id}")
        lines += [f"     {name} = {str(value):.110}" for name, value in job.values.items()]
        for found, names in ((problems, missing(job)), (users, models_of(job))):
            for name in names:
                found.setdefault(name, []).append(str(number))
    lines += [
        f"\nmissing ({', '.join(numbers)}): {problem}" for problem, numbers in problems.items()
    ]
    rows = [(*model_row(model), ", ".join(numbers)) for model, numbers in users.items()]
    head = ("model", "revision", "GB", "notebooks")
    return "\n".join([*lines, "", aligned([head, *rows])] if rows else lines)


def model_row(model: str) -> tuple[str, str, str]:
    """Name in tables, revision, and the weights as a GPU loads them (10^9 bytes, in bfloat16),
    as far as known.
    """
    from lookuplab import data_sources, notebooks
    from lookuplab.models.load import folder_of, is_remote, split_revision, table_name

    name, revision = split_revision(model)
    if is_remote(model):
        return model, "-", "an endpoint"
    if not notebooks.is_on_hub(model):
        files = folder_of(name.removesuffix("#chat")).glob("*.safetensors")
        return table_name(model), "-", f"{sum(file.stat().st_size for file in files) / 1e9:.2g}"
    source = data_sources.of_model(name)
    size = f"{source.facts['parameters'] * 2 / 1e9:.1f}" if source else "unknown"
    try:
        notebooks.snapshot_of(model, local_files_only=True)
    except UserError:
        size += ", not fetched yet"
    return table_name(model), (revision or "main (not pinned)")[:17], size
