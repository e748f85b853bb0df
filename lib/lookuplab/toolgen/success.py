"""Success rate: does a generated function, in its file, pass pylint's check for dependency errors?

Paper, Section IV-C: syntax-error (E0001), no-member (E1101) and undefined-variable (E0602) fail. The working directory
is the repository's root; a repository's own pylint configuration is not consulted, its inline ``# pylint:`` comments
are.

The process here is a warm pylint: loaded once, the modules that files import read once, each file checked in a forked
copy. The copy makes a check as independent as a fresh process: what an edited file leaves behind in astroid's caches
ends with it, and a check that hangs or crashes takes nothing along. In the copy, the edited file's original is
forgotten: its module and the attributes that it gave to classes of other modules. What a copy had to read, it names, and
the process reads it before the next check; what was inferred, no check hands on to another.

Where only one function's lines are asked for, the other functions of the file are read but not walked through: what
pylint says about a function does not depend on the bodies that it has visited before, only on what they define.

One difference to a fresh process remains: modules read for an earlier file stay read, and if one of them sets an
attribute on a class from outside, that attribute exists for a later file that does not import it.
"""

import ast
import gc
import json
import os
import resource
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import astroid
from astroid.builder import AstroidBuilder
from astroid.context import _invalidate_cache
from astroid.inference_tip import clear_inference_tip_cache
from astroid.nodes import ClassDef, FunctionDef
from astroid.nodes._base_nodes import LookupMixIn
from pylint.lint import PyLinter, Run, augmented_sys_path, discover_package_path
from pylint.reporters import CollectingReporter
from pylint.utils import ASTWalker

from lookuplab import python_sources
from lookuplab.toolgen.analysers import PATIENCE, Worker, WorkerLost, imports_begin, serve
from lookuplab.toolgen.insertion import UNPARSABLE, Inserted

CHECKS = ("E0001", "E1101", "E0602")  # syntax-error, no-member, undefined-variable
MODULE = "lookuplab.toolgen.success"
FORK = get_context("fork")
Message = list  # one finding: pylint's id, the 1-based line in the edited file, and its words


def verdict(
    messages: Sequence[Message], inserted: Inserted, variant: str = "paper"
) -> list[Message]:
    """Those of the edited file's messages that are held against the inserted function; none: it passes.

    ``variant="package"`` counts only messages between the first and the last inserted line. A syntax error is often
    reported behind them (``def f(x):`` before blank lines), so by default one anywhere in the file fails: the file
    parsed with the reference.
    """
    lines = range(inserted.line, inserted.end_line + 1)
    anywhere = "E0001" if variant == "paper" else ""
    return [one for one in messages if one[0] in CHECKS and (one[1] in lines or one[0] == anywhere)]


class SuccessTool(Worker):
    """A warm pylint in a process of its own. The repositories' files are read and never written.

    One process serves all files whose imports begin in the same folder (the one that holds the outermost package), so
    that packages installed side by side share what was read. Ask for the files of one such folder after each other.
    """

    def __init__(self, limit: float = 60.0):
        super().__init__(MODULE, limit)
        self.folder: Path | None = None  # where the imports of the process begin

    def judge(
        self, root: Path, file: str, text: str, lines: tuple[int, int] | None = None
    ) -> list[Message]:
        """pylint's findings for ``text`` as the content of ``file``, relative to ``root``; raises WorkerLost.

        ``lines``: the first and last line of a function, the other functions' findings are left out (and faster).
        """
        if (folder := imports_begin((root / file).resolve().parent)) != self.folder:
            self.close()
            self.folder = folder
        question = {"root": str(root), "file": file, "text": text, "lines": lines}
        seconds = 2 * PATIENCE * self.limit + 10  # reading, then the check
        answer = self.ask(question | {"limit": self.limit}, seconds)
        if "lost" in answer:
            raise WorkerLost(answer["lost"])
        return answer["messages"]


def fresh_messages(root: Path, file: str) -> list[Message]:
    """The literal reading: one pylint process for one file, which must hold the generated function on the disk."""
    options = "--rcfile=", "--disable=all", f"--enable={','.join(CHECKS)}", "--output-format=json"
    command = [sys.executable, "-P", "-m", MODULE, *options, file]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    found = json.loads(done.stdout or "[]")
    return [[one["message-id"], one["line"], one["message"]] for one in found]


class Linter(PyLinter):
    """pylint that comes from where it is installed and reads the stated sources alone."""

    def load_default_plugins(self) -> None:
        super().load_default_plugins()
        python_sources.restrict()


