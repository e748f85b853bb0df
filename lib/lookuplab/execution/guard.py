"""The process of one program: its test in the main thread, the solution in a thread of its own.

A program calls ``exec(code, variables)`` for the solution that it tests. Here that ``exec`` runs it in another thread,
so that no frame of the test is on the solution's stack.
"""

import _thread
import builtins
import gc
import json
import os
import sys
from _queue import SimpleQueue

PROGRAM, SOLUTION = "<program>", "<solution>"
SECRET = 16  # bytes
LONGEST = 500  # characters of an error


def verdict(received: bytes):
    """The verdict in what came from the process: None while there is none, a failure if somebody else wrote it.

    The secret comes first, before any of the program runs; only who knows it can write a verdict.
    """
    secret, message = received[:SECRET], received[SECRET:]
    if not message:
        return None
    if not message.startswith(secret):
        return {"passed": False, "error": "wrote to the pipe of the verdict"}
    return json.loads(message[SECRET:])


def judge(request: dict, pipe: int, library: tuple) -> None:
    """Run the program ``request["run"]``, write its verdict to ``pipe`` and end the process."""
    secret, write, leave, dumps = os.urandom(SECRET), os.write, os._exit, json.dumps
    write(pipe, secret)

    def conclude(passed: bool, error: str) -> None:
        write(pipe, secret + dumps({"passed": passed, "error": error[:LONGEST]}).encode())
        leave(0)

    reseed(request["seed"])
    sys.modules["__main__"] = type(sys)("__main__")
    variables = {"__name__": "__main__", "__builtins__": builtins}
    try:
        program = compile(request.pop("run"), PROGRAM, "exec")
        solver = Solver()
        variables["exec"] = solver.exec
        exec(program, variables)
    except BaseException as error:
        conclude(False, described(error))
    conclude(True, "")


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


def loop(take, give, run, anything) -> None:
    """The solver's thread. Nothing but these arguments can be reached from its frame."""
    while True:
        code, variables = take()
        try:
            run(code, variables)
        except anything as error:
            give(error)
        else:
            give(None)


class Solver:
    """``exec`` in a thread of its own."""

    def __init__(self):
        self.work, self.replies = SimpleQueue(), SimpleQueue()
        alone = type(loop)(loop.__code__, {"__builtins__": builtins.__dict__})
        self.thread = _thread.start_new_thread(alone, (self.work.get, self.replies.put, exec, BaseException))

    def exec(self, code, variables):
        if isinstance(code, str):
            code = compile(code, SOLUTION, "exec")
        self.work.put((code, variables))
        error = self.replies.get()
        if error is not None:
            raise error
