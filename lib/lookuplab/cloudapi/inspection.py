"""What an importable package offers, read in a process of its own: ``python -m lookuplab.cloudapi.inspection PACKAGE``.

A package may print, warn, exit, hang or crash while it is imported. Nothing of that reaches the caller: ``packages``
starts this process, reads one JSON object a line and starts it again without the module that ended it. Lines are
``importing`` (the module that comes next), ``api`` with ``documentation``, ``failed`` (the package itself does not
import) and, last, ``left_out``.

Public is what ``__all__`` names or, without one, what has no underscore and was defined in the package, in any module
that has no underscore and is no test. An object under several paths is one API, at the shortest of them.
"""

import importlib
import inspect
import json
import os
import pkgutil
import re
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from types import ModuleType

from lookuplab.cloudapi.docstrings import description_of, documented_names
from lookuplab.cloudapi.prose import shortened
from lookuplab.cloudapi.specs import ApiSpec, Parameter, to_json

TESTS = frozenset({"tests", "test", "conftest", "__main__"})
IMPORT_SECONDS = 120  # for one module; then the process ends, as after a crash
_ANY = (Parameter("args", "VAR_POSITIONAL"), Parameter("kwargs", "VAR_KEYWORD"))


class Reader:
    """Imports a package's public modules and yields its APIs; ``left_out`` counts what is not among them, by reason."""

    def __init__(self, package: str, skipped: frozenset[str], say: Callable[[dict], None]):
        self.package, self.root = package, package.partition(".")[0]
        self.skipped, self.say = skipped, say
        self.left_out: Counter[str] = Counter({"module: ended the process": len(skipped)} if skipped else {})

    def read(self) -> Iterator[tuple[ApiSpec, str]]:
        """(specification, docstring) of every API, modules in alphabetical order. Raises what the package raises."""
        _import(self.package)
        at_once = {name for name in sys.modules if name.split(".")[0] == self.root}  # reached by attributes alone
        paths: dict[int, list[tuple[str, str]]] = defaultdict(list)
        objects = {}
        for module in self._modules():
            for name, value in self._exported(module):
                objects[id(value)] = value
                paths[id(value)].append((module.__name__, name))
        public = {key: min(places, key=lambda place: _nearness(*place, objects[key]))
                  for key, places in paths.items()}
        for key, (client, name) in sorted(public.items(), key=lambda item: item[1]):
            also = [f"{module}.{other}".removeprefix(f"{client}.") for module, other in paths[key]
                    if f"{module}.".startswith(f"{client}.") and (module == client or module in at_once)]
            value = objects[key]
            try:
                yield from list(self._class(client, name, value, also, public) if inspect.isclass(value)
                                else [self._api(client, name, value, also)])
            except Exception as error:  # a metaclass may raise anything
                self.left_out[f"name: {type(error).__name__} when read"] += 1

    def _modules(self) -> Iterator[ModuleType]:
        pending = [self.package]
        while pending:
            name = pending.pop()
            self.say({"importing": name})
            try:
                module = _import(name)
            except BaseException as error:  # SystemExit among them
                self.left_out[f"module: {type(error).__name__} when imported"] += 1
                continue
            yield module
            inside = [one.name for one in pkgutil.iter_modules(getattr(module, "__path__", ()))]
            self.left_out["module: tests"] += sum(part in TESTS for part in inside)
            public = (f"{name}.{part}" for part in inside if part not in TESTS and not part.startswith("_"))
            pending += sorted((one for one in public if one not in self.skipped), reverse=True)

    def _exported(self, module: ModuleType) -> Iterator[tuple[str, object]]:
        declared = getattr(module, "__all__", None)
        declared = declared if isinstance(declared, list | tuple) else None
        for name in sorted({name for name in declared or dir(module) if isinstance(name, str) and name[:1] != "_"}):
            try:
                value = getattr(module, name)
                named = callable(value) and isinstance(getattr(value, "__name__", None), str)
                if named and not inspect.ismodule(value) and (declared or self._own(value)):
                    yield name, value
            except Exception as error:  # a lazily loaded name may raise anything
                self.left_out[f"name: {type(error).__name__} when read"] += 1

    def _own(self, value: object) -> bool:
        return str(getattr(value, "__module__", None)).partition(".")[0] == self.root

    def _class(self, client: str, name: str, cls: type, also: list[str], public: dict[int, tuple[str, str]]
               ) -> Iterator[tuple[ApiSpec, str]]:
        """The constructor, and the methods that no other public class gives it."""
        raised = issubclass(cls, BaseException)
        above = [base for base in cls.__mro__[1:] if id(base) in public]
        bases = [".".join(public[id(base)]) for base in above]
        yield self._api(client, name, cls, also=also, bases=tuple(bases), operation=not raised)
        if not raised:
            for method, others in _methods(cls).items():
                owner = next(base for base in cls.__mro__ if method in vars(base))
                if owner is cls or not any(owner in base.__mro__ for base in above):
                    yield self._method(f"{client}.{name}", client, method, others, cls, owner)

    def _method(self, client: str, module: str, name: str, also: list[str], cls: type, owner: type
                ) -> tuple[ApiSpec, str]:
        static = vars(owner)[name]
        if not _is_method(static):  # a property: it exists, and whether what it gives can be called is not known
            return ApiSpec("python", self.package, client, name, _ANY, module=module, operation=False,
                           flags=("property",)), ""
        on_class = isinstance(static, classmethod | staticmethod)
        return self._api(client, name, getattr(cls, name), also, module=module, drop=not on_class,
                         operation=self._own(owner) and not on_class)

    def _api(self, client: str, name: str, value: object, also: list[str] = (), *, module: str = "",
             drop: bool = False, bases: tuple[str, ...] = (), operation: bool = True) -> tuple[ApiSpec, str]:
        parameters = _parameters(value, drop)
        docstring = _docstring(value)
        kinds = {p.kind for p in parameters or ()}
        if parameters is None:
            flags = ("no_signature",)
        else:  # *args and **kwargs and nothing required: no call is wrong
            anything = {"VAR_POSITIONAL", "VAR_KEYWORD"} <= kinds and not any(p.required for p in parameters)
            flags = ("open_signature",) if anything else ()
        known = {p.name for p in parameters or ()}
        extra = sorted(documented_names(docstring) - known) if "VAR_KEYWORD" in kinds else ()
        spec = ApiSpec("python", self.package, client, name, _ANY if parameters is None else parameters,
                       documented=tuple(extra), description=description_of(docstring), module=module,
                       operation=operation, flags=flags, also=tuple(sorted(set(also) - {name})), bases=bases)
        return spec, docstring


