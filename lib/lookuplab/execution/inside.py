"""The server of programs: runs under the Python that they need, with its standard library alone.

Its argument is a JSON object with ``limits`` and ``contained``. On standard input and output: frames of four bytes of
length and JSON. ``{"push": "import numpy"}`` forks a process that makes the import and answers from then on; ``{"pop":
true}`` ends it, and the one below answers again. So a process holds exactly the imports on the way to it.

``{"run": seed}``, with the program's text in the next frame, is answered by two processes forked from the one on top.
T reads the text and runs it, but for the solution: its ``exec(code, env)`` sends both to W, which executes the code and
sends back what the code has bound and the files that it wrote. W is forked before the text is read, sees no process but
its own, and has no way to the verdict: it never holds the test or the expected answer. What it sends may be anything,
and T takes objects of known classes only.
"""

import copyreg
import gc
import io
import json
import os
import pickle
import select
import shutil
import signal
import sys
import time
import types

from lookuplab.execution import namespaces

TICK = 0.1  # seconds between two looks at a program's processes and memory
LONGEST = 500  # characters of an error
PASSED, FAILED, LEFT = "passed", "failed", "left"  # a verdict; LEFT: W ended, or closed its ends
# Whose classes may come back from W, and the functions and classes that may be called to make an object of them anew
PACKAGES = {
    "builtins", "collections", "datetime", "decimal", "fractions", "numpy", "pandas", "scipy", "sklearn", "torch",
    "tensorflow", "xgboost", "matplotlib", "seaborn", "pytz", "zoneinfo", "pyarrow",
}  # fmt: skip
CALLED = {
    "bytearray", "complex", "frozenset", "set", "slice", "range", "OrderedDict", "defaultdict", "deque", "Counter",
    "date", "datetime", "time", "timedelta", "timezone", "Decimal", "Fraction",
    "_reconstruct", "scalar", "_frombuffer",
    "__pyx_unpickle_NDArrayBacked", "_unpickle_block", "_new_Index", "_new_DatetimeIndex", "_new_PeriodIndex",
    "_new_IntervalIndex", "BlockManager", "SingleBlockManager", "NA", "_nat_unpickle", "_unpickle_timestamp",
    "_timedelta_unpickle", "_period_unpickle", "FixedOffset", "_UTC", "_p", "_unpickle",
    "_rebuild_tensor_v2", "_rebuild_parameter", "convert_to_tensor", "ResourceVariable", "type_for_alias", "py_buffer",
}  # fmt: skip


def write(end: int, message: object) -> None:
    content = json.dumps(message).encode()
    content = len(content).to_bytes(4, "big") + content
    while content:
        content = content[os.write(end, content) :]


def read(end: int):
    """The next message; raises EOFError where the other side has closed its end."""

    def exactly(count: int) -> bytes:
        found = b""
        while len(found) < count:
            if not (more := os.read(end, count - len(found))):
                raise EOFError
            found += more
        return found

    return json.loads(exactly(int.from_bytes(exactly(4), "big")))


def dtype(kind: str, *options):
    """numpy.dtype; of objects always the same one, else ``astype(str)`` writes into its argument in pandas < 2.2."""
    return sys.modules["numpy"].dtype(kind, *(options if kind != "O8" else ()))


def storage(content: bytes):
    """A tensor's numbers; torch's own way unpickles whatever comes."""
    return sys.modules["torch"].load(io.BytesIO(content), weights_only=True)


def mapping(kind: type, parent: type, content: dict):
    """An object of a subclass of dict."""
    if parent is not dict:
        raise pickle.UnpicklingError(f"{kind} is no dict")
    made = dict.__new__(kind)
    dict.update(made, content)
    return made


class Nothing:
    """Stands for whatever is not known, such as a function that a figure refers to."""

    def __init__(self, *_: object):
        pass


