"""Isolates processes with Linux namespaces. The system calls are made through ctypes, because
Python's standard library lacks them.

An isolated process has no network and does not see the other processes of the machine. It sees no
files except the system's programs and libraries, which it can only read. It can write only in
WORK_FOLDER, a file system in memory, which is also its home, its /tmp and its /dev/shm.
"""

import contextlib
import ctypes
import os
import resource
import signal
import struct

WORK_FOLDER = "/sandbox"
# Paths that an isolated process can see. The files in /etc are needed to load libraries and to look
# up fonts, time zones and user names. They contain no keys or passwords.
SHOWN_PATHS = """
    /usr /bin /sbin /lib /lib32 /lib64 /libx32 /nix/store /etc/alternatives /etc/fonts /etc/group
    /etc/hosts /etc/ld.so.cache /etc/ld.so.conf /etc/ld.so.conf.d /etc/localtime /etc/mime.types
    /etc/nsswitch.conf /etc/os-release /etc/passwd /etc/timezone /dev/null /dev/zero /dev/full
    /dev/random /dev/urandom
""".split()
USER = 1000  # the user id and group id inside the namespaces
# The new root is assembled in this folder, which exists on every system. The sandbox does not need
# the folder's own content.
STAGE = "/sys"
# the largest number of files in WORK_FOLDER, and of open files in one process
FILES, OPEN_FILES = 20_000, 256
LIMITS = {  # field of ``server.Limits`` -> the resource that it limits
    "cpu_seconds": resource.RLIMIT_CPU,
    "memory": resource.RLIMIT_DATA,
    "processes": resource.RLIMIT_NPROC,
    "file_size": resource.RLIMIT_FSIZE,
}
# constants of linux/sched.h, linux/mount.h, linux/prctl.h and linux/capability.h
NEW_MOUNTS, NEW_UTS, NEW_IPC, NEW_USER = 0x20000, 0x4000000, 0x8000000, 0x10000000
NEW_PIDS, NEW_NETWORK = 0x20000000, 0x40000000
NOSUID, NODEV, NOEXEC, BIND, RECURSIVE, PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
READ_ONLY, AT_RECURSIVE, DETACH = 1, 0x8000, 2
SET_PDEATHSIG, SET_DUMPABLE, SET_SECCOMP, DROP_BOUNDING = 1, 4, 22, 24
SET_SUBREAPER, NO_NEW_PRIVS = 36, 38
CAPABILITY_VERSION, CAPABILITIES = 0x20080522, 64
MOUNT_SETATTR = 442
# type of machine -> (the type's number in linux/audit.h, the number of the system call pivot_root,
# the numbers of the calls that are refused: memfd_create, memfd_secret, shmget and io_uring_setup,
# the numbers of the calls that are restricted to FAMILIES: socket and socketpair)
MACHINES = {
    "x86_64": (0xC000003E, 155, (319, 447, 29, 425), (41, 53)),
    "aarch64": (0xC00000B7, 41, (279, 447, 194, 425), (198, 199)),
}
# families of sockets that are allowed (linux/socket.h): local, IPv4, IPv6 and netlink, which
# connects processes with the kernel
FAMILIES = (1, 2, 10, 16)

_libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: object) -> None:
    """Call a function of the C library by name. Raises OSError if the function fails."""
    if getattr(_libc, name)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name} {arguments}: {os.strerror(number)}")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount ``source`` on ``target``, which must exist."""
    names = source.encode(), target.encode(), kind.encode() or None
    call("mount", *names, ctypes.c_ulong(flags), options.encode())


def read_only(target: str, flags: int, recursive: int = AT_RECURSIVE) -> None:
    """Add ``flags`` such as READ_ONLY to the mount at ``target`` and, by default, to all mounts
    below it. This needs Linux 5.12 or newer.
    """
    attributes = (ctypes.c_uint64 * 4)(flags, 0, 0, 0)
    size = ctypes.sizeof(attributes)
    # -100 is AT_FDCWD: a relative target is looked up in the working directory
    call("syscall", MOUNT_SETATTR, -100, target.encode(), recursive, attributes, size)


