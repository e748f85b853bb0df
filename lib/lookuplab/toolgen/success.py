"""Success rate: whether a generated function, in its file, passes pylint's check for dependency
errors.

Paper, Section IV-C: syntax-error (E0001), no-member (E1101) and undefined-variable (E0602) are
failures. The working directory is the repository's root. A repository's own pylint configuration is
ignored. Its inline ``# pylint:`` comments are obeyed, except those of the generated function
(``insertion.insert``).

Each process here is a warm pylint for one file: pylint is loaded once, the modules that the file
imports are read once, and each text of the file is checked in a forked copy. A check is therefore
as independent of other texts and files as in a fresh process. Changes of astroid's caches end with
the copy, and a copy that hangs or crashes affects no other. In the copy, the file's original
content is forgotten; the attributes that it gives to other modules' objects (``imported.Class.late
= 1``) are not read.

If only the lines of one function matter, the file's other functions are read but not visited.
pylint's messages about a function depend only on the definitions of the others, not on whether it
has visited their bodies.
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
from astroid.nodes import ClassDef, FunctionDef, Import, ImportFrom, Module
from astroid.nodes._base_nodes import LookupMixIn
from pylint.lint import PyLinter, augmented_sys_path, discover_package_path
from pylint.reporters import CollectingReporter
from pylint.utils import ASTWalker

from lookuplab import python_sources
from lookuplab.toolgen.analysers import ask_worker, serve
from lookuplab.toolgen.insertion import Inserted
from lookuplab.toolgen.rules import PAPER_RULES, Rules

ANALYSER = "pylint"
CHECKS = ("E0001", "E1101", "E0602")  # syntax-error, no-member, undefined-variable
CRASHES = ("F0002", "F0010")  # pylint itself failed on the file, which is never a pass
# lines after a function that count as its own, in package-2024; one less in package-2023
BEYOND = 2
CHECK_VERSION = 3  # increase it whenever the same question would get different messages
Message = list  # one finding: pylint's id, the 1-based line in the edited file, and its text


def verdict(
    messages: Sequence[Message], inserted: Inserted, rules: Rules = PAPER_RULES
) -> list[Message]:
    """Return the edited file's messages that count against the inserted function; it passes if
    there are none.

    The packages count messages from the first inserted line to one or two lines after the last;
    with ``every_error``, messages of every requested kind. A syntax error may be reported further
    down (``def f(x):`` before blank lines), so by default a syntax error anywhere in the file is a
    failure: with the reference, the file did parse. A crash of pylint is always a failure.
    """
    anywhere = CRASHES if rules.is_package else ("E0001", *CRASHES)
    beyond = (BEYOND - rules.is_first_package) * rules.is_package
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
    """Return pylint's findings for ``text`` as the content of ``file``, relative to ``root``;
    nothing is written.

    ``lines``: the first and last line of a function; findings in other functions are left out,
    which is faster. ``every``: request all of pylint's errors, as package-2023 does, not only
    CHECKS. A process serves one file as long as the repository's ``digest`` is the same, so all
    texts of a file should be checked one after the other. Raises WorkerLost if pylint takes too
    long or crashes.
    """
    within = f"{root / file} {digest}"
    return ask_worker(findings, root, file, text, lines, every, within=within)


def source_roots(root: Path, file: str) -> list[str]:
    """Return further folders from which ``file`` may import modules of its repository: the
    repository's root and its ``src``. pylint finds one folder itself.

    pylint looks for ``__init__.py`` only. In a namespace package it therefore does not see the
    repository's own modules, and a wrong name in them passes.
    """
    found = Path(discover_package_path(str(root / file), []))
    places = [root.resolve(), root.resolve() / "src"]
    if found in places or (root / "__init__.py").exists():
        return []
    return [str(place) for place in places if place.is_dir()]


def check_version(root: Path, file: str) -> int | str:
    """Return the part of a judgement's key that says how ``file`` is checked."""
    return f"{CHECK_VERSION} with source roots" if source_roots(root, file) else CHECK_VERSION


class Linter(PyLinter):
    """pylint, imported from its installation, but reading only the pinned sources."""

    def load_default_plugins(self) -> None:
        super().load_default_plugins()
        python_sources.restrict()


class WarmLinter(Linter):
    """The pylint of one file. It reads the file at ``path`` from memory, and visits only the
    functions that overlap ``lines``, (first, last).
    """

    def __init__(self):
        super().__init__()
        gc.disable()  # syntax trees stay; searching them for garbage took half of the time
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
        """Read, once, the modules that the original ``file`` imports, also within its functions,
        without any other effect.

        Inferences are dropped. Errors are ignored, because the check itself will meet and report
        them. If one of these modules imports the file, the file adds no attributes to their
        objects.
        """
        if self.path:
            return
        os.chdir(root)
        self.path = os.path.abspath(file)
        sys.path += source_roots(root, file)

        def assign(builder: AstroidBuilder, node) -> None:
            if node.root().file != self.path:
                astroids(builder, node)

        astroids = AstroidBuilder.delayed_assattr
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
        """Return pylint's messages for ``file`` with ``text`` as its content. This changes the
        process.
        """
        self.text = text
        self.lines = lines
        for kind in "EF" * every:
            self.enable(kind)
        cache = astroid.MANAGER.astroid_cache
        for name in [name for name, module in cache.items() if module.file == self.path]:
            del cache[name]
        self.check([file])
        return [[message.msg_id, message.line, message.msg] for message in self.reporter.messages]


linter = functools.cache(WarmLinter)  # one per process


def findings(_: Path, *question: Any) -> list[Message]:
    """Return the linter's findings; runs in a copy of the warm process."""
    return linter().findings(*question)


def control(root: Path, file: str) -> list[Message]:
    """Ask a question that must not end the process (``analysers.ask_worker``)."""
    return findings(root, file, "", (1, 1))


def start() -> None:
    """Run the process that ``messages_of`` uses."""
    serve(ANALYSER, linter().warm_up)
