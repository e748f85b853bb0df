"""Tests a real scheduler with real worker processes: it gives the same results as a run without it,
even if processes are killed.
"""

import json
import os
import shlex
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import dask
import distributed  # noqa: F401 - its defaults are there before a test changes one of them for a while
import pytest
import written_problems as written
from doors import call, refused
from waiting import until

from lookuplab import paths
from lookuplab.run import cluster

WAITS = """\
import os, pathlib, time
started = pathlib.Path(os.environ["LOOKUPLAB_HOME"]) / "started"
with open(started, "a") as file:
    print(tasks, file=file)
while tasks > 1 and pathlib.Path(str(started) + ".wait").exists():
    time.sleep(0.05)"""
FUNCTIONS = """\
def helper(x):
    return x


def use{0}(y):
    '''Use it on what is given {0}.'''
    return helper(y)
"""


class Running:
    """Starts a Dask scheduler and workers as processes that can be killed. The keys of
    ``processes`` are "scheduler", 0 and so on.
    """

    def __init__(self, folder, home, workers=2):
        self.folder = folder
        self.home = home
        self.processes = {}
        file = folder / "scheduler.json"
        self.start("scheduler", "dask_scheduler --port 0 --scheduler-file", str(file))
        until(lambda: file.exists() and file.read_text())
        self.address = json.loads(file.read_text())["address"]
        options = "--nthreads 1 --memory-limit 0 --no-nanny --local-directory"
        for number in range(workers):
            self.start(number, f"dask_worker {self.address} {options}", str(folder))

    def start(self, name, command, place):
        variables = os.environ | {"LOOKUPLAB_HOME": str(self.home), "OMP_NUM_THREADS": "1"}
        call = [*f"-m distributed.cli.{command}".split(), place]
        call += "--no-dashboard --host 127.0.0.1".split()
        with open(self.folder / f"{name}.log", "w") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, *call], stdout=log, stderr=log, env=variables
            )

    def kill(self, name):
        self.processes[name].kill()
        self.processes.pop(name).wait()

    def close(self):
        for name in list(self.processes):
            self.kill(name)


def started(kit, count):
    """Wait until ``count`` notebooks have started, and return the lines that they wrote."""
    file = kit.root / "started"
    until(lambda: file.exists() and len(file.read_text().splitlines()) >= count)
    return file.read_text().splitlines()


def test_a_killed_worker_costs_a_sweep_nothing_but_what_it_had_begun(kit, tmp_path):
    kit.notebook("counts", WAITS, kit.saves)
    (kit.root / "started.wait").touch()
    with (
        closing(Running(tmp_path, kit.root)) as running,
        kit.begin(f"sweep counts -p tasks=[1,2,3] --scheduler {running.address}") as process,
    ):
        started(kit, 3)  # the first is done, and each worker runs one of the others
        # the first notebook's result has arrived
        until(lambda: [*(kit.root / "runs").rglob("*.ran")])
        running.kill(0)
        (kit.root / "started.wait").unlink()
        _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    [table] = (kit.root / "runs/sweeps").rglob("sweep.csv")
    assert table.read_text().splitlines()[1:] == [
        f'demo,counts,m,"all, tasks={n}",product,{n / 2:g},,,{n},,' for n in (1, 2, 3)
    ]
    ran = "".join(sorted(started(kit, 4)))
    assert ran in ("1223", "1233"), "only the lost one ran again"


def test_a_dead_scheduler_is_one_line_and_what_was_done_is_kept(kit, tmp_path):
    kit.notebook("counts", kit.saves, WAITS)
    (kit.root / "started.wait").touch()
    with (
        closing(Running(tmp_path, kit.root, 1)) as running,
        kit.begin(f"sweep counts -p tasks=[1,2] --scheduler {running.address}") as process,
    ):
        started(kit, 2)  # the first does not wait
        running.kill("scheduler")
        _, said = process.communicate(timeout=300)
    (kit.root / "started.wait").unlink()
    assert process.returncode == 2 and "Traceback" not in said, said
    assert f"error: the scheduler {running.address} no longer answers" in said
    assert len(list((kit.root / "runs/sweeps").rglob("counts.csv"))) == 2


@pytest.mark.usefixtures("kit")
def test_a_local_cluster_runs_tasks_in_other_processes_and_raises_what_they_raise():
    is_lost_at_once = dask.config.set({"distributed.scheduler.allowed-failures": 0})
    with is_lost_at_once, cluster.connect("local") as joined:
        assert sorted(joined.map(len, ["a", "bc"])) == [(0, 1), (1, 2)]
        with pytest.raises(ZeroDivisionError):
            list(joined.map((1).__truediv__, [0]))
        with refused("a task killed 1 workers, the last one"):
            list(joined.map(os._exit, [1]))


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    with closing(Running(tmp_path_factory.mktemp("cluster"), paths.ROOT, 1)) as found:
        yield found


@pytest.mark.usefixtures("kit")
def test_a_worker_of_another_checkout_is_refused(workers):
    with (
        cluster.connect(workers.address) as joined,
        refused("has a different checkout"),
    ):
        list(joined.map(len, ["a task"]))


GRADE = "score ds1000 answers.jsonl --problems problems.jsonl --sandbox none --environment"


@pytest.mark.parametrize(
    "command",
    [
        "data mark repo",
        "score toolgen functions.jsonl",
        f"{GRADE} {shlex.quote(sys.executable)}",
    ],
)
def test_marking_linting_and_grading_write_the_same_file_on_a_cluster(
    workers, tmp_path, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "repo").mkdir()
    for number in range(2):
        (tmp_path / "repo" / f"m{number}.py").write_text(FUNCTIONS.format(number))
    place = {"repository": "repo", "file": "m0.py", "line": 5}
    bodies = ["    return helper(y)", "    return nothere(y)"]
    texts = [written.REFERENCE, "result = 0"]
    lines = {
        "functions": [place | {"id": body, "prediction": body} for body in bodies],
        "problems": [written.record(), written.record(2)],
        "answers": [{"problem_id": n, "solution": text} for n in (1, 2) for text in texts],
    }
    for name, records in lines.items():
        paths.write_lines(Path(f"{name}.jsonl"), map(json.dumps, records))
    found = []
    for place in ("", f"--scheduler {workers.address}"):
        output = tmp_path / str(len(found)) / "output.jsonl"
        monkeypatch.setenv("LOOKUPLAB_STORE", str(output.with_name("completions.sqlite")))
        result = call(*shlex.split(command), *place.split(), "-o", output)
        assert result.exit_code == 0, result.output
        found.append(output.read_text())
    assert found[0] == found[1] and found[0].count("\n") >= 2
