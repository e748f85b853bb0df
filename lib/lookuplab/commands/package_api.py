"""``lookuplab data build api``: index, frequencies and benchmark of any importable package."""

from pathlib import Path

import click

EPILOG = """\b
Examples:
  lookuplab data build api networkx
  lookuplab data build api path/to/my_package --corpus path/to/code/that/uses/it -o my_api
  lookuplab data build api networkx --comments-model openai:gpt-4o
Then:
  lookuplab run own/package -p package=networkx
"""


@click.command("api", short_help="Index and benchmark of any Python package.", epilog=EPILOG)
@click.argument("packages", nargs=-1, required=True, metavar="PACKAGE...")
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False),
              help="Folder to write to.  [default: runs/packages/PACKAGE]")
@click.option("--corpus", help="Code to count frequencies in: a folder, JSON Lines or data set, as for `lookuplab data "
              "frequencies`.  [default: the package's own sources and tests]")
@click.option("--per-class", default=100, show_default=True, type=click.IntRange(1),
              help="Tasks of each frequency class, at most.")
@click.option("--comments-model", help="Have this model word the comments, as the paper does, instead of rewriting "
              "docstrings.")
@click.option("--seed", default=0, show_default=True, help="Which APIs are dealt.")
@click.option("-j", "--jobs", default=1, show_default=True, type=click.IntRange(1), help="Processes that count.")
def command(packages: tuple[str, ...], output: Path | None, corpus: str | None, per_class: int,
            comments_model: str | None, seed: int, jobs: int) -> None:
    """Build the API index of any importable package and a benchmark in the style of CloudAPIBench.

    PACKAGE is an import name (networkx, or a part: networkx.algorithms) or a package's folder. It is imported in a
    process of its own. Writes index.jsonl.xz, documentation.jsonl.xz, frequencies.csv and tasks.jsonl; a call is valid
    iff it binds to the signature that Python reports. What cannot be read or asked for is counted and printed.
    """
    from lookuplab.cloudapi import own_api, packages as installed

    folder = output or installed.folder_of(packages)
    made = own_api.build(packages, folder, corpus, per_class, seed, jobs, comments_model)
    for package in made.packages:
        click.echo(f"{package.name} {package.version}".strip())
        for what, number in package.counts().items():
            click.echo(f"  {number:>7,}  {what}")
        for reason, times in package.left_out.most_common():
            click.echo(f"  {times:>7,}  left out: {reason}")
    click.echo(made.counting)
    if made.obstacles:
        click.echo("operations that no task asks for:")
    for reason, times in made.obstacles.most_common():
        click.echo(f"  {times:>7,}  {reason}")
    classes = ", ".join(f"{name} {number}" for name, number in made.classes().items())
    click.echo(f"{len(made.tasks)} tasks ({classes}) of {len({task.target for task in made.tasks})} APIs -> {folder}")
