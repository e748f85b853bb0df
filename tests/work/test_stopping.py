"""A command that is interrupted ends at once and leaves nothing."""

import signal
import subprocess
import sys
import time

import psutil
import pytest

from lookuplab.errors import explained

WORKS = """import subprocess, sys, tempfile, time
from lookuplab.work.spread import spread
from lookuplab.work.stopping import stoppable

def wait(_):
    with tempfile.TemporaryDirectory():
        process = subprocess.Popen(["sleep", "600"], start_new_session=True)
        print(process.pid, flush=True)
        process.wait()
        time.sleep(600)

with stoppable():
    for _ in spread(wait, range(9), 2):
        pass"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_an_interrupt_is_one_line_and_leaves_nothing(tmp_path, number):
    """Its threads would work for many minutes."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    call = [sys.executable, "-c", WORKS]
    with subprocess.Popen(call, env={"TMPDIR": str(tmp_path)}, **pipes) as process:
        below = [psutil.Process(int(process.stdout.readline())) for _ in range(2)]
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert said == "\ninterrupted; what is done is kept: repeat the command\n"
    assert [*tmp_path.iterdir()] == []
    while any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in below):
        time.sleep(0.05)


def test_a_limit_of_open_files_is_one_line():
    said = explained(OSError(24, "Too many open files", "x"))
    assert said.startswith("Too many open files: raise the limit")
