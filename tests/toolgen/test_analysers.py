"""Tests worker processes with an analyser whose answers name the worker and its parent process.

A worker only reads a repository's code and never runs it. It sees no files except its
repositories', and no network. If the machine fails, the worker does not blame the code.
"""

import importlib
import os
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from doors import refused
from marker_repository import RUNS

from lookuplab.paths import write_text
from lookuplab.toolgen import analysers
from lookuplab.toolgen.analysers import JudgementStore, WorkerLost, answer_all, ask_worker
from lookuplab.toolgen.source import read_source

MODULE = """import importlib, os, socket, time
from lookuplab.toolgen.{start}

ANALYSER = "it"
parent = os.urandom(8)
own = []

def control(root, file):
    {control}

def answer(root, code):
    exec(code)
    own[:] = own or [os.urandom(8)]
    return own[0], parent
"""
ITSELF = "analysers import serve as begin\n\ndef start(): begin('it')"


@pytest.fixture
def analyser(tmp_path, monkeypatch):
    """Return ``make``, which makes an analyser and returns a function that asks it. An answer is
    (name of the process that gave the answer, name of that process's parent).
    """

    def make(start, control="pass"):
        name = f"analyser_{tmp_path.name}"
        folder, root = tmp_path / "analyser", tmp_path / "repository"
        root.mkdir()
        write_text(folder / f"{name}.py", MODULE.format(start=start, control=control))
        monkeypatch.syspath_prepend(folder)
        answer = importlib.import_module(name).answer
        return lambda code="", within="": ask_worker(answer, root, code, within=within)

    return make


@pytest.fixture
def who(analyser, monkeypatch):
    """Return a function that asks an analyser whose workers have no sandbox."""
    monkeypatch.setattr(analysers, "is_contained", lambda _: False)
    return analyser(ITSELF)


def test_processes_have_one_parent_and_none_answers_that_was_asked_within_something_else(who):
    with ThreadPoolExecutor(2) as threads:  # two questions at once need two processes
        (a, parent), (b, other) = threads.map(who, ["time.sleep(0.2)"] * 2)
    assert a != b and parent == other and who()[0] in (a, b)
    elsewhere = who(within="elsewhere")[0]
    assert elsewhere not in (a, b) and who(within="elsewhere")[0] == elsewhere


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("os.abort()", "^error in it: crashed 3 times$"),
        ("sum(iter(int, 1))", "^error in it: timed out 3 times$"),
        ("1 / 0", "^error in it: ZeroDivisionError$"),
        ("raise OSError(5, '')", "^error on this machine: "),
    ],
)
def test_what_is_lost_is_asked_again_in_new_processes(who, tmp_path, monkeypatch, code, reason):
    """The question goes to a new process, because the failure may come from data that the old one
    has kept from earlier questions.
    """
    monkeypatch.setattr(analysers, "LIMIT", 0.3)
    with ThreadPoolExecutor(2) as threads:
        known = [one for one, _ in threads.map(who, ["time.sleep(0.2)"] * 2)]
    asked = tmp_path / "asked"
    count = f"with open({str(asked)!r}, 'a') as asked: asked.write('x')\n"
    once = f"import pathlib\nif len(pathlib.Path({str(asked)!r}).read_text()) == 1: {code}"
    assert who(count + once)[0] not in known
    assert asked.read_text() == "xx"
    with pytest.raises(WorkerLost, match=reason):
        who(count + code)
    assert asked.read_text() == "xxxx" + "x" * ("times" in reason)


def test_code_is_at_fault_only_if_harmless_code_ends_no_process(analyser):
    ask = analyser(ITSELF, "os.abort()")
    with pytest.raises(WorkerLost, match=r"^crashed$"):
        ask("os.abort()")


