"""A sandbox for one process and all that it starts.

The process reads the system's programs and libraries, and writes only in its folder and in a /tmp of its own. It has an
empty home, no network, and no other processes to see or to signal. Ending it ends all that it started.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import lookuplab
from lookuplab.errors import UserError
from lookuplab.execution import enter

NAMES = ("bubblewrap", "unshare", "docker", "none")  # in the order of preference; "none" only if asked for
IMAGE = "busybox:stable"  # Docker's: any, since the system's own programs are shown over it
PROBE_SECONDS = 60.0
# The part of this package that also runs inside
CODE = (Path(lookuplab.__file__), Path(__file__).parent)
_SYSTEM = (*enter.SYSTEM, *(f"/etc/{name}" for name in enter.SETTINGS))
# One thread: many programs run at once, and a program that was forked must not depend on threads that were not
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "USER": "user", "TZ": "UTC", "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1", "MPLBACKEND": "Agg", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}

# Writes where it must not, opens a connection, looks at its parent: prints what it could do
_PROBE = """
import os, socket, sys
foreign, private = sys.argv[1:]
found = []
def attempt(what, action):
    try:
        action()
        found.append(what)
    except OSError:
        pass
try:
    open(foreign, "w").close()  # succeeds in a /tmp of its own; the caller looks at the real one
except OSError:
    pass
