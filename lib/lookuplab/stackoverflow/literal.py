"""The grader as DS-1000 has it: a fresh process for each program, which imports all its libraries anew.

`notebooks/performance/execution` compares `grader.Grader` with it, in verdicts and in CPU time.
"""

import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from lookuplab.execution.sandbox import Limits, Sandbox, python_places
from lookuplab.execution.server import Outcome, Program
from lookuplab.stackoverflow.grader import LIMITS


def fresh_processes(programs: Sequence[Program], python: Path, sandbox: Sandbox, limits: Limits = LIMITS
                    ) -> list[Outcome]:
    """Each program in a process and a folder of its own; it passes if it ends without an exception."""
    readable = python_places(python)
    return [_outcome(program, python, sandbox, limits, readable) for program in tqdm(programs, desc="fresh processes")]


def _outcome(program: Program, python: Path, sandbox: Sandbox, limits: Limits, readable: Sequence[str]) -> Outcome:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, \
            sandbox.popen([str(python), "-"], folder, readable, limits, stdin=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            _, errors = process.communicate(program.text.encode(), timeout=limits.seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return Outcome(False, f"took more than {limits.seconds:g} s", time.monotonic() - begun)
    lines = errors.decode("utf-8", "replace").strip().splitlines() or ["ended without a word"]
    return Outcome(process.returncode == 0, "" if process.returncode == 0 else lines[-1], time.monotonic() - begun)
