"""Runs Jedi and pylint in separate processes, and stores their answers.

An analyser may hang or crash on other people's code, and the measurement must go on. Each kind of
analyser is loaded once, in a parent process (``serve``), which forks a worker when none is free.
Workers live as long as this process, so that later questions benefit from files that they have
already read. Answers are stored beside the completion store, so a second run asks no question.

A worker only reads the code that it judges. It imports nothing but Python's own modules, installed
packages and the kit. If the kernel has namespaces, a worker also has no network and no variables of
the user's environment, and sees only the files of the system, of Python, of the sources and of the
repositories in question, all read-only.
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
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from unittest.mock import patch

from lookuplab import python_sources
from lookuplab.errors import UserError, check_memory
from lookuplab.models.store import AnswerStore, canonical, digest, elsewhere
from lookuplab.paths import folder_hash, is_special
from lookuplab.python_sources import python_files
from lookuplab.sandbox import namespaces
from lookuplab.sandbox.server import refusal
from lookuplab.work.progress import Progress, say
from lookuplab.work.spread import Workers, check_seen, spread

T = TypeVar("T")
JUDGING_VERSION = 4  # increase it whenever the same question would get a different answer
# Seconds of a worker's own computing time for one question, a thousand times the usual. Because it
# is not wall-clock time, a busy machine gives the same answers as an idle one.
LIMIT = 60.0
PATIENCE = 5  # how much longer than LIMIT a question may take by the clock


MOST_NAMED = 5  # places of lost questions in a message
MOST_SHOWN = 100  # repositories that one worker may see
# How the reason for an analyser's own error begins. Such an error depends on the code, so a second
# attempt gives the same. All other reasons lie with the machine.
ITS_OWN = "error in "
HERE = "error on this machine"
DIED = {"timed out", "crashed"}
ATTEMPTS = 3  # processes that must die of a question before its code is at fault
# what an analyser may find when it looks for a file
_OF_THE_CODE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP}
# the variables of the user's environment that a worker gets
VARIABLES = "PATH HOME LANG LC_ALL LD_LIBRARY_PATH LOOKUPLAB_HOME LOOKUPLAB_SOURCES".split()


class WorkerLost(Exception):
    """A question got no answer. The message says whether its processes "timed out" or "crashed",
    the analyser had an "error in Jedi: ...", or the machine had an "error on this machine: ...".
    """


# A kind of worker: the id of this process, the analyser's module, the sources that it reads, and
# the scope for which it is reserved.
Home = tuple[int, str, str, str]
_free: list[tuple[Home, set[Path], Connection]] = []  # each with the repositories that it sees
_parents: dict[tuple, tuple[subprocess.Popen, Connection]] = {}
_expected: set[Path] = set()
_lock = threading.Lock()


def ask_worker(function: Callable[..., T], root: Path, *question: object, within: str = "") -> T:
    """Return ``function(root, *question)``, computed in a worker: a process of the function's
    module, whose ``start`` calls ``serve``. The worker sees the repository ``root``.

    A free worker that was used ``within`` a different scope is replaced by a new one. A question
    that takes longer than LIMIT ends its worker. A lost question is repeated in a new process, so
    that no loss depends on earlier questions. Raises WorkerLost if it is lost again.

    If ATTEMPTS processes have died of a question, and a new one then answers ``control``, a
    harmless question of the module, the code is at fault and not the machine.
    """
    home = os.getpid(), function.__module__, str(python_sources.folder()), within
    reasons: list[str] = []
    while len(reasons) < 2 or (len(reasons) < ATTEMPTS and set(reasons) <= DIED):
        lost, answer = _asked(home, bool(reasons), function, root, *question)
        if not lost:
            return answer
        reasons.append(lost)
    if set(reasons) <= DIED:
        module: Any = sys.modules[function.__module__]
        with TemporaryDirectory() as empty:
            if not _asked(home, True, module.control, Path(empty), "control.py")[0]:
                lost = f"{ITS_OWN}{module.ANALYSER}: {lost} {ATTEMPTS} times"
    raise WorkerLost(lost)


def _asked(
    home: Home, is_new: bool, function: Callable[..., T], root: Path, *question: object
) -> tuple[str, T]:
    """Return why a question was lost, or "", and its answer."""
    began = time.monotonic()
    try:
        with _lock:
            seen, channel = _taken(home, root, is_new)
        channel.send((LIMIT, function, (root, *question)))
        lost, answer = channel.recv()
    except (EOFError, OSError):
        return ("timed out" if time.monotonic() - began >= LIMIT else "crashed"), None  # type: ignore[return-value]
    if lost:
        channel.close()  # the worker ends when its channel closes
    else:
        _free.append((home, seen, channel))
    return lost, answer


def expect(roots: Iterable[Path]) -> None:
    """Let workers that start from now on see these repositories, too, so that one worker can answer
    questions about all of them.
    """
    _expected.update(roots)


def _taken(home: Home, root: Path, is_new: bool) -> tuple[set[Path], Connection]:
    """Return a free worker, or a new one: the repositories that it sees, and its channel."""
    if not is_new and (kin := [one for one in _free if one[0][:2] == home[:2]]):
        best = max(kin, key=lambda one: (one[0] == home, root in one[1]))
        _free.remove(best)
        if best[0] == home and root in best[1]:
            return best[1:]
        best[2].close()  # the worker ends when its channel closes
    known = _parents.get(home[:3])
    if known is None or known[0].poll() is not None:
        control, theirs = Pipe()
        at = imports_begin(Path(str(sys.modules[home[1]].__file__)).parent)
        code = f"import sys; sys.path.insert(0, {str(at)!r}); from {home[1]} import start; start()"
        given = {name: os.environ[name] for name in VARIABLES if name in os.environ}
        with theirs:  # the parent process ends when this process closes the other end
            process = subprocess.Popen(
                # -P: a repository's own types.py must not replace the library's
                [sys.executable, "-P", "-c", code],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # gives sets of names a fixed order
                env=given | {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
            )
        _parents[home[:3]] = known = process, control
    # a worker that is reserved for a file sees no other repository
    seen = {root} if home[3] or len(_expected) > MOST_SHOWN else {root, *_expected}
    ours, theirs = Pipe()
    with theirs:
        send_handle(known[1], theirs.fileno(), 0)
    ours.send([*map(str, map(_shown, sorted(seen)))] if is_contained() else None)
    return seen, ours


def _shown(root: Path) -> Path:
    """Return the folder that a worker must see for a repository. A folder inside a package is
    imported by the name of the outermost package, so all of that package is needed.
    """
    root = root.absolute()
    above = imports_begin(root)
    return root if above == root else above / root.relative_to(above).parts[0]


@cache
def is_contained() -> bool:
    """Return whether workers are contained by namespaces. If not, print a warning."""
    if reason := refusal():
        say(
            "warning: Jedi and pylint read the repositories without a sandbox, because none works "
            f"here ({reason}); they import none of their code"
        )
    return not reason


def forbid_imports(trusted: Sequence[str]) -> None:
    """From now on, let this process import only from below the ``trusted`` folders. The code that
    an analyser judges is read and never run, whatever its name.
    """
    bootstrap: Any = importlib._bootstrap  # all imports go through it
    load = bootstrap._load_unlocked

    def checked(spec: ModuleSpec) -> object:
        place = spec.has_location and os.path.realpath(str(spec.origin))
        if place and not place.startswith(tuple(os.path.join(at, "") for at in trusted)):
            raise ImportError(f"{spec.name} is read, not run: {place}")
        return load(spec)

    bootstrap._load_unlocked = checked


def _trusted() -> list[str]:
    """Return the folders of Python, of installed packages and of the kit's own code."""
    own = str(imports_begin(Path(__file__).parent)), os.path.dirname(os.__file__)
    installed = (*site.getsitepackages(), site.getusersitepackages())
    return [os.path.realpath(at) for at in (*own, *installed)]


