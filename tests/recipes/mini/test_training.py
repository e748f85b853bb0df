"""Tests how the mini models are trained: packing, the tokenizer, tiny training runs, and how a
killed run resumes.
"""

from dataclasses import replace

import numpy as np
import pandas
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer

from recipes.mini import training
from recipes.mini.training import IGNORED, PretrainingRecipe, batches, tensors

EXAMPLES = [([5 + i % 7, 6, 7], [8 + i % 5] * (1 + i % 9) + [0]) for i in range(60)]
SIZES = np.array([len(read) + len(written) for read, written in EXAMPLES])
SAMPLE = [
    "client = boto3.client('s3')\nclient.list_identity_pool_usage(IdentityPoolId='a1')\n"
] * 20
TOKENIZER = training.train_tokenizer(SAMPLE)
RECIPE = PretrainingRecipe("tiny", epochs=2, packed=True, batch_tokens=128)
SHAPES = training.ARCHITECTURES
SHAPES["tiny"] = SHAPES["small"] | {"num_hidden_layers": 2, "hidden_size": 32}
SHAPES["tiny-t5"] = SHAPES["t5"] | {"num_layers": 1, "num_decoder_layers": 1, "d_model": 32}


@pytest.mark.parametrize("packed", [True, False])
def test_every_example_is_in_one_row_of_an_epoch_and_no_batch_is_too_large(packed):
    plan = batches(SIZES, replace(RECIPE, epochs=1, packed=packed, batch_tokens=1100))
    assert sorted(n for rows in plan for row in rows for n in row) == list(range(60))
    for rows in plan:
        assert len(rows) == 1 or len(rows) * max(SIZES[row].sum() for row in rows) <= 1200


def test_only_what_is_written_is_learned_and_padding_is_not():
    rows = [[([5], [6, 7]), ([], [8])], [([9, 3], [4])]]
    decoder, encoder = (
        [one.tolist() for one in tensors(rows, kind).values()] for kind in (False, True)
    )
    labels = [[IGNORED, 6, 7, 8], [IGNORED, IGNORED, 4, IGNORED]]
    assert decoder == [[[5, 6, 7, 8], [9, 3, 4, 1]], labels]
    labels = [[6, 7, 8], [4, IGNORED, IGNORED]]
    assert encoder == [[[5, 1], [9, 3]], labels, [[1, 0], [1, 1]]]


@pytest.mark.parametrize("model", ["tiny", "tiny-t5"])
def test_a_killed_run_that_goes_on_gives_the_same_weights(model, tmp_path, monkeypatch):
    def run(name, seed=0):
        changed = replace(RECIPE, model=model, seed=seed, packed=model == "tiny")
        folders = tmp_path / name, tmp_path / name / "out"
        training.pretrain(EXAMPLES, TOKENIZER, changed, *folders, "", save_every=1)
        return (folders[1] / "model.safetensors").read_bytes()

    whole = run("whole")
    run("killed", seed=1)  # leaves the checkpoint of another recipe
    with monkeypatch.context() as killing:
        killing.setattr(training, "watched", lambda steps, *_: steps[:2])
        half = run("killed")
    assert half != whole == run("killed")


def test_a_tiny_run_lowers_the_loss_and_writes_a_loadable_folder(tmp_path):
    ids = TOKENIZER(SAMPLE)["input_ids"]
    out = tmp_path / "out"
    examples = [((), [*row, 0]) for row in ids]
    long = replace(RECIPE, batch_tokens=1100, epochs=20)
    training.pretrain(examples, TOKENIZER, long, tmp_path / "work", out, "Made in a test.")
    losses = pandas.read_csv(out / "log.csv").loss
    assert losses.iloc[-1] < losses.iloc[0] - 1
    assert AutoModelForCausalLM.from_pretrained(out).dtype == torch.float16
    assert AutoTokenizer.from_pretrained(out)(SAMPLE)["input_ids"] == ids
    assert "Made in a test." in (out / "README.md").read_text()


@given(st.text() | st.text(alphabet=" \t\r\n_aB1.('"))
def test_decoding_gives_the_text_back(text):
    assert TOKENIZER.decode(TOKENIZER(text)["input_ids"]) == text
