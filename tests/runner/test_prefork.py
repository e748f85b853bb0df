"""Forked kernels: the same as kernels that start by themselves, and gone when anything that needs them is."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lookuplab.runner import notebooks, profiles
from lookuplab.runner.execute import environment, run_jobs
from lookuplab.runner.plan import plan
from lookuplab.runner.prefork import gains, prefork

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux only")
TELLS = """\
import json, os, sys, torch
hidden = ("JPY_", "LOOKUPLAB_", "JUPYTER_PATH", "PYTEST_CURRENT_TEST")
print(json.dumps({
    "environment": {name: value for name, value in os.environ.items() if not name.startswith(hidden)},
    "folder": os.getcwd(), "path": sys.path, "threads": torch.get_num_threads(), "tasks": tasks, "main": __name__,
    "hash": hash("text")}))"""
SLEEPS = """\
import os, time, torch
from pathlib import Path
Path(os.environ["LOOKUPLAB_FIGURES"], "pid").write_text(str(os.getpid()))
time.sleep(600)"""


@pytest.fixture(scope="module")
def kernels():
    with prefork(environment(1) | {"OMP_NUM_THREADS": "1"}) as folder:  # as in every kit
        if folder is None:
            pytest.skip("kernels cannot be forked here")
        yield folder


def ended(pid: int, seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def server_of(kernels: Path) -> psutil.Process:
    return next(child for child in psutil.Process().children() if "fork_server.py" in " ".join(child.cmdline()))


def test_a_forked_kernel_sees_what_one_by_itself_sees(kit, kernels):
    job = plan(notebooks.read(kit.notebook("tells", TELLS)), profiles.load("mini"))
    said = []
    for folder in (None, kernels):
        (result,) = run_jobs([job], kernels=folder)
        assert result.failure is None, result.failure
        said.append(kit.output("tells"))
    assert said[0] == said[1]


def test_it_is_forked_and_has_the_imports(kit, kernels):
    asks = ("import os, sys, psutil\nprint('torch' in sys.modules, psutil.Process(os.getppid()).cmdline())\n"
            "if 0: import torch")
    (result,) = run_jobs([plan(notebooks.read(kit.notebook("asks", asks)), profiles.load("mini"))], kernels=kernels)
    assert result.failure is None, result.failure
    assert kit.output("asks").startswith("True") and "fork_server.py" in kit.output("asks")


def test_an_error_in_a_cell_is_told_as_ever(kit, kernels):
    fails = plan(notebooks.read(kit.notebook("fails", "import torch\n1 / 0")), profiles.load("mini"))
    (result,) = run_jobs([fails], kernels=kernels)
    assert (result.failure.ename, result.failure.cell) == ("ZeroDivisionError", 2)


def test_a_kernel_that_dies_is_told_and_the_server_goes_on(kit, kernels):
    kills = "import os, torch\nos.kill(os.getpid(), 9)"
    dies = plan(notebooks.read(kit.notebook("dies", kills)), profiles.load("mini"))
    tells = plan(notebooks.read(kit.notebook("tells", TELLS)), profiles.load("mini"))
    (died,), (told,) = run_jobs([dies], kernels=kernels), run_jobs([tells], kernels=kernels)
    assert died.failure.ename == "DeadKernelError" and told.failure is None


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_kernels_and_server_end_with_the_runner(kit, how):
    for name in ("a", "b"):
        kit.notebook(name, SLEEPS.replace('"pid"', f'"{name}"'))
    (kit.root / "figures").mkdir()
    runner = subprocess.Popen([sys.executable, "-m", "lookuplab", "reproduce", "-j", "2"], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while len(list((kit.root / "figures").iterdir())) < 2:
            assert time.monotonic() < deadline and runner.poll() is None
            time.sleep(0.1)
        pids = [int((kit.root / "figures" / name).read_text()) for name in ("a", "b")]
        below = [child.pid for child in psutil.Process(runner.pid).children(recursive=True)]
        assert set(pids) <= set(below), "forked by a child of the runner"
        runner.send_signal(how)
        assert all(ended(pid) for pid in below)
    finally:
        runner.kill()


def test_without_its_server_a_kernel_starts_by_itself(kit):
    with prefork(environment(1)) as folder:
        server = server_of(folder)
        server.kill()
        server.wait(10)
        job = plan(notebooks.read(kit.notebook("tells", TELLS)), profiles.load("mini"))
        (result,) = run_jobs([job], kernels=folder)
    assert result.failure is None and kit.output("tells")


@pytest.mark.parametrize(("cell", "order", "is_gained"), [
    ("import torch", "any", True), ("import numpy", "any", False), ("import torch", "alone", False)])
def test_only_a_notebook_that_imports_torch_and_is_not_measured_is_forked(kit, cell, order, is_gained):
    path = kit.notebook("one", cell)
    if order != "any":
        (kit.root / "notebooks/order.yaml").write_text(f"{order}: [demo/one]\n")
    job = plan(notebooks.find("demo/one") if order != "any" else notebooks.read(path), profiles.load("mini"))
    assert gains(job) == is_gained
