"""Runs Jedi and pylint (the analysers) in separate processes, and stores their answers.

An analyser may hang or crash on other people's code, and this must not stop a measurement. Each
analyser is loaded once, in a parent process (``serve``). The parent forks a new worker when no
worker is free. A worker answers one question after the other, and is faster if it has already read
the file of a question. Answers are stored in the folder of the completion store, so a second run
need not ask again.

A worker only reads the code that it judges, and never runs this code. It imports nothing but
Python's own modules, installed packages and the kit. It gets only a few of the user's environment
variables (VARIABLES). If the kernel supports namespaces, a worker also has no network, and sees
only the files of the system, of Python, of the pinned sources and of the repositories in question,
all read-only.
"""

import builtins
import errno
import gc
import importlib
import os
import signal
import site
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache, partial
from importlib.machinery import ModuleSpec
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

from lookuplab import paths, python_sources
from lookuplab.errors import UserError
from lookuplab.models.store import AnswerStore, key_suffix
from lookuplab.sandbox import namespaces
from lookuplab.work import Progress, Workers, check_memory, check_visible, say, spread

T = TypeVar("T")
JUDGING_VERSION = 4  # increase it whenever the same question would get a different answer
# The most seconds that a worker may compute for one question, a thousand times as many as usual.
# Only the worker's own processor time counts, so a busy machine gives the same answers as an idle
# one.
LIMIT = 60.0
PATIENCE = 5  # a question may take this many times LIMIT in wall-clock time


MOST_NAMED = 5  # for each reason, a message names at most this many of the lost questions
# if ``show_to_new_workers`` has named more repositories than this, each worker sees only one
MOST_SHOWN = 100
# A question that gets no answer is *lost*. Its reason is a text. The reason begins with these words
# if the analyser itself failed. Such an error depends on the judged code, so a second attempt fails
# in the same way. Any other reason means that the machine was at fault.
ANALYSER_ERROR = "error in "
DIED = {"timed out", "crashed"}  # the possible reasons if the worker's process ended
ATTEMPTS = 3  # how many workers must die on the same question before the judged code is blamed
# errors of missing files or odd paths; an analyser meets them because of the code that it reads, so
# they are no faults of the machine
_CODE_ERRNOS = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP}
# a worker gets only these of the user's environment variables
VARIABLES = "PATH HOME LANG LC_ALL LD_LIBRARY_PATH LOOKUPLAB_HOME LOOKUPLAB_SOURCES".split()


class WorkerLost(Exception):
    """Raised when a question got no answer. The message is the reason: "timed out" or "crashed" if
    the worker's process ended, "error in Jedi: ..." if the analyser failed, or "error on this
    machine: ...".
    """


# The key of a kind of worker: (the id of this process, the analyser's module, the folder of the
# sources that the worker reads, the scope for which the worker is reserved). The scope is "" or
# names a file.
WorkerKey = tuple[int, str, str, str]
# the free workers: (kind, the repositories that the worker sees, the channel to the worker)
_free: list[tuple[WorkerKey, set[Path], Connection]] = []
# {kind of worker without its scope: (parent process, the connection on which workers are requested,
# the reason why no sandbox works or "")}
_parents: dict[tuple, tuple[subprocess.Popen, Connection, str]] = {}
_shown_to_new: set[Path] = set()  # the repositories of ``show_to_new_workers``
_lock = threading.Lock()


