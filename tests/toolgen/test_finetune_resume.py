"""What a killed run of fine-tuning leaves, and who may go on from it."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from click.testing import CliRunner
from small_finetunes import LORA, PAIRS, RECIPE, corpus_file, log_of, tune, weights

from lookuplab.cli import cli
from lookuplab.errors import UserError
from lookuplab.toolgen.finetune import Recipe


class Cut(Exception):
    pass


@pytest.mark.parametrize("recipe", [RECIPE, replace(LORA, sampling="group_by_length"), replace(RECIPE, accumulation=2)],
                         ids=["full", "LoRA by length", "accumulated"])
def test_a_run_that_was_cut_off_ends_in_the_same_weights(bases, tmp_path, monkeypatch, recipe):
    """GPT-2 has dropout, so that the state of the random numbers counts; step 8 is in the second epoch."""
    from lookuplab.toolgen.training_log import Books

    whole = tune(bases / "gpt2", tmp_path / "whole", recipe)
    step_end = Books.on_step_end

    def cut(self, args, state, control, **options):
        step_end(self, args, state, control, **options)
        if state.global_step == 8:
            raise Cut

    with monkeypatch.context() as patch, pytest.raises(Cut):
        patch.setattr(Books, "on_step_end", cut)
        tune(bases / "gpt2", tmp_path / "cut", recipe)
    assert not (tmp_path / "cut").exists()
    done = tune(bases / "gpt2", tmp_path / "cut", recipe)
    assert weights(done.folder) == weights(whole.folder)
    assert [line["loss"] for line in log_of(done.folder)] == [line["loss"] for line in log_of(whole.folder)]


def test_a_killed_command_goes_on_from_its_last_checkpoint(bases, tmp_path):
    corpus = corpus_file(tmp_path / "marked.jsonl")
    command = ["train", "toolgen", "--base", bases / "llama", "--corpus", corpus, "-o", tmp_path / "m", "--work",
               tmp_path / "w", "-s", "epochs=12", "-s", "batch_size=8", "--save-every", 5, "--log-every", 5]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-m", "lookuplab", *map(str, command)], env=environment,
                               stderr=subprocess.DEVNULL)
    while not list(tmp_path.glob("w/checkpoint-*/trainer_state.json")) and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "m").exists()
    checkpoints = sorted(int(folder.name.split("-")[1]) for folder in tmp_path.glob("w/checkpoint-*"))
    assert 5 <= checkpoints[0] < 60
    said = CliRunner().invoke(cli, [str(word) for word in command])
    assert said.exit_code == 0 and "40 pairs, 60 steps" in said.output, said.output
    whole = tune(bases / "llama", tmp_path / "n", Recipe(epochs=12, batch_size=8), save_every=100)
    assert weights(tmp_path / "m") == weights(whole.folder)


@pytest.mark.parametrize(("change", "what"), [
    ({"recipe": replace(RECIPE, learning_rate=1e-3)}, "other recipe"), ({"pairs": PAIRS[:-1]}, "other pairs"),
    ({"marked": False}, "other marked, pairs"), ({"base": "llama"}, "other base")])
def test_another_run_does_not_go_on_from_these_checkpoints(bases, tmp_path, monkeypatch, change, what):
    checkpoint = tmp_path / "work" / "checkpoint-3"
    checkpoint.mkdir(parents=True)
    with monkeypatch.context() as patch, pytest.raises(Cut):
        patch.setattr("lookuplab.toolgen.finetune._trainer", lambda *_: (_ for _ in ()).throw(Cut))
        tune(bases / "gpt2", tmp_path / "m", work=tmp_path / "work")
    (checkpoint / "trainer_state.json").write_text("{}")
    with pytest.raises(UserError, match=f"checkpoints of another run \\({what}\\)"):
        tune(bases / change.pop("base", "gpt2"), tmp_path / "m", work=tmp_path / "work", **change)


def test_half_of_a_checkpoint_is_no_point_to_go_on_from(bases, tmp_path):
    broken = tmp_path / "m work" / "checkpoint-6"
    broken.mkdir(parents=True)
    (broken / "model.safetensors").write_bytes(b"half")
    assert tune(bases / "gpt2", tmp_path / "m").steps == 10
