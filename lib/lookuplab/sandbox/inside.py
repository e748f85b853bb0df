"""Implements the server that runs programs. The server runs under the Python that the programs
need, and uses only that Python's standard library.

The server's argument is a JSON object with ``limits``, ``contained`` (whether to use namespaces),
and ``shown``, a list of further folders that programs can read. Standard input and output carry
messages. Each message is a length in four bytes, followed by that many bytes of JSON.

The server is a stack of processes. Each was forked from the process below it, and has run one more
import. Only the top process answers. The caller repeats ``{"imports": ["import numpy"]}`` until the
answer is true. If the top process lacks a requested import, it forks a process that runs the first
missing import and becomes the top. If the top process has an import that is not requested, the top
process ends, and the process below becomes the top. When the answer is true, the top process has
exactly the requested imports.

The message ``{"run": seed}`` is followed by a message with the text of a program that tests a
solution. The top process forks two processes, the *tester* and the *solver*. The tester reads the
text and runs it, but the solver executes the solution: where the text calls ``exec(code, env)``,
the tester sends the code and the variables to the solver, with the files in the tester's folder.
The solver returns the variables that the code has set and the files that the code has written.

The solver is forked before the text is read, and sees only its own processes. It never gets the
text of the test, and cannot write the verdict. The tester does not trust the solver's reply: it
accepts only objects of known classes, and no file that would replace one of the test's files.
"""

import _socket
import contextlib
import copyreg
import gc
import io
import json
import os
import pickle
import select
import shutil
import signal
import stat
import sys
import time
import types

from lookuplab.sandbox import namespaces

# typing must not be imported here, because it imports ``collections.abc``. A program that forgets
# to import ``collections.abc`` would then pass here, but fail in a fresh process.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TICK = 0.1  # seconds between two checks of a program's processes and memory
LONGEST = 500  # the description of an error is cut to this number of characters
ENDED = "the test was ended"  # the error if the tester ends without a verdict
# the error if the solver ends, or closes its end of the connection, without a reply
GONE = "ended before its test did"
# the largest number of files, and of bytes in them, that one process sends to the other
SENT_FILES, SENT_BYTES = 1000, 1 << 27
# the tester accepts only objects whose classes are defined in SENT_PACKAGES; CALLED are functions
# and classes that it may call to rebuild the objects
SENT_PACKAGES = """
    builtins collections datetime decimal fractions numpy pandas pyarrow pytz scipy sklearn
    tensorflow torch xgboost zoneinfo
""".split()
CALLED = """
    bytearray complex frozenset set slice range OrderedDict defaultdict deque Counter date
    datetime time timedelta timezone Decimal Fraction FixedOffset _UTC _p _unpickle _reconstruct
    scalar _frombuffer BlockManager SingleBlockManager NA __pyx_unpickle_NDArrayBacked
    _unpickle_block _new_Index _new_DatetimeIndex _new_PeriodIndex _new_IntervalIndex
    _nat_unpickle _unpickle_timestamp _timedelta_unpickle _period_unpickle type_for_alias
    py_buffer _rebuild_tensor_v2 _rebuild_parameter convert_to_tensor ResourceVariable
""".split()


def write(end: int, message: object) -> None:
    """Send a message."""
    content = json.dumps(message).encode()
    content = len(content).to_bytes(4, "big") + content
    while content:
        content = content[os.write(end, content) :]


def read(end: int) -> "Any":
    """Return the next message. Raises EOFError if the other process has closed the connection."""
    found = b""
    needed = 4
    while len(found) < needed:
        if not (more := os.read(end, needed - len(found))):
            raise EOFError
        found += more
        if len(found) == 4:
            needed += int.from_bytes(found, "big")
    return json.loads(found[4:])


class Placeholder:
    """Replaces a part of an object from the solver, such as a function inside an estimator, if the
    tester does not accept the part's class.
    """

    def __init__(self, *_: object):
        pass


def dtype(kind: str, *options: object) -> "Any":
    """Return numpy.dtype(...). For the kind "O8" (objects), always return the same instance. With a
    new instance, an array's ``astype(str)`` in pandas < 2.2 would change the array itself. Pickles
    call this function instead of numpy's own.
    """
    return sys.modules["numpy"].dtype(kind, *(options if kind != "O8" else ()))


