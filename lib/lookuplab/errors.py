"""Defines ``UserError``, the one exception whose message is meant for the user, and turns other
errors that are not bugs into messages for the user.
"""

import difflib
import errno
import re
import shlex
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager

# raised by ast.parse for an invalid text, and by ast.dump and ast.unparse for a very deep tree
UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
MOST_NAMED = 10  # if there are more choices than this, only the three most similar are named
# Errors of a disk. ``explain`` accepts them even if they name no file, because an error that is
# raised after a file was opened never names the file.
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ESTALE}
# errors for too many open files or processes
_LIMIT_ERRNOS = {errno.EMFILE, errno.ENFILE, errno.EAGAIN}
# what Python, the loader, numpy and torch say when memory cannot be allocated
_NO_MEMORY = re.compile(
    r"MemoryError|\[Errno 12\]|(cannot|can't|unable to|failed to) (allocate|map segment)"
    r"|can't start new thread|out of memory"
)
NO_MEMORY = "not enough memory; raise the limit (`ulimit -v`) or free some, then run again"


class UserError(Exception):
    """Raised for bad input or a missing resource. The message says in one line what is wrong and
    what to do.

    The command line prints the message after ``error:`` and exits with code 2.
    """

    def _render_traceback_(self) -> list[str]:
        """Return the text that a notebook shows in place of a traceback."""
        return [f"error: {self}"]

    def __str__(self) -> str:
        # joined to one line, because the message may quote a text of several lines
        return " ".join(super().__str__().splitlines())


def check_choice(what: str, value: object, choices: Collection[object], others: str = "") -> None:
    """Raise UserError if ``value`` is not among the choices. The message begins with ``what`` and
    lists the choices: first the choices that contain ``value``, then the most similar ones. If
    there are more than ten choices, the message lists three of them and gives their total number.
    ``others`` is the end of the message, and says where all choices are listed.
    """
    if value in [*choices]:  # in a list, because a set cannot look up a value without a hash
        return
    names = [str(choice) or '""' for choice in choices]
    most, rest = MOST_NAMED, ""
    if len(names) > MOST_NAMED:
        most, rest = 3, f" or another of {len(names)} choices"
    holding = sorted((name for name in names if str(value) in name), key=len)
    near = [*holding, *difflib.get_close_matches(str(value), names, most, cutoff=0)]
    told = ", ".join([*dict.fromkeys(near)][:most])
    must = f"it must be {told}{rest}{others}" if names else "there is none to choose from"
    raise UserError(f"{what} is {value!r}; {must}")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the error's type if there is no message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def no_memory(text: str) -> bool:
    """Return whether ``text``, an error's type and message, says that memory ran out."""
    return _NO_MEMORY.search(text) is not None


@contextmanager
def needs(extra: str, note: str = "") -> Iterator[None]:
    """Guard imports of packages that belong to ``extra``, an optional dependency group in
    pyproject.toml. Raises UserError if a package is missing; the message ends with ``note``.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        python = shlex.quote(sys.executable)
        raise UserError(
            f"{error.name} is not installed: in the kit's folder, {python} -m pip install "
            f"-c constraints.txt -e '.[{extra}]'{note}"
        ) from None


def explain(error: Exception) -> str | None:
    """Return a one-line message for a UserError, a full disk, an unusable path, a lack of memory or
    an exceeded limit. Return None for any other error, because it may be a bug.
    """
    if no_memory(f"{type(error).__name__}: {error}") and not isinstance(error, UserError):
        return f"{NO_MEMORY}: {error}".removesuffix(": ")
    if isinstance(error, OSError) and error.errno in _LIMIT_ERRNOS:
        return f"{error.strerror}: raise the limit (such as `ulimit -n 1024`), then run again"
    # a web error must not count here: it has no ``errno``, and its ``filename`` is an address
    if isinstance(error, OSError) and error.errno and (error.filename or error.errno in _DISK):
        return (
            f"cannot use {error.filename or 'the disk'}: {error.strerror}; free some space or "
            "correct the path or its permissions, then run again"
        )
    if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop"):
        return f"cannot use this path: {error}"  # from Python 3.13 on, this is an OSError (ELOOP)
    return str(error) if isinstance(error, UserError) else None
