"""``lookuplab sweep``: one notebook over a grid of parameters."""

import shutil
import sys

import click

from lookuplab.commands.run import parse_pairs, scheduler_option
from lookuplab.errors import UserError


@click.command(short_help="Run one notebook over a grid of parameters.", epilog="""\b
Examples:
  lookuplab sweep table1_base_models -p max_new_tokens=16,32,64
  lookuplab sweep fig1_perplexity -p models=mini-small,mini-large -p limit=100,300 -j 2
  lookuplab sweep fig7a_retriever_precision -p k=1,2,3 --scheduler tcp://head-node:8786""")
@click.argument("notebook")
@click.option("-p", "--parameter", "parameters", multiple=True, required=True, metavar="NAME=A,B,C",
              help="Values to try.")
@click.option("--profile", default="mini", show_default=True, help="smoke, mini, paper, or the path of a YAML file.")
@click.option("-j", "--jobs", default=1, show_default=True, type=click.IntRange(min=1), help="Cases at a time.")
@scheduler_option
def command(notebook: str, parameters: tuple[str, ...], profile: str, jobs: int, scheduler: str | None) -> None:
    """Execute NOTEBOOK once for every combination of the values given.

    Everything lands in one folder below runs/sweeps/; its sweep.csv holds all numbers, the parameters as first columns.
    """
    from lookuplab.cluster import joined
    from lookuplab.runner import launch, notebooks, profiles
    from lookuplab.runner.display import run_and_report
    from lookuplab.runner.resources import check_needs
    from lookuplab.runner.sweep import collect, plan_sweep

    launch.alone("sweep")
    pairs = parse_pairs(parameters)
    chosen = profiles.load(profile)
    check_needs(chosen)
    folder, planned = plan_sweep(notebooks.find(notebook), chosen, pairs)
    with joined(scheduler, jobs) as cluster:
        shutil.rmtree(folder, ignore_errors=True)  # an earlier run of the same sweep: its numbers must not mix in
        code = run_and_report(planned, jobs, cluster)
    table = collect(folder, planned, [name for name, _ in pairs])
    if table is None and code == 0:
        raise UserError(f"{notebook} ran {len(planned)} times but wrote no artifact: there are no numbers to collect")
    click.echo(f"numbers: {table}" if table else f"executed copies: {folder}")
    sys.exit(code)