def ask_worker(function: Callable[..., T], root: Path, *question: object, within: str = "") -> T:
    """Return ``function(root, *question)``, computed in a worker that sees the repository ``root``.
    The function's module must have a function ``start`` that calls ``serve``; ``serve`` forks the
    worker.

    If ``within`` names a scope, such as one file, the worker is reserved for this scope. A question
    about another scope gets a new worker, which replaces the first. A question that takes longer
    than LIMIT ends its worker. A question without an answer is asked again in a new worker, so that
    a failure never depends on earlier questions. Raises WorkerLost after two attempts or, if the
    worker died each time, after ATTEMPTS.

    If the worker died each time, a new worker is asked a harmless question, the module's function
    ``control``. If this worker answers, the judged code is at fault and not the machine. The
    message of WorkerLost then begins with ANALYSER_ERROR.
    """
    kind = os.getpid(), function.__module__, str(python_sources.folder()), within
    reasons: list[str] = []
    # A second attempt shows whether an error depends on earlier questions. If the workers died,
    # there are more attempts, because a busy machine may also kill a worker.
    while len(reasons) < 2 or (len(reasons) < ATTEMPTS and set(reasons) <= DIED):
        lost, answer = _ask_once(kind, bool(reasons), function, root, *question)
        if not lost:
            return answer
        reasons.append(lost)
    if set(reasons) <= DIED:
        module: Any = sys.modules[function.__module__]
        if not _ask_once(kind, True, module.control, python_sources.folder(), "control.py")[0]:
            lost = f"{ANALYSER_ERROR}{module.ANALYSER}: {lost} {ATTEMPTS} times"
    raise WorkerLost(lost)


def _ask_once(
    kind: WorkerKey, is_new: bool, function: Callable[..., T], root: Path, *question: object
) -> tuple[str, T]:
    """Ask a question once. Return (reason, answer); the reason is "" if the question was not lost.
    If ``is_new``, a new worker answers.
    """
    began = time.monotonic()
    try:
        with _lock:
            seen, channel = _take_worker(kind, root, is_new)
        channel.send((LIMIT, function, (root, *question)))
        lost, answer = channel.recv()
    except (EOFError, OSError):
        return ("timed out" if time.monotonic() - began >= LIMIT else "crashed"), None  # type: ignore[return-value]
    if lost:
        channel.close()  # the worker ends when its channel closes
    else:
        _free.append((kind, seen, channel))
    return lost, answer


def show_to_new_workers(roots: Iterable[Path]) -> None:
    """Let workers that start after this call see the repositories ``roots`` as well, so that one
    worker can answer questions about all of them.
    """
    _shown_to_new.update(roots)


