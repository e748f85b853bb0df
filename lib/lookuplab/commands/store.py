"""``lookuplab store``: parts of the completion store as files, and what is not needed let go."""

import os
from collections.abc import Callable
from pathlib import Path

import click

from lookuplab import paths
from lookuplab.errors import UserError


def selecting(command: Callable) -> Callable:
    """The options that select answers."""
    for option in (
            click.option("--newer", type=click.FloatRange(0), metavar="DAYS", help="Used in the last DAYS days."),
            click.option("--older", type=click.FloatRange(0), metavar="DAYS", help="Last used before that."),
            click.option("--notebook", help="Asked by this notebook (`artifact` or `paper/artifact`)."),
            click.option("--profile", help="Asked by notebooks under this profile."),
            click.option("--model", "models", multiple=True, help="By this model, as `lookuplab status` names it; "
                                                                  "repeatable.")):
        command = option(command)
    return command


@click.group(short_help="Export, import and prune the completion store.", epilog="""\b
Examples:
  lookuplab store export mini.sqlite --profile mini
  lookuplab store import mini.sqlite
  lookuplab store prune --older 90 --dry-run""")
def command() -> None:
    """Care of the completion store, runs/completions.sqlite or what LOOKUPLAB_STORE names.

    Answers are selected by model, by who asked for them and by their last use; conditions add up. Each command is whole
    or not at all: one that is killed leaves the store as it was.
    """


@command.command("export", short_help="Write answers to a file.", epilog="""\b
Examples:
  lookuplab store export everything.sqlite
  lookuplab store export table1.sqlite --profile paper --notebook table1_base_models
  LOOKUPLAB_STORE=mini.sqlite lookuplab run table1_base_models""")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@selecting
def export_answers(file: Path, **conditions: object) -> None:
    """Write the selected answers, or all, to FILE, which is a completion store itself.

    Where nothing is selected, the judgements and verdicts beside the store go with it.
    """
    from lookuplab.models import store_care

    count = store_care.export(place(), file, _selection(**conditions), _beside())
    click.echo(f"{count:,} answers -> {file} ({file.stat().st_size / 1e6:,.1f} MB)")


@command.command("import", short_help="Add the answers of a file.", epilog="""\b
Example:
  lookuplab store import from-the-cluster.sqlite""")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def import_answers(file: Path) -> None:
    """Add what FILE holds, an export or another store, to the store.

    Nothing is written over: an answer that is here and there with another content stays as it is here, and is counted.
    """
    from lookuplab.models import store_care

    for name, merged in store_care.merge(place(), file, _beside()).items():
        click.echo(f"{name}: {merged.new:,} new, {merged.known:,} known, {merged.conflicts:,} in conflict (ours stay)")


@command.command("prune", short_help="Delete answers that are not needed.", epilog="""\b
Examples:
  lookuplab store prune --older 90 --dry-run
  lookuplab store prune --model mini-small
  lookuplab store prune --unused""")
@selecting
@click.option("--unused", is_flag=True, help="Of a decoding version that this lookuplab does not ask for any more.")
@click.option("--dry-run", is_flag=True, help="Only say what it would free.")
def prune(dry_run: bool, **conditions: object) -> None:
    """Delete the selected answers, and the prompts that only they answer.

    An answer whose last use is not known, because it is from before uses were noted, is not old.
    """
    from lookuplab.models import store_care

    store = place()
    before = _on_disk(store)
    count, size = store_care.prune(store, _selection(**conditions), dry_run)
    if dry_run:
        click.echo(f"would delete {count:,} answers, {size / 1e6:,.1f} MB of content")
    else:
        click.echo(f"deleted {count:,} answers; {(before - _on_disk(store)) / 1e6:,.1f} MB of disk are free")


def place() -> Path:
    """The store that runs write. Raises UserError for a folder."""
    store = Path(os.environ.get("LOOKUPLAB_STORE") or paths.RUNS / paths.STORE.name)
    if store.is_dir():
        raise UserError(f"LOOKUPLAB_STORE names the folder {store}; name a file, as in {store / paths.STORE.name}")
    return store


def _on_disk(store: Path) -> int:
    return sum(file.stat().st_size for file in store.parent.glob(f"{store.name}*"))


def _beside() -> tuple[type, ...]:
    from lookuplab.stackoverflow.verdicts import VerdictStore
    from lookuplab.toolgen.metrics.judgement_store import JudgementStore

    return JudgementStore, VerdictStore


def _selection(notebook: str | None = None, profile: str | None = None, **conditions: object):
    from lookuplab.models.store_care import Selection

    if notebook is not None:
        from lookuplab.runner import notebooks

        notebook = notebooks.find(notebook).id
    if profile is not None and "/" in profile:
        raise UserError(f"--profile {profile!r}: give its name, without folder and .yaml")
    return Selection(notebook=notebook, profile=profile, **conditions)
