"""Measures the success rate: the share of generated functions in which pylint finds no dependency
errors when it reads the whole file.

By the paper (Section IV-C), a function fails if pylint reports syntax-error (E0001), no-member
(E1101) or undefined-variable (E0602). The working directory is the repository's root. A
repository's own pylint configuration is ignored. The repository's inline ``# pylint:`` comments are
obeyed; such comments in the generated function are removed first (``source.insert``).

Each worker process checks one file. The worker first reads the modules that the file imports
(``WarmLinter.warm_up``). It then checks each version of the file (with a generated function, or the
original) in a forked copy of itself. No check can affect another, as if each ran in a new process:
changes in astroid's caches end with the copy, and a copy that hangs or crashes affects no other
copy. A check must not depend on the original file either. The copy therefore forgets the file's
original content. If the original sets attributes of other modules' objects
(``imported.Class.late = 1``), the worker ignores these attributes when it reads the modules.

pylint reads all functions of a file, but checks only the generated function (or its original).
pylint's messages about this function may depend on what the other functions define, but do not
depend on a check of their bodies.
"""

import functools
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import astroid
from astroid.builder import AstroidBuilder, open_source_file
from astroid.context import _invalidate_cache
from astroid.inference_tip import clear_inference_tip_cache
from astroid.modutils import file_info_from_modpath
from astroid.nodes import ClassDef, FunctionDef, Import, ImportFrom, Module
from astroid.nodes._base_nodes import LookupMixIn
from pylint.lint import PyLinter, augmented_sys_path, discover_package_path
from pylint.reporters import CollectingReporter
from pylint.utils import ASTWalker

from lookuplab import python_sources
from lookuplab.toolgen.analysers import ask_worker, serve
from lookuplab.toolgen.rules import PAPER_RULES, Rules
from lookuplab.toolgen.source import Inserted

ANALYSER = "pylint"
CHECKS = ("E0001", "E1101", "E0602")  # syntax-error, no-member, undefined-variable
CRASHES = ("F0002", "F0010")  # pylint itself failed on the file, so the function does not pass
# By the rules of the packages, pylint's messages on the next lines after a function also count
# against the function: the next BEYOND lines in package-2024, only the next line in package-2023.
BEYOND = 2
CHECK_VERSION = 3  # increase it whenever the same question would get different messages
# modules of Python's own library that most files import, directly or through other modules
COMMON = """
    _collections_abc _py_abc abc collections contextlib dataclasses enum functools threading types
    typing
""".split()
Message = list  # one finding: pylint's id, the 1-based line in the edited file, and its text


def relevant_messages(
    messages: Sequence[Message], inserted: Inserted, rules: Rules = PAPER_RULES
) -> list[Message]:
    """Return the messages that count against the inserted function. ``messages`` are pylint's
    messages about the edited file. The function passes if none counts.

    A message counts if it is one of CHECKS and is on a line of the function. By the packages'
    rules, it also counts on the next one or two lines (BEYOND). With the rule ``every_error``, the
    message may be of any kind. A crash of pylint always counts. By the paper's rules, a syntax
    error counts anywhere in the file, because pylint may report it on a line after the function
    (for ``def f(x):`` before blank lines, say). The function must be the cause, because the file
    with the original function can be parsed.
    """
    anywhere = CRASHES if rules.is_package else ("E0001", *CRASHES)
    beyond = (BEYOND - rules.is_package_2023) * rules.is_package
    lines = range(inserted.line, inserted.end_line + 1 + beyond)
    return [
        message
        for message in messages
        if message[0] in anywhere
        or ((message[0] in CHECKS or rules.every_error) and message[1] in lines)
    ]


def messages_of(
    root: Path,
    file: str,
    text: str,
    lines: tuple[int, int],
    digest: str = "",
    every: bool = False,
) -> list[Message]:
    """Return pylint's messages about ``text`` as the content of ``file``, a path relative to
    ``root``. No file is written.

    ``lines`` are the first and last line of a function; the bodies of other functions are not
    checked, which is faster. If ``every`` is True, pylint looks for all errors that it knows, as in
    package-2023, and not only for CHECKS. A worker process serves only one file with one ``digest``
    of the repository, so check all texts of one file before those of the next. Raises WorkerLost if
    pylint takes too long or crashes.
    """
    within = f"{root / file} {digest}"
    return ask_worker(findings, root, file, text, lines, every, within=within)


def source_roots(root: Path, file: str) -> list[str]:
    """Return the folders in which pylint must be told to search for the modules that ``file``
    imports from its repository. These are the repository's root and its folder ``src``, if they
    exist. The list is empty if pylint already searches one of them, or if the root is a package.

    pylint looks for ``__init__.py`` to find where a package begins, but a namespace package has no
    such file. Without these folders, pylint would not find the modules of a namespace package, and
    a wrong name from such a module would pass.
    """
    found = Path(discover_package_path(str(root / file), []))
    places = [root.resolve(), root.resolve() / "src"]
    if found in places or (root / "__init__.py").exists():
        return []
    return [str(place) for place in places if place.is_dir()]


def check_version(root: Path, file: str) -> int | str:
    """Return the version of the check of ``file``, for the keys of judgements: CHECK_VERSION, with
    " with source roots" after it if the file has ``source_roots``.
    """
    return f"{CHECK_VERSION} with source roots" if source_roots(root, file) else CHECK_VERSION