attempt("write in the system", lambda: open("/usr/probe", "w").close())
attempt("read another file", lambda: open(private).close())
attempt("reach the network", lambda: socket.create_connection(("127.0.0.1", int(os.environ["PORT"])), 2))
attempt("signal other processes", lambda: os.kill(int(os.environ["OTHER"]), 0))
open("inside", "w").close()
print("could " + ", ".join(found) if found else "contained")
"""


@dataclass(frozen=True)
class Limits:
    """Of one program: wall-clock and CPU seconds, bytes of memory, processes, bytes of a file, bytes of output."""

    seconds: float = 120.0
    cpu_seconds: float = 120.0
    memory: int = 4 << 30
    processes: int = 64
    file_size: int = 64 << 20
    output: int = 1 << 20


@dataclass(frozen=True)
class Sandbox:
    """One of ``NAMES``. ``choose`` returns one that works."""

    name: str

    def popen(self, argv: Sequence[str], folder: str | Path, readable: Sequence[str | Path] = (),
              limits: Limits | None = Limits(), env: Mapping[str, str] | None = None, **pipes) -> subprocess.Popen:
        """Start ``argv`` in ``folder``, the only place but /tmp that it may write to.

        It sees ``readable`` beside the system, and ``env`` over a small fixed environment. The kernel holds it to
        ``limits`` of CPU time, memory, processes and file size, each of its processes by itself; the caller waits no
        longer than ``seconds`` and reads no more than ``output``. None: no limits. ``pipes``: as subprocess.Popen's.
        Under "none" there are these limits, but for the number of processes, and nothing else.
        """
        folder = Path(folder).resolve()
        shown = outermost(readable)
        variables = {**_ENVIRONMENT, "HOME": str(folder) if self.name == "none" else "/tmp", **(env or {})}
        command = self._command(list(map(str, argv)), str(folder), shown, limits, variables)
        return subprocess.Popen(command, cwd=folder, env=variables, start_new_session=True, **pipes)

    def _command(self, argv: list[str], folder: str, readable: list[str], limits: Limits | None,
                 variables: Mapping[str, str]) -> list[str]:
        held = {} if limits is None else {
            name: value for name, value in asdict(limits).items() if name not in ("seconds", "output")}
        memory = (limits or Limits()).memory
        if self.name != "unshare":
            held.pop("processes", None)  # outside of a user namespace the kernel counts all that the user runs
        root = {"folder": folder, "readable": readable, "memory": memory} if self.name == "unshare" else None
        entry = [sys.executable, *start("enter"), json.dumps({"limits": held, "root": root})]
        if self.name == "none":
            return entry + argv
        if self.name == "unshare":
            return [_found("unshare"), "--user", "--map-root-user", "--mount", "--pid", "--net", "--ipc", "--uts",
                    "--fork", "--kill-child", "--", *entry, *argv]
        if self.name == "bubblewrap":
            within = [] if limits is None else ["prlimit", f"--nproc={limits.processes}", "--"]
            return [*entry, *_bubblewrap(folder, readable), "--", *within, *argv]
        # the client's end does not end the container
        within = [] if limits is None else ["timeout", "--signal=KILL", f"{limits.seconds:g}"]
        return _docker(folder, readable, limits, variables) + within + argv


def start(module: str) -> list[str]:
    """Arguments of a Python >= 3.9 that runs ``main`` of a module of this package, without an installed lookuplab."""
    root = str(CODE[0].parents[1])
    return ["-s", "-B", "-c",
            f"import sys; sys.path[0] = {root!r}; from lookuplab.execution.{module} import main; main()"]


def outermost(readable: Sequence[str | Path]) -> list[str]:
    """Those paths, and what they link to, that lie in no other one, nor in the system."""
    paths = {kind(path) for path in readable for kind in (os.path.abspath, os.path.realpath)}
    places = [path + "/" for path in (*paths, *enter.SYSTEM)]
    return sorted(path for path in paths if not path.startswith(tuple(places)) and path not in enter.SYSTEM)


def _found(program: str) -> str:
    return shutil.which(program) or program


def _bubblewrap(folder: str, readable: Sequence[str]) -> list[str]:
    shown = [argument for path in (*_SYSTEM, *readable) for argument in ("--ro-bind-try", path, path)]
    return [_found("bwrap"), "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--as-pid-1",
            "--uid", str(enter.USER), "--gid", str(enter.USER), "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
            *shown, "--bind", folder, folder, "--remount-ro", "/", "--chdir", folder]


def _docker(folder: str, readable: Sequence[str], limits: Limits | None, variables: Mapping[str, str]) -> list[str]:
    held = limits or Limits()
    places = [*(path for path in _SYSTEM if os.path.exists(path)), *readable]
    shown = [argument for path in places for argument in ("--volume", f"{path}:{path}:ro")]
    named = [argument for name, value in variables.items() for argument in ("--env", f"{name}={value}")]
    bounds = [] if limits is None else [
        f"--memory={held.memory}", f"--pids-limit={held.processes}", f"--ulimit=cpu={int(held.cpu_seconds)}",
        f"--ulimit=fsize={held.file_size}"]
    return [_found("docker"), "run", "--rm", "--interactive", "--pull=missing", "--network=none", "--read-only",
            "--cap-drop=ALL", "--security-opt=no-new-privileges", f"--user={os.getuid()}:{os.getgid()}",
            "--tmpfs=/tmp:mode=1777", *bounds, *shown, *named, "--volume", f"{folder}:{folder}", "--workdir", folder,
            IMAGE]


def python_places(python: str | Path) -> list[str]:
    """What a Python must be able to read of itself: its prefixes and its path, as it tells them."""
    script = ("import sys, os; print(sys.prefix, sys.base_prefix, os.path.realpath(sys.executable), *sys.path, "
              "sep='\\n')")
    try:
        done = subprocess.run([python, "-s", "-c", script], capture_output=True, text=True, check=True, cwd="/")
    except (OSError, subprocess.CalledProcessError) as error:
        raise UserError(f"{python} is no Python that runs ({error}); name another") from None
    places = {os.path.abspath(python), *(place for place in done.stdout.splitlines() if os.path.exists(place))} - {"/"}
    return sorted(places)


@cache
def probe(name: str) -> str:
    """An empty string if that sandbox really contained a small program on this machine, else the reason why not."""
    if name not in NAMES:
        raise UserError(f"unknown sandbox {name!r}; known are {', '.join(NAMES)}")
    program = {"bubblewrap": "bwrap", "unshare": "unshare", "docker": "docker", "none": sys.executable}[name]
    if shutil.which(program) is None:
        return f"{program} is not installed"
    return "" if name == "none" else _tried(Sandbox(name))


def _tried(sandbox: Sandbox) -> str:
    with tempfile.TemporaryDirectory() as place, socket.create_server(("127.0.0.1", 0)) as listener:
        folder, private = Path(place, "folder"), Path(place, "private")
        folder.mkdir()
        private.touch()
        env = {"PORT": str(listener.getsockname()[1]), "OTHER": str(os.getpid())}
        argv = [sys.executable, "-s", "-c", _PROBE, str(Path(place, "foreign")), str(private)]
        try:
            with sandbox.popen(argv, folder, python_places(sys.executable), Limits(), env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                try:
                    output, errors = process.communicate(timeout=PROBE_SECONDS)
                finally:
                    process.kill()
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"did not run: {error}"
        if Path(place, "foreign").exists():
            return "could write outside its folder"
        if output.strip() == "contained" and Path(folder, "inside").exists():
            return ""
        found = output.replace("contained", "could not write in its folder").strip()
        lines = errors.strip().splitlines() or ["it ended without a word"]
        return found or lines[0 if sandbox.name == "docker" else -1]


def choose(wanted: str | None = None) -> Sandbox:
    """The sandbox ``wanted``, or the first that works on this machine; never "none" unless it is asked for.

    Raises UserError, with what was tried and why it did not work.
    """
    reasons = {}
    for name in (wanted,) if wanted else NAMES[:-1]:
        reasons[name] = probe(name)
        if not reasons[name]:
            return Sandbox(name)
    tried = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    raise UserError(f"no sandbox for generated programs works here ({tried}); install bubblewrap, or run them "
                    "without protection by --sandbox none")
