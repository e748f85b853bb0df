"""A Python package of your own in place of AWS and Azure: index, frequencies and tasks, in the
formats of the committed ones.

A call is valid iff it binds to the signature that Python reports. Public names are those in
``__all__`` or, without one, those that have no leading underscore and are defined in the package,
in any module that has no leading underscore and is not a test. An object that is reachable by
several paths is one API, at the shortest of them.
"""

import inspect
import os
import sys
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from lookuplab import paths
from lookuplab.cloudapi.specs import ApiIndex
from lookuplab.cloudapi.tasks import ApiTask
from lookuplab.errors import UserError
from lookuplab.run.commands import command, echo_counts, run_module
from recipes.cloudapi import frequency, tasks
from recipes.cloudapi.reading import Described, inspected, methods, public_modules, write_index

FREQUENCIES, TASKS = "frequencies.csv", "tasks.jsonl"


@dataclass(frozen=True)
class OwnApi:
    """The material for a package.

    ``counting`` describes what was counted; ``left_out`` counts what was not read or cannot be
    asked for, by reason.
    """

    index: ApiIndex
    tasks: list[ApiTask]
    counting: str
    left_out: Counter[str]


def build(
    name: str,
    folder: Path,
    corpus: str | None = None,
    per_class: int = 100,
    seed: int = 0,
) -> OwnApi:
    """Read a package, count its APIs, make tasks, and write index, documentation, frequencies and
    tasks into ``folder``.

    ``name`` is an import name, such as ``networkx.algorithms``, or a folder. ``corpus`` is as in
    ``frequency.source_files``; with None, the package's own sources are counted. Raises UserError
    if the package cannot be imported or counted, or if no task can be made.
    """
    described, left_out, sources = offered(name)
    if not corpus and not sources:
        raise UserError(f"no Python sources to count in: name a corpus that uses {name}")
    files = frequency.source_files(corpus or sources)
    if not corpus:
        inside = Path(name).name.replace(".", "/")
        files = ((f"{inside}/{path}", text) for path, text in files)
    index = write_index(folder, described)
    counts, fates = frequency.count(files, index)
    counts.to_csv(folder / FREQUENCIES)
    asked = tasks.build(index, counts, seed, per_class)
    obstacles = filter(None, map(tasks.obstacle, index.operations))
    left_out.update(f"operation: {obstacle}" for obstacle in obstacles)
    if not asked:
        raise UserError(f"no API of {name} can be asked for: {dict(left_out)}")
    tasks.write_tasks(asked, folder / TASKS)
    return OwnApi(index, asked, frequency.report(counts, fates), left_out)


def folder_of(name: str) -> Path:
    """The default folder for the material of a package."""
    return paths.RUNS / "packages" / Path(name).name


def offered(name: str) -> tuple[list[Described], Counter[str], str]:
    """What the package with this import name or folder offers: (its APIs with their documentation,
    how much could not be read by reason, the path of its sources or "" if it is compiled).

    Raises UserError if it cannot be imported.
    """
    if os.sep in name:
        place = Path(name).expanduser().resolve()
        sys.path.insert(0, str(place.parent))
        name = place.name
    public = {}  # by identity: the shortest path of each object
    found: list[Described] = []
    left_out: Counter[str] = Counter()

    def failed(module: str, error: BaseException) -> None:
        if module == name:
            raise UserError(f"{name} does not import: {type(error).__name__}: {error}") from None
        left_out[f"module: {type(error).__name__} when imported"] += 1

    clients = [module.__name__ for module in public_modules(name, failed=failed)]
    for client in sorted(clients, key=lambda path: (path.count("."), path)):
        for part, value in _exported(client, name):
            public.setdefault(id(value), (client, part, value))
    for place in public.values():
        try:
            found += list(_apis(name, *place, public))
        except Exception as error:  # a metaclass may raise anything
            left_out[f"name: {type(error).__name__} when read"] += 1
    file = getattr(sys.modules[name], "__file__", None) or ""
    folders = getattr(sys.modules[name], "__path__", ())
    return found, left_out, next(iter(folders), file if file.endswith(".py") else "")


def _exported(client: str, package: str) -> Iterator[tuple[str, object]]:
    module = sys.modules[client]
    declared = getattr(module, "__all__", None)
    for name in sorted(filter(lambda name: name[:1] != "_", declared or dir(module))):
        try:
            value = getattr(module, name)
        except Exception:  # a lazily loaded name may raise anything
            continue
        named = callable(value) and hasattr(value, "__name__")
        if named and (declared or _is_own(value, package)):
            yield name, value


def _is_own(value: object, package: str) -> bool:
    return f"{getattr(value, '__module__', '')}.".startswith(package.partition(".")[0] + ".")


def _apis(
    package: str, client: str, name: str, value: object, public: Container[int]
) -> Iterator[Described]:
    """A function; or a class's constructor and the methods that it does not inherit from a public
    class.

    Constructors of exceptions, class methods, static methods and methods inherited from other
    packages are included, but are not operations.
    """
    is_class = inspect.isclass(value)
    error = is_class and issubclass(value, BaseException)
    yield inspected(("python", package, client, name), value, operation=not error)
    if not is_class or error:
        return
    above = {None}
    above.update(*(base.__mro__ for base in value.__mro__[1:] if id(base) in public))
    for method, function, bound in methods(value):
        owner = next((base for base in value.__mro__ if method in vars(base)), None)
        if owner not in above:
            place = "python", package, f"{client}.{name}", method
            kind = {"module": client, "operation": _is_own(owner, package) and not bound}
            yield inspected(place, function, not bound, **kind)


@command()
def main(
    package: str,
    *,
    output: Path | None = None,
    corpus: str | None = None,
    per_class: int = 100,
    seed: int = 0,
) -> None:
    """Build an API index of any importable package, and a benchmark in the style of CloudAPIBench.

    PACKAGE is an import name (networkx, or a part of it: networkx.algorithms) or the folder of a
    package. The package is imported. Writes index.jsonl.xz, documentation.jsonl.xz, frequencies.csv
    and tasks.jsonl. A call is valid iff it binds to the signature that Python reports. APIs that
    cannot be read or used in a task are counted and printed.

    \b
    Examples:
      python -m recipes.cloudapi.packages networkx
      python -m recipes.cloudapi.packages path/to/my_package --corpus path/to/code/that/uses/it -o my_api
    Then:
      lookuplab run own/package -p package=networkx

    Args:
        output: Folder to write to. [default: runs/packages/PACKAGE]
        corpus: Code to count frequencies in: a folder, JSON Lines or data set, as for `lookuplab
            data frequencies`. [default: the package's own sources and tests]
        per_class: Maximum number of tasks per frequency class.
        seed: Random seed for choosing the APIs.
    """
    folder = output or folder_of(package)
    made = build(package, folder, corpus, per_class, seed)
    click.echo(f"{len(made.index.specs)} APIs; {made.counting}")
    echo_counts("left out:", made.left_out)
    apis = {task.target for task in made.tasks}
    click.echo(f"{len(made.tasks)} tasks of {len(apis)} APIs -> {folder}")


if __name__ == "__main__":
    run_module(main)
