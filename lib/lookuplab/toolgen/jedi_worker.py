"""Runs Jedi in a separate process, for ``jedi_tool`` and ``dependencies``.

Jedi is not thread-safe and may hang or crash on other people's code, so it has its own process. For
a question about one name, Jedi looks up only this name instead of listing all names. Importing this
module does not change Jedi; calling ``install`` does.

Whatever replaces a function of Jedi 0.20 or parso 0.8 here gives the same result as the original
function, provided that no file of the repository changes meanwhile. Syntax trees are cached, but no
result of Jedi's inference. Inference stops at limits on depth and number of executions, so an
inferred result depends on where the inference started, and each question must get the answer of a
fresh script.
"""

import functools
import gc
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import jedi
from jedi.api.completion import (
    Completion,
    _complete_getattr,
    get_flow_scope_node,
    get_user_context,
)
from jedi.api.environment import InterpreterEnvironment
from jedi.inference import base_value, imports, references, utils
from jedi.inference.context import get_global_filters
from jedi.inference.gradual.conversion import convert_values
from jedi.inference.value import TreeInstance, dynamic_arrays
from parso import cache

from lookuplab import python_sources
from lookuplab.toolgen.analysers import imports_begin, serve
from lookuplab.toolgen.source import Token

ANALYSER = "Jedi"
_BUFFERS = 128  # how many syntax trees of unsaved files are cached: as many as a batch has rows
_TREES = 600  # how many syntax trees of files on disk are cached; this is parso's own limit


class ToolAnswer(NamedTuple):
    """Jedi's answer to one question. ``names`` are the completions (such as ``alpha=``), and
    ``inserted`` has, in the same order, the text that each would insert at the caret (``pha=``
    after ``al``). An answer without completions may have a ``failure``: "timed out", "crashed" or
    "error in Jedi: <type>".
    """

    names: tuple[str, ...] = ()
    inserted: tuple[str, ...] = ()
    failure: str = ""

    @classmethod
    def of(cls, found: Sequence) -> "ToolAnswer":
        """Return a ToolAnswer for a list of Jedi's Completion objects."""
        return cls(
            tuple(completion.name for completion in found),
            tuple(completion.complete for completion in found),
        )

    @property
    def identifiers(self) -> list[str]:
        """Return the identifiers among ``names``, each once, in Jedi's order.

        Dictionary keys are left out, and ``=`` is removed from the end of a keyword argument.
        """
        plain = (name.removesuffix("=") for name in self.names)
        return list(dict.fromkeys(name for name in plain if name.isidentifier()))


class RepositoryProject(jedi.Project):
    """A Jedi project in which only the repository, Python's own library and the pinned sources can
    be imported.

    If the root is a package or inside one, its files are imported by the name of the outermost
    package, so imports begin in the folder above the outermost package. Jedi also searches the
    project for the callers of a function, to infer the function's parameters. This search covers
    only the repository and not the other folders around it.
    """

    def __init__(self, root: Path):
        self._root = root.absolute()
        super().__init__(imports_begin(self._root), sys_path=python_sources.search_path())

    @property
    def path(self) -> Path:
        return self._root


class OneName(Completion):
    """Jedi's completion, restricted to the name ``wanted``. This class searches the scopes for the
    name, whereas Jedi's own class lists all names in the scopes.

    The full list is slow because Jedi checks for every name whether its definition can be reached.
    The check of one name does not depend on the other names, so this class finds the wanted name if
    and only if the full list contains it.
    """

    def __init__(self, *args, wanted: str, **options):
        super().__init__(*args, **options)
        self._wanted = wanted

    def _complete_global_scope(self) -> list:
        context = get_user_context(self._module_context, self._position)
        scope = get_flow_scope_node(self._module_node, self._position)
        return self._within(get_global_filters(context, self._position, scope))

    def _complete_inherited(self, is_function: bool = True) -> Iterable:
        """Return the names that the class around the caret inherits, unless the wanted name is
        already known. Jedi infers the kind of every inherited name, which takes long.
        """
        known = not is_function and self._complete_global_scope()
        return known or super()._complete_inherited(is_function)

    def _complete_trailer_for_values(self, values) -> list:
        """Return the completions after a dot, as Jedi's complete_trailer does, but stop at the
        first of ``values`` that has the wanted name.
        """
        context = get_user_context(self._module_context, self._position)
        for value in values:
            proxy = not value.is_stub() and isinstance(value, TreeInstance)
            found = self._within(value.get_filters(origin_scope=context.tree_node))
            if proxy and not found:
                found = _complete_getattr(context, value)
            if found:
                return found
        others = [value for value in convert_values(values) if value not in values]
        scopes = [value.get_filters(origin_scope=context.tree_node) for value in others]
        return [name for scope in scopes for name in self._within(scope)]

    def _within(self, filters) -> list:
        return [name for one in filters for name in one.get(self._wanted)]


class Ordered(dict):
    """A set whose members keep the order in which they were added. It replaces the sets in Jedi.

    Jedi's values hash by their address in memory, so the order of a set of values differs from
    process to process. The order matters, because Jedi's inference stops at limits on depth and
    number of executions: the same question would get different answers in different processes.
    """

    def __init__(self, members: Iterable = ()):
        super().__init__(dict.fromkeys(members))

    def __or__(self, others: Iterable) -> "Ordered":
        return Ordered([*self, *others])

    def __and__(self, others: Iterable) -> "Ordered":
        return Ordered(one for one in self if one in others)

    def __hash__(self) -> int:  # type: ignore[override]  # needed because Jedi hashes its sets
        return hash(frozenset(self))

    def add(self, member: object) -> None:
        self[member] = None


