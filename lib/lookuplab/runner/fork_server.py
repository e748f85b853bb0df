"""Both ends of a forked kernel. ``prefork`` runs this file as a script, so it imports nothing of the library.

``serve DESCRIPTOR`` imports what most notebooks do, then forks a kernel for every connection to a listening socket.
``kernel ADDRESS ARGUMENTS`` is the command that Jupyter starts: it hands over its environment, folder and streams and
stands for the kernel from then on. It ends when the kernel ends; when it is killed, so is the kernel. Where no server
answers it becomes an ordinary kernel.
"""

import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys

MODULES = ("pandas", "torch", "transformers.modeling_utils", "scipy.stats", "statsmodels.stats.proportion",
           "accelerate", "peft", "tqdm.auto", "ipykernel.kernelapp")
LIFELINE = 0  # stdin: a pipe that nobody writes to and that closes when the runner is gone


def stand_in(address: str, arguments: list[str]) -> None:
    """Have a kernel forked and wait for its end, or become one."""
    request = {"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd()}
    try:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(address)
        socket.send_fds(connection, [b"s"], [0, 1, 2])
        connection.sendall(json.dumps(request).encode() + b"\n")
        is_forked = connection.recv(1)
    except OSError:
        is_forked = b""
    if not is_forked:
        os.execv(sys.executable, [sys.executable, "-m", "ipykernel_launcher", *arguments])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Jupyter interrupts what it shuts down
    with contextlib.suppress(OSError):
        connection.recv(1)


class Server:
    """Forks kernels. Each has a connection to its stand-in, and the descriptor that tells its end."""

    def __init__(self, listener: socket.socket):
        self.listener = listener
        self.kernels: dict[int, tuple[socket.socket, int]] = {}
        self.selector = selectors.PollSelector()  # not epoll, which a fork shares
        self.selector.register(listener, selectors.EVENT_READ)
        self.selector.register(LIFELINE, selectors.EVENT_READ)

    def run(self) -> list[str] | None:
        """Serve until the lifeline is closed: None. In a forked kernel, its arguments."""
        while True:
            ready = [key for key, _ in self.selector.select()]
            if any(key.fileobj == LIFELINE for key in ready):
                for pid in list(self.kernels):
                    self._end(pid)
                return None
            for pid in {key.data for key in ready if key.data}:
                self._end(pid)
            if any(key.fileobj is self.listener for key in ready) and (arguments := self._fork()) is not None:
                return arguments

    def _fork(self) -> list[str] | None:
        """None; in the kernel its arguments."""
        connection, _ = self.listener.accept()
        try:
            _, streams, *_ = socket.recv_fds(connection, 1, 3)
            request = json.loads(connection.makefile(encoding="utf-8").readline())
        except (OSError, ValueError):  # the stand-in is gone again
            connection.close()
            return None
        pid = os.fork()
        if pid == 0:
            for other, _ in self.kernels.values():  # else their stand-ins would not see them closed
                other.close()
            connection.close()
            self.listener.close()
            return _dressed(streams, request)
        for stream in streams:
            os.close(stream)
        self.kernels[pid] = connection, os.pidfd_open(pid)
        for end in self.kernels[pid]:
            self.selector.register(end, selectors.EVENT_READ, pid)
        with contextlib.suppress(OSError):
            connection.sendall(b"f")
        return None

    def _end(self, pid: int) -> None:
        """The kernel or its stand-in has ended, so the other one does."""
        connection, ended = self.kernels.pop(pid)
        for end in (connection, ended):
            self.selector.unregister(end)
        os.kill(pid, signal.SIGKILL)  # of a kernel that has ended, without effect: it is not waited for yet
        os.waitpid(pid, 0)
        connection.close()
        os.close(ended)


def _dressed(streams: list[int], request: dict) -> list[str]:
    """Make this process look as if the stand-in had started it."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.environ["JPY_PARENT_PID"] = str(os.getppid())  # without this parent the kernel ends
    os.chdir(request["folder"])
    return request["arguments"]


def serve(descriptor: int) -> None:
    """Import, then serve; a forked kernel leaves from here, too."""
    del sys.path[0]  # this file's folder, whose modules are not on anybody's path
    for name in MODULES:
        with contextlib.suppress(ImportError):  # the notebook that needs it tells so
            importlib.import_module(name)
    gc.freeze()  # a kernel's collections then do not write to the memory that it shares with the others
    arguments = Server(socket.socket(fileno=descriptor)).run()
    if arguments is not None:
        from ipykernel import kernelapp

        kernelapp.launch_new_instance(arguments)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    else:
        stand_in(sys.argv[2], sys.argv[3:])
