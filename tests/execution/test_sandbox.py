"""Each sandbox that works on this machine really holds a process; one that does not is refused with its reason."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from survivors import SLEEP, sleeping, wait_until

from lookuplab.errors import UserError
from lookuplab.execution.sandbox import NAMES, Limits, Sandbox, choose, probe, python_places


@pytest.fixture(params=NAMES[:-1])
def box(request):
    """Every sandbox of the machine in turn."""
    if reason := probe(request.param):
        pytest.skip(f"{request.param}: {reason}")
    return Sandbox(request.param)


def said(box, folder, script, limits=Limits(), readable=(), env=None):
    """What a Python script in the sandbox prints, its errors behind it."""
    argv = [sys.executable, "-c", script]
    with box.popen(argv, folder, [*python_places(sys.executable), *readable], limits, env, stdin=subprocess.DEVNULL,
                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        return process.communicate(timeout=60)[0].strip()


def test_a_process_writes_in_its_folder_and_reads_what_it_was_given(box, tmp_path):
    folder, other, hidden = (tmp_path / name for name in ("folder", "other", "hidden"))
    for path in (folder, other, hidden):
        path.mkdir()
        (path / "file").write_text("content")
    script = f"""
open('new', 'w').write('made inside')
print(open({str(other / 'file')!r}).read())
for path in ({str(other / 'file')!r}, {str(hidden / 'file')!r}):
    try:
        open(path, 'a').close()
    except OSError as error:
        print(type(error).__name__)"""
    assert said(box, folder, script, readable=[other]).split() == ["content", "OSError", "FileNotFoundError"]
    assert (folder / "new").read_text() == "made inside"


def test_the_home_is_empty_and_nothing_else_runs(box, tmp_path):
    script = "import os\nprint(os.listdir(os.path.expanduser('~')), [n for n in os.listdir('/proc') if n.isdigit()])"
    (tmp_path / "folder").mkdir()
    home, _, processes = said(box, tmp_path / "folder", script).partition("] ")
    assert str(Path.home()) not in home and len(processes.split(",")) <= 3


def test_limits_hold(box, tmp_path):
    limits = Limits(cpu_seconds=1, memory=1 << 28, file_size=1 << 16)
    assert said(box, tmp_path, "bytearray(1 << 29)", limits).endswith("MemoryError")
    assert "File too large" in said(box, tmp_path, "open('file', 'wb').write(bytes(1 << 17))", limits)
    begun = time.monotonic()
    assert "never" not in said(box, tmp_path, "while True: pass\nprint('never')", limits)
    assert time.monotonic() - begun < 30


def test_the_environment_is_small_and_takes_what_is_given(box, tmp_path, monkeypatch):
    monkeypatch.setenv("OF_THE_USER", "secret")
    script = "import os\nprint(os.environ.get('OF_THE_USER'), os.environ['GIVEN'], os.environ['OMP_NUM_THREADS'])"
    assert said(box, tmp_path, script, env={"GIVEN": "1"}) == "None 1 1"


def test_ending_a_process_ends_all_that_it_started(box, tmp_path):
    script = f"import subprocess, time\nsubprocess.Popen({SLEEP}, start_new_session=True)\ntime.sleep(60)"
    process = box.popen([sys.executable, "-u", "-c", script], tmp_path, python_places(sys.executable))
    wait_until(sleeping)
    process.kill()
    process.wait()
    wait_until(lambda: not sleeping())


def test_the_first_sandbox_that_works_is_chosen(sandbox):
    assert choose() == sandbox and probe(sandbox.name) == ""


def test_without_a_sandbox_limits_hold(tmp_path):
    assert said(Sandbox("none"), tmp_path, "bytearray(1 << 29)", Limits(memory=1 << 28)).endswith("MemoryError")
    assert said(Sandbox("none"), tmp_path, "import os\nprint(os.getcwd())") == str(tmp_path)


def test_none_is_chosen_only_by_name(monkeypatch, tmp_path):
    assert choose("none") == Sandbox("none")
    monkeypatch.setenv("PATH", str(tmp_path))
    probe.cache_clear()
    try:
        with pytest.raises(UserError, match="bwrap is not installed.*unshare is not installed.*--sandbox none"):
            choose()
        with pytest.raises(UserError, match="docker is not installed"):
            choose("docker")
        (tmp_path / "unshare").write_text(f"#!{os.path.realpath('/bin/sh')}\nexit 1\n")  # there, but it may not work
        (tmp_path / "unshare").chmod(0o755)
        probe.cache_clear()
        with pytest.raises(UserError, match="unshare: it ended without a word"):
            choose("unshare")
    finally:
        probe.cache_clear()


def test_a_sandbox_that_does_not_contain_is_refused(monkeypatch, tmp_path):
    program, script = tmp_path / "unshare", tmp_path / "unshare.py"  # runs the program as it is
    script.write_text("import os, sys\nat = sys.argv.index('-c', 2)\n"
                      "rest = sys.argv[sys.argv.index('-c', at + 1) - 2:]\nos.execv(rest[0], rest)\n")
    program.write_text(f"#!{os.path.realpath('/bin/sh')}\nexec '{sys.executable}' '{script}' \"$@\"\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    probe.cache_clear()
    try:
        assert "could" in probe("unshare")
    finally:
        probe.cache_clear()


def test_an_unknown_sandbox_is_named():
    with pytest.raises(UserError, match="unknown sandbox 'jail'; known are bubblewrap, unshare, docker, none"):
        choose("jail")
