"""A real scheduler with real worker processes: the same results as without, through kills."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lookuplab import cluster
from lookuplab.errors import UserError

sys.path.insert(0, str(Path(__file__).parent))
pytest.importorskip("distributed")
from running_cluster import RunningCluster  # noqa: E402  beside this file

PATIENCE = 300  # seconds: on a busy machine one notebook takes a minute
SAVES = """\
import pandas as pd
from lookuplab.artifact import Artifact
row = dict(model="m", condition="all", metric="product", value=tasks * rate, n=tasks)
Artifact.begin("demo", "counts", profile).save(pd.DataFrame([row]))"""
WAITS = """\
import os, pathlib, time
started = pathlib.Path(os.environ["LOOKUPLAB_HOME"]) / "started"
with open(started, "a") as file:
    print(tasks, file=file)
while tasks > 1 and pathlib.Path(str(started) + ".wait").exists():
    time.sleep(0.05)"""


@pytest.fixture
def running(kit, tmp_path_factory):
    with RunningCluster(tmp_path_factory.mktemp("cluster"), kit.root) as found:
        yield found


def lines_of(file: Path, count: int, process: subprocess.Popen) -> list[str]:
    """The lines of a file as soon as it has so many, while the process runs."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        lines = file.read_text().splitlines() if file.exists() else []
        if len(lines) >= count:
            return lines
        time.sleep(0.05)
    process.kill()
    raise TimeoutError(f"{file} has fewer than {count} lines; the process said: {process.communicate()[1]}")


@contextmanager
def in_background(*arguments: str) -> Iterator[subprocess.Popen]:
    """The command line in a process of its own."""
    process = subprocess.Popen([sys.executable, "-m", "lookuplab", *arguments], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_sweep_through_a_killed_worker_equals_the_serial_one_byte_for_byte(kit, running):
    kit.notebook("counts", WAITS, SAVES)
    sweep = ["sweep", "counts", "-p", "tasks=1,2,3"]
    assert kit.call(*sweep, "-j", "2")[0] == 0
    (table,) = (kit.root / "runs/sweeps").rglob("sweep.csv")
    serial = {file.relative_to(kit.root): file.read_bytes() for file in table.parent.rglob("*.csv")}
    table.unlink()
    (kit.root / "started").unlink()
    (kit.root / "started.wait").touch()
    with in_background(*sweep, "--scheduler", running.address) as process:
        lines_of(kit.root / "started", 3, process)  # the first one is done, each worker is at one of the others
        running.kill(0)
        (kit.root / "started.wait").unlink()
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    assert {file.relative_to(kit.root): file.read_bytes() for file in table.parent.rglob("*.csv")} == serial
    started = (kit.root / "started").read_text().splitlines()
    assert sorted(set(started)) == ["1", "2", "3"] and len(started) == 4, "more than one task ran again"
    assert started.count("1") == 1, "a task that was done ran again"


def test_a_dead_scheduler_is_one_line_and_what_was_done_is_kept(kit, running):
    kit.notebook("counts", SAVES, WAITS)
    (kit.root / "started.wait").touch()
    with in_background("sweep", "counts", "-p", "tasks=2,3", "--scheduler", running.address) as process:
        lines_of(kit.root / "started", 2, process)
        running.kill("scheduler")
        _, said = process.communicate(timeout=PATIENCE)
    (kit.root / "started.wait").unlink()
    assert process.returncode == 2, said
    assert f"error: the scheduler {running.address} does not answer any more" in said
    assert "Traceback" not in said
    assert len(list((kit.root / "runs/sweeps").rglob("counts.csv"))) == 2


def test_an_unreachable_scheduler_is_one_line(kit, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    kit.notebook("counts", SAVES)
    code, said = kit.call("run", "counts", "--scheduler", "tcp://127.0.0.1:9")
    assert code == 2 and said.startswith("error: no scheduler answers at tcp://127.0.0.1:9"), said


@pytest.mark.parametrize("address", ["head-node", "http://head-node:8786", "tcp://", "tcp://head-node", "tcp://h:port"])
def test_what_is_no_address_is_told_without_waiting(kit, address):
    kit.notebook("counts", SAVES)
    code, said = kit.call("run", "counts", "--scheduler", address)
    assert code == 2 and said == f"error: --scheduler '{address}' is no address; write tcp://HOST:PORT, or local\n"


def test_a_worker_of_another_checkout_is_refused(kit, tmp_path):
    with RunningCluster(tmp_path, kit.root / "other", workers=1) as running, \
            cluster.joined(running.address) as joined, pytest.raises(UserError, match="has another checkout"):
        list(joined.map(len, ["a task"]))


def test_a_local_cluster_runs_tasks_in_other_processes_and_raises_what_they_raise(kit):
    with cluster.joined("local") as joined:
        assert sorted(joined.map(len, ["a", "bc"])) == [(0, 1), (1, 2)]
        with pytest.raises(ZeroDivisionError):
            list(joined.map((1).__truediv__, [0]))


def test_a_task_that_takes_every_worker_down_is_one_line(kit):
    with cluster.joined("local") as joined, pytest.raises(UserError, match="a task took down 4 workers, the last one"):
        list(joined.map(os._exit, [1]))
