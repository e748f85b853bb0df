"""What a solution may leave behind that would decide its test, and how it is found."""

import _thread
import builtins
import gc
import sys
import time

DEEP = 4  # calls from the test down to which the functions that it uses are held
PATIENCE = 0.3  # seconds that a thread has for its end
# With one of these a class decides itself what it equals
COMPARISONS = frozenset({
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__sub__", "__rsub__", "__class__", "__array__",
    "__array_function__", "__array_interface__", "__array_struct__", "__array_ufunc__", "__torch_function__"})

Function, Module, Code = type(lambda: None), type(sys), type((lambda: None).__code__)
_nothing = object()


def names_in(code, known: dict) -> set:
    """All names that a code object and those inside it use."""
    if code not in known:
        known[code] = set(code.co_names).union(*(names_in(one, known) for one in code.co_consts
                                                 if _is(one, Code)))
    return known[code]


def used(program, variables: dict) -> list:
    """(namespace, name, value) of what the program's code uses: its own names, and those of the library below them.

    Of the library: the functions, classes and modules that the program names, what their code names in turn, down to
    ``DEEP`` calls, and the methods that the program names, of all classes in the modules that it imports.
    """
    known: dict = {}
    own = names_in(program, known)
    kept = [(vars(builtins), name, value) for name, value in vars(builtins).items()]
    kept += [(variables, name, value) for name, value in variables.items() if _acts(value)]
    kept += [(sys.modules, name, value) for name, value in sys.modules.items() if type(value) is Module]
    modules = [value for value in variables.values() if type(value) is Module]
    for module in modules:
        _load(module, own)
    seen: set = set()
    level = [(value, own) for value in variables.values()]
    level += [(value, own | COMPARISONS) for module in modules for value in list(vars(module).values())
              if _is(value, type)]
    for _ in range(DEEP):
        above, level = level, []
        for value, names in above:
            for space, name in _namespaces(value, names, known):
                if (id(space), name) not in seen:
                    seen.add((id(space), name))
                    found = space[name]
                    if _acts(found):
                        kept.append((space, name, found))
                        level.append((found, names))
    return kept


def _load(module, names: set) -> None:
    """What a module loads only when it is asked for it, as numpy does its ``testing``: the test will ask."""
    if "__getattr__" in vars(module):
        for name in names - vars(module).keys():
            try:
                getattr(module, name)
            except Exception:
                pass


def _acts(value) -> bool:
    return type(value) is Module or callable(value)


def _is(value, kind: type) -> bool:
    """As isinstance, without a look at ``value.__class__``, which may load something."""
    return issubclass(type(value), kind)


def _namespaces(value, names: set, known: dict) -> list:
    """Where the names that stand with ``value`` are looked up: in a module, a class, or around a function."""
    if _is(value, Module):
        return [(vars(value), name) for name in names & vars(value).keys()]
    if _is(value, type):
        return [(vars(kind), name) for kind in value.__mro__[:-1] for name in names & vars(kind).keys()]
    found = []
    while callable(value):
        if _is(value, Function):
            found += [(value.__globals__, name) for name in names_in(value.__code__, known) & value.__globals__.keys()]
        try:
            value = object.__getattribute__(value, "__dict__").get("__wrapped__")
        except AttributeError:
            break
    return found


def changed(kept: list) -> str:
    """The first name that no longer stands for what it did; without any builtin, for those come first."""
    for space, name, value in kept:
        if space.get(name, _nothing) is not value:
            return name
    return ""


def planted(modules: set, trusts) -> str:
    """A function of the solution's in a module of a library that was loaded after ``modules``, or ""."""
    for name, module in list(sys.modules.items()):
        if name in modules or type(module) is not Module:
            continue
        if str(vars(module).get("__file__")).startswith(trusts.places):
            for key, value in vars(module).items():
                if type(value) is Function and not trusts(value.__code__):
                    return f"{name}.{key}"
    return ""


def threads() -> tuple:
    return set(sys._current_frames()), _thread._count()


def left_running(before: tuple, solver: int, resting, trusts) -> str:
    """What still runs of the solution, or "". Threads of a library, such as a pool's, may wait for more work."""
    deadline = time.monotonic() + PATIENCE
    while True:
        frames = sys._current_frames()
        if solver not in frames or frames[solver].f_code is not resting:
            return "a solution that has not ended"
        more = {ident: frame for ident, frame in frames.items() if ident not in before[0]}
        strange = [ident for ident, frame in more.items() if not _librarys(frame, trusts)]
        if not strange and _thread._count() - before[1] <= len(more):
            return ""
        if time.monotonic() > deadline:
            return "a thread left running"
        del frames, more
        time.sleep(0.01)


def _librarys(frame, trusts) -> bool:
    """Whether a thread runs a library's code alone, and more of it than the module that any thread begins in."""
    codes = []
    while frame is not None:
        codes.append(frame.f_code)
        frame = frame.f_back
    return all(map(trusts, codes)) and not all(code.co_filename.endswith("/threading.py") for code in codes)


def comparing_class(trusts) -> str:
    """A method by which a class of the solution's would decide a comparison, or ""."""
    for kind in gc.get_objects():
        if _is(kind, type):
            for name in COMPARISONS & vars(kind).keys():
                method = vars(kind)[name]
                inside = (method, *(getattr(method, part, None) for part in ("fget", "func", "__func__")))
                codes = (getattr(one, "__code__", None) for one in inside)
                if any(code is not None and not trusts(code) for code in codes):
                    return f"{kind.__name__}.{name}"
    return ""
