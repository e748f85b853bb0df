"""Worker processes of an analyser that says who it is: one parent, and no stale one."""

import importlib
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from lookuplab.toolgen import analysers
from lookuplab.toolgen.analysers import WorkerLost, ask_worker

MODULE = """import os, time
from lookuplab.toolgen.analysers import serve

def answer(code):
    exec(code)
    return os.getpid(), os.getppid()

def start():
    serve("it")
"""


@pytest.fixture
def who(tmp_path, monkeypatch):
    """The process that answers, and its parent."""
    name = f"analyser_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.syspath_prepend(tmp_path)
    answer = importlib.import_module(name).answer
    return lambda code="", within="": ask_worker(answer, code, within=within)


def test_processes_have_one_parent_and_none_answers_that_was_asked_within_something_else(who):
    with ThreadPoolExecutor(2) as threads:  # both at once
        (a, parent), (b, other) = threads.map(who, ["time.sleep(0.2)"] * 2)
    assert a != b and parent == other and who()[0] in (a, b)
    elsewhere = who(within="elsewhere")[0]
    assert elsewhere not in (a, b) and who(within="elsewhere")[0] == elsewhere


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("os.abort()", "crashed"),
        ("sum(iter(int, 1))", "timed out"),
        ("1 / 0", "error in it: ZeroDivisionError"),  # perhaps because of what the process keeps
    ],
)
def test_what_is_lost_is_asked_once_more_and_after_an_error_in_a_new_process(
    who, tmp_path, monkeypatch, code, reason
):
    monkeypatch.setattr(analysers, "LIMIT", 0.3)
    with ThreadPoolExecutor(2) as threads:
        known = [one for one, _ in threads.map(who, ["time.sleep(0.2)"] * 2)]
    asked = tmp_path / "asked"
    count = f"with open({str(asked)!r}, 'a') as asked: asked.write('x')\n"
    once = f"import pathlib\nif len(pathlib.Path({str(asked)!r}).read_text()) == 1: {code}"
    assert (who(count + once)[0] in known) == ("error" not in reason)
    assert asked.read_text() == "xx"
    with pytest.raises(WorkerLost, match=reason):
        who(count + code)
    assert asked.read_text() == "xxxx"


def test_a_forked_copy_of_this_process_asks_processes_of_its_own(who):
    ours = who()
    (reading, writing) = os.pipe()
    if not (child := os.fork()):
        os.write(writing, repr(who()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = eval(os.read(reading, 99))
    assert who() == ours and not set(theirs) & set(ours)