def mount_memory(target: str, size: int) -> None:
    """Mount an empty file system in memory on ``target``. It holds at most ``size`` bytes, and no
    file in it can be executed.
    """
    options = f"mode=1777,size={size},nr_inodes={FILES}"
    mount("tmpfs", target, "tmpfs", NOSUID | NODEV | NOEXEC, options)


def bind_read_only(source: str) -> None:
    """Make a path visible under the new root, read-only and with the same name. If the path is a
    link, make the link's target visible, too.
    """
    target = STAGE + source
    if os.path.lexists(target) or not os.path.lexists(source):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(source):
        folder = os.path.realpath(os.path.dirname(source))
        meant = os.path.normpath(os.path.join(folder, os.readlink(source)))
        os.symlink(meant, target)
        bind_read_only(meant)
        return
    if os.path.isdir(source):
        os.mkdir(target)
    else:
        open(target, "w").close()
    mount(source, target, flags=BIND | RECURSIVE)
    read_only(target, READ_ONLY | NOSUID | (0 if source.startswith("/dev/") else NODEV))


def enter_namespaces(readable: list[str]) -> None:
    """Enter new namespaces. The function returns only in a child process, the first process of the
    namespaces. The child sees a new root with WORK_FOLDER and, read-only, SHOWN_PATHS and the paths
    in ``readable``.

    The calling process stays outside, waits for the child, and ends when the child ends. Raises
    OSError if the kernel refuses to make the namespaces.
    """
    user, group = os.geteuid(), os.getegid()
    call("unshare", NEW_USER | NEW_MOUNTS | NEW_PIDS | NEW_NETWORK | NEW_IPC | NEW_UTS)
    # the kernel accepts gid_map only after setgroups is denied
    own = (("setgroups", "deny"), ("uid_map", f"{USER} {user} 1"), ("gid_map", f"{USER} {group} 1"))
    for name, text in own:
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    fork_and_wait()
    mount("none", "/", flags=RECURSIVE | PRIVATE)
    mount("tmpfs", STAGE, "tmpfs", NOSUID, "mode=0755")
    for path in (
        *SHOWN_PATHS,
        *sorted(map(os.path.abspath, readable)),
    ):  # sorted, so that a folder precedes its content
        bind_read_only(path)
    for name in ("/proc", WORK_FOLDER, "/old"):
        os.mkdir(STAGE + name)
    for name in ("/dev/shm", "/tmp"):
        # if the folder already exists, it contains a path in ``readable``; a link would hide that
        # path
        if not os.path.exists(STAGE + name):
            os.symlink(WORK_FOLDER, STAGE + name)
    os.symlink("/proc/self/fd", STAGE + "/dev/fd")
    mount("proc", STAGE + "/proc", "proc", NOSUID | NODEV | NOEXEC)
    mount_memory(STAGE + WORK_FOLDER, 1 << 30)
    call("syscall", MACHINES[os.uname().machine][1], STAGE.encode(), f"{STAGE}/old".encode())
    os.chdir(WORK_FOLDER)
    call("umount2", b"/old", DETACH)
    os.rmdir("/old")
    read_only("/", READ_ONLY, 0)
    # forbid further user namespaces, in which a process could get new rights
    with open("/proc/sys/user/max_user_namespaces", "w") as file:
        file.write("0")


