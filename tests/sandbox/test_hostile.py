"""Tests hostile programs in the real sandbox: each of them fails and harms nothing, and the next
program runs.
"""

import os
import socket
import sys
from pathlib import Path

import pytest
from beside import table

from lookuplab.sandbox.server import FETCHED, Limits, Program

CONTAINED, FORGED, REPLIES = table(__file__, "hostile.yaml").values()
RIGHT = "\nresult = [2 * x for x in test_input]\n"
LIMITS = Limits(seconds=4, cpu_seconds=1, memory=1 << 30, processes=32, file_size=16 << 20)
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


def program(solution, *imports):
    return Program(
        "\n".join(imports) + f"{PLAIN}\ncode = {solution!r}\ntest_execution(code)\n", imports
    )


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """Yield what hostile programs are told to attack."""
    file = tmp_path_factory.mktemp("user") / "file"
    file.write_text("of the user")
    # the checkout's Python may be in the home folder, too, and must stay visible
    pythons = [Path(sys.base_prefix), Path(sys.prefix), FETCHED]
    hidden = [
        str(path)
        for path in Path.home().iterdir()
        if not any(python.is_relative_to(path) for python in pythons)
    ]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        aims = {"home": str(Path.home()), "file": str(file), "hidden": hidden, "pid": os.getpid()}
        yield aims | {"port": listener.getsockname()[1]}


def failed(server, solution, foreign, *imports):
    """Return why a solution failed. Check that everything outside the sandbox is unchanged, and
    that a right solution then passes at the same server.
    """
    outcome = server.run(program(solution, *imports))
    assert not outcome.passed and outcome.error
    assert Path(foreign["file"]).read_text() == "of the user"
    assert not Path(foreign["home"], "written by a hostile program").exists()
    # The right solution has the same imports. Otherwise the server would drop the imports, and have
    # to repeat them for the next hostile solution.
    assert server.run(program(RIGHT, *imports)).passed
    return outcome.error


@pytest.mark.parametrize("name", CONTAINED)
def test_a_hostile_program_is_contained(name, server, foreign):
    failed(server, CONTAINED[name].format(**foreign) + RIGHT, foreign)


@pytest.mark.parametrize("name", FORGED)
def test_a_verdict_cannot_be_forged(name, server, foreign):
    failed(server, FORGED[name], foreign)


@pytest.mark.parametrize("name", REPLIES)
def test_an_answer_that_is_no_plain_object_is_not_taken(name, server, foreign):
    imports = [f"import {one}" for one in ("pandas", "torch") if one in REPLIES[name]]
    error = failed(server, REPLIES[name] + "\nresult = R()", foreign, *imports)
    assert error.startswith(("KeyError: 'result'", "AssertionError"))


def test_a_program_leaves_nothing_for_the_next(server):
    start = "import subprocess\nsubprocess.Popen(['sleep', '60'], start_new_session=True)\n"
    files = ["'planted'", "'/dev/shm/planted'", "os.path.join(tempfile.gettempdir(), 'planted')"]
    opened = "".join(f"open({path}, 'w').close()\n" for path in files)
    look = "".join(f"assert not os.path.exists({path})\n" for path in files)
    look += "assert len([one for one in os.listdir('/proc') if one.isdigit()]) == 2\n"
    for text in start + opened, look:
        assert server.run(program("import os, tempfile\n" + text + RIGHT)).error == ""


def test_what_the_test_wrote_reaches_the_solution_which_cannot_change_it(server):
    """Some of the files are in a subfolder. The test deletes one between two calls of the solution,
    and the solution writes it again.
    """
    text = """
import os
os.makedirs('in/deep')
open('in/deep/given', 'w').write('answer')
for turn in (1, 2):
    exec({solution!r}, {{"turn": turn}})
    assert open('in/deep/given').read() == 'answer'
    assert open('in/own').read() == open('more/own').read() == str(turn)
    assert not os.path.lexists('link') and open('once').read() == '1'
    os.remove('in/own')
"""
    solution = """
import os
assert open('in/deep/given').read() == 'answer' and not os.path.lexists('in/own')
open('in/deep/given', 'w').write('mine')
os.makedirs('more', exist_ok=True)
for name in ('in/own', 'more/own'):
    open(name, 'w').write(str(turn))
if turn == 1:
    open('once', 'w').write('1')
    os.symlink('/etc/passwd', 'link')
"""
    assert server.run(Program(text.format(solution=solution))).error == ""


ESCAPES = ("../outside", "{work}/outside", "given", "./given", "link/outside", "in/../given")


@pytest.mark.parametrize("path", ESCAPES)
def test_no_file_goes_elsewhere_or_over_the_tests_own(server, path):
    """The solution changes its process's pickled reply, so that the reply names a file that cannot
    be in its folder.
    """
    text = """
import os
open('given', 'w').write('answer')
os.makedirs('in')
os.symlink('..', 'link')
exec({solution!r}, {{}})
assert not os.path.exists('../outside') and open('given').read() == 'answer'
"""
    name = path.format(work=Path("/sandbox/tester"))
    solution = f"""
import pickle
dump = pickle.dump
pickle.dump = lambda reply, file: dump((*reply[:2], {{{name!r}: b'mine'}}), file)"""
    assert server.run(Program(text.format(solution=solution))).error == ""


# what a solution can do only in its test's own process: define its own equality, or read the test
BESIDE = {name for name in FORGED if "equals everything" in name or "always right" in name}
BESIDE |= {"look for the test in its memory map"}


@pytest.mark.parametrize("name", sorted(FORGED.keys() - BESIDE))
def test_of_a_test_that_looks_at_figures_no_verdict_is_forged_from_outside_it(
    name, server, foreign
):
    failed(server, FORGED[name], foreign, "import matplotlib.pyplot as plt")


def test_what_passes_only_beside_its_test_is_not_judged(server):
    wrong = Program("env = {}\nexec('result = lambda: 2', env)\nassert env['result']() == 1")
    right = Program("env = {}\nexec('result = lambda: 1', env)\nassert env['result']() == 1")
    called = Program("exec('raise type(\"not judged\", (Exception,), {})()', {})")
    found = [server.run(one) for one in (right, wrong, called)]
    assert [one.judged for one in found] == [False, True, True]
    assert not any(one.passed for one in found) and found[1].error == "KeyError: 'result'"
