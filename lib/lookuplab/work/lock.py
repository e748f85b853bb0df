"""Locks, so that two commands never write to the same place. A lock is a file beside the place,
which names the process that owns the lock.

Not every shared file system supports the system's own locks. The owner therefore touches the lock's
file regularly to show that it is alive (``filelock.SoftFileLease``).
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lookuplab import paths
from lookuplab.errors import UserError

SILENCE = 30.0  # seconds without a touch until an owner on another machine counts as dead


class Taken(UserError):
    """Raised if another process is working in the same place."""


@contextmanager
def alone(place: Path, does: str, wait: bool = False) -> Iterator[None]:
    """Hold the lock ``.NAME.lock`` beside ``place`` (a file or folder) while the block runs.
    ``does`` says what the block does ("writes scores.jsonl"), for errors of other processes.

    The lock of a dead process is taken over. If a living process holds the lock, ``wait`` until it
    is free, or else raise Taken, which names that process and its machine.
    """
    from filelock import SoftFileLease, Timeout  # slow to import

    file = paths.made(place.parent) / f".{place.name}.lock"
    lease = SoftFileLease(file, lease_duration=SILENCE)
    try:
        try:
            lease.acquire(timeout=-1 if wait else 0)
        except Timeout as error:
            if lease.owner and "cannot probe" not in str(error):
                raise
            # the file has other content, or its owner has created it and not yet written into it
            if not lease.owner:
                time.sleep(1)
                if not lease.owner:
                    lease.force_break()
            lease.acquire(timeout=SILENCE + 5)
    except Timeout:
        who = f"process {lease.pid} on {lease.owner and lease.owner.hostname}"
        raise Taken(f"another lookuplab {does}: {who}; wait until it ends, or stop it") from None
    try:
        yield
    finally:
        lease.release()
