"""Tests that the kit uses the processors, memory and cards of the job, not those of the machine."""

import os

import pytest

from lookuplab import work


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return a function that makes the files of a machine in which the process's control group, and
    the group above it, have given limits.
    """
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))

    def made(own, above=None):
        (tmp_path / "proc/self").mkdir(parents=True)
        (tmp_path / "proc/self/cgroup").write_text("4:memory:/x\n0::/job/step\n")
        for folder, files in (("job/step", own), ("job", above or {})):
            (place := tmp_path / "sys/fs/cgroup" / folder).mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (place / name).write_text(text)
        return tmp_path

    return made


@pytest.mark.parametrize(
    ("own", "above", "task", "count"),
    [
        ("max 100000", None, "", 64),
        ("150000 100000", None, "", 2),
        ("max 100000", "400000 100000", "", 4),
        ("800000 100000", "400000 100000", "3", 3),
    ],
)
def test_processors_are_the_least_of_affinity_quotas_and_the_queues(
    machine, monkeypatch, own, above, task, count
):
    root = machine({"cpu.max": own}, above and {"cpu.max": above})
    if task:
        monkeypatch.setenv("SLURM_CPUS_PER_TASK", task)
    assert work.processors(root) == count


def test_memory_is_what_a_control_group_leaves_beside_what_gives_way(machine):
    root = machine({"memory.max": "1000000\n", "memory.stat": "anon 300000\nfile 600000\n"})
    assert work.free_memory(root) == 700_000


PARTS = """
import os
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
from lookuplab.results.provenance import threads
from lookuplab.run.runner import default_jobs
from lookuplab.stackoverflow.grader import Grader
from lookuplab.toolgen.jedi_tool import JediTool
print(threads(), default_jobs(), Grader(sandbox="none").workers, JediTool().workers)"""


def test_every_part_sees_the_same_processors(monkeypatch, run_python):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert run_python(PARTS) == "1 1 1 1\n"


@pytest.mark.parametrize(
    ("stated", "cards"),
    [("", []), ("-1", []), ("2,0", ["2", "0"]), ("GPU-1a, 3", ["GPU-1a", "3"]), ("1,-1,2", ["1"])],
)
def test_cards_are_those_that_the_job_was_given(monkeypatch, stated, cards):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", stated)
    assert work.graphics_cards() == cards


def test_cards_are_counted_by_the_driver_without_torch(tmp_path, monkeypatch, run_python):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    (driver := tmp_path / "nvidia-smi").write_text("#!/bin/sh\nprintf '0\\n1\\n'\n")
    driver.chmod(0o755)
    code = "import sys\nfrom lookuplab.work import graphics_cards\n"
    code += "print(graphics_cards(), 'torch' in sys.modules)"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert run_python(code) == "['0', '1'] False\n"