def serve(analyser: str, warm: Callable[..., object] | None = None) -> None:
    """Run the parent's side: for each channel that arrives on standard input, fork a worker, which
    answers the questions on its channel.

    If ``warm`` is given, it gets the question's arguments in the worker; a forked copy of the
    worker then answers the question, and all changes end with the copy. Signals of two clocks
    (computing time and wall-clock time) end a process that takes too long. The analyser's output is
    discarded. The first message on a channel lists the folders that the worker may see, or is None
    without namespaces.
    """
    trusted = _trusted()
    forbid_imports(trusted)
    gc.freeze()
    # With Python's default of 700, up to a third of the time goes into searching the cached trees.
    gc.set_threshold(100_000, 20)
    with Connection(0) as control:
        try:
            while True:
                handle = recv_handle(control)
                if not os.fork():
                    break
                os.close(handle)
                with suppress(ChildProcessError):
                    while os.waitpid(-1, os.WNOHANG)[0]:  # reaps workers that have ended
                        pass
        except EOFError:
            return
    with Connection(handle) as channel, suppress(EOFError):
        is_copy = False
        failure = _entered(channel.recv(), trusted)
        while not is_copy:
            limit, function, question = channel.recv()
            if warm and not failure:
                # includes the copy's time
                signal.setitimer(signal.ITIMER_REAL, 2 * PATIENCE * limit)
                try:
                    with checked():
                        warm(*question)
                except (OSError, MemoryError) as error:
                    failure = f"{HERE}: {type(error).__name__}: {error}"
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
            try:
                with checked():
                    answer = "", function(*question)
            except (OSError, MemoryError) as error:
                answer = f"{HERE}: {type(error).__name__}: {error}", None
            except Exception as error:  # an analyser may raise any exception on other people's code
                answer = f"{ITS_OWN}{analyser}: {type(error).__name__}", None
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
            channel.send(answer)
    # Python's own exit would visit, and so copy, every tree that this process shares with its
    # parent.
    os._exit(0)


