"""A warm pylint: loaded once, the modules that files import read once, each file checked in a forked copy.

The copy makes a check as independent as a fresh process: what an edited file leaves behind in astroid's caches ends
with it, and a check that hangs or crashes takes nothing along. In the copy, the edited file's original is forgotten:
its module and the attributes that it gave to classes of other modules. What a copy had to read, it names, and the
process reads it before the next check; what was inferred, no check hands on to another.

Where only one function's lines are asked for, the other functions of the file are read but not walked through: what
pylint says about a function does not depend on the bodies that it has visited before, only on what they define.

One difference to a fresh process remains: modules read for an earlier file stay read, and if one of them sets an
attribute on a class from outside, that attribute exists for a later file that does not import it.
"""

import ast
import functools
import gc
import json
import os
import resource
import selectors
import signal

import astroid
from astroid.builder import AstroidBuilder
from astroid.context import _invalidate_cache
from astroid.inference_tip import clear_inference_tip_cache
from astroid.nodes import ClassDef
from astroid.nodes._base_nodes import LookupMixIn
from pylint.lint import PyLinter, augmented_sys_path, discover_package_path
from pylint.reporters import CollectingReporter
from pylint.utils import ASTWalker

from lookuplab import python_sources
from lookuplab.toolgen.metrics.worker import PATIENCE, serve

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
        self._needed = super().prepare_checkers()

    def prepare_checkers(self) -> list:
        return self._needed

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


class Gifts:
    """Which attributes a module sets on objects of other modules (``imported.Class.late = 1``), noted as it is read."""

    def __init__(self):
        self.of_file: dict[str, list[tuple]] = {}
        self._read = AstroidBuilder.delayed_assattr
        AstroidBuilder.delayed_assattr = lambda builder, node: self._note(builder, node)

    def _note(self, builder: AstroidBuilder, node) -> None:
        self._read(builder, node)
        root = node.root()
        try:
            for owner in node.expr.infer():
                for one in (owner, getattr(owner, "_proxied", None)):
                    for table in (getattr(one, "instance_attrs", None), getattr(one, "locals", None)):
                        if table and node in table.get(node.attrname, ()) and one.root() is not root:
                            self.of_file.setdefault(root.file, []).append((table, node.attrname, node))
        except astroid.InferenceError:
            pass

    def take_back(self, path: str) -> None:
        """Remove what the module of the file ``path`` gave away."""
        for table, name, node in self.of_file.pop(path, ()):
            rest = [use for use in table.get(name, ()) if use is not node]
            if rest:
                table[name] = rest
            else:
                table.pop(name, None)


class Process:
    """The process's state: the files met so far, and the modules that the last copy had to read."""

    def __init__(self):
        gc.disable()  # syntax trees stay; looking through them for garbage took half of the time
        self.gifts, self.linter = Gifts(), BufferLinter()
        self.met: set[str] = set()
        self.wanted: list[tuple[str, str]] = []

    def answer(self, question: dict) -> dict:
        """{"messages": [...]} of ``file`` with ``text`` in it, or {"lost": "timeout" | "crash"}.

        ``root``: the working directory; ``lines``: first and last line of the function that matters, or None for the
        whole file; ``limit``: seconds of computing.
        """
        os.chdir(question["root"])
        if _parses(question["text"]):  # what does not parse is judged without any other file
            self.read(question["file"], question["lines"])
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            self._check(question, writing)
        os.close(writing)
        found = _wait(reading, PATIENCE * question["limit"])
        os.close(reading)
        os.kill(child, signal.SIGKILL)  # harmless for one that has ended and is not yet waited for
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
            return {"lost": "timeout"}
        self.wanted = found.pop("read", [])
        return found

    def read(self, file: str, lines: list[int] | None) -> None:
        """Read what the check is likely to need: what the last one missed, and for a new file what its original does.

        Nothing but reading comes of it: findings and inferences are dropped.
        """
        with augmented_sys_path([discover_package_path(file, [])]):
            for name, path in self.wanted:
                _attempt(astroid.MANAGER.ast_from_file if path else astroid.MANAGER.ast_from_module_name,
                         *((path, name) if path else (name,)))
        path = os.path.abspath(file)
        if path not in self.met:
            self.met.add(path)
            self.linter.lines = lines and (lines[0], lines[0])
            _attempt(self.linter.findings, file)
        elif not self.wanted:
            return
        self.wanted = []
        _invalidate_cache()
        clear_inference_tip_cache()
        LookupMixIn.lookup.cache_clear()
        ClassDef._metaclass_lookup_attribute.cache_clear()

    def _check(self, question: dict, writing: int) -> None:
        """The copy's work; it never returns."""
        try:
            soft = max(1, int(question["limit"]))
            resource.setrlimit(resource.RLIMIT_CPU, (soft, soft + 1))
            path, cache = os.path.abspath(question["file"]), astroid.MANAGER.astroid_cache
            for name in [name for name, module in cache.items() if module.file == path]:
                del cache[name]
            self.gifts.take_back(path)
            known = set(cache)
            self.linter.lines, self.linter.buffers = question["lines"], {path: question["text"]}
            messages = self.linter.findings(question["file"])
            read = [(name, module.file if (module.file or "").endswith(".py") else "") for name, module in cache.items()
                    if name and name not in known and module.file != path]
            with os.fdopen(writing, "w") as out:
                json.dump({"messages": messages, "read": read}, out)
        finally:
            os._exit(0)


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
        return True
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _attempt(work, *arguments) -> None:
    """Reading for later: what goes wrong here, the check itself will meet and report."""
    try:
        work(*arguments)
    except Exception:
        pass


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
    process = Process()
    python_sources.restrict()
    serve(process.answer)
