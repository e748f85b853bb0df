"""``lookuplab data mark``: ToolGen's corpus from repositories or packages."""

import os
from pathlib import Path

import click

from lookuplab.commands.run import scheduler_option


@click.command(short_help="Mark functions where a completion tool would help.", epilog="""\b
Examples:
  lookuplab data mark rich click -o marked.jsonl
  lookuplab data mark path/to/repository --variant package -o marked.jsonl
  lookuplab data mark httpx --max-lines 30 --jobs 8 -o marked.jsonl
  lookuplab data mark httpx -o marked.jsonl --scheduler tcp://head-node:8786""")
@click.argument("repositories", nargs=-1, required=True, metavar="REPOSITORY_OR_PACKAGE...")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path),
              help="JSON Lines, one function a line; a run that was cut off goes on there.")
@click.option("--variant", type=click.Choice(["paper", "package"]), default="paper", show_default=True,
              help="Algorithm 1, or the replication package's reading of it.")
@click.option("-j", "--jobs", type=click.IntRange(1), help="Jedi processes. [default: one a processor]")
@click.option("--time-limit", type=click.FloatRange(0, min_open=True), default=10.0, show_default=True,
              help="Seconds of computing for one call to Jedi.")
@click.option("--max-files", default=500, show_default=True, help="Repositories of more files are left out.")
@click.option("--max-file-lines", default=1000, show_default=True, help="Files of more lines are left out.")
@click.option("--max-lines", default=50, show_default=True, help="Functions of more lines are left out.")
@click.option("--max-tokens", default=512, show_default=True, help="Functions of more Python tokens are left out.")
@scheduler_option
def command(repositories: tuple[str, ...], output: Path, variant: str, jobs: int | None, time_limit: float,
            scheduler: str | None, **limits: int) -> None:
    """Extract functions with docstrings from folders or packages and mark, by Jedi, where completion helps.

    What is left out is counted and printed with its reason; nothing stops at a bad file.
    """
    from lookuplab.cluster import joined
    from lookuplab.toolgen import corpus, files
    from lookuplab.toolgen.filters import Filters

    places = [files.locate(name) for name in repositories]
    with joined(scheduler, jobs or os.cpu_count() or 1) as cluster:
        made = corpus.build(places, output, Filters(**limits), variant, jobs, time_limit, cluster=cluster)
    click.echo(f"{'':18}{'here':>12}{'paper':>12}")
    for name, value in made.statistics().items():
        form = ",.2f" if isinstance(corpus.PAPER[name], float) else ",d"
        click.echo(f"{name:18}{value:>12{form}}{corpus.PAPER[name]:>12{form}}")
    click.echo("left out or failed:" if made.left_out else "nothing was left out")
    for reason, times in made.left_out.most_common():
        click.echo(f"  {times:>7,}  {reason}")
    click.echo(f"written: {output}")