def storage(content: bytes) -> "Any":
    """Return the storage of a tensor's numbers. ``content`` is what ``torch.save`` wrote. This
    function replaces torch's own, which would unpickle objects of any class.
    """
    return sys.modules["torch"].load(io.BytesIO(content), weights_only=True)


def mapping(kind: "type[dict[Any, Any]]", _: type, content: "dict[Any, Any]") -> "dict[Any, Any]":
    """Return an object of ``kind``, a subclass of dict, with this content. The constructor of
    ``kind`` is not called.
    """
    instance = dict.__new__(kind)
    dict.update(instance, content)
    return instance


def member(owner: object, name: str) -> "Any":
    """Return the method ``name`` of ``owner`` if this is the method that unpickles time zones,
    otherwise Placeholder. This function replaces ``getattr``, with which a pickle could get any
    method.
    """
    zone = isinstance(owner, type) and (owner.__name__, name) == ("ZoneInfo", "_unpickle")
    return getattr(owner, name) if zone else Placeholder


def arrow(content: "tuple[Any, ...]") -> "Any":
    """Return a pyarrow array after checking it; pyarrow itself trusts the lengths in the pickle."""
    array = sys.modules["pyarrow.lib"]._restore_array(content)
    array.validate(full=True)
    return array


# function that a pickle names -> function that the tester calls instead
REPLACED = {
    "dtype": dtype,
    "_load_from_bytes": storage,
    "_reconstructor": mapping,
    "getattr": member,
    "_restore_array": arrow,
}


# pickle's implementation in Python, because the steps of the faster one in C cannot be overridden
Unpickler: "Any" = pickle._Unpickler


class SentUnpickler(Unpickler):
    """Reads untrusted objects that the solver sent. It accepts only objects of known classes, and
    calls only known functions to make them. It refuses an object with an attribute that hides a
    method of the object's class.
    """

    dispatch = dict(Unpickler.dispatch)  # noqa: RUF012
    # these two operations call any class; only pickle protocols below 2 need them
    del dispatch[pickle.INST[0]], dispatch[pickle.OBJ[0]]

    def find_class(self, module: str, name: str) -> "Any":
        if name in REPLACED:
            return REPLACED[name]
        found = getattr(sys.modules.get(module), name, None)
        if module.partition(".")[0] not in SENT_PACKAGES:
            return Placeholder
        if isinstance(found, type) and not issubclass(found, type):
            # a memory-mapped array would read a file; a masked number would pass any test, because
            # numpy's assertions treat it as equal to every number
            refused = name == "memmap" or found.__module__.startswith("numpy.ma")
            return Placeholder if refused else found
        return found if name in CALLED else Placeholder

    def load_reduce(self) -> None:
        called = self.stack[-2]
        known = called.__name__ in CALLED or called in (Placeholder, *REPLACED.values())
        # pandas' date offsets (classes with ``rollforward``) and enumerations (classes with
        # ``__members__``) may also be called
        like = hasattr(called, "rollforward") or hasattr(called, "__members__")
        if not (known or like or called.__name__.endswith("Dtype")):
            raise pickle.UnpicklingError(f"{called} is called")
        super().load_reduce()

    def load_build(self) -> None:
        state, made = self.stack[-1], self.stack[-2]
        for part in state if isinstance(state, tuple) else (state,):
            for name, value in part.items() if isinstance(part, dict) else ():
                method = callable(getattr(type(made), name, None))
                hides = method and getattr(value, "__name__", "") != name
                if isinstance(made, type) or hides or name.startswith("__"):
                    raise pickle.UnpicklingError(f"{type(made)} with its own {name}")
        if type(made) is Placeholder:
            self.stack.pop()
        else:
            super().load_build()

    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.BUILD[0]] = load_build


class Sent(pickle.Unpickler):
    """Reads, in the solver, the objects that the tester sent. They are trusted, because the tester
    runs no code of the model.
    """

    def find_class(self, module: str, name: str) -> "Any":
        return dtype if (module, name) == ("numpy", "dtype") else super().find_class(module, name)


