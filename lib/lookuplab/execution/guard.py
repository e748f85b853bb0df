"""The process of one program: its test in the main thread, the solution in a thread of its own.

A program calls ``exec(code, variables)`` for the solution that it tests. Here that ``exec`` runs it in another thread,
so that no frame of the test is on the solution's stack, and then looks whether the test is still what it was
(``tampering``). An audit hook, which nothing can remove, refuses the other ways from the solution to the test's
objects. What is refused ends the process with a failure. This holds Python code alone: machine code that a program
gets to run could write wherever it likes in its own process.
"""

import _thread
import builtins
import gc
import json
import os
import sys
from _queue import SimpleQueue

from lookuplab.execution import tampering

PROGRAM, SOLUTION = "<program>", "<solution>"
SECRET = 16  # bytes
LONGEST = 500  # characters of an error

# Ways to any object or frame of the process
EVERYWHERE = {"gc.get_objects", "gc.get_referrers", "gc.get_referents", "sys._current_frames",
              "sys._current_exceptions", "sys.addaudithook", "sys.settrace", "sys.setprofile"}
FRAMES = {"tb_frame", "gi_frame", "cr_frame", "ag_frame"}
# Functions that look at the stack for a name or a line, and hand no frame on
LOOKING = {"find_stack_level", "namedtuple", "_caller"}
SHOWING = ("/inspect.py", "/traceback.py", "/ctypes/__init__.py")  # files of functions that act for their callers
NATIVE = {"ctypes.dlopen", "ctypes.dlsym", "ctypes.dlsym/handle", "ctypes.call_function", "ctypes.cdata",
          "ctypes.cdata/buffer", "ctypes.string_at", "ctypes.wstring_at", "ctypes.PyObj_FromPtr", "marshal.loads"}
NAMED = {"compile": 1, "code.__new__": 1, "open": 0, "os.symlink": 0}  # event -> which argument is a file's name
FUNCTION = {"__code__", "__globals__", "__closure__", "__builtins__", "__defaults__", "__kwdefaults__"}
WATCHED = frozenset({*EVERYWHERE, *NATIVE, *NAMED, "sys._getframe", "object.__getattr__", "object.__setattr__"})


def verdict(received: bytes):
    """The verdict in what came from the process: None while there is none, a failure if somebody else wrote it.

    The secret comes first, before any of the program runs; only who knows it can write a verdict.
    """
    secret, message = received[:SECRET], received[SECRET:]
    if not message:
        return None
    if not message.startswith(secret):
        return {"passed": False, "error": "refused: writing in the place of the verdict"}
    return json.loads(message[SECRET:])


def judge(request: dict, pipe: int, library: tuple) -> None:
    """Run the program ``request["run"]``, write its verdict to ``pipe``, a socket, and end the process."""
    secret, write, leave, dumps, stat = os.urandom(SECRET), os.write, os._exit, json.dumps, os.fstat
    write(pipe, secret)
    place = stat(pipe).st_ino

    def conclude(passed: bool, error: str) -> None:
        if stat(pipe).st_ino == place:  # else somebody waits for the secret
            write(pipe, secret + dumps({"passed": passed, "error": error[:LONGEST]}, ensure_ascii=False)
                  .encode("utf-8", "replace"))
        leave(0)

    def refuse(what: str) -> None:
        conclude(False, f"refused: {what}")

    reseed(request["seed"])
    sys.modules["__main__"] = type(sys)("__main__")
    trusts = Trust((*library, os.path.dirname(__file__)))
    variables = {"__name__": "__main__", "__builtins__": builtins}
    try:
        program = compile(request.pop("run"), PROGRAM, "exec")
        solver = Solver(refuse, trusts, program, variables)
        variables["exec"] = solver.exec
        listen(refuse, trusts)
        exec(program, variables)
        solver.look()
    except BaseException as error:
        conclude(False, described(error))
    conclude(True, "")


class Trust:
    """Whether code is not the solution's: it comes from a file of Python's or a library's, or is the program.

    Libraries also generate code, with all kinds of names in angle brackets. That is trusted until the solution compiles
    something itself, which could take such a name.
    """

    def __init__(self, places: tuple):
        self.places = (*(place + "/" for place in places), "<frozen ", PROGRAM)
        self.strict = False

    def __call__(self, code) -> bool:
        name = code.co_filename
        return name.startswith(self.places) or not self.strict and name.startswith("<") and name != SOLUTION


