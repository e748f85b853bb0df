"""The Linux system calls of the sandbox that Python's own library lacks."""

import ctypes
import os

# linux/sched.h, linux/mount.h, linux/prctl.h, linux/capability.h
NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_PIDS = 0x20000, 0x8000000, 0x10000000, 0x20000000
NOSUID, NODEV, NOEXEC, BIND, MOVE, RECURSIVE, PRIVATE = 2, 4, 8, 4096, 8192, 16384, 1 << 18
_MOUNT_SETATTR, _PIVOT_ROOT = 442, {"x86_64": 155, "aarch64": 41}  # system call numbers
_READ_ONLY, _AT_FDCWD, _AT_RECURSIVE, _DETACH = 1, -100, 0x8000, 2
_SET_PDEATHSIG, _SET_DUMPABLE, _DROP_BOUNDING, _SET_SUBREAPER, _NO_NEW_PRIVS = 1, 4, 24, 36, 38
_CAPABILITY_VERSION, _CAPABILITIES = 0x20080522, 64

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """New namespaces for this process (for its children, where ``flags`` hold NEW_PIDS)."""
    _checked(_libc.unshare(flags), "unshare")


def become_user(number: int, flags: int = 0) -> None:
    """New namespaces, one of users among them, in which this process's user and group have this ``number``."""
    texts = {"setgroups": "deny", "uid_map": f"{number} {os.geteuid()} 1", "gid_map": f"{number} {os.getegid()} 1"}
    unshare(NEW_USER | flags)
    for name, text in texts.items():
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    _checked(_libc.mount(source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags),
                         options.encode() or None), f"mount {target}")


def bind(source: str, target: str, read_only: bool, flags: int = NOSUID) -> None:
    """What stands at ``source``, with all that is mounted below, stands at ``target`` too (Linux 5.12 or newer)."""
    mount(source, target, flags=BIND | RECURSIVE)
    attributes = (ctypes.c_uint64 * 4)(flags | (_READ_ONLY if read_only else 0), 0, 0, 0)
    _checked(_libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, target.encode(), _AT_RECURSIVE, attributes,
                           ctypes.sizeof(attributes)), f"mount_setattr {target}")


def change_root(root: str) -> None:
    """``root``, a mount, becomes the root of this process's file system; the old one is gone."""
    old = os.path.join(root, "old")
    os.mkdir(old)
    _checked(_libc.syscall(_PIVOT_ROOT[os.uname().machine], root.encode(), old.encode()), "pivot_root")
    os.chdir("/")
    _checked(_libc.umount2(b"/old", _DETACH), "umount")
    os.rmdir("/old")
    attributes = (ctypes.c_uint64 * 4)(_READ_ONLY, 0, 0, 0)
    _checked(_libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, b"/", 0, attributes, ctypes.sizeof(attributes)), "mount_setattr")


def die_with_parent(signal: int) -> None:
    """The parent's end sends ``signal`` to this process."""
    _checked(_libc.prctl(_SET_PDEATHSIG, signal, 0, 0, 0), "prctl")


def allow_tracing(allowed: bool) -> None:
    """Whether other processes of the user may trace this one, or read its memory and its files under /proc."""
    _checked(_libc.prctl(_SET_DUMPABLE, int(allowed), 0, 0, 0), "prctl")


def adopt_orphans() -> None:
    """Descendants whose parents end become children of this process, not of the system's first."""
    _checked(_libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0), "prctl")


def drop_privileges() -> None:
    """No capabilities, and none to be had from programs that bring some, for this process and all that it starts."""
    for capability in range(_CAPABILITIES):
        _libc.prctl(_DROP_BOUNDING, capability, 0, 0, 0)  # refused without the privilege to, or beyond the last one
    header, nothing = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    _checked(_libc.capset(header, nothing), "capset")
    _checked(_libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