def project_files(state, contexts) -> list:
    """Return the project's Python files except those of ``contexts``, sorted by path. Jedi's own
    function yields them in the order of the file system, and Jedi then reads only the first thirty
    that contain a word, so its answers would depend on this order.
    """
    folder = references.FolderIO(state.project.path)
    found = references.recurse_find_python_files(folder, [one.py__file__() for one in contexts])
    return sorted(found, key=lambda one: one.path)


project = functools.cache(RepositoryProject)  # one project per repository
# Jedi's environment is this interpreter itself. By default Jedi would start another process and
# query it for each single attribute.
environment = functools.cache(InterpreterEnvironment)
_buffers: dict[Path, object] = {}  # parso's trees of unsaved texts, by file


@contextmanager
def script(root: Path, file: str, text: str) -> Iterator[jedi.Script]:
    """Yield a new ``jedi.Script``, in which ``text`` is the content of ``file`` below ``root``.

    ``text`` may contain an unfinished function. Parso caches the tree of this text, and would use
    it to answer a later question about a different file that imports ``file``. The tree is
    therefore moved out of parso's cache afterwards, and moved back for the next question about the
    same file, so that parso parses only the changes.
    """
    if len(_trees()) > _TREES:
        _trees().clear()
    path = (root / file).absolute()
    on_disk = _trees().pop(path, None)
    if path in _buffers:
        _trees()[path] = _buffers.pop(path)
    try:
        yield jedi.Script(text, path=path, project=project(root), environment=environment())
        _buffers[path] = _trees()[path]
        if len(_buffers) > _BUFFERS:
            del _buffers[next(iter(_buffers))]
    finally:
        forget(path)
        if on_disk:
            _trees()[path] = on_disk


def forget(path: Path) -> None:
    """Remove a file's syntax tree from parso's cache, so that parso parses the file again."""
    _trees().pop(path, None)


def _trees() -> dict[Path, object]:
    """Return parso's cache, {file: syntax tree}. Each time that parso clears its cache, the cache
    becomes a new dictionary, so do not keep the result.
    """
    return cache.parser_cache.setdefault(environment().get_grammar()._hashed, {})


def completions(
    root: Path, file: str, text: str, line: int, column: int, wanted: str | None = None
) -> ToolAnswer:
    """Return the completions at a position in ``text``, the unsaved content of ``file``. If a name
    is ``wanted``, return only the completions that a search for this name finds (``OneName``).
    """
    kind = Completion if wanted is None else functools.partial(OneName, wanted=wanted)
    with script(root, file, text) as asked, patch.object(jedi.api, "Completion", kind):
        return ToolAnswer.of(asked.complete(line, column))


def own_keys(root: Path, file: str, text: str, uses: Sequence[Token], lines: range) -> list[str]:
    """Return the keys of those expressions that the function on ``lines`` uses and the repository
    defines elsewhere. ``uses`` are all expressions of the function, with their positions in
    ``text``, the content of ``file``. Jedi traces each expression to its definitions. A key is
    returned, once, if one of its definitions is in the repository but not on ``lines``.
    """
    inside = root.resolve()
    path = (root / file).resolve()
    keys = dict[str, None]()
    with script(root, file, text) as asked:
        for line, column, key in uses:
            if key in keys:
                continue
            for name in asked.goto(line, column, follow_imports=True):
                source = name.module_path and name.module_path.resolve()
                if not (source and source.is_relative_to(inside)):
                    continue
                is_own = not python_sources.FOREIGN & set(source.relative_to(inside).parts)
                itself = source == path and name.type != "module" and name.line in lines
                # a name without a line, such as __file__, is not defined by code of the repository
                if is_own and name.line and not itself:
                    keys[key] = None
    return [*keys]


def install() -> None:
    """Change Jedi in this process: its answers no longer depend on addresses in memory, on the
    order of the file system and on earlier questions, and it imports only from the pinned sources.

    Only a worker process may call this function, because in a notebook the same Jedi completes what
    the user types.
    """
    for module in (base_value, dynamic_arrays, imports, references, utils):
        module.set = module.frozenset = Ordered
    base_value.NO_VALUES._set = Ordered()
    references._find_project_modules = project_files
    # Above 600 trees, parso drops the trees of older files, even in the middle of a question. Jedi
    # still needs these trees and would raise a KeyError, so the answer would depend on earlier
    # questions.
    cache._CACHED_SIZE_TRIGGER = sys.maxsize
    # Trees are cached only in memory, because a worker must not write files, and because loading a
    # file of trees that others can write may run their code.
    cache._save_to_file_system = cache._load_from_file_system = lambda *_, **__: None
    cache._remove_cache_and_update_lock = lambda **_: None
    # Jedi would import and run the libraries in this list, and any module with such a name
    jedi.settings.auto_import_modules = []
    python_sources.restrict()


def control(root: Path, file: str) -> ToolAnswer:
    """Answer a harmless question. If even this ends the process, the machine is at fault and not
    the judged code (``analysers.ask_worker``).
    """
    return completions(root, file, "''.", 1, 3)


def start() -> None:
    """Run the parent process of the workers. It reads the built-in names once for all of them."""
    install()
    # While the names are read, the garbage collector would search their syntax trees again and
    # again. It is enabled again before ``serve``, which sets thresholds that make it run rarely.
    gc.disable()
    control(Path(python_sources.search_path()[0]), "new.py")
    gc.enable()
    serve(ANALYSER)
