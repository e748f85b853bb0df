"""Runs pylint, in worker processes, on files into which a generated function was put. The success
rate is the share of generated functions in which pylint finds no dependency errors.

By the paper (Section IV-C), a function fails if pylint reports syntax-error (E0001), no-member
(E1101) or undefined-variable (E0602); ``evaluation.relevant_messages`` decides which messages
count. The working directory is the repository's root. A repository's own pylint configuration is
ignored. The repository's inline ``# pylint:`` comments are obeyed; such comments in the generated
function are removed first (``source.insert``).

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
from lookuplab.toolgen.analysers import serve

ANALYSER = "pylint"
CHECKS = ("E0001", "E1101", "E0602")  # syntax-error, no-member, undefined-variable
CRASHES = ("F0002", "F0010")  # pylint itself failed on the file, so the function does not pass
CHECK_VERSION = 3  # increase it whenever the same question would get different messages
# modules of Python's own library that most files import, directly or through other modules
COMMON = """
    _collections_abc _py_abc abc collections contextlib dataclasses enum functools threading types
    typing
""".split()
Message = list  # one finding: pylint's id, the 1-based line in the edited file, and its text


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

    def warm_up(self, root: Path, file: str, roots: Sequence[str] = (), *_: object) -> None:
        """Read the modules that the original ``file`` imports, at its top or inside functions, so
        that astroid has them in its cache. ``roots`` are the ``evaluation.source_roots`` of the
        file. A second call does nothing.

        This call must not change the result of a check. It therefore drops what astroid has
        inferred. If one of the modules imports ``file``, the call also ignores the attributes that
        ``file`` sets on objects of other modules. Errors are ignored, because the check itself will
        report them.
        """
        if self.path:
            return
        os.chdir(root)
        self.path = os.path.abspath(file)
        sys.path += roots

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


def findings(_root: Path, file: str, _roots: Sequence[str], *question: Any) -> list[Message]:
    """Return what ``WarmLinter.findings`` returns. This function runs in a forked copy of a worker
    that has called ``warm_up`` with the same arguments.
    """
    return linter().findings(file, *question)


def control(root: Path, file: str) -> list[Message]:
    """Check an empty file. If even this ends the process, the machine is at fault and not the
    judged code (``analysers.ask_worker``).
    """
    return findings(root, file, [], "", (1, 1))


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
    """Run the parent process of the workers that ``evaluation.messages_of`` uses."""
    warm_up = linter().warm_up
    parse_common_modules()
    serve(ANALYSER, warm_up)