def member(owner: object, name: str):
    """``getattr``, by which methods are pickled: only of a time zone, and of the transformations of a figure."""
    zone = isinstance(owner, type) and (owner.__name__, name) == ("ZoneInfo", "_unpickle")
    return getattr(owner, name) if zone or type(owner).__module__ == "matplotlib.transforms" else Nothing


def arrow(content: tuple):
    """An array of pyarrow, which believes what it is told of its own length."""
    made = sys.modules["pyarrow.lib"]._restore_array(content)
    made.validate(full=True)
    return made


REPLACED = {
    "dtype": dtype, "_load_from_bytes": storage, "_reconstructor": mapping, "getattr": member, "_restore_array": arrow
}  # fmt: skip


class Known(pickle._Unpickler):
    """Reads what W sent: objects of known classes, made without their constructors, whose state hides no method."""

    dispatch = dict(pickle._Unpickler.dispatch)
    del dispatch[pickle.INST[0]], dispatch[pickle.OBJ[0]]  # only in protocols before 2 are classes called so

    def find_class(self, module: str, name: str):
        if name in REPLACED:
            return REPLACED[name]
        found = getattr(sys.modules.get(module), name, None)
        if module.partition(".")[0] not in PACKAGES or name == "memmap":
            return Nothing
        return found if name in CALLED or (isinstance(found, type) and not issubclass(found, type)) else Nothing

    def load_reduce(self) -> None:
        called = self.stack[-2]
        known = called.__name__ in CALLED or called.__name__.endswith("Dtype") or hasattr(called, "rollforward")
        known = known or hasattr(called, "__members__")  # an enumeration
        if not known and called not in (Nothing, *REPLACED.values()):
            raise pickle.UnpicklingError(f"{called} is called")
        super().load_reduce()

    def load_build(self) -> None:
        state, made = self.stack[-1], self.stack[-2]
        if type(made) is Nothing:
            self.stack.pop()
            return
        for part in state if isinstance(state, tuple) else (state,):
            for name, value in part.items() if isinstance(part, dict) else ():
                hides = callable(getattr(type(made), name, None)) and getattr(value, "__name__", "") != name
                if isinstance(made, type) or hides or (name.startswith("__") and name != "__mpl_version__"):
                    raise pickle.UnpicklingError(f"{type(made)} with its own {name}")
        super().load_build()

    dispatch[pickle.REDUCE[0]], dispatch[pickle.BUILD[0]] = load_reduce, load_build


class Sent(pickle.Unpickler):
    """Reads what T sent."""

    def find_class(self, module: str, name: str):
        return dtype if (module, name) == ("numpy", "dtype") else super().find_class(module, name)


def test(requests: int, verdicts: int, to_solver, from_solver, seed: int) -> None:
    """T: run the program's text; the solution in W."""
    text, owned = read(requests), set()

    def execute(code, env) -> None:
        try:
            pickle.dump((code, env), to_solver)
            to_solver.flush()
            error, values, files = Known(from_solver).load()
        except (EOFError, OSError):
            answer(LEFT)
        if error:
            raise Failed(str(error))
        for name, content in files.items():
            if name in owned or (name == os.path.basename(name) and not os.path.lexists(name)):
                owned.add(name)
                with open(name, "wb") as file:
                    file.write(content)
        for name, content in values.items():
            try:
                env[name] = Known(io.BytesIO(content)).load()
            except Exception:
                continue  # nothing that a test could look at, or an attack

    def answer(verdict: str, error: str = "") -> None:
        write(verdicts, [verdict, error[:LONGEST]])
        os._exit(0)

    reseed(seed)
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        exec(compile(text, "<program>", "exec"), {"__name__": "__main__", "exec": execute})
    except BaseException as error:
        answer(FAILED, described(error))
    answer(PASSED)


class Failed(Exception):
    """The solution raised what its text says."""


