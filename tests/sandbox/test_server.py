"""Tests the fork server: a program passes only if it passes in a fresh process; the server enforces
the limits, and no process survives its program.
"""

import os
import subprocess
import sys
import venv

import pytest
from beside import table
from doors import refused
from waiting import until

from lookuplab.sandbox import inside
from lookuplab.sandbox import server as servers
from lookuplab.sandbox.server import ForkServer, Limits, Program, choose_sandbox

PLAIN, LIBRARIES, FIGURES = table(__file__, "honest.yaml").values()
# the duration distinguishes this process from those of other test runs
SLEEP = ["sleep", f"3600.{os.getpid()}"]
TEST = """
import copy
def test_execution(solution):
    for number in (1, 2):
        env = {{"value": list(range(number))}}
        answer = copy.deepcopy(env["value"]) + [1]
        exec(solution, env)
        assert env["result"] == answer
code = {solution!r}
test_execution(code)
"""
RIGHT = "\nresult = value + [1]\n"
DRAWING = (
    "import matplotlib.pyplot as plt",
    "import numpy as np",
    "import pandas as pd",
    "import seaborn as sns",
)
SUBMODULES = """
import os, sys
def submodules(name):
    ours, theirs = os.pipe()
    if os.fork() == 0:
        try:
            module = __import__(name)
            os.write(theirs, repr(sorted(key for key in vars(module) if f"{name}.{key}" in sys.modules)).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    os.wait()
    return os.read(ours, 1 << 16)
library = os.path.dirname(os.__file__)
packages = sorted(name for name in sys.stdlib_module_names if os.path.isdir(os.path.join(library, name)))
found = {name: submodules(name) for name in packages if name not in ("idlelib", "tkinter", "turtledemo")}
"""


def program(solution, *imports):
    return Program("\n".join(imports) + TEST.format(solution=RIGHT + solution), imports)


def solving(code, *imports):
    """Return a program that passes if the code runs to its end."""
    return Program(f"exec({code!r}, {{}})", imports)


def sleeping():
    return " ".join(SLEEP) in subprocess.check_output(["ps", "ax", "-o", "args"], text=True)


@pytest.mark.parametrize("name", PLAIN | LIBRARIES)
def test_an_honest_program_passes(name, server):
    imports = [LIBRARIES[name].partition("\n")[0]] if name in LIBRARIES else []
    assert server.run(program((PLAIN | LIBRARIES)[name], *imports)).error == ""


def test_without_a_sandbox_limits_hold_and_survivors_end():
    start = f"import subprocess, time\nsubprocess.Popen({SLEEP}, start_new_session=True)\ntime.sleep(60)"
    kill = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)"
    with ForkServer("none", sys.executable, Limits(seconds=0.5, memory=1 << 28)) as short:
        assert short.run(program(start)).error == "took more seconds than 0.5"
        assert not sleeping()
        assert short.run(program("bytearray(1 << 29)")).error.startswith("MemoryError")
        assert not short.run(program(kill)).passed
        assert short.run(program(PLAIN["a file in its folder"])).passed


@pytest.mark.parametrize("name", FIGURES)
def test_a_drawing_is_judged_as_it_was_drawn(name, server):
    draw, look = FIGURES[name].values()
    lines = (*DRAWING, f"exec({draw!r}, {{**globals()}})")
    for said, error in {look: "", f"not ({look})": "AssertionError:"}.items():
        assert server.run(Program("\n".join((*lines, f"assert {said}")), DRAWING)).error == error


def test_a_program_and_its_test_exchange_so_many_files_and_bytes_and_no_more(tmp_path, monkeypatch):
    for at, size in enumerate((3, 3, 1, 1)):
        (tmp_path / str(at)).write_bytes(bytes(size))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(inside, "SENT_BYTES", 5)
    found = inside.own_files()
    assert sum(map(len, found.values())) <= 5 and len(found) >= 3
    monkeypatch.setattr(inside, "SENT_FILES", 2)
    assert len(inside.own_files()) == 2


@pytest.mark.parametrize("name", ["xml.etree", "PIL.Image"])
def test_what_only_other_programs_import_is_not_there(server, name):
    server.preload(["import xml.etree.ElementTree", "import PIL.Image"])
    line = f"import {name.partition('.')[0]}"
    assert server.run(solving(f"{line}\n{name}", line)).error.startswith("AttributeError")


def test_no_module_of_the_server_shows(server, run_python, tmp_path):
    """An import of any package of the standard library loads what it loads in a fresh process."""
    fresh = run_python(SUBMODULES + "print(found)", cwd=tmp_path)
    difference = "{name for name in found if found[name] != expected[name]} or ''"
    one = solving(f"{SUBMODULES}expected = {fresh}\nassert found == expected, {difference}")
    assert server.run(one).error == "" and len(fresh) > 1000


def test_random_numbers_depend_on_the_program_alone(server):
    line = "import numpy.random, random"
    draw = "import numpy.random, random\nraise ValueError(numpy.random.rand(), random.random())"
    one, other, again = (
        server.run(solving(text, line)).error for text in (draw, draw + "\n", draw)
    )
    assert one == again != other and one.startswith("ValueError: (")


