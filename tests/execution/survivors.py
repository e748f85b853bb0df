"""A process that a test starts in a sandbox and looks for outside."""

import os
import subprocess
import time

SLEEP = ["sleep", f"3600.{os.getpid()}"]  # told from those of other tests' runs by its duration


def sleeping() -> bool:
    return " ".join(SLEEP) in subprocess.run(["ps", "ax", "-o", "args"], capture_output=True, text=True).stdout


def wait_until(holds) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
