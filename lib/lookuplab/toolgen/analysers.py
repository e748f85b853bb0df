"""Jedi and pylint in separate processes, and the store of their answers.

An analyser may hang or crash on other people's code; the measurement must go on. Each kind of
analyser is loaded once, in a parent process (``serve``), which forks a worker when none is free.
Workers live as long as this process does, so that later questions benefit from what they have
already read. Answers are kept next to the completion store, so a second run asks nothing.
"""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from pathlib import Path
from typing import Any, TypeVar

from lookuplab import python_sources
from lookuplab.errors import UserError
from lookuplab.models.store import AnswerStore, canonical, digest, elsewhere
from lookuplab.paths import folder_hash
from lookuplab.toolgen.functions import python_files
from lookuplab.work.progress import Progress
from lookuplab.work.spread import Workers, check_seen, spread

T = TypeVar("T")
JUDGING_VERSION = 4  # increase it whenever the same question would get a different answer
# Seconds of a worker's own computing for one question, a thousand times the usual: a busy machine
# gives the same answers as an idle one.
LIMIT = 60.0
PATIENCE = 5  # ratio of clock to computing time


class WorkerLost(Exception):
    """No answer in two attempts: the process "timed out" or "crashed", or the analyser had an
    error.
    """


# What a worker belongs to: its parent process, its module, the sources that it reads, and the scope
# that it is reserved for.
Home = tuple[int, str, str, str]
_free: list[tuple[Home, Connection]] = []
_parents: dict[tuple, tuple[subprocess.Popen, Connection]] = {}
_lock = threading.Lock()


def ask_worker(function: Callable[..., T], *question: object, within: str = "") -> T:
    """``function(*question)`` in a worker: a process of the function's module, whose ``start``
    calls ``serve``.

    A free worker that was asked ``within`` a different scope is replaced by a new one. A question
    that takes longer than LIMIT ends its worker. A lost question is asked once more, in a new
    process if an error came from this one, so that no error depends on earlier questions; raises
    WorkerLost if it is lost again.
    """
    home = os.getpid(), function.__module__, str(python_sources.folder()), within
    lost = ""
    for _ in range(2):
        began = time.monotonic()
        try:
            with _lock:
                channel = _taken(home, lost.startswith("error"))
            channel.send((LIMIT, function, question))
            lost, answer = channel.recv()
            if not lost:
                _free.append((home, channel))
                return answer
            channel.close()  # the process ends
        except (EOFError, OSError):
            lost = "timed out" if time.monotonic() - began >= LIMIT else "crashed"
    raise WorkerLost(lost)


def _taken(home: Home, is_new: bool) -> Connection:
    """The channel of a free worker, or of a new one."""
    if not is_new and (kin := [one for one in _free if one[0][:2] == home[:2]]):
        best = max(kin, key=lambda one: one[0] == home)
        _free.remove(best)
        if best[0] == home:
            return best[1]
        best[1].close()  # the process ends
    known = _parents.get(home[:3])
    if known is None or known[0].poll() is not None:
        control, theirs = Pipe()
        # -P: a repository's own types.py must not replace the library's
        command = [sys.executable, "-P", "-c", f"from {home[1]} import start; start()"]
        always = os.environ | {"PYTHONHASHSEED": "0"}  # gives sets of names a fixed order
        with theirs:  # the parent ends with this process
            process = subprocess.Popen(
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=always,
            )
        _parents[home[:3]] = known = process, control
    ours, theirs = Pipe()
    with theirs:
        send_handle(known[1], theirs.fileno(), 0)
    return ours