def own_files() -> "dict[str, bytes | None]":
    """Return {path: content} for all files and folders below this process's folder. The content of
    a folder is None. Links and special files are left out, and so are files beyond the limits
    SENT_FILES and SENT_BYTES.
    """
    found: dict[str, bytes | None] = {}
    left = SENT_BYTES
    for folder, folders, names in os.walk("."):
        for path in (os.path.join(folder, name)[2:] for name in (*folders, *names)):
            about = os.lstat(path)
            if len(found) == SENT_FILES:
                return found
            if stat.S_ISDIR(about.st_mode):
                found[path] = None
            elif stat.S_ISREG(about.st_mode) and about.st_size <= left:
                left -= about.st_size
                with open(path, "rb") as file:
                    found[path] = file.read()
    return found


def write_file(path: str, content: "bytes | None") -> None:
    if content is None:
        os.makedirs(path, exist_ok=True)
    else:
        with open(path, "wb") as file:
            file.write(content)


def run_tester(requests: int, verdicts: int, solver: "Any") -> None:
    """Do the work of the tester: read the program's text from ``requests``, run it, and write the
    error, or "" if there is none, to ``verdicts``. When the text calls ``exec``, the solver
    executes the solution. ``solver`` is the connection to the solver.
    """
    text = read(requests)
    received = set()

    def execute(code: str, env: "dict[str, Any]") -> None:
        asked = code, env, own_files()
        try:
            pickle.dump(asked, solver)
            solver.flush()
            error, values, files = SentUnpickler(solver).load()
        except (EOFError, OSError):
            error = GONE
        if error:
            raise Failed(str(error))
        for path, content in files.items():
            # a file from the solver must not be written through a link or outside the tester's
            # folder, and must not replace a file of the test
            inside = os.path.realpath(path) == f"{os.getcwd()}/{path}"
            if inside and (path in received or not os.path.exists(path)):
                received.add(path)
                write_file(path, content)
        for name, content in values.items():
            try:
                env[name] = SentUnpickler(io.BytesIO(content)).load()
            except Exception:
                continue  # refused: no test needs such an object, or it is an attack

    error = ""
    # the program must not find the server's own variables in ``__main__``
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        exec(compile(text, "<program>", "exec"), {"__name__": "__main__", "exec": execute})
    except BaseException as raised:
        error = describe(raised)
    write(verdicts, error)


class Failed(Exception):
    """Raised in the tester if the solution failed in the solver. The message is the error that the
    solver reported, or GONE if the solver sent no reply.
    """


def run_solver(tester: "Any") -> None:
    """Do the work of the solver: execute the code that the tester sends. Send back the error (""
    if there is none), all variables that can be pickled, and the new and changed files. ``tester``
    is the connection to the tester.
    """
    if variables := sys.modules.get("tensorflow.python.ops.resource_variable_ops"):
        copyreg.pickle(variables.ResourceVariable, lambda one: (type(one), (one.numpy(),)))
    home = os.getcwd()
    known: dict[str, bytes | None] = {}
    while True:
        code, env, given = Sent(tester).load()
        error = ""
        values = {}
        try:
            for path in known.keys() - given.keys():  # the test has deleted these files
                with contextlib.suppress(OSError):
                    os.unlink(path)
            for path, content in given.items():
                if known.get(path, "") != content:
                    write_file(path, content)
            exec(code, env)
            os.chdir(home)
            known = own_files()
        except BaseException as raised:
            error = describe(raised)
        env.pop("__builtins__", None)
        for name, value in env.items():
            try:
                values[name] = pickle.dumps(value)
            except Exception:
                continue  # cannot be pickled, such as a module or the solution's own function
        files = {path: known[path] for path in known if known[path] != given.get(path, "")}
        pickle.dump((error, values, files), tester)
        tester.flush()


def describe(error: BaseException) -> str:
    try:
        said = str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}"
        return said[:LONGEST]
    except BaseException:
        return type(error).__name__