def _take_worker(kind: WorkerKey, root: Path, is_new: bool) -> tuple[set[Path], Connection]:
    """Return a free worker of this kind that sees ``root``, or else a new worker, as (the
    repositories that it sees, the channel to it). If ``is_new``, the worker is always new.
    """
    if not is_new and (similar := [one for one in _free if one[0][:2] == kind[:2]]):
        best = max(similar, key=lambda one: (one[0] == kind, root in one[1]))
        _free.remove(best)
        if best[0] == kind and root in best[1]:
            return best[1:]
        best[2].close()  # no free worker fits, so this one ends and a new worker replaces it
    known = _parents.get(kind[:3])
    if known is None or known[0].poll() is not None:
        control, theirs = Pipe()
        at = import_root(Path(str(sys.modules[kind[1]].__file__)).parent)
        code = f"import sys; sys.path.insert(0, {str(at)!r}); from {kind[1]} import start; start()"
        given = {name: os.environ[name] for name in VARIABLES if name in os.environ}
        with theirs:  # the parent process ends when this process closes the other end
            process = subprocess.Popen(
                # With -P, Python does not import from the working directory, where a repository's
                # own types.py would replace the module of Python's library.
                [sys.executable, "-P", "-c", code],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # a fixed hash seed gives sets of names a fixed order
                env=given | {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
            )
        _parents[kind[:3]] = known = process, control, control.recv()
    # a worker that is reserved for a file sees no other repository
    seen = {root} if kind[3] or len(_shown_to_new) > MOST_SHOWN else {root, *_shown_to_new}
    ours, theirs = Pipe()
    with theirs:
        send_handle(known[1], theirs.fileno(), 0)
    ours.send(
        [*map(str, map(_outermost_package, sorted(seen)))] if is_contained(known[2]) else None
    )
    return seen, ours


def _outermost_package(root: Path) -> Path:
    """Return the folder that a worker must see to judge the repository ``root``. This is the
    outermost package if ``root`` is inside a package, because the repository's files are then
    imported by the name of the outermost package.
    """
    root = root.absolute()
    above = import_root(root)
    return root if above == root else above / root.relative_to(above).parts[0]


@cache
def is_contained(reason: str) -> bool:
    """Return whether workers run in a sandbox of namespaces. ``reason`` says why they cannot; it is
    "" if they can. If they cannot, print a warning, once.
    """
    if reason:
        say(
            "warning: Jedi and pylint read the repositories without a sandbox, because none works "
            f"here ({reason}); no code of the repositories is run"
        )
    return not reason


def forbid_imports(trusted: Sequence[str]) -> None:
    """Make every later import in this process fail unless the module's file is below one of the
    ``trusted`` folders. The code that an analyser judges is therefore never run, even if a file of
    this code has the name of a module that the analyser imports.
    """
    bootstrap: Any = importlib._bootstrap  # every import calls a function of this module
    load = bootstrap._load_unlocked

    def load_trusted(spec: ModuleSpec) -> object:
        place = spec.has_location and os.path.realpath(str(spec.origin))
        if place and not place.startswith(tuple(os.path.join(at, "") for at in trusted)):
            raise ImportError(f"{spec.name} is read, not run: {place}")
        return load(spec)

    bootstrap._load_unlocked = load_trusted


def _trusted() -> list[str]:
    """Return the folders of Python, of installed packages and of the kit's own code."""
    own = str(import_root(Path(__file__).parent)), os.path.dirname(os.__file__)
    installed = (*site.getsitepackages(), site.getusersitepackages())
    return [os.path.realpath(at) for at in (*own, *installed)]


def serve(analyser: str, warm: Callable[..., object] | None = None) -> None:
    """Run the parent process of the workers of one ``analyser`` ("Jedi" or "pylint"). For each
    channel that arrives on standard input, the parent forks a worker, which answers the questions
    on this channel. Before it forks any worker, the parent sends the reason why no sandbox works
    here, or "". The first message to a worker is a list of the folders that the worker may see, or
    None if the worker runs without a sandbox.

    If ``warm`` is given, the worker calls it with the arguments of each question. A forked copy of
    the worker then answers the question, so that nothing that the answer changes in memory reaches
    the worker. Two timers, one for processor time and one for wall-clock time, end a process that
    takes too long.
    """
    trusted = _trusted()
    forbid_imports(trusted)
    folders = [*trusted, *sys.path, sys.prefix, sys.base_prefix, str(python_sources.PINS)]
    gc.freeze()
    # With Python's default threshold of 700, the garbage collector would take up to a third of the
    # time, because it searches the cached syntax trees.
    gc.set_threshold(100_000, 20)
    with Connection(0) as control:
        control.send(_why_uncontained(folders))
        try:
            while True:
                handle = recv_handle(control)
                if not os.fork():
                    break
                os.close(handle)
                with suppress(ChildProcessError):
                    # removes the process entries of workers that have ended
                    while os.waitpid(-1, os.WNOHANG)[0]:
                        pass
        except EOFError:
            return
    with Connection(handle) as channel, suppress(EOFError):
        is_copy = False
        failure = ""
        if (shown := channel.recv()) is not None:
            failure, _ = _try(analyser, namespaces.enter_read_only, folders, shown)
        while not is_copy:
            limit, function, question = channel.recv()
            if warm and not failure:
                # this limit covers the call of ``warm`` and the copy's answer
                signal.setitimer(signal.ITIMER_REAL, 2 * PATIENCE * limit)
                failure, _ = _try(analyser, warm, *question)
            if failure:
                channel.send((failure, None))
                break
            if warm:
                if copy := os.fork():
                    if os.waitpid(copy, 0)[1]:
                        break  # the copy died without an answer
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    continue
                is_copy = True
            signal.setitimer(signal.ITIMER_REAL, PATIENCE * limit)
            signal.setitimer(signal.ITIMER_PROF, limit)
            answer = _try(analyser, function, *question)
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
            channel.send(answer)
    # A normal exit of Python would visit every syntax tree that this process shares with its
    # parent, and visiting a tree copies its memory.
    os._exit(0)


def _why_uncontained(folders: list[str]) -> str:
    """Let a copy of this process enter a sandbox in which it can read only ``folders``. Return why
    the copy failed, or "" if it succeeded.
    """
    ours, theirs = Pipe(duplex=False)
    if not os.fork():
        try:
            namespaces.enter_read_only(folders, [])
            theirs.send("")
        except OSError as error:
            theirs.send(str(error))
        finally:
            os._exit(0)
    theirs.close()
    os.wait()
    with ours, suppress(EOFError):
        return str(ours.recv())
    return "the process died"


def _try(analyser: str, function: Callable[..., T], *arguments: object) -> tuple[str, T | None]:
    """Call a function in a worker. Return ("", its result), or (reason, None) if it failed."""
    try:
        with raise_machine_errors():
            return "", function(*arguments)
    except (OSError, MemoryError) as error:
        return f"error on this machine: {type(error).__name__}: {error}", None
    except Exception as error:  # an analyser may raise any exception on other people's code
        return f"{ANALYSER_ERROR}{analyser}: {type(error).__name__}", None


@contextmanager
def raise_machine_errors() -> Iterator[None]:
    """Raise the machine's errors at the end of the block, even if the analyser has caught them: an
    OSError if a file could not be opened, or a MemoryError. Otherwise the analyser would take an
    error of the machine for a property of the code.
    """
    raised: list[OSError] = []
    opens = builtins.open

    def opened(file: Any, *arguments: Any, **options: Any) -> Any:
        if paths.is_special(file):  # pipes, sockets and devices count as missing files
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(file))
        try:
            return opens(file, *arguments, **options)
        except OSError as error:
            if error.errno not in _CODE_ERRNOS:
                raised.append(error)
            raise

    try:
        with patch.object(builtins, "open", opened):
            yield
    finally:
        for error in raised:
            raise error
        check_memory()


