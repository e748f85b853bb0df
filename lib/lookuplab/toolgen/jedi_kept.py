"""What Jedi works out anew for each question though it cannot have changed, found once in the life of a worker.

Every part takes the place of a function of Jedi 0.20 or parso 0.8 and gives the same result, provided that no file of
the repository changes meanwhile. Nothing that was *inferred* is kept: Jedi's inference has limits on depth and number
of executions, so what it finds depends on where it started, and a question must find what it finds in a fresh script.
"""

import functools
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

from jedi.file_io import FolderIO, KnownContentFileIO
from jedi.inference import filters, flow_analysis, imports, references
from jedi.inference.helpers import is_big_annoying_library
from jedi.inference.value.instance import SelfAttributeFilter
from jedi.parser_utils import get_parent_scope
from parso import cache, python_bytes_to_unicode
from parso.python import diff
from parso.python.tree import Flow, Module, Name, UsedNamesMapping

from lookuplab.paths import replacing


def install() -> None:
    """From now on Jedi keeps in this process what is described here."""
    diff.difflib = SimpleNamespace(SequenceMatcher=Matcher)
    Module.get_used_names = used_names
    filters._AbstractUsedNamesFilter.values = values
    filters.ParserTreeFilter._check_flows = functools.partialmethod(reachable, filters.ParserTreeFilter._check_flows)
    flow_analysis._check_if = functools.partial(branch, flow_analysis._check_if, {})
    references._find_project_modules = project_files
    references._check_fs = module_with
    cache._save_to_file_system = save
    cache._load_from_file_system = functools.partial(load, cache._load_from_file_system)


class Matcher(SequenceMatcher):
    """Compares two versions of a file (lists of lines) where they differ: what they share at both ends is taken off."""

    def __init__(self, isjunk, old: list[str], new: list[str]):
        self._head = len(os.path.commonprefix([old, new]))
        old, new = old[self._head:], new[self._head:]
        tail = len(os.path.commonprefix([old[::-1], new[::-1]]))
        self._tail = len(old) - tail, len(old), len(new) - tail, len(new)
        super().__init__(isjunk, old[:len(old) - tail], new[:len(new) - tail])

    def get_opcodes(self) -> list[tuple[str, int, int, int, int]]:
        found = [("equal", -self._head, 0, -self._head, 0), *super().get_opcodes(), ("equal", *self._tail)]
        return [(tag, *(place + self._head for place in (a, b, c, d))) for tag, a, b, c, d in found if a < b or c < d]


class Names(UsedNamesMapping):
    """The names of a module. ``suites``: what each function and class holds, for the next version of the module."""

    def __init__(self, names: dict[str, list[Name]], suites: dict):
        super().__init__(names)
        self.suites = suites
        self._by_scope: dict | None = None

    def defined(self, scope, parso_cache_node) -> dict[str, None]:
        """The names that may be defined in a scope, in the module's order; under "self" those of attributes."""
        if self._by_scope is None:
            found: dict = {}
            for key in self:
                for name in filters._get_definition_names(parso_cache_node, self, key):
                    parent = name.parent
                    node = parent if parent.type in ("classdef", "funcdef") else name
                    place = "self" if parent.type == "trailer" else get_parent_scope(node)
                    found.setdefault(place, {})[key] = None
            self._by_scope = found
        return self._by_scope.get(scope, {})


_names: dict[int, tuple[Module, Names]] = {}  # of the modules that were edited; parso edits trees in place
_EDITED = 8


def used_names(module: Module) -> UsedNamesMapping:
    """As parso's get_used_names. parso's diff parser gives the suite of each function that it touches a new list of
    children; where the list is the same one, its names are."""
    if module._used_names is None:
        before = _names.pop(id(module), None)
        suites: dict = {}
        found: dict[str, list[Name]] = {}
        for name in _names_below(module, before[1].suites if before and before[0] is module else {}, suites):
            found.setdefault(name.value, []).append(name)
        module._used_names = Names(found, suites)
        _names[id(module)] = module, module._used_names
        if len(_names) > _EDITED:
            del _names[next(iter(_names))]
    return module._used_names


def _names_below(node, before: dict, suites: dict) -> list[Name]:
    found = []
    for child in node.children:
        if child.type == "name":
            found.append(child)
        elif child.type == "suite" and node.type in ("funcdef", "classdef"):
            children, names = before.get(id(child.children), (None, None))
            if children is not child.children:
                children, names = child.children, _names_below(child, before, suites)
            suites[id(children)] = children, names
            found += names
        elif hasattr(child, "children"):
            found += _names_below(child, before, suites)
    return found


