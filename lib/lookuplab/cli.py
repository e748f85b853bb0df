"""The command line. A command's module is imported only when the command is called."""

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import click
import yaml

import lookuplab
from lookuplab.errors import UserError, explained

RUN, DATA, SCORE, TRAIN, RESULTS = (
    f"lookuplab.commands.{name}" for name in "run data score train results".split()
)
COMMANDS = {
    "run": RUN,
    "reproduce": RUN,
    "sweep": RUN,
    "status": RUN,
    "data": DATA,
    "score": SCORE,
    "train": TRAIN,
    "store": RESULTS,
    "verify": RESULTS,
    "claims": RESULTS,
    "report": RESULTS,
}


class LazyGroup(click.Group):
    """A group whose commands live in modules: ``modules`` maps a command's name to ``module`` or
    ``module:attribute``.
    """

    def __init__(self, *args, modules: dict[str, str] | None = None, **kwargs):
        super().__init__(*args, **kwargs)
        self.modules = modules or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.modules})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.modules:
            return super().get_command(ctx, name)
        module, _, attribute = self.modules[name].partition(":")
        return getattr(importlib.import_module(module), attribute or name)

    def invoke(self, ctx: click.Context) -> object:
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


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """``name=value`` texts. Raises UserError for one without ``=`` and for a name given twice."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UserError(f"{text!r}: write name=value")
        if name in found:
            raise UserError(f"{name}=... is given twice")
        found[name] = value
    return found


def with_settings(defaults: Any, texts: Iterable[str]) -> Any:
    """A copy of a dataclass's instance with the fields that ``name=value`` texts change. Raises
    UserError.
    """
    known, changed = vars(defaults), {}
    for name, text in pairs(texts).items():
        if name not in known:
            raise UserError(f"no setting {name!r}; there are: {', '.join(known)}")
        try:
            value = yaml.safe_load(text)
            if type(known[name]) in (int, float) and isinstance(value, str):
                value = float(value)  # YAML 1.1 reads 1e-3 as a text
            numbers = all(type(one) in (int, float) for one in (known[name], value))
            if known[name] is not None and not numbers and type(value) is not type(known[name]):
                raise ValueError
            changed[name] = value
        except (ValueError, yaml.YAMLError):
            raise UserError(
                f"setting {name!r} is {known[name]!r} by default; {text!r} is of another type"
            ) from None
    return replace(defaults, **changed)


def aligned(rows: Iterable[Sequence[str]], right: bool = False) -> str:
    """Rows of texts as columns."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    place: Callable[[str, int], str] = str.rjust if right else str.ljust
    return "\n".join("  ".join(map(place, row, widths)).rstrip() for row in rows)


profile_option = click.option(
    "--profile",
    default="mini",
    show_default=True,
    help="smoke, mini, paper, or the path of a YAML file.",
)
scheduler_option = click.option(
    "--scheduler",
    metavar="local|tcp://HOST:PORT",
    help="Spread the work over a Dask cluster: one started here, or one that runs (docs/cluster.md).",
)


settings_option = click.option(
    "-s",
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change one of the settings below; repeatable.",
)


@click.group(
    cls=LazyGroup, modules=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
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