def _import(name: str) -> ModuleType:
    signal.alarm(IMPORT_SECONDS)  # its default action ends the process, even inside compiled code
    try:
        return importlib.import_module(name)
    finally:
        signal.alarm(0)


def _nearness(module: str, name: str, value: object) -> tuple:
    """The public path is the shortest; of equals, the one under the object's own name."""
    return module.count("."), name != getattr(value, "__name__", ""), module, name


def _methods(cls: type) -> dict[str, list[str]]:
    """Public method or property -> its other names in the class (``agg`` of ``aggregate``), without inner classes."""
    names: dict[int, list[str]] = defaultdict(list)
    for name in dir(cls):
        static = inspect.getattr_static(cls, name, None)
        inner = static.__func__ if isinstance(static, classmethod | staticmethod) else static
        known = _is_method(static) or hasattr(type(static), "__get__")
        if name[:1] != "_" and any(name in vars(base) for base in cls.__mro__) and known and not inspect.isclass(inner):
            names[id(inner)].append(name)
    found = {}
    for same in names.values():
        own = getattr(getattr(cls, same[0], None), "__name__", "")
        first = own if own in same else same[0]
        found[first] = [name for name in same if name != first]
    return dict(sorted(found.items()))


def _is_method(static: object) -> bool:
    return isinstance(static, classmethod | staticmethod) or inspect.isroutine(static) and callable(static)


def _parameters(value: object, drop: bool) -> tuple[Parameter, ...] | None:
    """The signature, without ``self`` if ``drop``; None where Python knows none (many compiled functions)."""
    try:
        found = list(inspect.signature(value).parameters.values())
    except Exception:  # ValueError, TypeError, and whatever a package's own ``__signature__`` raises
        return None
    if drop and found and found[0].kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
        found = found[1:]
    return tuple(Parameter(p.name, p.kind.name, p.default is p.empty and not p.kind.name.startswith("VAR_"))
                 for p in found)


def _docstring(value: object) -> str:
    """Without one of its own a class has none, where ``inspect.getdoc`` would give it its base's."""
    try:
        given = value.__doc__ if inspect.isclass(value) else inspect.getdoc(value)
        return re.sub(r"[\ud800-\udfff]", "", inspect.cleandoc(given)) if isinstance(given, str) else ""
    except Exception:
        return ""


def _folder(module: ModuleType) -> str:
    """Where a package's sources lie, of a single module its file; "" where there are none."""
    places = list(getattr(module, "__path__", ()))
    file = getattr(module, "__file__", None) or ""
    return places[0] if places else file if file.endswith(".py") else ""


def main(package: str, *skipped: str) -> None:
    """Write the lines; what the package itself prints goes to stderr."""
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)

    def say(line: dict) -> None:
        print(json.dumps(line, ensure_ascii=False), file=lines, flush=True)

    reader = Reader(package, frozenset(skipped), say)
    say({"importing": package})
    try:
        for spec, docstring in reader.read():
            say({"api": to_json(spec), "documentation": shortened(docstring)})
        say({"left_out": +reader.left_out, "folder": _folder(sys.modules[package])})
    except BaseException as error:
        say({"failed": f"{type(error).__name__}: {error}".splitlines()[0].strip()})
    lines.flush()
    os._exit(0)  # threads and exit handlers that the package left behind are no concern of ours


if __name__ == "__main__":
    main(*sys.argv[1:])
