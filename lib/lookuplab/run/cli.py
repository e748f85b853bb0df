"""Implements the command line: turns functions into commands, and finds the commands by name.

A function's parameters become arguments, and its keyword-only parameters become options. The
functions are in the modules of ``lookuplab.run.commands``. A module is imported only if the user
typed one of its commands. Slow packages (torch, pandas) are imported only when the command runs, so
that `--help` is quick.
"""

import inspect
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click

import lookuplab
from lookuplab import paths
from lookuplab.errors import UserError, check_choice, explain
from lookuplab.work import hold_lock, stoppable

# Matches a command in a module's text. The groups are the command's name if the decorator states
# one, the function's name, and the first line of the function's docstring.
COMMAND = re.compile(
    r'^@(?:command|click\.group)\((?:"(\w+)")?[^\n]*\ndef (\w+)\(.*?^    """(.+?)$', re.M | re.S
)
HELP = {"help_option_names": ["-h", "--help"]}
SHORT = {"parameter": "-p", "jobs": "-j", "output": "-o", "setting": "-s"}


class Command(click.Command):
    """A command made from a function. Types and defaults come from the function's signature: a
    ``Literal`` becomes a choice, a ``tuple`` an option that may be given several times, and a
    ``bool`` a flag. The docstring up to ``Args:`` is the command's help text, and the part after
    ``Args:`` describes the options.
    """

    def __init__(self, name: str | None, callback: Callable[..., None], **_options: Any):
        text, _, described = (inspect.getdoc(callback) or "").partition("\nArgs:\n")
        helps = dict(re.findall(r"^ {4}(\w+): (.+(?:\n {5,}.+)*)", described, re.M))
        parameters = inspect.signature(callback).parameters.values()
        params = [_parameter(parameter, helps.get(parameter.name)) for parameter in parameters]
        super().__init__(name, callback=callback, params=params, help=text)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Raises UserError for an empty argument. Such an argument often comes
        from a shell variable that is not set. The command must not run with a default instead.
        """
        # an empty argument cannot be seen, so the message names the text before it
        for before, text in zip([self.name, *args], args, strict=False):
            if not text or re.fullmatch("--[a-z-]+=", text):
                raise UserError(
                    f"the text after {text or before} is empty: give a value or leave it out"
                )
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command. Raises UserError if its ``--output`` would replace a file that another
        argument or option names, or if it is "-".
        """
        if output := ctx.params.get("output"):
            if output == Path("-"):
                raise UserError("-o - names no file; without -o, `score` writes to stdout")
            given = (value for name, value in ctx.params.items() if name != "output")
            keep_inputs(output, given)
        return super().invoke(ctx)


def keep_inputs(output: Path, given: Iterable[Any]) -> None:
    """Raise UserError if the existing file ``output`` is an input of the command. ``given`` are the
    values of the other parameters: paths, texts, or tuples of these. ``output`` is an input if a
    value names the same file (also by another path or a link), or if ``output`` is a Python file in
    a folder that a value names.
    """
    for value in given:
        if isinstance(value, tuple):
            keep_inputs(output, value)
        elif isinstance(value, str | Path) and output.is_file():
            place = paths.located(value)
            is_source = output.suffix == ".py" and place.is_dir()
            inside = is_source and place.resolve() in output.resolve().parents
            if inside or (place.is_file() and place.samefile(output)):
                raise UserError(f"{output} belongs to the input {value}; name another output")


command = partial(click.command, cls=Command)


class Group(click.Group):
    """A group of commands that reports bad input in one line and exits with code 2."""

    command_class = Command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            message = " ".join(error.format_message().split()).rstrip(".")
            message += f" (see `{(error.ctx or ctx).command_path} --help`)"
        except Exception as error:
            if (line := explain(error)) is None:
                raise
            message = line
        click.echo(f"error: {message}", err=True)
        return ctx.exit(2)


def run_module(module_command: click.Command) -> None:
    """Run the command of a module that was started as ``python -m MODULE``, and report errors as
    ``lookuplab`` does.
    """
    name = sys.modules["__main__"].__spec__.name  # type: ignore[union-attr]  # started by -m
    group = Group(commands={name: module_command}, context_settings=HELP)
    with stoppable():
        group.main([name, *sys.argv[1:]], prog_name="python -m")


def path(value: str) -> Path:
    """Return the path of a file or folder, with ``~`` expanded."""
    return paths.expand_path(value)


def text(value: str) -> str:
    """Return an argument's text. If it is a path that begins with ``~``, the ``~`` is expanded,
    because a shell does not do this in ``--profile=~/own.yaml``.
    """
    return str(paths.expand_path(value)) if value.startswith("~") else value


