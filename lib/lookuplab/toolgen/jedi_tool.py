"""Asks Jedi for the completions at a position in a file (the paper's completion tool, Section
II-B). Also asks Jedi which names in a function are defined in the repository.

Jedi is not thread-safe and may hang or crash on other people's code, so it runs in worker processes
(``analysers``). For a question about one name, Jedi looks up only this name instead of listing all
names. Importing this module does not change Jedi. Calling ``install`` does, so only a worker may
call it.

This module replaces some functions of Jedi 0.20 and parso 0.8. The replacements give the same
results as the original functions, provided that no file of the repository changes meanwhile. The
module caches syntax trees, but no types that Jedi infers. Jedi stops an inference at limits on
depth and number of executions, so what it infers for a name depends on the question. Each question
is therefore asked of a new ``jedi.Script``, which has inferred nothing yet.
"""

import functools
import gc
import keyword
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
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
from parso.python import diff

from lookuplab import python_sources
from lookuplab.models.tokens import Lost
from lookuplab.paths import folder_hash
from lookuplab.toolgen.analysers import (
    WorkerLost,
    ask_worker,
    blames_machine,
    import_root,
    serve,
)
from lookuplab.toolgen.rules import PAPER_RULES, ModelKind, Rules, writes_def
from lookuplab.work import processors

if TYPE_CHECKING:
    from lookuplab.toolgen.functions import Function

