"""``lookuplab data``: downloads, and the builders of what is committed under data/mini."""

import click

from lookuplab.cli import LazyGroup

_BUILDERS = {"api": "lookuplab.commands.package_api:command", "cloudapi": "lookuplab.cloudapi.build:command",
             "benchmark": "lookuplab.commands.benchmark:command",
             "snippets": "lookuplab.commands.snippets:command",
             "problems": "lookuplab.mini.problems.build:command"}
_OTHERS = {"frequencies": "lookuplab.cloudapi.frequency:command", "mark": "lookuplab.commands.mark:command"}


@click.group(cls=LazyGroup, modules=_OTHERS,
             short_help="List and fetch downloads; build the committed data.", epilog="""\b
Examples:
  lookuplab data list
  lookuplab data get starcoder2-3b
  lookuplab data build cloudapi
  lookuplab data frequencies path/to/sources
  lookuplab data mark rich click -o marked.jsonl""")
def command() -> None:
    """What the kit reads: downloads named in data/sources.toml, and the builders of the committed data."""


@command.command("list", short_help="Every download, its size, licence and use.", epilog="""\b
Example:
  lookuplab data list""")
def list_sources() -> None:
    """Print every download of data/sources.toml; a star marks what has been fetched."""
    from lookuplab import data_sources

    for source in data_sources.load().values():
        mark = "*" if not source.streamed and data_sources.is_fetched(source) else " "
        amount = f"{source.size / 1e6:,.1f} MB" if source.size else "streamed" if source.streamed else source.kind
        click.echo(f"{mark} {source.name:22} {amount:10} {source.address}")
        click.echo(f"    {source.purpose}\n    licence: {source.licence}")


@command.command("get", short_help="Fetch one download.", epilog="""\b
Examples:
  lookuplab data get starcoder2-3b
  lookuplab data get ds1000-grader""")
@click.argument("name")
def get_source(name: str) -> None:
    """Fetch NAME unless it is there, resume it where it was cut off, check size and sha256.

    An environment is a Python of its own: its packages are installed by pip and imported; what is missing or does not
    import is named and installed anew.
    """
    from lookuplab import data_sources

    click.echo(data_sources.get(data_sources.find(name)))


@command.group("build", cls=LazyGroup, modules=_BUILDERS, short_help="Build the committed data anew, or own material.",
               epilog="""\b
Examples:
  lookuplab data build api networkx
  lookuplab data build cloudapi
  lookuplab data build benchmark
  lookuplab data build snippets""")
def build() -> None:
    """Build what data/mini holds from its sources; `api` makes the same of any Python package."""