def _parameter(parameter: inspect.Parameter, described: str | None) -> click.Parameter:
    """Return the argument or option for a function's parameter. ``described`` is its help text."""
    kind = parameter.annotation
    several = get_origin(kind) is tuple
    if several or type(None) in get_args(kind):
        kind = get_args(kind)[0]
    if get_origin(kind) is Literal:
        kind = click.Choice(get_args(kind))
    options: dict[str, Any] = {
        "type": {Path: path, str: text, int: click.IntRange(0, 999_999_999)}.get(kind, kind)
    }
    if parameter.default is parameter.empty:
        options["required"] = True
    elif not several:  # click's own default for several values is ()
        options["default"] = parameter.default
    if parameter.kind is not parameter.KEYWORD_ONLY:
        return click.Argument([parameter.name], nargs=-1 if several else 1, **options)
    return click.Option(
        [f"--{parameter.name.replace('_', '-')}", *filter(None, [SHORT.get(parameter.name)])],
        help=described and " ".join(described.split()),
        show_default=bool(parameter.default),
        is_flag=kind is bool,
        multiple=several,
        **options,
    )


def claim_file(output: Path | None) -> None:
    """Reserve a command's output file (see ``claim``), unless it is None. A command does this
    before it reads its input. Also raises UserError if ``output`` exists but is not a file.
    """
    if output:
        paths.check_file(output)
        claim(output)


def claim(place: Path) -> None:
    """Reserve a file or folder: no other command can write to ``place`` until this command has
    ended. Raises UserError if another command is already writing there.
    """
    context = click.get_current_context(silent=True)
    place = place.absolute()
    if context and not paths.is_special(place):
        context.with_resource(hold_lock(place, f"writes {place}"))


def pairs(texts: Iterable[str]) -> dict[str, Any]:
    """Return {name: value} for texts ``name=value``, whose values are YAML, as in ``papermill -y``.
    Raises UserError for a text without ``=``, a name given twice, and a value that is not YAML.
    """
    import yaml

    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UserError(f"{text!r}: write name=value")
        if name in values:
            raise UserError(f"{name}=... is given twice")
        try:
            values[name] = paths.parse(yaml.safe_load, value)
            json.dumps(values[name])  # raises TypeError for a date, which no parameter can be
        except (ValueError, TypeError) as error:
            raise UserError(f"{value!r} is not YAML; put a text in quotes: {error}") from None
    return values


def with_settings(defaults: Any, texts: Iterable[str]) -> Any:
    """Return a copy of ``defaults``, an instance of a dataclass, with fields changed by texts
    ``name=value``. Raises UserError for an unknown name or a wrong value.
    """
    from lookuplab.results.provenance import convert

    changed = {}
    for name, value in pairs(texts).items():
        check_choice("the setting", name, vars(defaults))
        # (int, NoneType) if the setting may be null, and () otherwise
        kinds = get_args(type(defaults).__annotations__[name])
        if value is not None or not kinds:
            example = kinds[0]() if kinds else vars(defaults)[name]
            value = convert(example, value, f"setting {name!r}")
        if isinstance(value, int | float) and not 0 <= value <= sys.maxsize:
            raise UserError(
                f"setting {name!r} is {value!s:.40}; it must be at least 0, not too large"
            )
        changed[name] = value
    return replace(defaults, **changed)


def echo_counts(head: str, counts: dict[str, int]) -> None:
    """Print ``head`` and then the counts, largest first."""
    if head:
        click.echo(head)
    for what, number in Counter(counts).most_common():
        click.echo(f"  {number:>7,}  {what}")


class Commands(Group):
    """A group of commands that are imported only when they are used."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, others = super().resolve_command(ctx, args)
        if name in PLACES:
            module, function = PLACES[name]
            command = getattr(import_module(f"lookuplab.run.commands.{module}"), function)
        return name, command, others


@click.group(cls=Commands, context_settings=HELP)
@click.version_option(lookuplab.__version__, prog_name="lookuplab")
def cli() -> None:
    """What happens when a code model may look something up? Three papers as notebooks.

    \b
    lookuplab reproduce                            every notebook (CPU, no network)
    lookuplab run table1_base_models --profile paper -p models=bigcode/starcoder2-3b
    lookuplab verify                               does a fresh run equal the committed one?
    """


# {command: (module, function)}. The modules are searched as text and not imported, because imports
# take seconds.
PLACES: dict[str, tuple[str, str]] = {}
for file in Path(__file__).with_name("commands").glob("*.py"):
    for given, function, line in COMMAND.findall(file.read_text("utf-8")):
        PLACES[given or function] = file.stem, function
        cli.add_command(click.Command(given or function, help=line))


def main() -> None:
    """Run the console script."""
    # A relative path in LOOKUPLAB_STORE is relative to $PWD. A notebook's kernel works in another
    # folder, but inherits this variable.
    os.environ["PWD"] = os.getcwd()
    with stoppable():
        cli(prog_name="lookuplab")
