"""Success rate: does a generated function, in its file, pass pylint's check for dependency errors?

Paper, Section IV-C: syntax-error (E0001), no-member (E1101) and undefined-variable (E0602) fail. The working directory
is the repository's root; a repository's own pylint configuration is not consulted, its inline ``# pylint:`` comments
are. ``variant="package"`` counts only messages between the first and the last inserted line. A syntax error is often
reported behind them (``def f(x):`` before blank lines), so by default one anywhere in the file fails: the file
parsed with the reference.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lookuplab.scoring.rates import Rate, rate
from lookuplab.toolgen.metrics.insertion import Inserted
from lookuplab.toolgen.metrics.similarity import check_variant
from lookuplab.toolgen.metrics.worker import PATIENCE, Worker, WorkerLost

SYNTAX_ERROR, NO_MEMBER, UNDEFINED = "E0001", "E1101", "E0602"
CHECKS = (SYNTAX_ERROR, NO_MEMBER, UNDEFINED)
_PYLINT = """import sys
from pylint.lint import PyLinter, Run
from lookuplab.python_sources import restrict
class Linter(PyLinter):
    def load_default_plugins(self):
        super().load_default_plugins()  # from where pylint is installed
        restrict()
Run.LinterClass = Linter
Run(sys.argv[1:])"""
LIMIT = 60.0  # seconds of computing for one file


@dataclass(frozen=True)
class Message:
    """One finding of pylint: its id, the 1-based line in the edited file, and its words."""

    id: str
    line: int
    text: str


@dataclass(frozen=True)
class Verdict:
    """``passed`` is None where pylint gave no answer; ``lost`` says why then (``timeout``, ``crash``)."""

    passed: bool | None
    messages: tuple[Message, ...] = ()
    lost: str = ""


def verdict(messages: Sequence[Message], inserted: Inserted, variant: str = "paper") -> Verdict:
    """What the messages of the edited file say about the inserted function."""
    everywhere = check_variant(variant) == "paper"
    against = tuple(found for found in messages if found.id in CHECKS and (
        inserted.line <= found.line <= inserted.end_line or (everywhere and found.id == SYNTAX_ERROR)))
    return Verdict(not against, against)


class SuccessTool:
    """A warm pylint; a context manager. The repositories' files are read and never written.

    One process serves all files whose imports begin in the same folder (the one that holds the outermost package), so
    that packages installed side by side share what was read. Ask for the files of one such folder after each other.
    """

    def __init__(self, limit: float = LIMIT):
        self.limit = limit
        self._folder: Path | None = None
        self._worker: Worker | None = None

    def messages(self, root: Path, file: str, text: str, lines: tuple[int, int] | None = None) -> tuple[Message, ...]:
        """pylint's findings for ``text`` as the content of ``file``, relative to ``root``; raises WorkerLost.

        ``lines``: the first and last line of a function, the other functions' findings are left out (and faster).
        """
        folder = imports_begin(root / file)
        if folder != self._folder:
            self.close()
            self._folder, self._worker = folder, Worker("lookuplab.toolgen.metrics.pylint_worker", folder)
        question = {"root": str(root), "file": file, "text": text, "limit": self.limit, "lines": lines}
        answer = self._worker.ask(question, 2 * PATIENCE * self.limit + 10)  # reading the original, then the check
        if "lost" in answer:
            raise WorkerLost(answer["lost"])
        return tuple(Message(*found) for found in answer["messages"])

    def judge(self, root: Path, file: str, inserted: Inserted, variant: str = "paper") -> Verdict:
        """The verdict about a function inserted into ``file``, relative to ``root``, the repository's folder."""
        try:
            lines = (inserted.line, inserted.end_line)
            return verdict(self.messages(root, file, inserted.text, lines), inserted, variant)
        except WorkerLost as lost:
            return Verdict(None, lost=lost.reason)

    def close(self) -> None:
        """End the process; harmless when there is none."""
        if self._worker is not None:
            self._worker.close()
        self._folder = self._worker = None

    def __enter__(self) -> "SuccessTool":
        return self

    def __exit__(self, *_) -> None:
        self.close()


def imports_begin(path: Path) -> Path:
    """The folder that pylint puts in front of the import path for a file: the first one above that is no package."""
    folder = path.resolve().parent
    while (folder / "__init__.py").exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def fresh_messages(root: Path, file: str) -> tuple[Message, ...]:
    """The literal reading: one pylint process for one file, which must hold the generated function on the disk."""
    command = [sys.executable, "-P", "-c", _PYLINT, "--rcfile=", "--disable=all", f"--enable={','.join(CHECKS)}",
               "--score=n", "--msg-template={msg_id}\t{line}\t{msg}", file]
    plain = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "PY_COLORS")}
    done = subprocess.run(command, cwd=root, env=plain, capture_output=True, text=True, check=False)
    rows = (line.split("\t", 2) for line in done.stdout.splitlines())
    return tuple(Message(row[0], int(row[1]), row[2]) for row in rows if len(row) == 3)


@dataclass(frozen=True)
class Success:
    """Share of passed functions, 0 to 1, over those with an answer, clustered by repository; the others are counted.

    ``failures`` counts the functions that have a message of each id.
    """

    rate: Rate
    failures: dict[str, int]
    lost: dict[str, int]


def success(verdicts: Sequence[Verdict], repositories: Sequence[str]) -> Success:
    """One repository name for each verdict."""
    known = [(found.passed, name) for found, name in zip(verdicts, repositories, strict=True) if not found.lost]
    return Success(
        rate([passed for passed, _ in known], [name for _, name in known]),
        {check: sum(any(message.id == check for message in found.messages) for found in verdicts) for check in CHECKS},
        {reason: sum(found.lost == reason for found in verdicts) for reason in ("timeout", "crash")})
