"""``lookuplab store merge``: combines several stores into one."""

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

import click

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models import record
from lookuplab.models.store import AnswerStore, CompletionStore
from lookuplab.run.commands import Group, claimed
from lookuplab.work import watched

AT_ONCE = 1000  # rows that are read from a store at once
SHOWN = 200  # characters of a difference that are printed


@click.group(cls=Group)
def store() -> None:
    """Combine the answers that several machines have stored.

    \b
    Example:
      lookuplab store merge node1/runs node2/runs
    """


@store.command()
def merge(stores: tuple[Path, ...], *, output: Path | None = None) -> None:
    """Add the completions, marks, judgements and verdicts of STORES to one store.

    Name a store by its folder, or by its file of completions (the file that LOOKUPLAB_STORE names);
    the store's other files are in the same folder. Journals of processes that shared a file system
    are read, too. Answers that differ only in the last digits of their log-probabilities, which
    depend on the batch, count as equal. Of equal answers, that of the output is kept, or else that
    of the store named first. If two stores answer one question differently, nothing is changed and
    the exit code is 2. STORES are not changed. To resume a merge that was killed, repeat the
    command.

    \b
    Examples:
      lookuplab store merge node1/runs node2/runs
      lookuplab store merge a/completions.sqlite b/completions.sqlite -o all/completions.sqlite

    Args:
        output: The store to add to. [default: the store that commands in this checkout use]
    """
    from lookuplab.run.audit import STORES  # imported here, because this takes seconds

    target = located(output) if output else CompletionStore.default_path()
    claimed(target)
    files = [target, *(one for one in map(located, stores) if one != target)]
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        opened = []
        for kind in STORES:
            beside = [file.with_name(f"{kind.name}.sqlite") for file in files]
            own = files if kind is CompletionStore else beside
            opened.append([stack.enter_context(kind(file)) for file in own])
        for file, *kinds in zip(files[1:], *(own[1:] for own in opened), strict=True):
            if not any(one.present() for one in kinds):
                raise UserError(f"{file}: there is no store, or an empty one")
        for line in chain.from_iterable(map(conflicts, opened)):
            raise UserError(
                f"the stores disagree: {line}; nothing was merged: leave out one of the two "
                "stores, and generate again what only that store has"
            )
        for into, *others in opened:
            for one in others:
                for keys in chunks(one.present() - into.present()):
                    into.add(answers := one.get(keys))
                    counts[into.name] += len(answers)
    for name in (kind.name for kind in STORES):
        click.echo(f"{name}: {counts[name]:,} added")
    click.echo(f"into {target}")


def located(place: Path) -> Path:
    """Return a store's file of completions. ``place`` is this file, or the store's folder."""
    place = paths.expanded(place).absolute()
    return place / paths.COMPLETIONS.name if place.is_dir() else place


def conflicts(stores: list[AnswerStore]) -> Iterator[str]:
    """Yield a line for each question that two of these stores answer differently."""
    for number, one in enumerate(stores):
        for keys in watched(chunks(one.present()), f"comparing {one.path}", "thousands"):
            for other in stores[:number]:
                ours, theirs = one.get(keys), other.get(keys)
                for key in filter(theirs.get, ours):
                    said, _ = record.differences(one.name, theirs[key], ours[key])
                    if said:
                        told = f"{said[0]:.{SHOWN}}"
                        yield f"{one.name} {key} in {other.path} and {one.path}: {told}"


def chunks(keys: Collection[str]) -> list[list[str]]:
    """Return the keys in batches of ``AT_ONCE``."""
    ordered = sorted(keys)
    return [ordered[at : at + AT_ONCE] for at in range(0, len(ordered), AT_ONCE)]
