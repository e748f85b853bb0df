"""Nothing goes on in the background after the runner has gone, however it went."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)])
def test_the_kernel_ends_with_the_runner(kit, how, code):
    kit.notebook("sleeps", f"import os\nopen({str(kit.root / 'pid')!r}, 'w').write(str(os.getpid()))",
                 "import time\ntime.sleep(600)")
    runner = subprocess.Popen([sys.executable, "-m", "lookuplab", "run", "sleeps"], env={**os.environ},
                              stderr=subprocess.PIPE, text=True, preexec_fn=_can_be_interrupted)
    try:
        kernel = _wait_for(lambda: int((kit.root / "pid").read_text()))
        runner.send_signal(how)
        assert runner.wait(60) == code, runner.stderr.read()
        deadline = time.monotonic() + 60
        while psutil.pid_exists(kernel) and psutil.Process(kernel).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline, "the kernel still runs"
            time.sleep(0.1)
    finally:
        runner.kill()


def _can_be_interrupted() -> None:
    """A shell's background job ignores Ctrl-C, and hands that down to the tests and from there to the runner."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _wait_for(read):
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        try:
            return read()
        except (OSError, ValueError):
            time.sleep(0.1)
    raise AssertionError("the notebook did not start")