ANALYSER = "Jedi"
TOOL_VERSION = 3  # increase it whenever the same question would get a different answer
# how many lists of all completions are cached; different models and thresholds often need the same
# lists
REMEMBERED = 5_000
# Matches one token of Python code. The groups "comment" and "open..." match only if the comment or
# the string goes on to the end of the text. A complete string sets no group.
_LEXEME = re.compile(
    r"""
    (?P<comment> \#[^\n]*\Z)
  | [rbuf]{0,2} (?: \"{3} (?: \\. | [^\\] )*? (?: \"{3} | (?P<open1> \Z) )
                  | '{3} (?: \\. | [^\\] )*? (?: '{3} | (?P<open2> \Z) )
                  | \" (?: \\. | [^\\"\n] )* (?: [\"\n] | (?P<open3> \Z) )
                  | ' (?: \\. | [^\\'\n] )* (?: ['\n] | (?P<open4> \Z) ) )
  | (?P<number> \.?\d (?: [eE][+-] | [\w.] )*)
  | (?P<name> \w+)
  | (?P<blank> (?: [\s\\] | \#[^\n]*\n )+)
  | (?P<other> .)
""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_BUFFERS = 128  # how many syntax trees of unsaved files are cached: as many as a batch has rows
_TREES = 600  # how many syntax trees of files on disk are cached; this is parso's own limit

# 1. Questions, in any process


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


class JediTool:
    """The paper's TOOL-COMPLETE. Several threads may use one JediTool at the same time. If a call
    takes too long (``analysers.LIMIT``), hangs or crashes, its worker process ends, and the next
    call gets a new one.

    Lists of all completions (``complete`` without ``wanted``) and the repositories' digests are
    cached, so a repository must not change while a JediTool is in use.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or processors()
        self._full_answer = functools.lru_cache(REMEMBERED)(ask_worker)
        # digests of the repositories' Python files, because the tool reads only these files;
        # every model and condition needs the same digests
        self.content_digest = functools.cache(
            lambda root: folder_hash(root, python_sources.python_files(root), "content")[:32]
        )

    def complete(
        self, root: Path, file: str, text: str, line: int, column: int, wanted: str | None = None
    ) -> ToolAnswer:
        """Return the completions at a caret in an unsaved buffer.

        ``text`` replaces the content of ``file`` under ``root``. ``line`` counts from 1, ``column``
        from 0 in characters. If a name is ``wanted``, only this name is looked up, which is many
        times faster. The answer then contains the name if and only if the list of all completions
        contains it; the answer may contain other names as well. If Jedi gives no answer, the
        returned ToolAnswer has a ``failure``.
        """
        question = completions, root, file, text, line, column
        try:
            return self._full_answer(*question) if wanted is None else ask_worker(*question, wanted)
        except WorkerLost as lost:
            return ToolAnswer(failure=str(lost))


def unsaved_file(
    lines: list[str],
    function: "Function",
    written: str,
    kind: ModelKind,
    rules: Rules = PAPER_RULES,
) -> tuple[str, int, int]:
    """Return (text, line, column): the file's text with ``written`` in the place of ``function``
    (Algorithm 2, INSERT), and the position of the caret after ``written``. The line counts from 1,
    the column from 0 in characters.

    ``lines`` are the lines of the whole file. ``written`` is a body or a ``def``
    (``rules.writes_def``), without marks and without the indentation that the ``def`` has in the
    file. A body is put after the signature and the docstring in the file. If ``written`` is a
    ``def`` with the function's own signature, only its body is used, and it is put in the same
    place. The docstring thus stays in the file, as it does when the function is marked (Algorithm
    1). Any other ``def``, finished or not, replaces the signature and the docstring, too.
    Decorators are kept.
    """
    head = function.body_line - 1
    signature = function.signature + "\n"
    if writes_def(kind, rules):
        if not written.startswith(signature):
            head = function.line - 1
        written = written.removeprefix(signature)
    new = [function.indent + line for line in written.split("\n")]
    text = unfinished_file("".join(lines[:head]) + "\n".join(new), lines, function, rules)
    return text, head + len(new), len(new[-1])


def unfinished_file(before: str, lines: list[str], function: "Function", rules: Rules) -> str:
    """Return the text of the unsaved file: the text ``before`` the caret, then the part of the file
    after the function, without the blank lines at its beginning.

    On a blank indented line, and in some unfinished brackets, Jedi thinks that the caret is outside
    the function, and offers no local names. A dummy name after the caret prevents this. The
    packages insert no dummy name, so their tool never offers a local name at the start of a
    statement.
    """
    dummy = "" if rules.is_package else "_"
    # blank lines before the next statement would make parso parse this statement again
    return "".join([before, dummy, "\n", *dropwhile(str.isspace, lines[function.end_line :])])


def ask_tool(
    tool: JediTool, function: "Function", written: str, kind: ModelKind, rules: Rules = PAPER_RULES
) -> ToolAnswer:
    """Return the tool's completions at the end of ``written``, the text of a function so far (see
    ``unsaved_file``).

    If Jedi itself fails on this code, the result has a ``failure``. Raises Lost if Jedi gives no
    answer because of a fault of the machine: such a fault must not change what a model writes.
    """
    unsaved = unsaved_file(function.lines(), function, written, kind, rules)
    answer = tool.complete(function.root, function.file, *unsaved)
    if blames_machine(answer.failure):
        raise Lost(f"{function.id}: a question to Jedi was lost twice ({answer.failure})")
    return answer


def is_dunder(name: str) -> bool:
    """Return whether a name has the form ``__x__``, like the attributes that every object has."""
    return name.startswith("__") and name.endswith("__")


def suggestions(answer: ToolAnswer, trigger: str | None = "mark") -> tuple[str, ...]:
    """Return the identifiers among the completions, without keywords (Section II-B).

    Names of the form ``__x__`` are left out as well, because Algorithm 1 marks no such name, and
    because the 68 suggestions in Figure 1 do not include builtin attributes. If the trigger is
    "dot", these names stay.
    """
    return tuple(
        name
        for name in answer.identifiers
        if not keyword.iskeyword(name) and (trigger == "dot" or not is_dunder(name))
    )


def ends_after_dot(text: str) -> bool:
    """Return whether code ends in an unfinished attribute: a dot after an expression, possibly
    followed by letters.

    The result is False inside strings (including f-strings) and comments, for a dot that follows a
    number, and in ``from . import``.
    """
    found = re.search(r"\.([^\W\d]\w*)?\Z", text)
    kind: str | None = ""
    value = ""
    for lexeme in _LEXEME.finditer(text, 0, found.start()) if found else ():
        if lexeme.lastgroup != "blank":
            kind = lexeme.lastgroup
            value = lexeme.group()
    if kind == "name":
        return value in ("True", "False", "None") or not keyword.iskeyword(value)
    return kind is None or value in (")", "]", "}")


# 2. Answers, in a worker process


class RepositoryProject(jedi.Project):
    """A Jedi project in which only the repository, Python's own library and the pinned sources can
    be imported.

    If the repository's root is a package or inside one, its files are imported by the name of the
    outermost package, so imports begin in the folder above that package. Jedi also searches a
    project for calls to a function, to infer the function's parameters. This search covers only the
    repository, and not its neighbours in the folder above.
    """

    def __init__(self, root: Path):
        self._root = root.absolute()
        super().__init__(import_root(self._root), sys_path=python_sources.search_path())

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
        """Return the names that the class around the caret inherits. If the scopes around the caret
        already have the wanted name, return this name instead, because Jedi is slow to infer the
        type of every inherited name. With ``is_function`` (the caret follows ``def``), always
        return the inherited names.
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
    function yields the files in the order of the file system. Jedi parses only the first thirty of
    the files that contain the name it searches for, so its answers would depend on this order.
    """
    folder = references.FolderIO(state.project.path)
    found = references.recurse_find_python_files(folder, [one.py__file__() for one in contexts])
    return sorted(found, key=lambda one: one.path)


def without_endmarker(tree: Any, nodes: list) -> list:
    """Return the nodes that parso's incremental parser has just read, without the end marker.

    The parser has also read the comments and blank lines before the next statement. If they counted
    as read, as in parso's own function, parso could not take the tree of the next statement from
    the file's previous text. It would parse this statement again, even a long class. Here these
    lines therefore count as not read.
    """
    nodes = remove_endmarker(tree, nodes)
    if nodes and diff._ends_with_newline(nodes[-1].get_last_leaf()):
        tree.prefix = tree._prefix_remainder = ""
    return nodes


remove_endmarker = diff._NodesTree._remove_endmarker
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


def own_keys(
    root: Path, file: str, text: str, uses: Sequence[tuple[int, int, str]], lines: range
) -> list[str]:
    """Return the keys of those expressions in the function on ``lines`` that are defined in the
    repository, but outside this function. ``uses`` are all expressions of the function: (line,
    column, key), with the position in ``text``, the content of ``file``. Jedi traces each
    expression to its definitions. An expression counts if it has a definition in the repository
    that is not on ``lines``. The list has no repetitions.
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
    diff._NodesTree._remove_endmarker = without_endmarker  # type: ignore[method-assign]
    # Above 600 trees, parso drops the trees of older files, even in the middle of a question. Jedi
    # still needs these trees and would raise a KeyError, so the answer would depend on earlier
    # questions.
    cache._CACHED_SIZE_TRIGGER = sys.maxsize
    # Trees are cached only in memory. A worker must not write files. It must not load a file of
    # trees either: if somebody else has put code into this file, loading the file runs the code.
    cache._save_to_file_system = cache._load_from_file_system = lambda *_, **__: None
    cache._remove_cache_and_update_lock = lambda **_: None
    # For three seconds, Jedi keeps the signature of a call that spans lines, by the position of its
    # bracket alone. Another function's call at this position would get this signature.
    jedi.settings.call_signatures_validity = 0.0
    # Jedi imports and runs every module whose name is in this list, even a repository's module.
    jedi.settings.auto_import_modules = []
    python_sources.restrict()


def control(root: Path, file: str) -> ToolAnswer:
    """Answer a harmless question. If even this ends the process, the machine is at fault and not
    the judged code (``analysers.ask_worker``).
    """
    return completions(root, file, "''.", 1, 3)


def start() -> None:
    """Run the parent process, which reads the built-in names once for all workers."""
    install()
    # Otherwise the garbage collector would search the syntax trees of the built-in names again and
    # again while Jedi reads these names.
    gc.disable()
    control(Path(python_sources.search_path()[0]), "new.py")
    gc.enable()
    serve(ANALYSER)
