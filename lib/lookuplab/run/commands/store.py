"""Implements ``lookuplab store merge``, which combines several stores into one."""

from pathlib import Path

import click

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models import record
from lookuplab.models.store import AnswerStore
from lookuplab.run.cli import Group, claim
from lookuplab.work import watched

AT_ONCE = 1000  # the number of rows that are read from a store at once
SHOWN = 200  # a printed difference is cut off after this number of characters


@click.group(cls=Group)
def store() -> None:
    """Combine the answers that several machines have stored.

    \b
    Example:
      lookuplab store merge node1/runs node2/runs
    """


@store.command()
def merge(stores: tuple[Path, ...], *, output: Path | None = None) -> None:
    """Add all answers in STORES to one store.

    The answers are completions, marks, judgements and verdicts. Name a store by its folder, or by
    its file of completions (the file that LOOKUPLAB_STORE names); the store's other files are in
    the same folder. The journals of processes that shared a file system are read, too.

    Answers that differ only in the last digits of their log-probabilities, which depend on the
    batch, count as equal. If the output already has one of several equal answers, it keeps this
    answer. Otherwise it gets the answer of the store that is named first. If two stores answer one
    question differently, the merge stops there with exit code 2, and no answer in the output is
    replaced. STORES are not changed.
    To resume a merge that was killed, repeat the command.

    \b
    Examples:
      lookuplab store merge node1/runs node2/runs
      lookuplab store merge a/completions.sqlite b/completions.sqlite -o all/completions.sqlite

    Args:
        output: The store to add to. [default: the store that commands in this checkout use]
    """
    from lookuplab.run.audit import STORES  # imported here, because this takes seconds

    target = completions_file_of(output) if output else paths.completions_file()
    claim(target)
    files = [file for file in map(completions_file_of, stores) if file != target]
    for file in files:
        if not any(rows(kind, file) for kind in STORES):
            raise UserError(f"{file}: there is no store, or an empty one")
    for kind in STORES:
        count = sum(copy_rows(kind, file, target) for file in files)
        click.echo(f"{kind.name}: {count:,} added")
    click.echo(f"into {target}")


def completions_file_of(place: Path) -> Path:
    """Return the path of a store's file of completions. ``place`` is the file or its folder. A
    path that does not exist counts as a folder if its name has no file extension.
    """
    place = paths.expand_path(place).absolute()
    is_folder = place.is_dir() or not (place.suffix or place.exists())
    return place / paths.COMPLETIONS.name if is_folder else place


def rows(kind: type[AnswerStore], file: Path) -> list[str]:
    """Return the sorted keys of a store. ``file`` is the file of completions in the same folder."""
    with kind(kind.file_beside(file)) as store:
        return sorted(store.present())


def copy_rows(kind: type[AnswerStore], file: Path, target: Path) -> int:
    """Copy the rows of one kind of store to the store of the same kind in another folder. Return
    how many rows were added. For every kind, ``file`` and ``target`` are the files of completions
    in the two folders. Raises UserError if the two stores answer one question differently.
    """
    keys = rows(kind, file)
    count = 0
    with kind(kind.file_beside(file)) as source, kind(kind.file_beside(target)) as into:
        for start in watched(range(0, len(keys), AT_ONCE), f"merging {source.path}", "thousands"):
            theirs = source.get(keys[start : start + AT_ONCE])
            ours = into.get(theirs)
            for key, answer in ours.items():
                differences, _ = record.differences(kind.name, answer, theirs[key])
                if differences:
                    raise UserError(
                        f"the stores disagree: {kind.name} {key} in {into.path} and {source.path}: "
                        f"{differences[0]:.{SHOWN}}; leave out one of the two stores, and generate "
                        "again what only that store has"
                    )
            into.add(theirs)
            count += len(theirs) - len(ours)
    return count
