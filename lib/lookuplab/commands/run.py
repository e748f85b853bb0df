"""``lookuplab run``: one notebook under a profile, with parameters of one's own."""

import sys

import click

from lookuplab.errors import UserError


scheduler_option = click.option(
    "--scheduler", metavar="local|tcp://HOST:PORT",
    help="Spread the work over a Dask cluster: one started here, or one that runs (docs/cluster.md).")


def parse_pairs(texts: tuple[str, ...]) -> list[tuple[str, str]]:
    """``name=value`` texts as pairs. Raises UserError for one without ``=`` and for a name given twice."""
    pairs = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UserError(f"-p {text!r}: write name=value")
        if name in dict(pairs):
            raise UserError(f"-p {name}=... is given twice")
        pairs.append((name, value))
    return pairs


def print_list(context: click.Context, option: click.Parameter, value: bool) -> None:
    """Name every notebook with its parameters, then leave."""
    if not value or context.resilient_parsing:
        return
    from lookuplab.runner import notebooks

    for notebook in notebooks.all_notebooks():
        click.echo(notebook.id)
        for name, default in notebook.parameters.items():
            click.echo(f"    {name} = {default!r}")
    context.exit()


@click.command(short_help="Run one notebook under a profile.", epilog="""\b
Examples:
  lookuplab run table1_base_models
  lookuplab run cloudapibench/table1_base_models --profile paper -p models=bigcode/starcoder2-3b
  lookuplab run fig1_perplexity -p max_new_tokens=64
  lookuplab run table1_base_models --profile paper --dry-run
  lookuplab run path/to/own.ipynb
  accelerate launch --multi_gpu --num_processes 4 -m lookuplab run table1_base_models --profile paper""")
@click.argument("notebook")
@click.option("--profile", default="mini", show_default=True, help="smoke, mini, paper, or the path of a YAML file.")
@click.option("-p", "--parameter", "parameters", multiple=True, metavar="NAME=VALUE",
              help="Set a parameter; repeatable.")
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=print_list,
              help="Name all notebooks.")
@click.option("--dry-run", is_flag=True, help="Only say what would run, what is missing, and what the models need.")
@scheduler_option
def command(notebook: str, profile: str, parameters: tuple[str, ...], dry_run: bool, scheduler: str | None) -> None:
    """Execute NOTEBOOK (a path, `artifact` or `paper/artifact`) and keep the executed copy under runs/.

    Figure, numbers and provenance go to figures/PROFILE/; with -p to runs/figures/PROFILE/, so that parameters of
    one's own never replace the committed numbers. An unknown parameter or another type than the notebook's is refused.
    """
    from lookuplab.cluster import joined
    from lookuplab.runner import launch, notebooks, profiles
    from lookuplab.runner.display import run_and_report
    from lookuplab.runner.plan import plan
    from lookuplab.runner.resources import check_needs

    chosen = profiles.load(profile)
    if not dry_run:
        check_needs(chosen)
    job = plan(notebooks.find(notebook), chosen, dict(parse_pairs(parameters)), dry=dry_run)
    if dry_run:
        from lookuplab.runner.dry_run import report

        click.echo(report([job], chosen))
        return
    with joined(scheduler) as cluster:
        code = run_and_report([launch.placed(job)], 1, cluster)
    if code == 0 and launch.place()[0] == 0:
        click.echo(f"executed copy: {job.output}\nfigures below: {job.figures / job.profile / job.notebook.paper}")
    sys.exit(code)
