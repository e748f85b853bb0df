"""``lookuplab reproduce``: every notebook."""

import sys

import click

from lookuplab import paths
from lookuplab.commands.run import scheduler_option
from lookuplab.errors import UserError


@click.command(short_help="Run every notebook (of one paper).", epilog="""\b
Examples:
  lookuplab reproduce
  lookuplab reproduce cloudapibench -j 2
  lookuplab reproduce performance
  lookuplab reproduce --profile paper --dry-run
  lookuplab reproduce --profile smoke
  lookuplab reproduce --profile paper --scheduler tcp://head-node:8786""")
@click.argument("paper", required=False)
@click.option("--profile", default="mini", show_default=True, help="smoke, mini, paper, or the path of a YAML file.")
@click.option("-j", "--jobs", default=1, show_default=True, type=click.IntRange(min=1), help="Notebooks at a time.")
@click.option("--dry-run", is_flag=True, help="Only say what would run, what is missing, and what the models need.")
@scheduler_option
def command(paper: str | None, profile: str, jobs: int, dry_run: bool, scheduler: str | None) -> None:
    """Execute every notebook of PAPER (all papers without it) and write figures/PROFILE/.

    Which answers of the models they used is written to figures/PROFILE/answers.csv.gz, for `lookuplab verify`.
    Notebooks that measure speed run where PAPER is ``performance``, one at a time whatever --jobs says.

    A notebook that fails is told with its cell and error, the others go on, and the exit code is 1.
    """
    from lookuplab.cluster import joined
    from lookuplab.runner import answers, launch, notebooks, profiles
    from lookuplab.runner.display import run_and_report
    from lookuplab.runner.plan import plan
    from lookuplab.runner.resources import check_needs

    launch.alone("reproduce")
    chosen = profiles.load(profile)
    if not dry_run:
        check_needs(chosen)
    wanted = [notebook for notebook in notebooks.all_notebooks(paper) if paper or not notebook.on_demand]
    all_jobs = [plan(notebook, chosen, dry=dry_run) for notebook in wanted]
    if not all_jobs:
        raise UserError(f"no notebook to run under {paths.NOTEBOOKS}")
    if dry_run:
        from lookuplab.runner.dry_run import report

        click.echo(report(all_jobs, chosen))
        return
    with joined(scheduler, jobs) as cluster:
        code = run_and_report(all_jobs, jobs, cluster)
    if code == 0:
        answers.keep(all_jobs, whole=paper is None)
    sys.exit(code)