def test_a_forked_copy_of_this_process_asks_processes_of_its_own(who):
    ours = who()
    (reading, writing) = os.pipe()
    if not (child := os.fork()):
        os.write(writing, repr(who()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = eval(os.read(reading, 99))
    assert who() == ours and not set(theirs) & set(ours)


LOOK = "import sys; sys.path.insert(0, str(root))\n"
IMPORTS = """
for name in ("plain", "package", "package.part", "this"):
    for way in (f"import {name}", f"importlib.import_module({name!r})"):
        try:
            exec(way)
        except ImportError:
            continue
        os.abort()
import wave  # a module of Python's own"""


def write_modules(tmp_path):
    """Write modules that leave a mark when they run: they write the file ``marker`` or, in a
    sandbox, end their process.
    """
    marker = tmp_path / "marker"
    for name in ("plain", "package/__init__", "package/part", "this"):
        write_text(tmp_path / "repository" / f"{name}.py", RUNS.format(str(marker)))
    return marker


@pytest.mark.usefixtures("contained")
@pytest.mark.parametrize("start", [ITSELF, "jedi_tool import start", "success import start"])
def test_a_repository_s_modules_are_read_and_never_run(analyser, tmp_path, start):
    """This holds for every way to import a module, and for every name of a module."""
    ask = analyser(start)
    marker = write_modules(tmp_path)
    ask(LOOK + IMPORTS)
    assert not marker.exists()


OFF = """analysers import serve as begin
from lookuplab.toolgen import analysers

def start():
    analysers.forbid_imports = lambda _: None
    begin('it')"""


def test_a_module_that_runs_without_the_guard_is_seen(analyser, tmp_path, contained):
    """Without the guard, the modules leave their mark. This shows that the test above can fail."""
    ask = analyser(OFF)
    marker = write_modules(tmp_path)
    if contained:
        with pytest.raises(WorkerLost, match="crashed 3 times"):
            ask(f"{LOOK}import package.part")
    else:
        ask(f"{LOOK}import package.part")
    assert marker.exists() != contained


def test_a_pipe_of_a_repository_is_no_file_and_nothing_waits_for_it(who, tmp_path):
    os.mkfifo(tmp_path / "repository" / "pipe.py")
    (tmp_path / "repository" / "endless.py").symlink_to("/dev/zero")
    for name in ("pipe.py", "endless.py"):
        who(f"try: open(root / {name!r})\nexcept FileNotFoundError: pass\nelse: os.abort()")
    with refused("it is a pipe, socket or device"):
        read_source(tmp_path / "repository" / "pipe.py")


@pytest.mark.parametrize("contained", [True], indirect=True)
@pytest.mark.usefixtures("contained")
def test_a_worker_sees_its_repositories_and_neither_network_nor_keys_nor_other_files(
    analyser, tmp_path, monkeypatch
):
    monkeypatch.setenv("SOME_API_KEY", "secret")
    ask = analyser(ITSELF)
    (tmp_path / "repository" / "file").write_text("words")
    (tmp_path / "other").write_text("words")
    ask("assert open(root / 'file').read() == 'words'")
    ask("assert 'SOME_API_KEY' not in os.environ")
    with pytest.raises(WorkerLost, match="FileNotFoundError"):
        ask("open(root.parent / 'other')")
    with pytest.raises(WorkerLost, match="Read-only file system"):
        ask("open(root / 'file', 'a')")
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        pytest.raises(WorkerLost, match="on this machine"),
    ):
        ask(f"socket.create_connection({listener.getsockname()!r}, 1)")


LIMITED = """
import resource
most = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + (64 << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, -1))
found = []
try:
    while True: found.append(bytearray(1 << 20))
except MemoryError: found.clear()"""
BROKEN = """
def opener(path, flags): raise OSError(5, "broken")
try: open("x", opener=opener)
except OSError: pass"""


@pytest.mark.parametrize("code", [LIMITED, BROKEN])
def test_what_an_analyser_takes_for_the_code_s_fault_is_the_machine_s(who, code):
    """If memory runs out or a file cannot be read, pylint reports a syntax error in the code. Such
    an error must count as the machine's.
    """
    with pytest.raises(WorkerLost, match="error on this machine: "):
        who(code)
    who("try: open('nowhere')\nexcept OSError: pass")


REFUSED = """analysers import serve as begin
from lookuplab.sandbox import namespaces

def refuse(*_):
    {}

def start():
    namespaces.enter_read_only = refuse
    begin('it')"""


@pytest.mark.parametrize("refuse", ["raise OSError('the process died')", "os._exit(1)"])
def test_where_no_sandbox_works_a_line_says_so_and_questions_are_answered(analyser, capsys, refuse):
    analysers.is_contained.cache_clear()
    analyser(REFUSED.format(refuse))()
    assert "because none works here (the process died)" in capsys.readouterr().err


def _answer(_, file, __, reason):
    if reason == "interrupt":
        raise KeyboardInterrupt
    return (None if reason else f"of {file}"), reason


@pytest.mark.parametrize(
    "reason", ["error on this machine: OSError: full", "crashed", "error in Jedi: KeyError"]
)
def test_what_is_lost_is_said_and_never_kept_and_is_asked_again(tmp_path, capsys, reason):
    """With ``strict``, a question that was lost through the machine's fault raises an error."""
    store = tmp_path / "j.sqlite"
    lost = {"a": (tmp_path, "a.py", "uses", reason)}
    if not reason.startswith("error in"):
        with refused(f"1 questions to pylint or Jedi were lost .1 {reason}"):
            answer_all(JudgementStore(store), lost, _answer, True)
    assert answer_all(JudgementStore(store), lost, _answer, False) == ({"a": None}, {"a": reason})
    assert f"without an answer: 1 {reason}" in capsys.readouterr().err
    right = {"a": (tmp_path, "a.py", "uses", "")}
    assert answer_all(JudgementStore(store), right, _answer, True) == ({"a": "of a.py"}, {})


def test_an_interrupted_run_keeps_the_answers_about_earlier_files(tmp_path):
    reasons = {"a": "", "b": "interrupt", "c": ""}
    asked = {name: (tmp_path, f"{name}.py", "", reason) for name, reason in reasons.items()}
    with pytest.raises(KeyboardInterrupt):
        answer_all(JudgementStore(tmp_path / "j.sqlite"), asked, _answer, True, 1)
    with JudgementStore(tmp_path / "j.sqlite") as kept:
        assert kept.get(kept.present()) == {"a": "of a.py"}
