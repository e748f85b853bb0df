"""`accelerate launch` over two processes of this machine: the models' work is shared, the completions are the same."""

import json
import math
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from lookuplab.errors import UserError
from lookuplab.models.share import arriving
from lookuplab.runner import launch

sys.path.append(str(Path(__file__).parents[1] / "models"))
import tiny_checkpoint  # noqa: E402  beside the tests of that room

ASKS = """\
from lookuplab.models import Decoding, Prompt, complete, load
loaded = load(model)
prompts = [Prompt(str(number), f"client{number}.") for number in range(6)]
complete(loaded, prompts, Decoding(max_new_tokens=8, temperature=0.8, n=2), progress=False)
alone = complete(loaded, [Prompt("alone", "client.")], Decoding(max_new_tokens=8), progress=False)
print(alone[0].text)"""
LAUNCH = ["--multi_gpu", "--num_processes", "2", "--num_machines", "1", "--mixed_precision", "no",
          "--dynamo_backend", "no"]


def stored(file: Path) -> tuple[dict, int]:
    """The answers by key, and how many were generated."""
    with sqlite3.connect(file) as db:
        rows = db.execute("SELECT settings, prompt, sample, json FROM completions").fetchall()
        return {tuple(key): json.loads(text) for *key, text in rows}, db.execute(
            "SELECT sum(answers) FROM batches").fetchone()[0]


def test_two_processes_give_the_completions_of_one_and_generate_each_once(kit, monkeypatch):
    kit.notebook("asks", ASKS, parameters='model = ""  # a folder\n')
    own = ["run", "asks", "-p", f"model={tiny_checkpoint.save(kit.root / 'tiny')}"]
    found, said = [], []
    for name, command in (("one", ["-m", "lookuplab"]),
                          ("two", ["-m", "accelerate.commands.launch", *LAUNCH, "-m", "lookuplab"])):
        monkeypatch.setenv("LOOKUPLAB_STORE", str(kit.root / f"{name}.sqlite"))
        done = subprocess.run([sys.executable, *command, *own], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.append(stored(kit.root / f"{name}.sqlite"))
        said.append(kit.output("asks"))
    assert said[0] == said[1]
    (one, generated), (two, shared) = found
    assert len(one) == generated == shared == 13 and one.keys() == two.keys()
    for key, answer in one.items():
        pairs = zip(answer.pop("token_logprobs"), two[key].pop("token_logprobs"), strict=True)
        assert all(math.isclose(*pair, abs_tol=1e-4) for pair in pairs), "another batch may change the last digits only"
        assert answer == two[key]
    assert (kit.root / "runs/processes/1/demo/asks.ipynb").exists(), "the second wrote over the first one's copy"


def test_processes_on_several_machines_are_refused(monkeypatch):
    for name, value in {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match="must run on one machine"):
        launch.place()


def test_a_kernel_gets_its_share_of_prompts_and_gpus_and_nothing_of_the_launcher(monkeypatch):
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_PORT": "1",
                        "CUDA_VISIBLE_DEVICES": "0,1,2,3"}.items():
        monkeypatch.setenv(name, value)
    found = launch.kernel_environment()
    assert (found["LOOKUPLAB_SHARE"], found["CUDA_VISIBLE_DEVICES"]) == ("1/2", "1,3")
    assert not {"RANK", "WORLD_SIZE", "MASTER_PORT"} & found.keys()


def test_answers_of_others_that_never_come_end_the_wait(monkeypatch):
    monkeypatch.setattr("lookuplab.models.share.PATIENCE_SECONDS", 0.0)
    with pytest.raises(UserError, match="1 answers of the other processes did not come"):
        list(arriving(["a"], lambda left: []))
