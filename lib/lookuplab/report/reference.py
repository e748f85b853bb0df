"""What the reference pages list: the modules that the notebooks import, by room, and every command with its help."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import click

import lookuplab
from lookuplab.runner.notebooks import Notebook
from lookuplab.runner.sources import imported


@dataclass(frozen=True)
class Module:
    """``is_hidden``: its package exports a function of the same name, as ``lookuplab.models.complete``."""

    name: str
    is_hidden: bool


def modules(notebooks: Iterable[Notebook]) -> dict[str, list[Module]]:
    """room -> those of its modules that a notebook imports."""
    known = {module.name for module in pkgutil.walk_packages(lookuplab.__path__, "lookuplab.")}
    rooms: dict[str, list[Module]] = {}
    for name in sorted(known & {name for notebook in notebooks for name in imported(notebook)}):
        package, _, last = name.rpartition(".")
        hidden = not inspect.ismodule(getattr(importlib.import_module(package), last, lookuplab))
        rooms.setdefault(name.split(".")[1], []).append(Module(name, hidden))
    return rooms


def commands() -> Iterator[tuple[str, str]]:
    """(``lookuplab data get``, the text of its --help) for every command, groups before what is in them."""
    from lookuplab.cli import cli

    yield from _commands(cli, None, "lookuplab")


def _commands(command: click.Command, parent: click.Context | None, name: str) -> Iterator[tuple[str, str]]:
    with click.Context(command, info_name=name.split()[-1], parent=parent, max_content_width=100,
                       terminal_width=100) as context:
        yield name, command.get_help(context)
        if isinstance(command, click.Group):
            for inner in command.list_commands(context):
                yield from _commands(command.get_command(context, inner), context, f"{name} {inner}")