def solve(to_test, from_test, seed: int) -> None:
    """W: execute what T sends, and send back what can be sent."""
    reseed(seed)
    if (variables := sys.modules.get("tensorflow.python.ops.resource_variable_ops")) is not None:
        copyreg.pickle(variables.ResourceVariable, lambda one: (type(one), (one.numpy(),)))
    while True:
        code, env = Sent(from_test).load()
        error = ""
        try:
            exec(code, env)
        except BaseException as raised:
            error = described(raised)
        values, files = {}, {}
        shown = {name: value for name, value in env.items() if name != "__builtins__"}
        if "matplotlib._pylab_helpers" in sys.modules:
            managers = sys.modules["matplotlib._pylab_helpers"].Gcf.figs.values()
            shown[" figures"] = [one.canvas.figure for one in managers]  # shown again where they are read
        for name, value in shown.items():
            try:
                values[name] = pickle.dumps(value)
            except Exception:
                continue  # such as modules and the solution's own functions
        for entry in os.scandir("."):
            if entry.is_file():
                with open(entry, "rb") as file:
                    files[entry.name] = file.read()
        pickle.dump((error, values, files), to_test)
        to_test.flush()


def described(error: BaseException) -> str:
    try:
        return str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}"
    except BaseException:
        return type(error).__name__


def reseed(seed: int) -> None:
    """Generators that an import has seeded: else each program would find them in the same state."""
    for name, method in (("random", "seed"), ("numpy.random", "seed"), ("torch", "manual_seed")):
        if name in sys.modules:
            getattr(sys.modules[name], method)(seed)


def forked(action, *arguments) -> int:
    """Do it in a new process, which ends with its end."""
    if child := os.fork():
        return child
    try:
        action(*arguments)
        os._exit(0)
    finally:
        os._exit(1)


def below(process: int) -> list[int]:
    """All processes that a process has started, and those that they have started; children first."""
    found = []
    try:
        for thread in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{thread}/children") as file:
                found += map(int, file.read().split())
    except OSError:
        pass  # it has ended
    return found + [one for child in found for one in below(child)]


def resident(process: int) -> int:
    """Bytes of memory that a process has by itself."""
    try:
        with open(f"/proc/{process}/status") as file:
            lines = [line.split() for line in file]
    except OSError:
        return 0
    return sum(int(line[1]) for line in lines if line[0] in ("RssAnon:", "RssShmem:", "VmSwap:")) << 10


