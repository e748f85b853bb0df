"""Locks, so that two commands never write to the same place. A file beside the place names its
owner.

Not every shared file system has locks. The owner therefore touches the file regularly to show that
it is alive.
"""

import fcntl
import json
import os
import socket
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lookuplab.errors import UserError

BEAT = 10.0  # seconds between two touches
MISSED = 3  # touches missed until an owner on another machine counts as dead


class Taken(UserError):
    """Another process is working in the same place."""


class _Held:
    """An object that is kept while the lock is held. It releases the lock at the latest when Python
    ends.
    """


@contextmanager
def alone(place: Path, does: str, wait: bool = False) -> Iterator[None]:
    """Hold ``.NAME.lock`` beside ``place`` (a file or folder) while the block runs. ``does`` says
    what happens there ("writes scores.jsonl"). The lock of a dead process is taken over.

    If another process holds it, ``wait``, or raise Taken, which names that process and its machine.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    file = place.with_name(f".{place.name}.lock")
    own = {"process": os.getpid(), "host": socket.gethostname(), "began": _began(os.getpid())}
    dead = None
    while (other := _take(file, own, dead)) is not None:
        if not _lives(other, file):
            dead = other
        elif wait:
            time.sleep(0.1)
        else:
            raise Taken(
                f"another lookuplab {does}: process {other['process']} on {other['host']}; "
                "wait until it has ended, or end it"
            )
    held, ended = _Held(), threading.Event()
    release = weakref.finalize(held, _release, file, own)

    def touch() -> None:
        while not ended.wait(BEAT):
            with suppress(OSError):
                os.utime(file)

    threading.Thread(target=touch, daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        release()


def _take(file: Path, own: dict[str, object], dead: object) -> dict[str, object] | None:
    """Write ``own`` into the lock file and return None. If the file belongs to another owner than
    ``dead``, return that owner instead.
    """
    with file.open("a+b") as stream:
        # on a file system without locks, two that begin at once may both succeed
        with suppress(OSError):
            fcntl.flock(stream, fcntl.LOCK_EX)
        if not file.exists() or file.stat().st_ino != os.fstat(stream.fileno()).st_ino:
            return _take(file, own, dead)  # its owner has just released it
        stream.seek(0)
        try:
            other = dict(json.loads(stream.read()))
            is_owner = [*map(type, other.values())] == [*map(type, own.values())]
        except (ValueError, TypeError, RecursionError):  # empty, or its owner died while writing
            is_owner = False
        if is_owner and other.keys() == own.keys() and other != dead:
            return other
        stream.truncate(0)
        stream.write(json.dumps(own).encode())
    return None


def _release(file: Path, own: dict[str, object]) -> None:
    with suppress(OSError, ValueError):  # a process that slept for long may have lost the lock
        if json.loads(file.read_bytes()) == own:
            file.unlink()


def _lives(other: dict[str, object], file: Path) -> bool:
    if other["host"] == socket.gethostname():
        began = _began(int(str(other["process"])))
        # the clock may have been set since
        return began is not None and abs(began - float(str(other["began"]))) < 60
    with suppress(OSError):
        seen = file.stat().st_mtime_ns
        for _ in range(MISSED):
            time.sleep(BEAT)
            if file.stat().st_mtime_ns != seen:
                return True
    return False


def _began(process: int) -> float | None:
    """Return when a process began, which distinguishes it from a later one with the same number;
    None if it has ended.
    """
    import psutil  # slow to import

    with suppress(psutil.NoSuchProcess):
        if (found := psutil.Process(process)).status() != psutil.STATUS_ZOMBIE:
            return float(found.create_time())
    return None
