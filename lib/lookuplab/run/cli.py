"""Implements the command line. Each command is a function in a module of
``lookuplab.run.commands``. The module is imported only when the command is used.
"""

import os
import re
from importlib import import_module
from pathlib import Path

import click

import lookuplab
from lookuplab.run import commands
from lookuplab.work import stoppable

# Matches a command in a module's text. The groups are the command's name if the decorator states
# one, the function's name, and the first line of the function's docstring.
COMMAND = re.compile(
    r'^@(?:command|click\.group)\((?:"(\w+)")?[^\n]*\ndef (\w+)\(.*?^    """(.+?)$', re.M | re.S
)


class Commands(commands.Group):
    """A group of commands that are imported only when they are used."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, others = super().resolve_command(ctx, args)
        if name in PLACES:
            module, function = PLACES[name]
            command = getattr(import_module(f"lookuplab.run.commands.{module}"), function)
        return name, command, others


@click.group(cls=Commands, context_settings=commands.HELP)
@click.version_option(lookuplab.__version__, prog_name="lookuplab")
def cli() -> None:
    """What happens when a code model may look something up? Three papers as notebooks.

    \b
    lookuplab reproduce                            every notebook, mini profile (CPU, no network)
    lookuplab run table1_base_models --profile paper -p models=bigcode/starcoder2-3b
    lookuplab verify                               does a fresh run equal the committed one?
    """


# {command: (module, function)}. The modules are read as text and not imported, because imports take
# seconds.
PLACES: dict[str, tuple[str, str]] = {}
for file in Path(commands.__file__).parent.glob("*.py"):
    for given, function, line in COMMAND.findall(file.read_text("utf-8")):
        PLACES[given or function] = file.stem, function
        cli.add_command(click.Command(given or function, help=line))


def main() -> None:
    """Run the console script."""
    # A relative path in LOOKUPLAB_STORE starts at $PWD. A notebook's kernel works in another
    # folder, but inherits $PWD.
    os.environ["PWD"] = os.getcwd()
    with stoppable():
        cli(prog_name="lookuplab")