class Linter(PyLinter):
    """A pylint that resolves the imports of the judged code in the pinned sources, not among the
    installed packages. pylint itself and its plugins are imported from where they are installed.
    """

    def load_default_plugins(self) -> None:
        super().load_default_plugins()
        python_sources.restrict()


class WarmLinter(Linter):
    """A pylint that checks different contents of one file. For the file at ``path``, pylint reads
    ``text`` instead of the content on disk. Only functions that overlap the lines from ``lines[0]``
    to ``lines[1]`` are checked.
    """

    def __init__(self):
        super().__init__()
        # the syntax trees are kept anyway, and searching them for garbage took half of the time
        gc.disable()
        self.path = ""
        self.text = ""
        self.lines = (0, 0)
        self.load_default_plugins()
        self.disable("all")
        for check in CHECKS + CRASHES:
            self.enable(check)
        self.set_reporter(CollectingReporter())

    def get_ast(self, filepath: str, modname: str, data: str | None = None):
        ours = os.path.abspath(filepath) == self.path
        return super().get_ast(filepath, modname, self.text if ours else data)

    def check_astroid_module(
        self, ast_node: Module, walker: ASTWalker, rawcheckers: list, tokencheckers: list
    ) -> bool | None:
        first, last = self.lines

        def walk(node: Any) -> None:
            apart = isinstance(node, FunctionDef) and (
                node.fromlineno > last or node.end_lineno < first
            )
            if not apart:
                ASTWalker.walk(walker, node)

        with patch.object(walker, "walk", walk):
            return super().check_astroid_module(ast_node, walker, rawcheckers, tokencheckers)

    def warm_up(self, root: Path, file: str, *_: object) -> None:
        """Read the modules that the original ``file`` imports, at its top or inside functions, so
        that astroid has them in its cache. A second call does nothing.

        This call must not change the result of a check. It therefore drops what astroid has
        inferred. If one of the modules imports ``file``, the call also ignores the attributes that
        ``file`` sets on objects of other modules. Errors are ignored, because the check itself will
        report them.
        """
        if self.path:
            return
        os.chdir(root)
        self.path = os.path.abspath(file)
        sys.path += source_roots(root, file)

        def assign(builder: AstroidBuilder, node) -> None:
            if node.root().file != self.path:
                original(builder, node)

        original = AstroidBuilder.delayed_assattr
        folder = [discover_package_path(file, [])]
        imports = augmented_sys_path(folder)
        with imports, patch.object(AstroidBuilder, "delayed_assattr", assign), suppress(Exception):
            for item in self._iterate_file_descrs([file], extra_packages_paths=folder):
                builder = AstroidBuilder(astroid.MANAGER)
                source = open_source_file(self.path)[2]
                tree, _ = builder._data_build(source, item.name, self.path)
                for node in tree.nodes_of_class((Import, ImportFrom)):
                    single = isinstance(node, ImportFrom)
                    for name in [node.modname] if single else dict(node.names):
                        with suppress(Exception):
                            node.do_import_module(name)
        _invalidate_cache()
        clear_inference_tip_cache()
        LookupMixIn.lookup.cache_clear()
        ClassDef._metaclass_lookup_attribute.cache_clear()

    def findings(
        self, file: str, text: str, lines: tuple[int, int], every: bool = False
    ) -> list[Message]:
        """Return pylint's messages about ``file`` with ``text`` as its content. Call this method
        only once in a process, because it changes pylint's settings and astroid's cache.
        """
        self.text = text
        self.lines = lines
        for kind in "EF" * every:
            self.enable(kind)
        cache = astroid.MANAGER.astroid_cache
        # the check must not find the syntax trees of the file's original content
        for name in [name for name, module in cache.items() if module.file == self.path]:
            del cache[name]
        self.check([file])
        return [[message.msg_id, message.line, message.msg] for message in self.reporter.messages]


linter = functools.cache(WarmLinter)  # always returns the one linter of this process


def findings(_: Path, *question: Any) -> list[Message]:
    """Return what ``WarmLinter.findings`` returns. This function runs in a forked copy of a worker
    that has called ``warm_up``.
    """
    return linter().findings(*question)


def control(root: Path, file: str) -> list[Message]:
    """Check an empty file. If even this ends the process, the machine is at fault and not the
    judged code (``analysers.ask_worker``).
    """
    return findings(root, file, "", (1, 1))


def parse_common_modules() -> None:
    """Parse the modules COMMON once for all workers. When a worker reads one of these modules, it
    uses this syntax tree instead of parsing the module again.
    """
    parse = AstroidBuilder(astroid.MANAGER)._data_build  # this also reads the built-in names
    trees = {}
    for name in COMMON:
        place = str(file_info_from_modpath([name]).location)
        module = open_source_file(place)[2], name, place
        trees[module] = parse(*module)
    # each tree is given away only once, because astroid changes it
    AstroidBuilder._data_build = lambda _, *module: trees.pop(module, None) or parse(*module)


def start() -> None:
    """Run the parent process of the workers that ``messages_of`` uses."""
    warm_up = linter().warm_up
    parse_common_modules()
    serve(ANALYSER, warm_up)