def values(self) -> list:
    """As the method of Jedi's filters by scope, which tries each name of the module in each scope."""
    names = self._used_names
    if isinstance(self, filters.ParserTreeFilter):
        scope = "self" if isinstance(self, SelfAttributeFilter) else self._parser_scope
        names = names.defined(scope, self._parso_cache_node)
    return self._convert_names(
        name for key in names
        for name in self._filter(filters._get_definition_names(self._parso_cache_node, self._used_names, key)))


def reachable(self, check, names: list[Name]) -> Iterator[Name]:
    """As the method of Jedi's filters by scope: the definitions of a name that may hold, the last one first. One that
    stands in no branch holds, and those above it do not; Jedi finds that out in many more steps."""
    context = self._node_context
    if is_big_annoying_library(context) or not context.inference_state.flow_analysis_enabled:
        yield from check(self, names)
        return
    last_first = sorted(names, key=lambda name: name.start_pos, reverse=True)
    for number, name in enumerate(last_first):
        node = name.parent
        while node is not self._parser_scope and node is not None and not isinstance(node, Flow):
            node = node.parent
        if node is not self._parser_scope:
            yield from check(self, last_first[number:])
            return
        yield name
        return


def branch(check, found: dict, context, node):
    """Whether the branch behind a test is taken, kept for the built-in names: each list of names in reach asks there at
    dozens of places for Python's version. Not for other modules: Jedi stops after 300 inferences in one."""
    if context.parent_context is not None or context.get_value() is not context.inference_state.builtins_module:
        return check(context, node)
    test = node.get_code(include_prefix=False)
    if test not in found:
        found[test] = check(context, node)
    return found[test]


_buffers: dict[Path, dict[str, object]] = {}  # parso's trees of buffers, by the file that each stands for


@contextmanager
def buffer(path: Path) -> Iterator[None]:
    """While a question about an unsaved buffer is answered, parso's tree of it stands for the file, and then no more.

    parso itself would hand the tree of the last buffer, half a function and all, to a question about another file that
    imports this one. The next question about this file still parses only what has changed.
    """
    on_disk = forget(path)
    _put(path, _buffers.pop(path, {}))
    try:
        yield
        _buffers[path] = forget(path)
        if len(_buffers) > _EDITED:
            del _buffers[next(iter(_buffers))]
    finally:
        forget(path)
        _put(path, on_disk)


def forget(path: Path) -> dict[str, object]:
    """What parso remembers of a file, by grammar; from now on it does no more."""
    return {grammar: items.pop(path) for grammar, items in cache.parser_cache.items() if path in items}


def _put(path: Path, remembered: dict[str, object]) -> None:
    for grammar, item in remembered.items():
        cache.parser_cache.setdefault(grammar, {})[path] = item


@functools.lru_cache(8)
def _files(folder) -> list:
    found = references.recurse_find_python_files(FolderIO(folder))
    return list(islice(found, references._OPENED_FILE_LIMIT + 1))  # Jedi opens no more


def project_files(state, contexts) -> Iterator:
    """The project's files other than those of ``contexts``."""
    known = [context.py__file__() for context in contexts]
    return (file for file in _files(state.project.path) if file.path not in known)


@functools.lru_cache(2000)
def _text(path) -> str:
    try:
        with open(path, "rb") as stream:
            return python_bytes_to_unicode(stream.read(), errors="replace")
    except FileNotFoundError:
        return ""


def module_with(state, file, pattern):
    """The context of a file's module if the file has a match of ``pattern``, which is a word between two \\b."""
    text = _text(file.path)
    if pattern.pattern[2:-2] not in text or not pattern.search(text):
        return None
    module = imports.load_module_from_path(state, KnownContentFileIO(file.path, text))
    return None if module.is_compiled() else module.as_context()


def save(grammar: str, path, item, cache_path=None) -> None:
    """As parso's, but whole or not at all: parso leaves half a tree when killed, and others may read what it writes."""
    place = Path(cache._get_hashed_path(grammar, path, cache_path=cache_path))
    with replacing(place) as partial, partial.open("wb") as stream:
        pickle.dump(item, stream, pickle.HIGHEST_PROTOCOL)


def load(read, grammar: str, path, modified: float, cache_path=None):
    """As parso's; a tree of which only half was saved is parsed anew."""
    try:
        return read(grammar, path, modified, cache_path=cache_path)
    except (EOFError, pickle.UnpicklingError):
        return None
