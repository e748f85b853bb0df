"""Tests that an interrupted command ends at once and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest
from waiting import is_at_work, until

from lookuplab import paths
from lookuplab.errors import explain

WORKS = """import subprocess, sys
from pathlib import Path
from lookuplab import paths
from lookuplab.work import spread
from lookuplab.work import stoppable

def wait(_):
    with paths.temporary_folder() as folder:
        for number in range(3000):
            Path(folder, str(number)).touch()
        process = subprocess.Popen(["sleep", "600"], start_new_session=True)
        print(process.pid, flush=True)
        process.wait()

with stoppable():
    try:
        for _ in spread(wait, range(9), 2):
            pass
    except BaseException:
        {end}
    wait(0)"""


@pytest.mark.parametrize(
    ("number", "end"),
    [(signal.SIGINT, "raise"), (signal.SIGTERM, "raise ImportError"), (signal.SIGUSR1, "pass")],
)
def test_an_interrupt_is_one_line_and_leaves_nothing(tmp_path, number, end):
    """The threads would wait for ten minutes. After the interrupt, they need a while to remove
    their many files, and the command must not end before they are done. A module that is being
    imported may drop the exception, or raise another one in its place.
    """
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    call = [sys.executable, "-c", WORKS.format(end=end)]
    with subprocess.Popen(call, env={"TMPDIR": str(tmp_path)}, **pipes) as process:
        below = [psutil.Process(int(process.stdout.readline())) for _ in range(2)]
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert said == "\ninterrupted; finished work is kept: repeat the command\n"
    assert [*tmp_path.iterdir()] == []
    until(lambda: not any(map(is_at_work, below)))


def test_a_limit_of_open_files_is_one_line():
    said = explain(OSError(24, "Too many open files", "x"))
    assert said.startswith("Too many open files: raise the limit")


# one command of each group
COMMANDS = """report
reproduce table1_base_models --again --audit 2%
view fig7a_retriever_precision
score ds1000 answers.jsonl
data mark rich -o marked.jsonl
train toolgen --base mini-gpt-base --corpus marked.jsonl -o trained
store merge other"""


@pytest.mark.parametrize("command", COMMANDS.splitlines())
def test_every_command_ends_with_an_interrupt(tmp_path, command):
    """The interrupt goes to all processes, as from a terminal, while the command
    imports or works.
    """
    for name in ("data", "notebooks"):
        (tmp_path / name).symlink_to(paths.ROOT / name)
    (tmp_path / "temporary").mkdir()
    home = {"LOOKUPLAB_HOME": str(tmp_path), "TMPDIR": str(tmp_path / "temporary")}
    process = subprocess.Popen(
        [sys.executable, "-m", "lookuplab", *command.split()],
        cwd=tmp_path,
        env=os.environ | home,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    seen = psutil.Process(process.pid)
    while process.poll() is None and sum(seen.cpu_times()[:2]) < 0.7:
        time.sleep(0.01)
    below = seen.children(recursive=True) if process.poll() is None else []
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    # The signal may come after the command has ended. In rare cases it comes inside the import of
    # torch, whose C++ code cannot pass on an exception.
    signals = -signal.SIGINT, -signal.SIGABRT
    assert process.returncode in (0, 1, 2, 130, *signals) and "Traceback" not in said, said
    assert ("\ninterrupted; " in said) == (process.returncode == 130), said
    assert [*(tmp_path / "temporary").iterdir()] == []
    until(lambda: not any(map(is_at_work, below)))