@contextmanager
def checked() -> Iterator[None]:
    """Raise the machine's error at the end of the block, also if an analyser has taken it for a
    property of the code: a file that the machine could not open, or memory that it did not have.
    """
    raised: list[OSError] = []
    opens = builtins.open

    def opened(file: Any, *arguments: Any, **options: Any) -> Any:
        if is_special(file):  # for an analyser it is no file
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(file))
        try:
            return opens(file, *arguments, **options)
        except OSError as error:
            if error.errno not in _OF_THE_CODE:
                raised.append(error)
            raise

    try:
        with patch.object(builtins, "open", opened):
            yield
    finally:
        for error in raised:
            raise error
        check_memory()


def _entered(shown: list[str] | None, trusted: Sequence[str]) -> str:
    """Enter the sandbox, in which only the folders ``shown`` and Python are visible; without
    namespaces there is none. Return why that failed, or "".
    """
    folders = [*trusted, *sys.path, sys.prefix, sys.base_prefix, str(python_sources.PINS)]
    try:
        if shown is not None:
            namespaces.read_alone(folders, shown)
    except OSError as error:
        return f"{HERE}: no sandbox: {error}"
    return ""


def answer_all(
    store: AnswerStore,
    questions: Mapping[str, tuple],
    answer: Callable[..., tuple[object, str]],
    strict: bool,
    workers: int | None = None,
    cluster: Workers | None = None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the answers, stored or new, as {key: answer}, and why some were lost, as {key:
    reason}.

    A question is (repository, file, kind, ...). ``answer`` takes one and returns the answer and the
    reason why it was lost, "" if it was not. Questions of one kind about one file are answered one
    after the other by the same worker, because each benefits from what was read for the last.
    ``workers`` is the number of workers, as in ``spread``; ``cluster`` replaces them. The processes
    of a launch share the files. If the run is killed, each worker loses the answers about one file
    at most.

    An error of the analyser itself is an answer about the code, but is never stored. It is printed,
    counted by the caller, and the question is repeated next time, also if an earlier version has
    stored such an error. With ``strict``, any other lost answer raises UserError: a machine must
    not change a number.
    """
    expect(question[0] for question in questions.values())
    with store:
        found, missing = store.lookup(questions)
        if spoilt := [key for key in found if _is_spoilt(found[key])]:
            store.forget(spoilt)
            missing += spoilt
            found = {key: found[key] for key in found.keys() - spoilt}
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
        # includes answers of other processes; in an audit, the recorded answers are used
        found = store.get(missing) | found
    words = "; ".join(_said(lost, reason) for reason in sorted(set(lost.values())))
    if strict and any(map(is_of_machine, lost.values())):
        raise UserError(
            f"{len(lost)} questions to pylint or Jedi were lost ({words}); the others "
            "are kept: mend what is named, or see to less other work here, and run it again"
        )
    if lost:
        say(f"warning: questions to pylint or Jedi without an answer: {words}")
    return found, lost


def _said(lost: Mapping[str, str], reason: str) -> str:
    """Return how many questions were lost for one reason, and the places of the first."""
    keys = [key for key in sorted(lost) if lost[key] == reason]
    # of ``judgement_key``, the part between kind and digest
    places = [key.partition(" ")[2].rpartition(" ")[0] for key in keys[:MOST_NAMED]]
    more = ", ..." * (len(keys) > MOST_NAMED)
    return f"{len(keys)} {reason} ({', '.join(places)}{more})"


def joined_reasons(reasons: Iterable[str]) -> str:
    """Return why several questions were lost. A reason of the machine comes first, so that
    ``is_of_machine`` sees it.
    """
    return " and ".join(sorted(reasons, key=lambda reason: (not is_of_machine(reason), reason)))


def is_of_machine(reason: str) -> bool:
    """Return whether an answer was lost for a reason other than the code in question."""
    return bool(reason) and not reason.startswith(ITS_OWN)


def _is_spoilt(answer: Any) -> bool:
    """Return whether a stored answer is invalid. Earlier versions stored an error of Jedi as None
    or among a function's failures, even if the machine was at fault.
    """
    failures = answer.get("failures", ()) if isinstance(answer, dict) else ()
    return answer is None or any(reason.startswith(ITS_OWN) for reason in failures)


def _of_file(answer: Callable, questions: list[tuple[str, tuple]]) -> list[tuple[str, object, str]]:
    check_seen(questions[0][1][0])  # the file's repository
    return [(key, *answer(*question)) for key, question in questions]


class JudgementStore(AnswerStore):
    """A store of {key: an analyser's answer}, in ``judgements.sqlite``."""

    name = "judgements"


def judgement_key(kind: str, at: str, root: str, **question: object) -> str:
    """Return the key of a question of one ``kind`` about one place, ``kind place digest``, in which
    a reader recognises the question.

    The digest covers all Python files of the repository (``root`` is their digest), the versions of
    the analysers, and the sources and the Python that they read.
    """
    read = python_sources.identity("jedi", "parso", "pylint", "astroid")
    fields = {"repository": root, "version": JUDGING_VERSION, **question, "read": read}
    return f"{kind} {at} {digest(canonical(fields))}{elsewhere()}"


def repository_digest(root: Path) -> str:
    """Return a digest of the names and contents of all Python files below ``root``."""
    return folder_hash(root, python_files(root), "digests")


def imports_begin(folder: Path) -> Path:
    """Return the folder from which a folder's files are imported: itself or the nearest folder
    above it that is not a package.
    """
    return next(at for at in (folder, *folder.parents) if not (at / "__init__.py").is_file())


def within_imports(path: Path) -> str:
    """Return a file's path relative to ``imports_begin``, which does not depend on the repository's
    location.
    """
    path = path.resolve()
    return path.relative_to(imports_begin(path.parent)).as_posix()
