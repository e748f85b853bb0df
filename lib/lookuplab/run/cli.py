"""The command line: all commands by name. Each is a function in ``lookuplab.run.commands``, whose
module is imported only when the command is used.
"""

import os
from importlib import import_module

import click

import lookuplab
from lookuplab.run.commands import HELP, Group
from lookuplab.work.stopping import stoppable

# command: its module and its line in --help (a test compares it with the docstring)
COMMANDS = {
    "audit": (
        "run",
        "Generate a sample of the record again, and compare it row by row.",
    ),
    "claims": ("results", "Check the papers' claims against our runs."),
    "compare": (
        "view",
        "Compare two runs: task by task if their answers are kept, else number by number.",
    ),
    "data": (
        "data",
        "List and fetch the downloads named in data/sources.toml; count",
    ),
    "draw": (
        "run",
        "Redraw the pictures and rewrite the result sentences from the artifacts' CSVs.",
    ),
    "list": ("run", "Print each notebook (of PAPER) with its title in a line."),
    "report": (
        "results",
        "Build a static site of the last runs in runs/report and print the path of its front page.",
    ),
    "reproduce": (
        "run",
        "Execute every notebook of PAPER (without PAPER, of all papers)",
    ),
    "results": (
        "results",
        "Print the page RESULTS.md: each notebook's question, method, picture, result",
    ),
    "run": ("run", "Execute one notebook under a profile and keep the executed copy under runs/."),
    "score": ("score", "Judge completions that were generated elsewhere."),
    "status": ("run", "List every notebook with its state, tables and figures."),
    "store": ("store", "Bring together what machines have answered."),
    "sweep": ("run", "Execute one notebook for every combination of the given values."),
    "train": ("train", "Fine-tune any model for ToolGen."),
    "verify": (
        "results",
        "Compare figures/PROFILE/ in the working tree with git's HEAD: numbers, pictures, answers.",
    ),
    "view": (
        "view",
        "Write a page that shows every answer of a run, and why it is right or wrong.",
    ),
}


class Commands(Group):
    """Commands that are imported when they are used."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, others = super().resolve_command(ctx, args)
        if name in COMMANDS:
            module = import_module(f"lookuplab.run.commands.{COMMANDS[name][0]}")
            command = getattr(module, "list_notebooks" if name == "list" else name)
        return name, command, others


@click.group(cls=Commands, context_settings=HELP)
@click.version_option(lookuplab.__version__, prog_name="lookuplab")
def cli() -> None:
    """What happens when a code model may look something up? Three papers as notebooks.

    \b
    lookuplab reproduce                            every notebook, mini profile (CPU, no network)
    lookuplab run table1_base_models --profile paper -p models=bigcode/starcoder2-3b
    lookuplab verify                               does a fresh run equal the committed one?
    """


for name, (_, text) in COMMANDS.items():
    cli.add_command(click.Command(name, help=text))


def main() -> None:
    """Run the console script."""
    # relative paths in variables start here, also in notebooks
    os.environ["PWD"] = os.getcwd()
    with stoppable():
        cli(prog_name="lookuplab")
