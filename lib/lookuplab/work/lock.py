"""Two commands never write one place: beside it lies a file that says whose it is.

Not every shared file system has locks, so the file is told alive by its owner, which touches it.
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
MISSED = 3  # beats without one, after which an owner on another machine counts as dead


class Taken(UserError):
    """Another process is at work in the same place."""


class _Held:
    """What a lock file lives as long as: at the latest, it goes when Python ends."""


@contextmanager
def alone(place: Path, does: str, wait: bool = False) -> Iterator[None]:
    """Hold ``.NAME.lock`` beside ``place`` (a file or folder) while the block runs; ``does`` says
    what happens there ("writes scores.jsonl"). The lock of a dead process is taken over.

    If another process holds it, ``wait``, or raise Taken with that process and its machine.
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
    """Write ``own`` into the file and return None, unless it is another's than the ``dead`` one's:
    then return that.
    """
    with file.open("a+b") as stream:
        with suppress(OSError):  # a file system without locks; then two that begin at once may meet
            fcntl.flock(stream, fcntl.LOCK_EX)
        if not file.exists() or file.stat().st_ino != os.fstat(stream.fileno()).st_ino:
            return _take(file, own, dead)  # its owner has just ended
        stream.seek(0)
        try:
            other = dict(json.loads(stream.read()))
            is_owner = [*map(type, other.values())] == [*map(type, own.values())]
        except (ValueError, TypeError, RecursionError):  # new, or its owner died while it wrote
            is_owner = False
        if is_owner and other.keys() == own.keys() and other != dead:
            return other
        stream.truncate(0)
        stream.write(json.dumps(own).encode())
    return None


def _release(file: Path, own: dict[str, object]) -> None:
    with suppress(OSError, ValueError):  # a process that slept for long may have lost it
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
    """When a process began, which tells it from a later one of the same number; None if it has
    ended.
    """
    import psutil  # takes time

    with suppress(psutil.NoSuchProcess):
        if (found := psutil.Process(process)).status() != psutil.STATUS_ZOMBIE:
            return float(found.create_time())
    return None
