"""Reads the public API of a Python package in a separate process. The process imports the package
but calls none of its functions.

Two kinds of modules offer a name: the module that defines it, and modules that re-export it on
purpose. A re-export is on purpose if the module lists the name in ``__all__``, or if the module is
the ``__init__`` of a package that contains the defining module. Names that an ``__init__`` loads
lazily are found, too. Modules with a leading underscore, tests, vendored code, and code that
installs the package or displays its version offer nothing. An object that is offered under several
paths counts as one API, with the shortest path.
"""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from types import ModuleType
from typing import Any

from lookuplab import paths, python_sources
from lookuplab.cloudapi.specs import from_json
from lookuplab.errors import UserError
from lookuplab.work import watched
from recipes.cloudapi.reading import Described, inspected, public_modules, to_json

# matches the names of modules and packages that have no public API: private ones, tests, vendored
# code, setup code
HIDDEN = r"""(?x)
    _.*
    | (?:.*_|self|unit)?tests?(?:_.*|ing.*|case.*|suite.*|utils?|lib)? | conftest | .*_checks
    | (?:externals?|extern|vendor(?:ed|s|ized)?|third_?party|bundled)
    | setup(?:_.*)? | versioneer | .*_main | examples? | benchmarks?"""
# finds the import by which a test module is recognised
TESTS = re.compile(r"(?m)^(?:from|import) (?:unittest|pytest|nose)\b")


