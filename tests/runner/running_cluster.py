"""A Dask scheduler and its workers, as processes on this machine that can be killed."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

COMMON = ["--no-dashboard", "--host", "127.0.0.1"]


class RunningCluster:
    """``processes`` are the scheduler's, by "scheduler", and the workers', by their number; a context manager."""

    def __init__(self, folder: Path, home: Path, workers: int = 2):
        self.folder, self.home = folder, home
        self.processes: dict[str | int, subprocess.Popen] = {}
        self.start("scheduler", "dask_scheduler", "--port", "0", "--scheduler-file", str(folder / "scheduler.json"))
        self.address = self._address()
        for number in range(workers):
            self.worker(number)

    def worker(self, number: int, **environment: str) -> None:
        self.start(number, "dask_worker", self.address, "--no-nanny", "--nthreads", "1", "--memory-limit", "0",
                   "--local-directory", str(self.folder), **environment)

    def start(self, name: str | int, module: str, *arguments: str, **environment: str) -> None:
        variables = {**os.environ, "LOOKUPLAB_HOME": str(self.home), "OMP_NUM_THREADS": "1", **environment}
        with open(self.folder / f"{name}.log", "w") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{module}", *arguments, *COMMON], stdout=log, stderr=log,
                env=variables)

    def kill(self, name: str | int) -> None:
        """As kill -9: without a word to anyone."""
        self.processes[name].kill()
        self.processes.pop(name).wait()

    def _address(self) -> str:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                return json.loads((self.folder / "scheduler.json").read_text())["address"]
            except (OSError, ValueError, KeyError):
                time.sleep(0.05)
        raise TimeoutError((self.folder / "scheduler.log").read_text())

    def __enter__(self) -> "RunningCluster":
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.processes):
            self.kill(name)
