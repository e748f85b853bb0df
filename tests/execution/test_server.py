"""The fork server: what passes in a fresh process passes, and nothing else."""

import subprocess
import sys
import time

import honest
import pytest
from survivors import SLEEP, sleeping, wait_until

from lookuplab.errors import UserError
from lookuplab.execution.sandbox import Limits, Sandbox, python_places
from lookuplab.execution.server import ForkServer, Program

LIMITS = Limits(seconds=20, cpu_seconds=20)
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
# Each passes in a fresh process only if it finds what it has not imported itself
MISSING = {
    "import xml": "xml.etree", "import concurrent": "concurrent.futures", "import email": "email.mime",
    "import logging": "logging.handlers", "import multiprocessing": "multiprocessing.pool", "import os": "os.path",
    "import urllib": "urllib.parse", "import importlib": "importlib.resources", "import json": "json.tool",
    "import ctypes": "ctypes.util", "import numpy": "numpy.testing",
    "import PIL": "PIL.Image", "import unittest": "unittest.mock", "import collections": "collections.abc",
}


def program(solution: str, *imports: str) -> Program:
    return Program("\n".join(imports) + TEST.format(solution="\n".join((*imports, RIGHT, solution))), imports)


@pytest.fixture(scope="module")
def server(sandbox):
    with ForkServer(sandbox, sys.executable, LIMITS) as running:
        yield running


@pytest.fixture(scope="module")
def bare():
    """Without a sandbox."""
    with ForkServer(Sandbox("none"), sys.executable, LIMITS) as running:
        yield running


def test_pandas_has_nothing_that_computes_for_it_where_it_happens_to_be_installed(server):
    assert server.run(Program("import sys\nassert sys.modules['bottleneck'] is None is sys.modules['numexpr']")).passed


@pytest.mark.parametrize("name", honest.PLAIN)
def test_an_honest_program_passes(name, server):
    assert server.run(program(honest.PLAIN[name])).error == ""


@pytest.mark.parametrize("name", honest.LIBRARIES)
def test_an_honest_program_passes_with_a_library(name, server):
    line, solution = honest.LIBRARIES[name]
    assert server.run(program(solution, line)).error == ""


@pytest.mark.parametrize("name", ["nothing more", "a file in its folder", "threads that end", "another program"])
def test_an_honest_program_passes_without_a_sandbox(name, bare):
    assert bare.run(program(honest.PLAIN[name])).error == ""


def test_without_a_sandbox_time_and_survivors_end(bare):
    with ForkServer(Sandbox("none"), sys.executable, Limits(seconds=0.5)) as short:
        begun = time.monotonic()
        start = f"import subprocess, time\nsubprocess.Popen({SLEEP}, start_new_session=True)\ntime.sleep(60)"
        assert short.run(program(start)).error == "ran for more than 0.5 s"
        assert time.monotonic() - begun < 10
        assert not sleeping()
        assert not short.run(program("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)")).passed
        assert short.run(program("")).passed


def test_verdicts_are_those_of_fresh_processes(server, tmp_path):
    """Also behind other programs' imports, and those that the server itself needs."""
    readable = python_places(sys.executable)
    server.preload(["import xml.etree.ElementTree", "import PIL.Image", "import unittest.mock"])
    for line, name in MISSING.items():
        one = Program(f"{line}\n{name}\n", (line,))
        fresh = server.sandbox.popen([sys.executable, "-c", one.text], tmp_path, readable, stderr=subprocess.DEVNULL)
        assert server.run(one).passed == (fresh.wait() == 0), name


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


def test_no_module_of_the_server_shows(server, tmp_path):
    """Of no package of the standard library does an import bring more or less than in a fresh process."""
    with server.sandbox.popen([sys.executable, "-c", SUBMODULES + "print(found)"], tmp_path,
                              python_places(sys.executable), stdout=subprocess.PIPE, text=True) as fresh:
        expected = fresh.communicate()[0]
    difference = f"{{name for name in found if found[name] != expected[name]}} or ''"
    one = Program(f"{SUBMODULES}expected = {expected}\nassert found == expected, {difference}")
    assert server.run(one).error == "" and len(expected) > 1000


def test_a_program_finds_its_own_imports_made_and_no_others(server):
    made = Program("import sys\nassert 'colorsys' in sys.modules", ("import colorsys",))
    assert server.run(made).passed
    assert not server.run(Program(made.text)).passed


def test_imports_that_programs_share_are_made_once(server, tmp_path):
    stamp = "import time, sys; sys.stamp = time.time()"
    show = Program("import sys\nraise ValueError(sys.stamp)", (stamp, "import colorsys"))
    first, second, third = (server.run(one).error for one in (show, Program(show.text, (stamp,)), show))
    assert first == second == third and first.startswith("ValueError: ")


def test_random_numbers_depend_on_the_program_alone(server):
    draw = "import numpy.random, random\nraise ValueError(numpy.random.rand(), random.random())"
    imports = ("import numpy.random, random",)
    errors = [server.run(Program(text, imports)).error for text in (draw, draw + "\n", draw)]
    assert errors[0] == errors[2] != errors[1]
    assert errors[0].startswith("ValueError: (")


def test_the_error_names_the_exception(server):
    assert server.run(Program("{}['key']")).error == "KeyError: 'key'"
    assert server.run(Program("no python")).error.startswith("SyntaxError")
    assert server.run(Program("import nowhere", ("import nowhere",))).error.startswith("ModuleNotFoundError")


def test_a_program_ends_with_its_caller(sandbox):
    script = f"""
import sys
from lookuplab.execution.sandbox import Sandbox
from lookuplab.execution.server import ForkServer, Program
with ForkServer({sandbox}, sys.executable) as server:
    server.run(Program("import subprocess; subprocess.run({SLEEP})"))"""
    with subprocess.Popen([sys.executable, "-c", script]) as caller:
        wait_until(sleeping)
        caller.kill()
    wait_until(lambda: not sleeping())


def test_an_import_that_ends_the_server_is_named(server):
    with pytest.raises(UserError, match="os._exit"):
        server.preload(["import os; os._exit(1)"])
    assert server.run(program("")).passed


def test_what_is_no_python_is_named(tmp_path):
    with pytest.raises(UserError, match="nowhere is no Python"):
        ForkServer(Sandbox("none"), tmp_path / "nowhere")