class Server:
    """Answers requests until its process is popped."""

    def __init__(self, limits: dict, contained: bool):
        self.limits, self.contained = limits, contained
        self.requests, self.answers = os.dup(0), os.dup(1)
        silence(2)

    def serve(self) -> None:
        while True:
            try:
                request = read(self.requests)
                if "run" in request:
                    write(self.answers, self.judge(request["run"]))
                elif "pop" in request:
                    write(self.answers, {})
                    return
                elif os.waitpid(forked(self.stand, request["push"]), 0)[1]:
                    os._exit(1)  # nobody has answered: the caller sees the end
            except EOFError:
                os._exit(0)  # the caller is gone

    def stand(self, line: str) -> None:
        """A process with one more import. What it raises, the program itself will raise."""
        try:
            exec(compile(line, "<program>", "exec"), {"__name__": "__main__"})
        except Exception:
            pass
        gc.collect()
        gc.freeze()  # the collector of a forked process would else copy all of this
        write(self.answers, {})
        self.serve()

    def judge(self, seed: int) -> dict:
        """Run one program; its verdict, or why there is none."""
        namespaces.adopt_orphans()
        asked, asking = os.pipe()
        answered, answering = os.pipe()
        verdict, verdicts = os.pipe()
        for folder in ("solver", "tester"):
            os.mkdir(folder)
        solver = forked(self.begin_solver, asked, answering, seed)
        forked(self.begin_tester, answered, asking, verdicts, seed)
        for end in (asked, asking, answered, answering, verdicts):
            os.close(end)
        try:
            return self.watch(solver, verdict)
        finally:
            os.close(verdict)
            end_all()
            for folder in ("solver", "tester"):
                shutil.rmtree(folder, ignore_errors=True)

    def begin_solver(self, asked: int, answering: int, seed: int) -> None:
        os.chdir("solver")
        silence(3, asked, answering)
        if self.contained:
            namespaces.stand_alone(self.limits["memory"] // 4, self.limits["processes"])
            os.chdir(namespaces.WORK)
        sys.path.insert(0, os.getcwd())
        namespaces.limit(self.limits)
        solve(os.fdopen(answering, "wb"), os.fdopen(asked, "rb"), seed)

    def begin_tester(self, answered: int, asking: int, verdicts: int, seed: int) -> None:
        os.chdir("tester")
        silence(3, self.requests, answered, asking, verdicts)
        namespaces.limit(self.limits)
        test(self.requests, verdicts, os.fdopen(asking, "wb"), os.fdopen(answered, "rb"), seed)

    def watch(self, solver: int, verdict: int) -> dict:
        """Wait for the verdict, and for whatever ends a program without one."""
        started, own = time.monotonic(), resident(os.getpid())
        poll = select.poll()
        poll.register(verdict, select.POLLIN)
        poll.register(self.requests, 0)  # its other end is closed when nobody waits for the answer
        while True:
            ready = dict(poll.poll(TICK * 1000))
            if self.requests in ready:
                raise EOFError
            if verdict in ready:
                try:
                    said, error = read(verdict)
                except EOFError:
                    return stopped("the test was ended")
                return self.left(solver) if said == LEFT else {"passed": said == PASSED, "error": error}
            if time.monotonic() - started > self.limits["seconds"]:
                return stopped(f"ran for more than {self.limits['seconds']:g} s")
            alive = below(os.getpid())
            if len(alive) > self.limits["processes"] + 4:
                return stopped(f"started more than {self.limits['processes']} processes")
            if sum(max(0, resident(one) - own) for one in alive) > self.limits["memory"]:
                return stopped(f"took more than {self.limits['memory']} bytes of memory")

    def left(self, solver: int) -> dict:
        """How W ended before its test did."""
        for _ in range(100):
            number, status = os.waitpid(solver, os.WNOHANG)
            if number:
                code = os.waitstatus_to_exitcode(status)
                number = -code if code < 0 else code - 128  # handed on by the first process of its namespaces
                name = signal.Signals(number).name if number in set(signal.Signals) else f"exit status {code}"
                error = f"ended before its test did ({name})"
                # SIGKILL may be the kernel's, for want of memory on the machine
                return stopped(error) if number in (signal.SIGKILL, signal.SIGXCPU) else {"passed": False, "error": error}
            time.sleep(0.01)
        return {"passed": False, "error": "closed the way of its answer"}


def stopped(reason: str) -> dict:
    return {"passed": False, "error": reason, "stopped": True}


def silence(first: int, *kept: int) -> None:
    """Close all files but ``kept``; input and output are none, and errors too unless ``first`` is 2."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for end in range(first):
        os.dup2(nothing, end)
    for end in range(3, namespaces.OPEN_FILES) if first == 3 else ():
        if end not in kept:
            try:
                os.close(end)
            except OSError:
                continue


def end_all() -> None:
    """End all processes below this one, and take in what they leave."""
    while True:
        for process in below(os.getpid()):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            os.wait()
        except ChildProcessError:
            return


def main() -> None:
    task = json.loads(sys.argv[1])
    if task["contained"]:
        places = {sys.prefix, sys.base_prefix, os.path.realpath(sys.executable), os.path.abspath(sys.executable), *sys.path[1:]}
        namespaces.leave_the_system([os.path.abspath(one) for one in places if one and os.path.exists(one)])
    namespaces.hide()
    server = Server(task["limits"], task["contained"])
    sys.argv = [""]
    # what a fresh process would not find
    del sys.path[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == "lookuplab"]:
        del sys.modules[name]
    for name in ("bottleneck", "numexpr"):  # pandas computes with them unasked where they happen to be installed
        sys.modules[name] = None
    write(server.answers, {})
    server.serve()
