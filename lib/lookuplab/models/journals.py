"""Journals: a store's rows on a file system that machines share. They need no locks and no shared
memory.

Each process appends to a separate file in the folder ``NAME.sqlite.journals``, and all processes
read all files. A line is ``[time in ns, key, text]``; a line without a text deletes the earlier row
of that key. If two rows have one key, all readers take the earlier. A kill may leave half a line at
the end of a file, which is ignored.
"""

import errno
import fcntl
import json
import mmap
import os
import socket
import sqlite3
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryFile

from lookuplab import paths

# file systems in memory, and a container's layers, which no other machine sees
OF_THIS_MACHINE = ("tmpfs", "overlay")
# of a folder where nothing can be written: what is stored there can be read all the same
UNWRITABLE = errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT
BEGAN = time.time_ns()  # distinguishes this process from a later one with the same number
KEEP = """INSERT INTO rows VALUES (?, ?, ?, 0) ON CONFLICT DO UPDATE
    SET json = excluded.json, at = excluded.at
    WHERE excluded.at > gone AND (json IS NULL OR excluded.at < at)"""
FORGET = """INSERT INTO rows VALUES (?, NULL, 0, ?) ON CONFLICT DO UPDATE
    SET gone = max(gone, excluded.gone), json = CASE WHEN at > excluded.gone THEN json END"""


def is_local(folder: Path) -> bool:
    """Return whether SQLite's locks and shared memory reach all who write to the file system of
    ``folder``: it has both, and no other machine writes to it. The latter is so for a block device
    or the memory of this machine, and for no others (NFS, Lustre, FUSE, unknown ones).
    """
    import psutil  # takes time

    place = next(one for one in (folder.resolve(), *folder.resolve().parents) if one.exists())
    if not _has_locks(place):
        return False
    if os.major(place.stat().st_dev):
        return True
    mounts = {Path(one.mountpoint): one for one in psutil.disk_partitions(all=True)}
    mount = next((mounts[one] for one in (place, *place.parents) if one in mounts), None)
    return mount is not None and (
        # such as btrfs, whose files have numbers of no device
        Path(mount.device).is_block_device() or mount.fstype in OF_THIS_MACHINE
    )


def _has_locks(folder: Path) -> bool:
    """Try a lock and shared memory on a file without a name."""
    try:
        with TemporaryFile(dir=folder) as probe:
            probe.truncate(1)
            fcntl.lockf(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mmap.mmap(probe.fileno(), 1).close()
    except OSError as error:
        return error.errno in UNWRITABLE
    return True


class Journals:
    """The files of one store, in ``folder``, which the first ``append`` makes."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._last = 0
        self._read = dict[Path, int]()  # bytes

    def append(self, rows: Iterable[tuple[str, str | None]]) -> None:
        """Add a batch to this process's file, and wait until it is on the disk."""
        name = f"{socket.gethostname()}-{os.getpid()}-{BEGAN}.jsonl"
        lines = [""]  # the file may end in half a line, left by a full disk
        for key, text in rows:
            self._last = max(self._last + 1, time.time_ns())
            lines.append(json.dumps([self._last, key, text]))
        with (paths.made(self.folder) / name).open("ab", buffering=0) as own:
            own.write("\n".join([*lines, ""]).encode())
            os.fsync(own.fileno())

    def follow(self, db: sqlite3.Connection) -> None:
        """Insert the new lines of all files into the table ``rows`` (key, json, at, gone)."""
        found: list[tuple[int, str, str | None]] = []
        damaged = 0
        for file in sorted(self.folder.glob("*.jsonl")):
            begin = self._read.get(file, 0)
            if file.stat().st_size == begin:
                continue
            with file.open("rb") as stream:
                stream.seek(begin)
                whole, end, _ = stream.read().rpartition(b"\n")
            self._read[file] = begin + len(whole + end)
            for line in filter(None, whole.split(b"\n")):
                try:
                    at, key, text = json.loads(line)
                    found.append((int(at), str(key), text))
                except (ValueError, TypeError):
                    damaged += 1
        if damaged:
            print(f"{self.folder}: {damaged} lines are damaged; left out", file=sys.stderr)
        with db:
            for at, key, text in sorted(found, key=lambda row: row[0]):
                db.execute(*((FORGET, (key, at)) if text is None else (KEEP, (key, text, at))))