class BufferLinter(Linter):
    """pylint that reads the file at ``path`` from memory; with ``lines`` it walks only through the functions that share
    a line with these."""

    def __init__(self):
        super().__init__()
        self.path, self.text, self.lines = "", "", None
        self.load_default_plugins()
        self.disable("all")
        for check in CHECKS:
            self.enable(check)
        self.set_reporter(CollectingReporter())

    def get_ast(self, filepath: str, modname: str, data: str | None = None):
        ours = os.path.abspath(filepath) == self.path
        return super().get_ast(filepath, modname, self.text if ours else data)

    def check_astroid_module(self, ast_node, walker: ASTWalker, **checkers) -> bool | None:
        if self.lines is not None:
            first, last = self.lines

            def walk(node) -> None:
                outside = isinstance(node, FunctionDef) and (
                    node.end_lineno < first or node.fromlineno > last
                )
                if not outside:
                    ASTWalker.walk(walker, node)

            walker.walk = walk
        return super().check_astroid_module(ast_node, walker, **checkers)


class Process:
    """The process's state: what it has read, and the modules that the last copy had to read."""

    def __init__(self):
        gc.disable()  # syntax trees stay; looking through them for garbage took half of the time
        self.linter = BufferLinter()
        self.wanted: list[tuple[str, str]] = []
        # file -> attributes that it set on objects of other modules (``imported.Class.late = 1``)
        self.gifts: dict[str, list[tuple]] = defaultdict(list)
        read_assignment = AstroidBuilder.delayed_assattr

        def read_and_note(builder: AstroidBuilder, node) -> None:
            read_assignment(builder, node)
            root = node.root()
            with suppress(astroid.InferenceError):
                for owner in node.expr.infer():
                    for one in (owner, getattr(owner, "_proxied", None)):
                        for kind in ("instance_attrs", "locals"):
                            table = getattr(one, kind, None) or {}
                            if node in table.get(node.attrname, ()) and one.root() is not root:
                                self.gifts[root.file].append((table, node.attrname, node))

        AstroidBuilder.delayed_assattr = read_and_note

    def answer(self, question: dict) -> dict:
        """{"messages": [...]} of ``file`` with ``text`` in it, or {"lost": "timeout" | "crash"}.

        ``root``: the working directory; ``lines``: first and last line of the function that matters, or None for the
        whole file; ``limit``: seconds of computing.
        """
        os.chdir(question["root"])
        with suppress(*UNPARSABLE):
            ast.parse(question["text"])  # what does not parse is judged without any other file
            self.read(question["file"])
        receiving, sending = FORK.Pipe(duplex=False)
        copy = FORK.Process(target=self.check, args=(question, sending))
        copy.start()
        sending.close()
        answer = {"lost": "timeout"}
        if receiving.poll(PATIENCE * question["limit"]):
            try:
                answer = receiving.recv()
            except EOFError:
                answer = {"lost": "crash"}
        copy.kill()
        copy.join()
        receiving.close()
        if copy.exitcode == -signal.SIGXCPU:
            answer = {"lost": "timeout"}
        self.wanted = answer.pop("read", [])
        return answer

    def read(self, file: str) -> None:
        """Read what the last check had to. Nothing but reading comes of it: inferences are dropped, and what goes wrong,
        the check itself will meet and report."""
        with augmented_sys_path([discover_package_path(file, [])]):
            for name, source in self.wanted:
                with suppress(Exception):
                    if source:
                        astroid.MANAGER.ast_from_file(source, name)
                    else:
                        astroid.MANAGER.ast_from_module_name(name)
        if self.wanted:
            _invalidate_cache()
            clear_inference_tip_cache()
            LookupMixIn.lookup.cache_clear()
            ClassDef._metaclass_lookup_attribute.cache_clear()

    def check(self, question: dict, sending: Connection) -> None:
        """The copy's work."""
        soft = max(1, int(question["limit"]))
        resource.setrlimit(resource.RLIMIT_CPU, (soft, soft + 1))
        linter, cache, file = self.linter, astroid.MANAGER.astroid_cache, question["file"]
        linter.path, linter.text = os.path.abspath(file), question["text"]
        linter.lines = question["lines"]
        for name in [name for name, module in cache.items() if module.file == linter.path]:
            del cache[name]
        for table, name, node in self.gifts[linter.path]:
            table[name] = [use for use in table.get(name, ()) if use is not node]
            if not table[name]:
                del table[name]
        known = set(cache)
        linter.check([file])
        found = [[one.msg_id, one.line, one.msg] for one in linter.reporter.messages]
        read = [
            (name, module.file if (module.file or "").endswith(".py") else "")
            for name, module in cache.items()
            if name and name not in known and module.file != linter.path
        ]
        sending.send({"messages": [one for one in found if one[0] != "F0002"], "read": read})


if __name__ == "__main__":
    if len(sys.argv) == 1:
        serve(Process().answer)
    else:
        Run.LinterClass = Linter
        Run(sys.argv[1:])
