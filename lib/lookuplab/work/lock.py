"""Locks, so that two commands never write to the same place. A file beside the place names its
owner.

Not every shared file system has locks. The owner therefore touches the file regularly to show that
it is alive (``filelock.SoftFileLease``).
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lookuplab import paths
from lookuplab.errors import UserError

SILENCE = 30.0  # seconds without a touch until an owner on another machine counts as dead


class Taken(UserError):
    """Another process is working in the same place."""


@contextmanager
def alone(place: Path, does: str, wait: bool = False) -> Iterator[None]:
    """Hold ``.NAME.lock`` beside ``place`` (a file or folder) while the block runs. ``does`` says
    what happens there ("writes scores.jsonl"). The lock of a dead process is taken over.

    If another process holds it, ``wait``, or raise Taken, which names that process and its machine.
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
            if not lease.owner:  # a file of other content, or one whose owner is about to write it
                time.sleep(1)
                if not lease.owner:
                    lease.force_break()
            lease.acquire(timeout=SILENCE + 5)
    except Timeout:
        who = f"process {lease.pid} on {lease.owner and lease.owner.hostname}"
        raise Taken(
            f"another lookuplab {does}: {who}; wait until it has ended, or end it"
        ) from None
    try:
        yield
    finally:
        lease.release()
