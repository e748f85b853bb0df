"""The command line: a command is a function, its options are the function's keyword-only parameters.

A command's module is imported only when the command is called.
"""

import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import click
import yaml

import lookuplab
from lookuplab.errors import UserError, explained

COMMANDS = {
    name: f"lookuplab.commands.{module}:{name}"
    for module, names in {
        "run": "run reproduce sweep status draw",
        "data": "data",
        "score": "score",
        "train": "train",
        "results": "store verify claims report",
    }.items()
    for name in names.split()
}
SHORT = {"parameter": "-p", "jobs": "-j", "output": "-o", "set": "-s"}


class Group(click.Group):
    """``modules`` maps the names of commands to ``module:attribute``, imported when they are called."""

    def __init__(self, *args: Any, modules: dict[str, str] | None = None, **options: Any):
        super().__init__(*args, **options)
        self.modules = modules or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.commands, *self.modules})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.modules:
            return super().get_command(ctx, name)
        module, _, attribute = self.modules[name].partition(":")
        return getattr(importlib.import_module(module), attribute)

    def invoke(self, ctx: click.Context) -> object:
        """Bad input is one line and exit code 2."""
        try:
            return super().invoke(ctx)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            said = " ".join(error.format_message().split()).rstrip(".")
            said += f" (see `{(error.ctx or ctx).command_path} --help`)"
        except UserError as error:
            said = str(error)
        except OSError as error:
            if (said := explained(error)) is None:
                raise
        click.echo(f"error: {said}", err=True)
        ctx.exit(2)


def command(
    group: click.Group | None = None, name: str = ""
) -> Callable[[Callable], click.Command]:
    """Make a function a command (of ``group``): its parameters are arguments, the keyword-only ones options.

    Types and defaults are those of the signature: a ``Literal`` is a choice, a ``tuple`` may be given several
    times, a ``bool`` is a flag. The docstring is the help, and its last part, ``Args:``, the help of each option.
    """

    def decorate(function: Callable) -> click.Command:
        text, _, described = inspect.getdoc(function).partition("\nArgs:\n")
        helps = {
            option: " ".join(said.split())
            for option, said in re.findall(r"^ {4}(\w+): (.+(?:\n {5,}.+)*)", described, re.M)
        }
        parameters = inspect.signature(function).parameters.values()
        made = click.Command(
            name or function.__name__.strip("_").replace("_", "-"),
            callback=function,
            params=[_parameter(one, helps.get(one.name.strip("_"))) for one in parameters],
            help=text,
        )
        if group is not None:
            group.add_command(made)
        return made

    return decorate


def _parameter(one: inspect.Parameter, said: str | None) -> click.Parameter:
    """The argument or option of a function's parameter."""
    is_option, name = one.kind is one.KEYWORD_ONLY, one.name.strip("_")
    required, kind = one.default is one.empty, one.annotation
    several = get_origin(kind) is tuple
    if several or get_origin(kind) in (Union, UnionType):  # Literal[...] | None is a Union
        kind = get_args(kind)[0]
    if get_origin(kind) is Literal:
        kind = click.Choice(get_args(kind))
    elif kind is Path:
        kind = click.Path(path_type=Path)
    elif kind is int:
        kind = click.IntRange(min=0)
    options: dict[str, Any] = {"type": kind, "required": required}
    if not required:
        options["default"] = one.default
    if not is_option:
        return click.Argument([name], nargs=-1 if several else 1, **options)
    names = [f"--{name.replace('_', '-')}", one.name, *filter(None, [SHORT.get(name)])]
    shown = one.default not in (None, False, (), "")
    flag = {"is_flag": True} if kind is bool else {"multiple": several}
    return click.Option(names, help=said, show_default=shown, **flag, **options)


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """``name=value`` texts. Raises UserError for one without ``=`` and for a name given twice."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UserError(f"{text!r}: write name=value")
        if name in found:
            raise UserError(f"{name}=... is given twice")
        found[name] = value
    return found


def with_settings(defaults: Any, texts: Iterable[str]) -> Any:
    """A copy of a dataclass's instance with the fields that ``name=value`` texts change. Raises UserError."""
    known, changed, numbers = vars(defaults), {}, (int, float)
    for name, text in pairs(texts).items():
        if name not in known:
            raise UserError(f"no setting {name!r}; there are: {', '.join(known)}")
        value, default = yaml.safe_load(text), known[name]
        if type(default) in numbers and isinstance(value, str):
            with suppress(ValueError):
                value = float(value)  # YAML 1.1 reads 1e-3 as a text
        fits = isinstance(value, numbers if type(default) in numbers else type(default))
        if not fits and None not in (default, value):
            raise UserError(
                f"setting {name!r} is {default!r} by default; {text!r} is of another type"
            )
        changed[name] = value
    return replace(defaults, **changed)


def aligned(rows: Iterable[Sequence[str]], right: bool = False) -> str:
    """Rows of texts as columns."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    place: Callable[[str, int], str] = str.rjust if right else str.ljust
    return "\n".join("  ".join(map(place, row, widths)).rstrip() for row in rows)


@click.group(cls=Group, modules=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(lookuplab.__version__, prog_name="lookuplab")
def cli() -> None:
    """What happens when a code model may look something up? Three papers as notebooks.

    \b
    lookuplab reproduce                            every notebook, mini profile (CPU, no network)
    lookuplab run table1_base_models --profile paper -p models=bigcode/starcoder2-3b
    lookuplab verify                               does a fresh run equal the committed one?
    """


def main() -> None:
    """Entry point of the console script."""
    cli(prog_name="lookuplab")
