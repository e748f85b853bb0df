"""pylint for one repository: loaded once, the repository's modules read once, each file checked in a forked copy.

The copy makes a check as independent as a fresh process: what an edited file leaves behind in astroid's caches ends
with it, and a check that hangs or crashes takes nothing along. In the copy, the edited file's original is forgotten:
its module, the attributes that it gave to classes of other modules, and everything inferred so far.

Where only one function's lines are asked for, the other functions of the file are read but not walked through: what
pylint says about a function does not depend on the bodies that it has visited before, only on what they define.

One difference to a fresh process remains: modules read for an earlier file stay read, and if one of them sets an
attribute on a class from outside, that attribute exists for a later file that does not import it.
"""

import functools
import json
import os
import resource
import selectors
import signal

import astroid
from astroid.context import _invalidate_cache
from astroid.inference_tip import clear_inference_tip_cache
from astroid.nodes._base_nodes import LookupMixIn
from pylint.lint import PyLinter
from pylint.reporters import CollectingReporter
from pylint.utils import ASTWalker

from lookuplab.toolgen.metrics.worker import serve

CHECKS = ("E0001", "E1101", "E0602")  # syntax-error, no-member, undefined-variable


class BufferLinter(PyLinter):
    """pylint that reads some files from memory; a repository's own configuration is not consulted."""

    def __init__(self):
        super().__init__()
        self.buffers: dict[str, str] = {}
        self.lines: tuple[int, int] | None = None  # only functions that share a line with these are walked through
        self.load_default_plugins()
        self.disable("all")
        for check in CHECKS:
            self.enable(check)
        self.set_reporter(CollectingReporter())

    def get_ast(self, filepath: str, modname: str, data: str | None = None):
        return super().get_ast(filepath, modname, self.buffers.get(os.path.abspath(filepath), data))

    def check_astroid_module(self, ast_node, walker: ASTWalker, rawcheckers, tokencheckers) -> bool | None:
        if self.lines is not None:
            walker.walk = functools.partial(_walk, walker, *self.lines)
        return super().check_astroid_module(ast_node, walker, rawcheckers, tokencheckers)

    def findings(self, file: str) -> list[tuple[str, int, str]]:
        """(message id, 1-based line, text) for one file."""
        self.reporter.messages.clear()
        self.check([file])
        return [(found.msg_id, found.line, found.msg) for found in self.reporter.messages if found.msg_id != "F0002"]


def _walk(walker: ASTWalker, first: int, last: int, node) -> None:
    """``ASTWalker.walk`` around the functions outside of the lines."""
    if not (isinstance(node, astroid.nodes.FunctionDef) and (node.end_lineno < first or node.fromlineno > last)):
        ASTWalker.walk(walker, node)


class Repository:
    """The process's state: which functions have been read, and which classes each read module has."""

    def __init__(self):
        self.linter = BufferLinter()
        self.read: set[tuple] = set()
        self.classes: dict[int, list] = {}

    def warm(self, file: str, lines: list[int] | None) -> None:
        """Check the original function, so that what it needs is read; nothing depends on what is found."""
        place = (file, lines and lines[0])
        if place in self.read:
            return
        self.read.add(place)
        self.linter.lines = lines and (lines[0], lines[0])
        try:
            self.linter.findings(file)
        except Exception:  # pylint's own crash: the check itself will meet and report it
            pass
        for module in astroid.MANAGER.astroid_cache.values():
            if id(module) not in self.classes:  # modules stay in the cache, so an id stays theirs
                self.classes[id(module)] = list(module.nodes_of_class(astroid.nodes.ClassDef))

    def forget(self, file: str) -> None:
        """Undo what reading ``file`` did; to be called in the copy."""
        path, cache = os.path.abspath(file), astroid.MANAGER.astroid_cache
        gone = [module for module in cache.values() if module.file and os.path.abspath(module.file) == path]
        for name in [name for name, module in cache.items() if module in gone]:
            del cache[name]
        for node in (node for classes in self.classes.values() for node in classes):
            for name in [name for name, uses in node.instance_attrs.items() if any(use.root() in gone for use in uses)]:
                node.instance_attrs[name] = [use for use in node.instance_attrs[name] if use.root() not in gone]
                if not node.instance_attrs[name]:
                    del node.instance_attrs[name]
        astroid.MANAGER._mod_file_cache.clear()
        clear_inference_tip_cache()
        _invalidate_cache()
        LookupMixIn.lookup.cache_clear()

    def answer(self, question: dict) -> dict:
        """{"messages": [...]} of ``file`` with ``text`` in it, or {"lost": "timeout" | "crash"}.

        ``lines``: first and last line of the function that matters, or None for the whole file; ``limit``: seconds.
        """
        self.warm(question["file"], question["lines"])
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            self._check(question, writing)
        os.close(writing)
        try:
            return self._wait(reading, question["limit"])
        finally:
            os.close(reading)
            os.kill(child, signal.SIGKILL)  # harmless for one that has ended and is not yet waited for
            os.waitpid(child, 0)

    def _check(self, question: dict, writing: int) -> None:
        """The copy's work; it never returns."""
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (int(question["limit"]) + 1,) * 2)
            self.forget(question["file"])
            self.linter.lines = question["lines"]
            self.linter.buffers = {os.path.abspath(question["file"]): question["text"]}
            with os.fdopen(writing, "w") as out:
                json.dump({"messages": self.linter.findings(question["file"])}, out)
        finally:
            os._exit(0)

    @staticmethod
    def _wait(reading: int, limit: float) -> dict:
        found = b""
        with selectors.DefaultSelector() as selector:
            selector.register(reading, selectors.EVENT_READ)
            while selector.select(limit):
                if not (part := os.read(reading, 1 << 16)):
                    return json.loads(found) if found else {"lost": "crash"}
                found += part
        return {"lost": "timeout"}


if __name__ == "__main__":
    serve(Repository().answer)
