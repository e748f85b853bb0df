"""The server's program: runs in the sandbox, under the Python that the programs need, with its standard library alone.

Its argument is a JSON object with ``limits``, ``private`` (whether a program may have namespaces of its own),
``readable`` and ``folder``. Frames on standard input and output: four bytes of length, JSON.

``{"push": "import numpy"}`` forks a process that makes the import and answers from then on; ``{"pop": true}`` ends it,
and the one below answers again; ``{"run": text, "seed": n}`` runs a program below the process that stands on top. So a
process holds exactly the imports on the way to it.
"""

import _socket
import gc
import json
import os
import shutil
import signal
import struct
import sys

from lookuplab.execution import enter, guard, kernel, watching

LEAST_PIDS = 310  # the kernel takes no less


class Channel:
    """Frames from and to the caller."""

    def __init__(self, requests: int, answers: int):
        self.requests, self.answers = requests, answers

    def _exactly(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            more = os.read(self.requests, count - len(found))
            if not more:
                os._exit(0)  # the caller is gone
            found += more
        return found

    def read(self) -> dict:
        return json.loads(self._exactly(*struct.unpack(">I", self._exactly(4))))

    def write(self, answer: dict) -> None:
        content = json.dumps(answer).encode()
        content = struct.pack(">I", len(content)) + content
        while content:
            content = content[os.write(self.answers, content):]

    def close(self) -> None:
        os.close(self.requests)
        os.close(self.answers)


def serve(channel: Channel, task: dict) -> None:
    """Answer until this process is popped."""
    while True:
        request = channel.read()
        if "push" in request:
            push(request["push"], channel, task)
        elif "pop" in request:
            channel.write({})
            return
        else:
            apart(lambda: channel.write(supervise(request, channel, task)))


def apart(action) -> None:
    """Do it in a forked process, which then ends."""
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        finally:
            os._exit(1)
    if os.waitpid(child, 0)[1]:
        os._exit(1)  # nobody has answered: the caller sees the end, and starts a new server


def push(line: str, channel: Channel, task: dict) -> None:
    """A process with one more import. What it raises, the program itself will raise."""
    def stand() -> None:
        try:
            exec(compile(line, guard.PROGRAM, "exec"), {"__name__": "__main__"})
        except Exception:
            pass
        gc.collect()
        gc.freeze()  # the collector of a forked process would else copy all of this
        channel.write({})
        serve(channel, task)

    apart(stand)


def supervise(request: dict, channel: Channel, task: dict) -> dict:
    """Run one program in a process below this one; its verdict, or why there is none."""
    # no pipe: /proc/self/fd opens the other end of one
    results, results_end = (end.detach() for end in _socket.socketpair())
    outputs, outputs_end = os.pipe()
    others = watching.processes()
    kernel.adopt_orphans()
    if task["private"]:
        apart_from_others()
    first = os.fork()
    if first == 0:
        try:
            for end in (results, outputs):
                os.close(end)
            channel.close()
            begin(request, task, results_end, outputs_end)
        finally:
            os._exit(1)
    os.close(results_end)
    os.close(outputs_end)
    try:
        return watching.watch(first, results, outputs, channel.requests, task, others)
    finally:
        watching.end_all(first, others)
        if not task["private"]:
            clear(task["folder"])


def begin(request: dict, task: dict, results: int, outputs: int) -> None:
    """First process of the program's namespaces: makes its file system and its process, and waits for that one."""
    kernel.die_with_parent(signal.SIGKILL)
    if task["private"]:
        own_places(task)
        program = os.fork()
        if program:
            os.close(results)
            os.close(outputs)
            os.dup2(os.open(os.devnull, os.O_RDWR), 2)
            ended = 0
            while ended != program:
                ended, status = os.wait()
            os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number, end in enumerate((nothing, outputs, outputs)):
        os.dup2(end, number)
    os.close(nothing)
    os.close(outputs)
    os.chdir(task["folder"])
    sys.path.insert(0, task["folder"])
    enter.limit({name: value for name, value in task["limits"].items() if name != "processes" or task["private"]})
    if task["private"]:
        kernel.drop_privileges()
    guard.judge(request, results)


def apart_from_others() -> None:
    """Namespaces for the processes that this one will start."""
    kernel.allow_tracing(True)  # else the files that map users are not this user's
    kernel.become_user(os.geteuid(), kernel.NEW_MOUNTS | kernel.NEW_PIDS | kernel.NEW_IPC)
    kernel.allow_tracing(False)


def own_places(task: dict) -> None:
    """A /tmp, a /dev/shm, a folder and a /proc of this program's own; all in memory, gone with its namespaces."""
    size = task["limits"]["memory"] // 4
    enter.temporary("/dev/shm", size)
    for path in task["readable"]:
        if path.startswith("/tmp/") and os.path.exists(path):
            target = "/dev/shm" + path[len("/tmp"):]
            if os.path.isdir(path):
                os.makedirs(target, exist_ok=True)
            else:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                open(target, "a").close()
            kernel.bind(path, target, read_only=True)
    kernel.mount("/dev/shm", "/tmp", flags=kernel.MOVE)
    enter.temporary("/dev/shm", size)
    enter.temporary(task["folder"], size)
    try:
        kernel.mount("proc", "/proc", "proc", kernel.NOSUID | kernel.NODEV | kernel.NOEXEC)
        # since Linux 6.14; it also holds root, whom RLIMIT_NPROC does not
        with open("/proc/sys/kernel/pid_max", "w") as file:
            file.write(str(max(LEAST_PIDS, task["limits"]["processes"])))
    except OSError:
        pass  # where parts of /proc are hidden, a whole one is refused; the outer one shows this sandbox alone


def clear(folder: str) -> None:
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)


def possible(task: dict) -> bool:
    """Whether a program can have namespaces of its own here."""
    child = os.fork()
    if child == 0:
        try:
            apart_from_others()
            inner = os.fork()
            if inner == 0:
                own_places(task)
                os._exit(0)
            os._exit(1 if os.waitpid(inner, 0)[1] else 0)
        except OSError:
            os._exit(1)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def main() -> None:
    task = json.loads(sys.argv[1])
    channel = Channel(os.dup(0), os.dup(1))
    os.dup2(2, 1)
    kernel.allow_tracing(False)
    task["private"] = task["private"] and possible(task)
    sys.argv = [""]
    # what a fresh process would not find
    del sys.path[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == "lookuplab"]:
        del sys.modules[name]
    for name in ("bottleneck", "numexpr"):  # pandas computes with them unasked where they happen to be installed
        sys.modules[name] = None
    channel.write({"private": task["private"]})
    serve(channel, task)