def fork(action: "Callable[..., object]", *arguments: object) -> int:
    """Run ``action`` in a new process, and return the process's id. The process ends with the
    action. The exit code of the process is 0, or 1 if the action raises an exception.
    """
    if child := os.fork():
        return child
    try:
        action(*arguments)
        os._exit(0)
    finally:
        os._exit(1)


def descendants(process: int) -> list[int]:
    """Return the ids of all descendants of a process."""
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{thread}/children") as file:
                children += map(int, file.read().split())
    except OSError:
        pass  # the process has ended
    return children + [one for child in children for one in descendants(child)]


def resident_bytes(process: int) -> int:
    """Return the size of a process's anonymous, shared and swapped memory in bytes, or 0 if the
    process has ended.
    """
    try:
        with open(f"/proc/{process}/status") as file:
            lines = [line.split() for line in file]
    except OSError:
        return 0
    kinds = ("RssAnon:", "RssShmem:", "VmSwap:")
    return sum(int(line[1]) for line in lines if line[0] in kinds) << 10


class Server:
    """Reads the caller's requests from standard input and answers them, in the process that is the
    top of the stack of processes.
    """

    def __init__(self, limits: "dict[str, Any]", contained: bool):
        self.limits = limits
        self.contained = contained
        self.requests, self.answers = os.dup(0), os.dup(1)
        silence(2)

    def serve(self, imported: "list[str]") -> None:
        """Answer requests in a process that has run exactly the imports ``imported``."""
        while True:
            try:
                request = read(self.requests)
                wanted = request.get("imports")
                if wanted is None:
                    write(self.answers, self.judge(request["run"]))
                elif imported == wanted:
                    write(self.answers, True)
                elif imported != wanted[: len(imported)]:
                    return write(self.answers, False)
                elif os.waitpid(fork(self.import_and_serve, wanted[: len(imported) + 1]), 0)[1]:
                    # the import ended the new process before it answered; this process ends, too,
                    # so that the caller does not wait for an answer
                    os._exit(1)
            except EOFError:
                os._exit(0)  # the caller is gone

    def import_and_serve(self, imports: "list[str]") -> None:
        """Run the last of the imports, send the answer false, and serve requests as the new top
        process. If the import fails, its error is ignored, because the program will raise the error
        again.
        """
        with contextlib.suppress(Exception):
            exec(compile(imports[-1], "<program>", "exec"), {"__name__": "__main__"})
        gc.collect()
        # without this, the garbage collector of a forked process would write to all objects that
        # exist now, and their memory would be copied
        gc.freeze()
        write(self.answers, False)
        self.serve(imports)

    def judge(self, seed: int) -> "dict[str, Any]":
        """Run one program in two new processes, the tester and the solver. Return the fields
        ``passed``, ``error`` and ``stopped`` of its outcome (``server.Outcome``).
        """
        namespaces.call("prctl", namespaces.SET_SUBREAPER, 1, 0, 0, 0)
        asking, asked = (end.detach() for end in _socket.socketpair())
        verdict, verdicts = os.pipe()
        solver = fork(self.process, "solver", seed, asked)
        tester = fork(self.process, "tester", seed, asking, self.requests, verdicts)
        for end in (asking, asked, verdicts):
            os.close(end)
        try:
            return self.watch(solver, tester, verdict)
        finally:
            os.close(verdict)
            end_all()
            for folder in ("solver", "tester"):
                shutil.rmtree(folder, ignore_errors=True)

    def process(self, role: str, seed: int, peer: int, *ends: int) -> None:
        """Run the tester or the solver (``role``) in a folder called ``role``, under the limits.
        ``peer`` is the connection to the other process. For the tester, ``ends`` are two file
        descriptors: one to read the text, and one to write the verdict. For the solver, there are
        none.
        """
        os.makedirs(role, exist_ok=True)
        os.chdir(role)
        silence(3, peer, *ends)
        if self.contained and role == "solver":
            namespaces.nest_namespaces(self.limits["memory"] // 4)
        namespaces.set_limits(self.limits)
        # the generators of random numbers were seeded when they were imported; without new seeds,
        # they would be in the same state in all programs
        seeding = {"random": "seed", "numpy.random": "seed", "torch": "manual_seed"}
        for name in seeding.keys() & sys.modules.keys():
            getattr(sys.modules[name], seeding[name])(seed)
        connection = io.BufferedRWPair(io.FileIO(peer), io.FileIO(peer, "w"))
        if role == "solver":
            sys.path.insert(0, os.getcwd())
            run_solver(connection)
        requests, verdicts = ends
        run_tester(requests, verdicts, connection)

    def watch(self, solver: int, tester: int, verdict: int) -> "dict[str, Any]":
        """Wait until the tester writes the verdict or ends without one, or a limit is exceeded.
        Return the fields of the outcome. Raises EOFError if the caller is gone.
        """
        deadline = time.monotonic() + self.limits["seconds"]
        server_bytes = resident_bytes(os.getpid())
        poll = select.poll()
        poll.register(verdict, select.POLLIN)
        poll.register(self.requests, 0)  # reports only that the caller is gone
        while True:
            ready = dict(poll.poll(TICK * 1000))
            alive = descendants(os.getpid())
            if self.requests in ready:
                raise EOFError
            if verdict in ready:
                break
            reasons = {
                "seconds": time.monotonic() > deadline,
                "processes": len(alive) > self.limits["processes"] + 4,
                "memory": sum(max(0, resident_bytes(one) - server_bytes) for one in alive)
                > self.limits["memory"],
            }
            for name, is_over in reasons.items():
                if is_over:
                    error = f"took more {name} than {self.limits[name]}"
                    return {"passed": False, "error": error, "stopped": True}
        try:
            error = read(verdict)
        except EOFError:
            error = ENDED
        process = {GONE: solver, ENDED: tester}.get(error, 0)
        for _ in range(100 if process else 0):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:  # killed by a limit, or by the kernel because the machine ran out of memory
                code = os.waitstatus_to_exitcode(status)
                stopped = abs(code) % 128 in (signal.SIGKILL, signal.SIGXCPU) or error == ENDED
                return {"passed": False, "error": f"{error} ({code})", "stopped": stopped}
            time.sleep(0.01)
        return {"passed": not error, "error": error, "stopped": error == ENDED}


def end_all() -> None:
    """End all descendants of this process, and collect their exit codes.

    The descendants first get half a second to end by themselves, so that the processor time of the
    solver is counted. Then they are killed.
    """
    with contextlib.suppress(ChildProcessError):
        for _ in range(100):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            time.sleep(0.005)
        while True:
            for process in descendants(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            os.wait()


def silence(first: int, *kept: int) -> None:
    """Redirect the file descriptors below ``first`` to /dev/null. If ``first`` is 3, also close all
    other descriptors except those in ``kept``.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for end in range(first):
        os.dup2(nothing, end)
    for end in set(range(3, namespaces.OPEN_FILES)) - set(kept) if first == 3 else ():
        with contextlib.suppress(OSError):
            os.close(end)


def main() -> None:
    """Enter the namespaces, if they are used, and serve requests until the caller is gone."""
    task = json.loads(sys.argv[1])
    shown = task.pop("shown")
    if task["contained"]:
        python = [os.path.abspath(sys.executable), os.path.realpath(sys.executable)]
        namespaces.enter_namespaces([sys.prefix, sys.base_prefix, *python, *sys.path[1:], *shown])
    # other processes must not be able to read this process's memory
    namespaces.call("prctl", namespaces.SET_DUMPABLE, 0, 0, 0, 0)
    server = Server(**task)
    sys.argv = [""]
    # the programs must find only the modules that a fresh Python process has
    del sys.path[0]
    # this module imports shutil, which imports ``compression`` since Python 3.14
    ours = "lookuplab", "compression"
    for name in [name for name in sys.modules if name.partition(".")[0] in ours]:
        del sys.modules[name]
    # pandas must not find these two packages; otherwise results could depend on whether they are
    # installed
    missing: Any = None
    sys.modules["bottleneck"] = sys.modules["numexpr"] = missing
    write(server.answers, True)
    server.serve([])