def answer_all(
    store: AnswerStore,
    questions: Mapping[str, tuple],
    answer: Callable[..., tuple[object, str]],
    strict: bool,
    workers: int | None = None,
    cluster: Workers | None = None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """Answer all ``questions``. Answers that are in ``store`` are reused, and new answers are added
    to the store. Return {key: answer}, and {key: reason} for the lost questions.

    ``questions`` is {key: (repository, file, kind, ...)}. The function ``answer`` takes the
    elements of a question and returns (answer, reason). The reason says why the question was lost;
    it is "" if there is an answer. Questions of one kind about one file are answered one after the
    other by the same worker, because each question benefits from what the worker has read for the
    previous ones. ``workers`` is the number of workers, as in ``spread``; if a ``cluster`` is
    given, its workers are used instead. Several processes of one run divide the files among
    themselves. If the run is killed, each worker loses at most the answers about one file.

    If the analyser itself fails, its failure says something about the code, but is never stored. A
    warning reports the failure, the caller can count it, and the next run asks the question again.
    If ``strict``, a question that is lost for any other reason raises UserError, because the state
    of the machine must not change a number.
    """
    show_to_new_workers(question[0] for question in questions.values())
    with store:
        found, missing = store.lookup(questions)
        files = defaultdict(list)
        for key in missing:
            files[tuple(map(str, questions[key][:3]))].append((key, questions[key]))
        lost: dict[str, str] = {}
        tasks = {tuple(key for key, _ in files[at]): files[at] for at in sorted(files)}
        left = store.pending_tasks(tasks)
        bar = Progress(store.name, len(missing), "questions", len(found))
        with bar, closing(spread(partial(_answer_file, answer), left, workers, cluster)) as asked:
            for _, answers in asked:
                for key, made, reason in answers:
                    if not reason:
                        store.add({key: made})
                    else:
                        lost[key] = reason
                    found.setdefault(key, made)
                bar.update(len(answers))
        # The store may meanwhile have answers of other processes. An answer that is already in
        # ``found`` takes precedence, because an audit must keep the recorded answers.
        found = store.get(missing) | found
    words = "; ".join(_describe_lost(lost, reason) for reason in sorted(set(lost.values())))
    if strict and any(map(blames_machine, lost.values())):
        raise UserError(
            f"{len(lost)} questions to pylint or Jedi were lost ({words}); the others are stored: "
            "fix the causes, or stop other programs on this machine, and run it again"
        )
    if lost:
        say(f"warning: questions to pylint or Jedi without an answer: {words}")
    return found, lost


def _describe_lost(lost: Mapping[str, str], reason: str) -> str:
    """Return a phrase for a message, such as "2 timed out (a.py:7, b.py:40)": how many questions
    were lost for one reason, and where in the code the first MOST_NAMED of these questions were.
    """
    keys = [key for key in sorted(lost) if lost[key] == reason]
    # the place is the part of a key between kind and digest (``judgement_key``)
    places = [key.partition(" ")[2].rpartition(" ")[0] for key in keys[:MOST_NAMED]]
    more = ", ..." * (len(keys) > MOST_NAMED)
    return f"{len(keys)} {reason} ({', '.join(places)}{more})"


def joined_reasons(reasons: Iterable[str]) -> str:
    """Join the reasons why several questions were lost into one text. Reasons that blame the
    machine come first, because ``blames_machine`` looks only at the beginning of the text.
    """
    return " and ".join(sorted(reasons, key=lambda reason: (not blames_machine(reason), reason)))


def blames_machine(reason: str) -> bool:
    """Return whether ``reason`` blames the machine for a lost question, and not the analyser."""
    return bool(reason) and not reason.startswith(ANALYSER_ERROR)


def _answer_file(
    answer: Callable, questions: list[tuple[str, tuple]]
) -> list[tuple[str, object, str]]:
    check_visible(questions[0][1][0])  # the repository of the file
    return [(key, *answer(*question)) for key, question in questions]


class JudgementStore(AnswerStore):
    """The store of the analysers' answers, {key: answer}. By default it is the file
    ``judgements.sqlite`` in the folder of the completion store.
    """

    name = "judgements"


def judgement_key(kind: str, place: str, repository: str, **question: object) -> str:
    """Return the key of a question in a store: ``KIND PLACE DIGEST``. The kind and the place (a
    file and line, for example) are for people who read a store.

    The digest at the end covers everything else that an answer depends on: the rest of the
    question, the ``repository`` (its ``repository_digest``), the versions of the analysers, the
    pinned sources and Python's version.
    """
    read = python_sources.identity("jedi", "parso", "pylint", "astroid")
    fields = {"repository": repository, "version": JUDGING_VERSION, **question, "read": read}
    return f"{kind} {place} {paths.digest(paths.canonical(fields))}{key_suffix()}"


def repository_digest(root: Path) -> str:
    """Return a digest of the names and contents of all Python files below ``root``."""
    return paths.folder_hash(root, python_sources.python_files(root), "digests")


def import_root(folder: Path) -> Path:
    """Return the folder from which the files in ``folder`` are imported: the folder itself if it is
    not a package, else the nearest folder above it that is not a package.
    """
    return next(at for at in (folder, *folder.parents) if not (at / "__init__.py").is_file())


def within_imports(path: Path) -> str:
    """Return a file's path relative to the folder from which it is imported (``import_root``).
    This path stays the same if the repository is moved.
    """
    path = path.resolve()
    return path.relative_to(import_root(path.parent)).as_posix()
