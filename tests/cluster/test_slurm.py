"""Tests the files of docs/cluster with a real SLURM on this machine. An array whose tasks are
cancelled, run out of time and are requeued gives the numbers of an unbroken run.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_architectures import save
from waiting import until

from lookuplab.models.store import CompletionStore
from lookuplab.results.artifact import read_csv

STARTER = Path(__file__).with_name("slurm.sh")
# By default, SLURM waits for two minutes before it starts a requeued job. If the job started at
# once, its node would refuse it ("credential revoked").
SOON = "StartTime=now+10"
ENDED = ("COMPLETED", "CANCELLED", "FAILED")
NEEDED = ("munged", "slurmctld", "slurmd")
PARAMETERS = """\
profile = "mini"  # which world
models = ["none"]  # a checkpoint
tasks = 48  # how many"""
ASKS = """\
import os, time
from lookuplab.models import Decoding, Prompt, complete, load
class Slow:  # as a large model is
    name = "slow"
    def feed(self, piece):
        time.sleep(float(os.environ.get("SLOW", 0)))
        return False
prompts = [Prompt(f"task/{n}", f"x = {n}") for n in range(tasks)]
model = load(models[0])
answers = complete(model, prompts, Decoding(16, stop_rule=Slow))
"""
SAVES = """\
import pandas as pd
from lookuplab.results.artifact import Artifact
rows = [dict(model="tiny", condition=one.id, metric=metric, value=sum(values), n=1)
        for one in answers
        for metric, values in (("tokens", one.token_ids), ("logprob", one.token_logprobs))]
artifact = Artifact("demo", "counts", profile)
artifact.save(pd.DataFrame(rows))"""


@pytest.fixture
def slurm(request, tmp_path, monkeypatch):
    """Start a SLURM controller with two nodes. Return a function that runs a SLURM command in the
    kit's checkout.
    """
    if not request.config.getoption("--slurm"):
        pytest.skip("minutes, and daemons of its own: pytest tests/cluster --slurm")
    for name in NEEDED:
        if not shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin"):
            pytest.skip(f"no {name} (apt-get install slurm-wlm munge)")
    if os.getuid():
        pytest.skip("SLURM's daemons need root")
    kit = request.getfixturevalue("kit")
    folder = tmp_path / "slurm"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/sbin")
    subprocess.run([STARTER, "start", folder], check=True)
    monkeypatch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
    # a job expects docs/cluster and the program lookuplab in its checkout
    (kit.root / "docs").symlink_to(STARTER.parents[2] / "docs")
    (kit.root / ".venv" / "bin").mkdir(parents=True)
    program = kit.root / ".venv" / "bin" / "lookuplab"
    program.symlink_to(Path(sys.executable).with_name("lookuplab"))

    def run(*command):
        return subprocess.run(
            [*map(str, command)], cwd=kit.root, check=True, capture_output=True, text=True
        ).stdout

    yield run
    run("scancel", "--user=root")
    print(*[file.read_text() for file in kit.root.glob("slurm-*")], sep="\n")
    print(run("scontrol", "show", "job"), (folder / "slurmctld.log").read_text()[-6000:])
    subprocess.run([STARTER, "stop", folder], check=True)


class Runs:
    """Runs a notebook with 48 prompts for a tiny checkpoint: under SLURM, and
    without interruption.
    """

    def __init__(self, kit, slurm, model, monkeypatch):
        self.kit, self.slurm, self.setenv = kit, slurm, monkeypatch.setenv
        kit.notebook("counts", ASKS, SAVES, parameters=PARAMETERS)
        self.command = ("run", "counts", "-p", f"models={model}?batch_size=2")
        self.store = kit.root / "slurm.sqlite"
        self.setenv("LOOKUPLAB_STORE", str(self.store))
        self.setenv("SLOW", "0.25")  # seconds per token

    def submit(self, file, *options):
        small = "--gres=none --cpus-per-task=1 --mem=500 --time=30 --signal=B:USR1@60".split()
        call = "sbatch", "--parsable", *small, *options, f"docs/cluster/{file}", *self.command
        self.job = self.slurm(*call).strip()

    def states(self):
        """Return {"": (state, restarts)} of the job, or {task of the array: (state, restarts)}."""
        found = {}
        for told in self.slurm("scontrol", "show", "job", self.job).strip().split("\n\n"):
            said = dict(re.findall(r"(ArrayTaskId|JobState|Restarts)=(\w+)", told))
            found[said.get("ArrayTaskId", "")] = said["JobState"], int(said["Restarts"])
        return dict(sorted(found.items()))

    def update(self, job, *changes):
        self.slurm("scontrol", "update", f"JobId={job}", *changes)

    def has_begun(self):
        kept = 0
        if self.store.exists():
            with CompletionStore(self.store) as opened:
                kept = len(opened.present())
        return kept >= 4 or "FAILED" in str(self.states())

    def ends_as_an_unbroken_one(self):
        until(lambda: {state for state, _ in self.states().values()} <= {*ENDED})
        table = self.kit.root / "runs/figures/mini/demo/counts.csv"
        self.setenv("SLOW", "0")
        again = " ".join(self.command)
        assert "48 found in the store, 0 new" in self.kit.said(again)
        through_slurm = read_csv(table)
        self.setenv("LOOKUPLAB_STORE", str(self.kit.root / "unbroken.sqlite"))
        assert "48 new" in self.kit.said(again)
        unbroken = read_csv(table)
        # the two runs have different batches, so the last digits of log-probabilities differ
        apart = (through_slurm.value - unbroken.value).abs().groupby(unbroken.metric).max()
        print(f"largest differences: {apart.to_dict()}")
        assert apart["tokens"] == 0 and apart["logprob"] < 1e-3


@pytest.fixture
def runs(kit, slurm, tmp_path, monkeypatch):
    return Runs(kit, slurm, save(tmp_path / "tiny", "llama"), monkeypatch)


def test_an_array_through_cancel_time_limit_and_requeue_has_the_numbers_of_an_unbroken_run(runs):
    runs.submit("array.sbatch")
    until(runs.has_begun)
    runs.slurm("scancel", f"{runs.job}_1")
    runs.update(f"{runs.job}_2", "TimeLimit=2")
    runs.slurm("scontrol", "requeue", f"{runs.job}_3")
    until(lambda: runs.states()["2"][1] == runs.states()["3"][1] == 1)
    for task in 2, 3:
        runs.update(f"{runs.job}_{task}", "TimeLimit=30", SOON)
    runs.ends_as_an_unbroken_one()
    assert [state for state, _ in runs.states().values()] == [
        "COMPLETED",
        "CANCELLED",
        "COMPLETED",
        "COMPLETED",
    ]


def test_tasks_on_two_nodes_share_the_prompts(runs):
    runs.setenv("SLOW", "0")
    runs.submit("nodes.sbatch", "--ntasks-per-node=1", "--gpus-per-task=0")
    runs.ends_as_an_unbroken_one()
    said = next(runs.kit.root.glob("slurm-*")).read_text()
    made = [int(n) for n in re.findall(r"(\d+) new", said)]
    assert len(made) == 2 and all(made)


def test_a_job_that_gives_way_to_another_goes_on_where_it_was(runs):
    runs.setenv("SLOW", "0.1")
    runs.submit("preempted.sbatch", "--nodelist=n1", "--exclusive")
    until(runs.has_begun)
    runs.slurm(*"sbatch --partition=urgent --nodelist=n1 --exclusive --wrap true".split())
    until(lambda: runs.states()[""][1] == 1)
    runs.update(runs.job, SOON)
    runs.ends_as_an_unbroken_one()