def offered(name: str, every_path: bool = False) -> tuple[list[Described], Counter[str], str]:
    """Return three facts about a package: its APIs with their documentation; {reason: number of
    modules or names that could not be read}; and the path of its sources, or "" if it is compiled.

    ``name`` is an import name, a folder, or a release (``networkx==3.4``), which pip downloads
    once. With ``every_path``, a callable is listed once for each of its paths. An entry has the
    flag ``alias`` if its path is not the shortest, or if it is a method that the class inherits
    from a public class. Raises UserError if the package cannot be downloaded or imported.
    """
    package = name
    folders = []
    if "==" in name:
        root, package = unpacked(name)
        folders = [str(root)]
    elif os.sep in name:
        folder = Path(name).expanduser().resolve()
        package = folder.name
        # the folder may lie inside a package: prefix the names of all enclosing packages
        while (folder := folder.parent).joinpath("__init__.py").exists():
            package = f"{folder.name}.{package}"
        folders = [str(folder)]
    found = []
    rest: dict[str, Any] = {}
    last = package
    with (
        TemporaryDirectory() as empty,
        TemporaryFile("w+", errors="replace") as errors,
    ):
        reader = subprocess.Popen(
            [sys.executable, "-Bm", __name__, package, str(every_path), *folders],
            cwd=empty,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        with reader:
            for line in watched(reader.stdout or (), f"reading {name}", "modules and APIs"):
                match json.loads(line):
                    case [spec, page]:
                        found.append((from_json(spec), page))
                    case str(last):
                        pass
                    case dict(rest):
                        pass
        errors.seek(0)
        # the last line that the reader wrote to stderr
        words = errors.read().split("\n")[-2:-1] or [f"exit code {reader.returncode}"]
    if "error" in rest or not rest:
        raise UserError(
            f"{name} does not import: {rest.get('error', f'Python stops after {last}: {words[0]}')}"
        )
    return found, Counter(rest["left_out"]), rest["sources"]


def unpacked(release: str) -> tuple[Path, str]:
    """Return (folder to import from, import name) of a release in the package index, such as
    ``networkx==3.4``. Its wheel is unpacked once and never installed.

    Raises UserError if ``release`` does not have this form, if pip cannot download it, or if it
    contains no Python package. A source distribution is refused, because pip would run code from
    the distribution, if only to find out the name of the package.
    """
    ready = paths.DOWNLOADS / "releases" / release
    if not re.fullmatch(r"\w[\w.-]*==[\w.!+-]+", release):
        raise UserError(f"{release!r}: name one release, such as networkx==3.4")
    if not ready.is_dir():
        with TemporaryDirectory(dir=paths.make_folder(ready.parent)) as folder:
            if said := python_sources.download(Path(folder), "--ignore-requires-python", release):
                raise UserError(f"pip cannot download {release}: {said}")
            (wheel,) = Path(folder).iterdir()
            shutil.unpack_archive(wheel, Path(folder) / "ready", "zip")
            (Path(folder) / "ready").rename(ready)
    files = [*ready.rglob("__init__.py"), *ready.glob("*.py")]
    parts = {(file.parent if file.stem == "__init__" else file.with_suffix("")) for file in files}
    names = [part.relative_to(ready).parts for part in parts - {ready}]
    public = [name for name in names if not any(re.fullmatch(HIDDEN, part) for part in name)]
    wanted = re.sub(r"[-.]+", "_", release.partition("==")[0]).lower()
    if not public:
        raise UserError(f"{release} contains no Python package")
    # the shortest path, preferably one that ends in the release's own name
    _, _, best = min((len(one), one[-1].lower() != wanted, one) for one in public)
    return ready, ".".join(best)


def read(package: str, every_path: bool = False) -> Iterator[object]:
    """Yield what the separate process reports to ``offered``: the name of each module as soon as
    the module is imported, then [specification, documentation] of each API, then a dictionary with
    ``left_out`` and ``sources``.

    If the package itself cannot be imported, the last value is {"error": message} instead.
    """
    left_out = Counter[str]()
    errors = {}

    def failed(module: str, error: BaseException) -> None:
        errors[module] = f"{type(error).__name__}: {error}"
        left_out[f"modules whose import raises {type(error).__name__}"] += 1

    modules = []
    for module in public_modules(package, HIDDEN, failed):
        yield module.__name__
        modules.append(module)
    if package in errors:
        yield {"error": errors[package]}
        return
    # id of an object -> (module, name, object) with the object's shortest path
    public: dict[int, tuple[str, str, Any]] = {}
    others = []
    for module in sorted(modules, key=lambda one: (one.__name__.count("."), one.__name__)):
        for part, value, on_purpose in _exported(module, package):
            place = module.__name__, part, value
            if not on_purpose or public.setdefault(id(value), place) is not place:
                others.append(place)
    for place in (*public.values(), *(others if every_path else ())):
        better = public.get(id(place[2])) is not place
        try:
            for (spec, page), inherited in _apis(package, place, public):
                alias = better or inherited
                if every_path or not alias:
                    yield [to_json(replace(spec, flags=("alias",)) if alias else spec), page]
        except Exception as error:  # a metaclass may raise anything
            left_out[f"names whose reading raises {type(error).__name__}"] += 1
    top = sys.modules[package]
    file = getattr(top, "__file__", None) or ""
    sources = next(iter(getattr(top, "__path__", ())), file if file.endswith(".py") else "")
    yield {"left_out": left_out, "sources": sources}


def _exported(module: ModuleType, package: str) -> Iterator[tuple[str, Any, bool]]:
    """Yield (name, value, whether the module offers the name on purpose) for each public callable
    in a module that belongs to the package. Deprecated names, and all names of a test module, are
    left out.
    """
    with suppress(OSError, TypeError, SyntaxError):  # a compiled module or an empty file
        if module.__name__ != package and TESTS.search(inspect.getsource(module)):
            return
    client = module.__name__
    declared = getattr(module, "__all__", None)
    for name in sorted(set(declared or dir(module))):
        if name.startswith("_"):
            continue
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                value = getattr(module, name)
            home = str(getattr(value, "__module__", ""))
            usable = callable(value) and hasattr(value, "__name__") and _is_own(value, package)
        except Exception:  # loading a name lazily may raise anything, and so may inspecting a value
            continue
        around = hasattr(module, "__path__") and home.startswith(f"{client}.")
        if usable and not any(name in str(one.message) for one in warned):  # not deprecated
            yield name, value, bool(declared or home == client or around)


def _is_own(value: Any, package: str) -> bool:
    """Return whether a value is defined in a public part of the package."""
    root, *inside = str(getattr(value, "__module__", "")).split(".")
    hidden = (re.fullmatch(HIDDEN, part.lstrip("_")) for part in inside)
    return root.lstrip("_") == package.split(".")[0].lstrip("_") and not any(hidden)


def _apis(
    package: str, place: tuple[str, str, Any], public: Container[int]
) -> Iterator[tuple[Described, bool]]:
    """Yield (API, whether it is inherited from a public class) for a function, or for the
    constructor and each method of a class.

    ``place`` is (module, name, function or class), and ``public`` contains the ids of all public
    objects. Constructors of exceptions, class methods, static methods and methods inherited from
    other packages are included. Their field ``operation`` is False, so no task asks for them.
    """
    client, name, value = place
    is_class = inspect.isclass(value)
    error = is_class and issubclass(value, BaseException)
    yield inspected(("python", package, client, name), value, operation=not error), False
    if not is_class or error:
        return
    above = {None}
    above.update(*(base.__mro__ for base in value.__mro__[1:] if id(base) in public))
    for method, function in inspect.getmembers(value, inspect.isroutine):
        # ``isroutine`` also accepts a cached property, which is not callable
        if method.startswith("_") or not callable(function):
            continue
        static = inspect.getattr_static(value, method, None)
        bound = isinstance(static, classmethod | staticmethod)
        owner = next((base for base in value.__mro__ if method in vars(base)), None)
        asked = _is_own(owner, package) and not bound
        spot = "python", package, f"{client}.{name}", method
        yield inspected(spot, function, not bound, module=client, operation=asked), owner in above


def main() -> None:
    """Read the package named on the command line, and write JSON Lines to stdout."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as report:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # discards what the package prints
        _, package, every_path, *folders = sys.argv
        sys.path[:0] = folders
        sys.argv = ["x"]
        # This program's own imports may have loaded the installed release of the package. Its
        # modules are dropped, so that the package is imported from ``folders``.
        for name in [*sys.modules] if folders else ():
            if name.split(".")[0] == package.split(".")[0]:
                del sys.modules[name]
        for line in read(package, every_path == "True"):
            print(json.dumps(line), file=report, flush=True)
    os._exit(0)  # exits at once, even if the package has started threads


if __name__ == "__main__":
    main()
