"""The process of one program, and the verdict that it writes when it comes to its end.

A verdict presupposes a solution that does not attack its test, for the two share one interpreter. Only what honest code
never does is held: a process that ends before its test does, or writes where the verdict is written, has failed. From the
rest the sandbox protects the machine, but nothing protects the verdict.
"""

import builtins
import os
import sys

PROGRAM = "<program>"
SECRET = 16  # bytes
LONGEST = 500  # characters of an error
PASSED, FAILED = b"\1", b"\0"


def verdict(received: bytes):
    """The verdict in what came from the process: None while there is none, a failure if somebody else wrote it.

    The secret comes first, before any of the program runs; only who knows it can write a verdict.
    """
    secret, message = received[:SECRET], received[SECRET:]
    if not message:
        return None
    if not message.startswith(secret):
        return {"passed": False, "error": "refused: writing in the place of the verdict"}
    said = message[SECRET:]
    return {"passed": said[:1] == PASSED, "error": said[1:].decode("utf-8", "replace")}


def judge(request: dict, pipe: int) -> None:
    """Run the program ``request["run"]``, write its verdict to ``pipe``, a socket, and end the process."""
    secret, write, leave, stat = os.urandom(SECRET), os.write, os._exit, os.fstat
    write(pipe, secret)
    place = stat(pipe).st_ino
    reseed(request["seed"])
    sys.modules["__main__"] = type(sys)("__main__")
    passed, error = True, ""
    try:
        exec(compile(request["run"], PROGRAM, "exec"), {"__name__": "__main__", "__builtins__": builtins})
    except BaseException as raised:
        passed, error = False, described(raised)
    if stat(pipe).st_ino == place:  # else somebody waits for the secret
        write(pipe, secret + (PASSED if passed else FAILED) + error[:LONGEST].encode("utf-8", "replace"))
    leave(0)


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
