"""First program of a sandboxed process: sets its limits, hides the system from it and becomes the program proper.

Its arguments are a JSON object and the program's command:

    {"limits": {...}, "root": null | {"folder": ..., "readable": [...], "memory": bytes}} PROGRAM ARGUMENT...

With a ``root`` it runs as the first process in new user, mount, process, network and IPC namespaces.
"""

import json
import os
import resource
import sys

from lookuplab.execution import kernel

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
# What the loader, fonts, time zones and names of users need; no keys, no passwords
SETTINGS = ("alternatives", "fonts", "group", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime",
            "mime.types", "nsswitch.conf", "os-release", "passwd", "python3", "python3.11", "timezone")
DEVICES = ("null", "zero", "full", "random", "urandom")
LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}
USER = 1000
STAGE = "/sys"  # exists everywhere and is wanted nowhere: the new root is put together here
RESOURCES = {"cpu_seconds": resource.RLIMIT_CPU, "memory": resource.RLIMIT_DATA, "processes": resource.RLIMIT_NPROC,
             "file_size": resource.RLIMIT_FSIZE}


def limit(limits: dict) -> None:
    """Resource limits of this process and what it starts; names as in ``sandbox.Limits``, absent ones are unlimited."""
    wanted = {kind: limits[name] for name, kind in RESOURCES.items() if name in limits}
    if "memory" in limits:  # beyond what is mapped now, for memory that RLIMIT_DATA does not count
        with open("/proc/self/statm") as file:
            wanted[resource.RLIMIT_AS] = int(file.read().split()[0]) * resource.getpagesize() + 2 * limits["memory"]
    for kind, value in {**wanted, resource.RLIMIT_CORE: 0}.items():
        highest = resource.getrlimit(kind)[1]
        value = int(value) if highest == resource.RLIM_INFINITY else min(int(value), highest)
        # a second more before the kernel kills: SIGXCPU comes first
        above = value + 1 if kind == resource.RLIMIT_CPU and highest == resource.RLIM_INFINITY else value
        resource.setrlimit(kind, (value, above))


def show(source: str, read_only: bool = True) -> None:
    """Make a path of the system visible under the new root, at its own name."""
    target = STAGE + source
    if os.path.islink(source):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.lexists(target):
            os.symlink(os.readlink(source), target)
        return
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif os.path.exists(source):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.exists(target):
            open(target, "w").close()
    else:
        return
    kernel.bind(source, target, read_only, kernel.NOSUID if source.startswith("/dev/") else
                kernel.NOSUID | kernel.NODEV)


def temporary(target: str, size: int) -> None:
    """An empty file system in memory, of ``size`` bytes at most. Nothing in it can be run."""
    os.makedirs(target, exist_ok=True)
    kernel.mount("tmpfs", target, "tmpfs", kernel.NOSUID | kernel.NODEV | kernel.NOEXEC, f"mode=1777,size={size}")


def change_root(folder: str, readable: list, memory: int) -> None:
    """A file system of the system's own folders and ``readable``, read-only, and of ``folder`` and /tmp."""
    kernel.mount("none", "/", flags=kernel.RECURSIVE | kernel.PRIVATE)
    kernel.mount("tmpfs", STAGE, "tmpfs", kernel.NOSUID, "mode=0755")
    for path in (*SYSTEM, *(f"/etc/{name}" for name in SETTINGS), *(f"/dev/{name}" for name in DEVICES)):
        show(path)
    for name, place in LINKS.items():
        os.symlink(place, f"{STAGE}/dev/{name}")
    for name in ("tmp", "dev/shm"):
        temporary(f"{STAGE}/{name}", memory // 4)
    os.mkdir(STAGE + "/proc")
    kernel.mount("proc", STAGE + "/proc", "proc", kernel.NOSUID | kernel.NODEV | kernel.NOEXEC)
    for path in sorted(readable):  # a folder before what lies in it
        show(path)
    show(folder, read_only=False)
    kernel.change_root(STAGE)


def main() -> None:
    task, command = json.loads(sys.argv[1]), sys.argv[2:]
    if task["root"]:
        change_root(**task["root"])
        os.chdir(task["root"]["folder"])
        # a process that is no root may make namespaces of its own; these mounts are out of its reach
        kernel.become_user(USER)
        kernel.drop_privileges()
    limit(task["limits"])
    os.execv(command[0], command)
