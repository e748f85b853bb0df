"""Hostile programs in the real sandbox: each fails, harms nothing, and the next program runs.

Attacks on the test inside its own interpreter are not here: nothing holds them yet (``execution.guard``).
"""

import os
import socket
import sys
from pathlib import Path

import pytest
from hostile import CONTAINED, FORGED, RIGHT
from survivors import SLEEP, sleeping

from lookuplab.execution.sandbox import Limits, python_places
from lookuplab.execution.server import ForkServer, Program

LIMITS = Limits(seconds=2.5, cpu_seconds=1, memory=1 << 30, processes=32, file_size=16 << 20, output=1 << 16)
PLAIN = """
import copy
def generate_test_case(number):
    test_input = [0, 1, 2]
    return test_input, [2 * x for x in copy.deepcopy(test_input)]
def exec_test(result, ans):
    assert result == ans
    return 1
def test_execution(solution):
    for number in (1, 2):
        test_input, expected_result = generate_test_case(number)
        env = {"test_input": test_input}
        exec(solution, env)
        assert exec_test(env["result"], expected_result)
"""


def program(solution: str) -> Program:
    return Program(f"{PLAIN}\ncode = {solution!r}\ntest_execution(code)\n")


@pytest.fixture(scope="module")
def server(sandbox):
    with ForkServer(sandbox, sys.executable, LIMITS) as running:
        yield running


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """What hostile programs are told to aim at."""
    file = tmp_path_factory.mktemp("user") / "file"
    file.write_text("of the user")
    needed = python_places(sys.executable)  # Python may live in the home
    hidden = [str(path) for path in Path.home().iterdir() if not any(place.startswith(str(path)) for place in needed)]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield {"home": str(Path.home()), "hidden": hidden, "file": str(file), "port": listener.getsockname()[1],
               "pid": os.getpid()}


def judged(server, solution, foreign):
    """The outcome; afterwards all that is foreign is as before, and a right solution passes at the same server."""
    outcome = server.run(program(solution.format(**foreign)))
    assert Path(foreign["file"]).read_text() == "of the user"
    assert not Path(foreign["home"], "written by a hostile program").exists()
    assert server.run(program(RIGHT)).passed
    return outcome


@pytest.mark.parametrize("name", CONTAINED)
def test_a_hostile_program_is_contained(name, server, foreign):
    outcome = judged(server, CONTAINED[name] + RIGHT.replace("{", "{{"), foreign)
    assert not outcome.passed and outcome.error


@pytest.mark.parametrize("name", FORGED)
def test_a_verdict_cannot_be_forged(name, server, foreign):
    outcome = judged(server, FORGED[name], foreign)
    assert not outcome.passed and outcome.error


def test_nothing_that_a_program_starts_survives_it(server, foreign):
    start = f"import subprocess\nsubprocess.Popen({SLEEP}, start_new_session=True)\n"
    assert server.run(program(start + RIGHT)).passed
    assert not sleeping()


def test_a_program_finds_nothing_of_the_one_before_it(server, foreign):
    files = ["planted", "/tmp/planted", "/dev/shm/planted"]
    plant = f"for path in {files}:\n    open(path, 'w').close()\n"
    look = f"import os\nassert not any(map(os.path.exists, {files}))\n"
    assert [server.run(program(first + RIGHT)).error for first in (plant, look)] == ["", ""]