def test_the_error_names_the_exception_in_one_line(server):
    programs = {
        "KeyError: 'key'": solving("{}['key']"),
        "SyntaxError: ": solving("no python"),
        "ModuleNotFoundError: ": Program("import nowhere", ("import nowhere",)),
        "ValueError: first second": solving("raise ValueError('first\\n\\nsecond')"),
    }
    for error, one in programs.items():
        assert server.run(one).error.startswith(error)


def test_a_time_out_or_a_kill_is_no_verdict(sandbox):
    limits = Limits(seconds=2, cpu_seconds=1, memory=1 << 28)
    stopped = (
        solving("while True: pass"),
        solving("import os\nos.kill(os.getpid(), 9)"),
        solving("import time\ntime.sleep(9)"),
        Program("import os\nos._exit(0)"),  # the test's own process ends early
    )
    with ForkServer(sandbox, sys.executable, limits) as short:
        for one in stopped:
            found = short.run(one)
            assert found.stopped and not found.passed, found
        assert not short.run(solving("raise SystemExit")).stopped


def test_a_killed_server_is_asked_again_and_a_machine_s_fault_is_no_verdict(sandbox, run_python):
    code = f"""
import resource, sys, threading, time
import psutil
from lookuplab.errors import UserError
from lookuplab.sandbox.server import ForkServer, Program

def kill():
    time.sleep(0.6)
    for one in psutil.Process(server._process.pid).children(recursive=True):
        one.kill()

def run(code):
    try:
        return server.run(Program(f"exec({{code!r}}, {{{{}}}})")).passed
    except UserError as error:
        return str(error)

with ForkServer({sandbox!r}, sys.executable) as server:
    server.preload([])
    threading.Thread(target=kill).start()
    print(run("import time; time.sleep(1)"))
    resource.setrlimit(resource.RLIMIT_AS, (1 << 32, -1))
    server.close()
    print(run("x = 1"))
    print(run("bytearray(3 << 31)"))"""
    killed, passed, short = run_python(code).splitlines()
    assert (killed, passed) == ("True", "True")
    assert "cannot be judged: MemoryError" in short and "memory 2,147,483,648 of" in short


def test_a_program_ends_with_its_caller(sandbox):
    one = solving(f"import subprocess\nsubprocess.run({SLEEP})")
    script = f"""
import sys
from lookuplab.sandbox.server import ForkServer, Program
with ForkServer({sandbox!r}, sys.executable) as server:
    server.run({one})"""
    with subprocess.Popen([sys.executable, "-c", script]) as caller:
        until(sleeping)
        caller.kill()
    until(lambda: not sleeping())


def test_an_import_that_ends_the_server_is_named(server):
    with refused(r"os._exit"):
        server.preload(["import os; os._exit(1)"])


def test_without_namespaces_only_what_the_kit_wrote_itself_runs_and_a_line_says_so(
    monkeypatch, capsys
):
    monkeypatch.setattr(servers, "why_no_namespaces", lambda: "unshare: not permitted")
    for words, why in (("", True), "unshare: not permitted"), (("none",), "as requested"):
        assert choose_sandbox(*words) == "none"
        said = f"warning: generated programs run unprotected: {why}"
        assert capsys.readouterr().err.splitlines() == [said]
    for wanted, own in (("", False), ("namespaces", True)):
        with refused(r"unshare: not permitted.*--sandbox none.*-p sandbox=none"):
            choose_sandbox(wanted, own)
    with refused("sandbox is 'jail'; it must be namespaces, none"):
        choose_sandbox("jail")


@pytest.mark.parametrize("through", ["absolute", "relative", "a link to a link"])
def test_an_environment_behind_a_link_has_the_sandbox(sandbox, tmp_path, through):
    made = tmp_path / "made" / "venv"
    venv.create(made, symlinks=True)
    (tmp_path / "project").mkdir()
    link = tmp_path / "project" / ".venv"
    if through == "a link to a link":
        (tmp_path / "other").symlink_to("made/venv")
        link.symlink_to("../other")
    else:
        link.symlink_to(made if through == "absolute" else "../made/venv")
    with ForkServer(sandbox, link / "bin" / "python", Limits(seconds=20)) as server:
        assert server.run(solving("import sys; assert sys.prefix.endswith('.venv')")).error == ""


def test_only_sockets_of_the_families_in_use_are_made(server):
    used = "import socket as s\nfor one in (s.AF_UNIX, s.AF_INET, s.AF_INET6, s.AF_NETLINK):"
    assert server.run(solving(f"{used}\n    s.socket(one, s.SOCK_DGRAM).close()")).error == ""
    assert server.run(solving("import socket as s; s.socketpair()")).error == ""
    for family in ("AF_VSOCK", "AF_ALG", "AF_CAN", "AF_TIPC"):
        made = f"import socket as s; s.socket(s.{family}, s.SOCK_RAW)"
        assert server.run(solving(made)).error.startswith("PermissionError")


def test_a_python_that_cannot_serve_is_named(tmp_path):
    (tmp_path / "python").write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
    (tmp_path / "python").chmod(0o755)
    with refused(r"does not start .*: broken"):
        ForkServer("none", tmp_path / "python").run(program(""))
