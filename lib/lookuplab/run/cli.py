"""The command line: all commands by name. Each is a function in ``lookuplab.run.commands``."""

import os

import click

import lookuplab
from lookuplab.run.commands import HELP, Group, data, results, run, score, store, train
from lookuplab.work.stopping import stoppable


@click.group(cls=Group, context_settings=HELP)
@click.version_option(lookuplab.__version__, prog_name="lookuplab")
def cli() -> None:
    """What happens when a code model may look something up? Three papers as notebooks.

    \b
    lookuplab reproduce                            every notebook, mini profile (CPU, no network)
    lookuplab run table1_base_models --profile paper -p models=bigcode/starcoder2-3b
    lookuplab verify                               does a fresh run equal the committed one?
    """


for command in (
    *(run.run, run.reproduce, run.audit, run.sweep, run.status, run.draw, run.list_notebooks),
    *(data.data, store.store, score.score, train.train),
    *(results.verify, results.claims, results.results, results.report),
):
    cli.add_command(command)


def main() -> None:
    """Entry point of the console script."""
    # what a relative path in a variable starts from, here and in notebooks
    os.environ["PWD"] = os.getcwd()
    with stoppable():
        cli(prog_name="lookuplab")
