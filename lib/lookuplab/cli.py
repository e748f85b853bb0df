"""The command line. Every command is a module of ``lookuplab.commands`` and is imported only when it is called."""

import difflib
import importlib
import pkgutil

import click

import lookuplab
from lookuplab import commands
from lookuplab.errors import UserError
from lookuplab.runner.machine import condition


class LazyGroup(click.Group):
    """A group whose commands live in modules: ``modules`` maps a command to ``module:attribute``.

    A module that does not import tells so when it is called; it never takes the other commands with it.
    """

    def __init__(self, *args, modules: dict[str, str] | None = None, **kwargs):
        super().__init__(*args, **kwargs)
        self.modules = modules or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.modules})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.modules:
            return super().get_command(ctx, name)
        module, attribute = self.modules[name].split(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            return _unavailable(name, str(error))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            close = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
            raise UserError(f"no command {name!r}" + (f"; did you mean {close[0]!r}?" if close else "; see --help"))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except UserError as error:
            _fail(ctx, str(error))
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            said = " ".join(error.format_message().split()).rstrip(".")
            _fail(ctx, f"{said} (see `{(error.ctx or ctx).command_path} --help`)")
        except OSError as error:
            if (said := condition(error)) is None:
                raise
            _fail(ctx, said)


def _fail(ctx: click.Context, message: str) -> None:
    click.echo(f"error: {message}", err=True)
    ctx.exit(2)


def _unavailable(name: str, why: str) -> click.Command:
    def explain() -> None:
        raise UserError(f"`{name}` is not available in this installation: {why}")

    return click.Command(name, callback=explain, short_help="(not available in this installation)")


# Parts of `data build`, `data` and `score`, not commands of their own
_INNER = {"benchmark", "mark", "package_api", "score_ds1000", "snippets"}
_COMMANDS = {name: f"lookuplab.commands.{name}:command"
             for _, name, _ in pkgutil.iter_modules(commands.__path__) if name not in _INNER}


@click.group(cls=LazyGroup, modules=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
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