def fork_and_wait() -> None:
    """Fork, and return only in the child. The parent waits for the child. It then ends with the
    child's exit code, or with 128 plus the number of the signal that killed the child. If the
    parent is killed, the kernel kills the child, too.
    """
    if child := os.fork():
        # while the parent waits, it must hold no pipe open, because readers wait for the pipe's end
        for end in range(3):
            os.dup2(os.open(os.devnull, os.O_RDWR), end)
        os.closerange(3, OPEN_FILES)
        ended = 0
        while ended != child:
            ended, status = os.wait()
        os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
    call("prctl", SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def nest_namespaces(size: int) -> None:
    """Enter further namespaces, nested in those that ``enter_namespaces`` made. The function
    returns only in a grandchild of the calling process.

    The grandchild sees no processes from outside the new namespaces. When it ends, all processes
    that it has started end, too. It has its own WORK_FOLDER of ``size`` bytes, and no right to
    change its limits.
    """
    call("unshare", NEW_MOUNTS | NEW_PIDS | NEW_IPC)
    fork_and_wait()  # the child is the first process of the new namespaces
    mount_memory(WORK_FOLDER, size)
    mount("proc", "/proc", "proc", NOSUID | NODEV | NOEXEC)
    with contextlib.suppress(OSError), open("/proc/sys/kernel/pid_max", "w") as file:
        # the lowest possible limit of process ids (Linux 6.14 or newer); unlike RLIMIT_NPROC, it
        # applies even to root
        file.write("310")
    # go on in a second process, because most signals do not end the first process of a namespace
    fork_and_wait()
    drop_capabilities()
    os.chdir(WORK_FOLDER)


def enter_read_only(readable: list[str], wanted: list[str]) -> None:
    """Enter new namespaces. The function returns only in a grandchild of the calling process. The
    grandchild can read only SHOWN_PATHS and the paths in ``readable`` and ``wanted``, can write
    only in memory, and cannot lift these restrictions. Raises OSError if the kernel refuses to make
    the namespaces, or if a path in ``wanted`` cannot be seen there.
    """
    enter_namespaces([*readable, *wanted])
    # go on in a second process, because most signals do not end the first process of a namespace
    fork_and_wait()
    drop_capabilities()
    for path in wanted:
        os.stat(path)


def drop_capabilities() -> None:
    """Drop every capability for good, and make the kernel refuse dangerous system calls."""
    # for a number that names no capability, this call of prctl fails, which does no harm
    for capability in range(CAPABILITIES):
        _libc.prctl(DROP_BOUNDING, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    nothing = (ctypes.c_uint32 * 6)()
    call("capset", header, nothing)
    call("prctl", NO_NEW_PRIVS, 1, 0, 0, 0)
    block_system_calls()


def block_system_calls() -> None:
    """Make four kinds of system calls fail with EPERM: requests for memory that is charged to no
    process; calls that use another architecture's call numbers, such as 32-bit calls; io_uring, a
    queue of calls that would bypass these rules; and sockets of families other than FAMILIES, which
    a network namespace does not isolate.
    """
    machine, _, calls, sockets = MACHINES[os.uname().machine]
    # a rule is (instruction, rules to skip if true, rules to skip if false, value); linux/filter.h
    load, equal, above, give = 0x20, 0x15, 0x35, 0x06
    # The offsets of two fields in the kernel's data about a call: the call's number, and its first
    # argument. The first argument of the call ``socket`` is the family of the socket.
    number, family = 0, 16
    allowed, refused = (give, 0, 0, 0x7FFF0000), (give, 0, 0, 0x50001)
    rules = [(load, 0, 0, 4), (equal, 1, 0, machine), refused, (load, 0, 0, number)]
    rules += [(above, 0, 1, 0x40000000), refused]
    rules += [rule for one in calls for rule in ((equal, 0, 1, one), refused)]
    rules += [(equal, 2, 0, sockets[0]), (equal, 1, 0, sockets[1]), allowed]
    rules += [(load, 0, 0, family)]
    rules += [rule for one in FAMILIES for rule in ((equal, 0, 1, one), allowed)]
    rules += [refused]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
    program = struct.pack("HxxxxxxP", len(rules), ctypes.addressof(code))
    call("prctl", SET_SECCOMP, 2, ctypes.create_string_buffer(program), 0, 0)


def set_limits(limits: "dict[str, int]") -> None:
    """Set resource limits for this process and all processes that it will start. ``limits`` has the
    same keys as LIMITS. If the system does not allow a limit as high as requested, the highest
    allowed limit is set.
    """
    wanted = {kind: int(limits[name]) for name, kind in LIMITS.items()}
    wanted |= {resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: OPEN_FILES}
    for kind, value in wanted.items():
        highest = resource.getrlimit(kind)[1]
        value = value if highest == resource.RLIM_INFINITY else min(value, highest)
        above = value + 1 if kind == resource.RLIMIT_CPU and value < highest else value
        # for processor time, the hard limit (SIGKILL) is a second above the soft limit (SIGXCPU)
        resource.setrlimit(kind, (value, above))