def described(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:
        return type(error).__name__


def reseed(seed: int) -> None:
    """Generators that an import has seeded: else each program would find them in the same state."""
    if "random" in sys.modules:
        sys.modules["random"].seed(seed)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed(seed % 2**32)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


def listen(refuse, trusts) -> None:
    """Refuse what ``refusal`` names. All that the hook needs it holds itself, where no attribute leads to it."""
    ident, caller, watched, find = _thread.get_ident, sys._getframe, WATCHED, refusal
    test, bottom = ident(), caller(1)
    busy = {}

    def hook(event, arguments):
        if event not in watched:
            return
        thread = ident()
        if thread in busy:  # the hook's own look at frames
            return
        busy[thread] = True
        try:
            what = find(event, arguments, caller(1), bottom if thread == test else None, trusts)
        finally:
            del busy[thread]
        if what:
            refuse(what)

    sys.addaudithook(hook)


def refusal(event: str, arguments: tuple, frame, bottom, trusts) -> str:
    """What the caller ``frame`` must not do, in the test's thread, above ``bottom``, or another (None); or ""."""
    if event in EVERYWHERE:
        return event if bottom is None or _below(frame, bottom, trusts) else ""
    while frame.f_code.co_filename.endswith(SHOWING) and frame.f_back is not None:
        frame = frame.f_back
    foreign = not trusts(frame.f_code)
    if event == "sys._getframe" or event == "object.__getattr__" and arguments[1] in FRAMES:
        # only the test's stack has secrets; the test may call a method of the solution's result
        seen = bottom is not None and frame.f_code.co_name not in LOOKING and _below(frame, bottom, trusts)
        return f"{event} under the test" if seen else ""
    if event in NATIVE:
        return event if foreign else ""
    if event in NAMED:
        name = arguments[NAMED[event]]
        name = name.decode(errors="replace") if isinstance(name, bytes) else str(name)
        if event in ("open", "os.symlink"):
            return f"opening {name}" if name.rpartition("/")[2] == "mem" else ""
        trusts.strict |= foreign
        return f"code in the name of {name}" if foreign and name.startswith(trusts.places) else ""
    if event in ("object.__getattr__", "object.__setattr__") and arguments[1] in FUNCTION and foreign:
        code = getattr(arguments[0], "__code__", None)
        own = code is None or not trusts(code)
        changes = event == "object.__setattr__"
        return "" if own or not (changes or code.co_filename == PROGRAM) else f"{arguments[1]} of {code.co_name}"
    return ""


def _below(frame, bottom, trusts) -> bool:
    """Whether some of the solution's code is among the callers."""
    while frame is not bottom and trusts(frame.f_code):
        frame = frame.f_back
    return frame is not bottom


def loop(take, give, run, anything) -> None:
    """The solution's thread. Nothing but these arguments can be reached from its frame."""
    while True:
        code, spaces = take()
        try:
            run(code, *spaces)
        except anything as error:
            give(error)
        else:
            give(None)


class Solver:
    """``exec`` in a thread of its own, with a look afterwards at what the test uses."""

    def __init__(self, refuse, trusts, program, variables: dict):
        self.refuse, self.trusts, self.program, self.variables = refuse, trusts, program, variables
        self.work, self.replies, self.kept = SimpleQueue(), SimpleQueue(), None
        self.loop = type(loop)(loop.__code__, {"__builtins__": builtins.__dict__})
        self.thread = _thread.start_new_thread(self.loop, (self.work.get, self.replies.put, exec, BaseException))

    def exec(self, code, variables, *more):
        if isinstance(code, str):
            code = compile(code, SOLUTION, "exec")
        if self.kept is None:
            self.kept = tampering.used(self.program, self.variables)
            self.threads, self.modules = tampering.threads(), set(sys.modules)
        gc.freeze()  # what the collector finds afterwards is new
        self.work.put((code, (variables, *more)))
        error = self.replies.get()
        self.look()
        if error is not None:
            raise error

    def look(self) -> None:
        """Refuse what the solution left behind that could decide the test."""
        if self.kept is None:
            return
        changed = tampering.changed(self.kept) or tampering.planted(self.modules, self.trusts)
        if changed:
            self.refuse(f"changing {changed}")
        left = tampering.left_running(self.threads, self.thread, self.loop.__code__, self.trusts)
        if left:
            self.refuse(left)
        compares = tampering.comparing_class(self.trusts)
        if compares:
            self.refuse(f"an own {compares}")
