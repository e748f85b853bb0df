"""A Python package of your own in place of AWS and Azure: index, frequencies and tasks, in the
formats of the committed ones. A call is valid iff it binds to the signature that Python reports.

Public is what ``__all__`` names or, without one, what has no underscore and was defined in the
package, in any module that has no underscore and is no test. An object under several paths is one
API, at the shortest of them.
"""

import importlib
import inspect
import os
import pkgutil
import sys
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

from lookuplab import paths
from lookuplab.cloudapi import benchmark, frequency
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, inspected, methods, write_index
from lookuplab.errors import UserError

FREQUENCIES, TASKS = "frequencies.csv", "tasks.jsonl"
TESTS = frozenset({"tests", "test", "conftest", "__main__"})


@dataclass(frozen=True)
class OwnApi:
    """The material of a package. ``counting`` says in words what was counted, ``left_out`` how much is not read or not
    asked for, by reason.
    """

    index: ApiIndex
    tasks: list[benchmark.Task]
    counting: str
    left_out: Counter[str]


def build(
    name: str,
    folder: Path | None = None,
    corpus: str | None = None,
    per_class: int = 100,
    seed: int = 0,
) -> OwnApi:
    """Read a package (an import name, as ``networkx.algorithms``, or a folder), count, deal tasks, and write index,
    documentation, frequencies and tasks into ``folder`` (default: ``folder_of``).

    ``corpus`` is as in ``frequency.source_files``; None counts in the package's own sources. Raises UserError for what
    cannot be imported, counted or asked for.
    """
    folder = folder or folder_of(name)
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
    tasks = benchmark.build(index, counts, seed, per_class)
    obstacles = filter(None, map(benchmark.obstacle, index.operations))
    left_out.update(f"operation: {obstacle}" for obstacle in obstacles)
    if not tasks:
        raise UserError(f"no API of {name} can be asked for: {dict(left_out)}")
    benchmark.write_tasks(tasks, folder / TASKS)
    return OwnApi(index, tasks, frequency.report(counts, fates), left_out)


def folder_of(name: str) -> Path:
    """Where the material of this package is kept unless another folder is named."""
    return paths.RUNS / "packages" / Path(name).name


def offered(name: str) -> tuple[list[tuple[ApiSpec, str]], Counter[str], str]:
    """What the package of this import name or folder offers: (its APIs with their documentation, what could not be read
    by reason, where its sources lie, "" for a compiled one). UserError for one that does not import.
    """
    if os.sep in name:
        place = Path(name).expanduser().resolve()
        sys.path.insert(0, str(place.parent))
        name = place.name
    public: dict[int, tuple] = {}  # by identity: the nearest path of each object
    found, left_out = [], Counter()
    for client in sorted(_modules(name, left_out), key=lambda path: (path.count("."), path)):
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


def _modules(package: str, left_out: Counter) -> Iterator[str]:
    """Imports all public modules."""
    pending = [package]
    while pending:
        name = pending.pop()
        try:
            module = importlib.import_module(name)
        except (Exception, SystemExit) as error:
            if name == package:
                raise UserError(
                    f"{name} does not import: {type(error).__name__}: {error}"
                ) from None
            left_out[f"module: {type(error).__name__} when imported"] += 1
            continue
        yield name
        inside = {one.name for one in pkgutil.iter_modules(getattr(module, "__path__", ()))}
        public = (part for part in inside - TESTS if not part.startswith("_"))
        pending += sorted((f"{name}.{part}" for part in public), reverse=True)


def _exported(client: str, package: str) -> Iterator[tuple[str, object]]:
    module = sys.modules[client]
    declared = getattr(module, "__all__", None)
    for name in sorted(filter(lambda name: name[:1] != "_", declared or dir(module))):
        try:
            value = getattr(module, name)
        except Exception:  # a lazily loaded name may raise anything
            continue
        named = callable(value) and hasattr(value, "__name__") and not inspect.ismodule(value)
        if named and (declared or _is_own(value, package)):
            yield name, value


def _is_own(value: object, package: str) -> bool:
    return f"{getattr(value, '__module__', '')}.".startswith(package.partition(".")[0] + ".")


def _apis(
    package: str, client: str, name: str, value: object, public: Container[int]
) -> Iterator[tuple[ApiSpec, str]]:
    """A function; or the constructor of a class, and the methods that no public class gives it.

    Constructors of exceptions, class methods, static methods and methods of foreign bases exist, but are no operations.
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