def serve(analyser: str, warm: Callable[..., object] | None = None) -> None:
    """The parent's side: for each channel that arrives on standard input, fork a worker, which
    answers the questions on its channel.

    With ``warm``, which gets the same arguments, each question is answered by a copy of the worker:
    what it changes ends with the copy. The signals of the two clocks end a process. The analyser's
    output is discarded.
    """
    gc.freeze()
    # with Python's 700, up to a third of the time goes into searching the trees that are kept
    gc.set_threshold(100_000, 20)
    with Connection(0) as control:
        try:
            while True:
                handle = recv_handle(control)
                if not os.fork():
                    break
                os.close(handle)
                with suppress(ChildProcessError):
                    while os.waitpid(-1, os.WNOHANG)[0]:  # a worker has ended
                        pass
        except EOFError:
            return
    with Connection(handle) as channel, suppress(EOFError):
        is_copy = False
        while not is_copy:
            limit, function, question = channel.recv()
            if warm:
                signal.setitimer(signal.ITIMER_REAL, 2 * PATIENCE * limit)  # with the copy's time
                warm(*question)
                if copy := os.fork():
                    if os.waitpid(copy, 0)[1]:
                        break  # nobody has answered
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    continue
                is_copy = True
            signal.setitimer(signal.ITIMER_REAL, PATIENCE * limit)
            signal.setitimer(signal.ITIMER_PROF, limit)
            try:
                answer = "", function(*question)
            except Exception as error:  # whatever an analyser trips over on other people's code
                answer = f"error in {analyser}: {type(error).__name__}", None
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
            channel.send(answer)
    # Python's own end would visit, and so copy, every tree that this process shares with its parent
    os._exit(0)


def answer_all(
    store: AnswerStore,
    questions: Mapping[str, tuple],
    answer: Callable[..., tuple[object, str]],
    strict: bool,
    workers: int | None = None,
    cluster: Workers | None = None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """The answers by key, stored or new, and why some were lost, by key.

    A question is (repository, file, kind, ...). ``answer`` takes one and returns the answer and the
    reason why it was lost, "" if it was not. Questions of one kind about one file are asked one
    after the other, because each benefits from what was read for the last; this is done by
    ``workers`` at once, as in ``spread``, or by those of ``cluster``. The processes of a launch
    share the files. If the run is killed, each worker loses the answers about one file at most.
    With ``strict``, a lost answer raises UserError: a busy machine must not change a number.
    """
    with store:
        found, missing = store.lookup(questions)
        files = defaultdict(list)
        for key in missing:
            files[tuple(map(str, questions[key][:3]))].append((key, questions[key]))
        lost: dict[str, str] = {}
        tasks = {tuple(key for key, _ in files[at]): files[at] for at in sorted(files)}
        left = store.unmade(tasks)
        bar = Progress(store.name, len(missing), "questions", len(found))
        with bar, closing(spread(partial(_of_file, answer), left, workers, cluster)) as asked:
            for _, answers in asked:
                for key, made, reason in answers:
                    if not reason:
                        store.add({key: made})
                    else:
                        lost[key] = reason
                    found.setdefault(key, made)
                bar.update(len(answers))
        found = store.get(missing) | found  # others', too; in an audit, the record's are used
    if strict and lost:
        reasons = ", ".join(sorted(set(lost.values())))
        raise UserError(
            f"{len(lost)} questions to pylint or Jedi were lost ({reasons}); the others "
            "are kept: run it again, with less other work on this machine"
        )
    return found, lost


def _of_file(answer: Callable, questions: list[tuple[str, tuple]]) -> list[tuple[str, object, str]]:
    check_seen(questions[0][1][0])  # the file's repository
    return [(key, *answer(*question)) for key, question in questions]


class JudgementStore(AnswerStore):
    """Key -> an analyser's answer, in ``judgements.sqlite``."""

    name = "judgements"


def judgement_key(kind: str, at: str, root: str, **question: object) -> str:
    """The key of a question of one ``kind`` about one place, ``kind place digest``: a reader sees
    what it is about.

    It covers all Python files of the repository (``root`` is their digest), the versions of the
    analysers, and the sources and the Python that they read.
    """
    read = python_sources.identity("jedi", "parso", "pylint", "astroid")
    fields = {"repository": root, "version": JUDGING_VERSION, **question, "read": read}
    return f"{kind} {at} {digest(canonical(fields))}{elsewhere()}"


def repository_digest(root: Path) -> str:
    """The names and contents of all Python files below ``root``."""
    return folder_hash(root, python_files(root), "digests")


def imports_begin(folder: Path) -> Path:
    """The folder from which a folder's files are imported: the first one, going up, that is not a
    package.
    """
    return next(at for at in (folder, *folder.parents) if not (at / "__init__.py").is_file())


def within_imports(path: Path) -> str:
    """A file's path below ``imports_begin``, which does not depend on where the repository is."""
    path = path.resolve()
    return path.relative_to(imports_begin(path.parent)).as_posix()
