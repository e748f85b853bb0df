"""Packing, tokenizer, a tiny run of each kind, its resumption; the functions that ToolGen's models learn."""

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer

from lookuplab.mini import toolgen, training
from lookuplab.mini.training import IGNORED, Recipe, batches, fitted, tensors, train
from lookuplab.toolgen.functions import locate

EXAMPLES = [([5 + i % 7, 6, 7], [8 + i % 5] * (1 + i % 9) + [0]) for i in range(60)]
SIZES = np.array([len(read) + len(written) for read, written in EXAMPLES])
SAMPLE = [
    "client = boto3.client('s3')\nclient.list_identity_pool_usage(IdentityPoolId='a1')\n"
] * 20
TOKENIZER = training.train_tokenizer(SAMPLE, 600)


def recipe(model="tiny", **changes):
    return Recipe(
        **{"model": model, "batch_tokens": 128, "epochs": 2, "packed": model == "tiny"} | changes
    )


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    AcceleratorState._reset_state(reset_partial_state=True)  # another test has set a precision
    shape = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 2, "head_dim": 64}
    shape |= {"model_type": "llama", "intermediate_size": 64, "max_position_embeddings": 512}
    monkeypatch.setitem(training.ARCHITECTURES, "tiny", shape)


@pytest.mark.parametrize("packed", [True, False])
def test_every_example_is_in_one_row_of_an_epoch_and_no_batch_is_too_large(packed):
    plan = batches(SIZES, recipe(epochs=1, packed=packed, batch_tokens=1100))
    assert plan == batches(SIZES, recipe(epochs=1, packed=packed, batch_tokens=1100))
    assert sorted(n for rows in plan for row in rows for n in row) == list(range(60))
    assert all(
        len(rows) * max(SIZES[row].sum() for row in rows) <= 1200 for rows in plan if len(rows) > 1
    )


def test_rows_are_filled_best_fit_decreasing():
    sizes = np.array([300, 200, 12, 512, 100])
    assert fitted(range(5), sizes, 512) == [[3], [0, 1, 2], [4]]


def test_only_what_is_written_is_learned_and_padding_is_not():
    two = tensors([[([5], [6, 7]), ([], [8])], [([], [9])]], encoder_decoder=False)
    assert two["input_ids"].tolist() == [[5, 6, 7, 8], [9, 1, 1, 1]]
    assert two["labels"].tolist() == [[IGNORED, 6, 7, 8], [9, IGNORED, IGNORED, IGNORED]]
    two = tensors([[([5, 6], [7])], [([5], [8, 0])]], encoder_decoder=True)
    assert two["attention_mask"].tolist() == [[True, True], [True, False]]
    assert two["labels"].tolist() == [[7, IGNORED], [8, 0]]


@pytest.mark.parametrize("model", ["tiny", "gpt", "t5"])
def test_a_killed_run_that_goes_on_gives_the_same_weights(model, tmp_path, monkeypatch):
    def run(folder, seed=0):
        return train(EXAMPLES, recipe(model, seed=seed), 64, tmp_path / folder, save_every=1)

    whole, facts = run("whole")
    run("killed", seed=1)  # another run's checkpoint
    with monkeypatch.context() as killing:
        killing.setattr(training, "tqdm", lambda steps, *_, **__: steps[:2])
        run("killed")
    resumed, _ = run("killed")
    assert facts["steps"] > 2
    for (name, one), other in zip(
        whole.state_dict().items(), resumed.state_dict().values(), strict=True
    ):
        assert torch.equal(one, other), name


def test_the_rate_warms_up_stays_and_cools_down_to_zero():
    rates = [
        training.rate(step, 100, recipe(warmup=0.1, cooldown=0.5)) for step in (0, 9, 50, 75, 100)
    ]
    assert rates == pytest.approx([0.1, 1, 1, 0.5, 0])


def test_a_tiny_run_lowers_the_loss_and_writes_a_loadable_folder(tmp_path):
    ids = TOKENIZER(SAMPLE)["input_ids"]
    examples = [((), [*row, 0]) for row in ids]
    long = recipe(batch_tokens=1100, epochs=60)
    training.pretrain(
        examples, TOKENIZER, long, tmp_path / "work", tmp_path / "out", "Made in a test."
    )
    losses = [
        float(line.split(",")[2])
        for line in (tmp_path / "out/log.csv").read_text().splitlines()[1:]
    ]
    assert losses[-1] < losses[0] - 1, losses
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert model.dtype == torch.float16
    assert AutoTokenizer.from_pretrained(tmp_path / "out")(SAMPLE)["input_ids"] == ids
    assert "Made in a test." in (tmp_path / "out/README.md").read_text()


@settings(deadline=None)
@given(st.text() | st.text(alphabet=" \t\r\n_aB1.('"))
def test_decoding_gives_the_text_back(text):
    assert TOKENIZER.decode(TOKENIZER(text)["input_ids"]) == text


def test_names_are_cut_at_underscores_and_changes_of_case_and_digits_stand_alone():
    assert TOKENIZER.tokenize("list_identity_pool_usage") == [
        "list",
        "_identity",
        "_pool",
        "_usage",
    ]
    assert TOKENIZER.tokenize("IdentityPoolId24") == ["Identity", "Pool", "Id", "2", "4"]


def test_functions_with_and_without_docstring_keep_signature_and_body_apart(tmp_path):
    file = tmp_path / "a.py"
    file.write_text(
        'class A:\n    def f(self,\n          x=1):\n        """Do it. Now."""\n        if x:\n            return x\n\n'
        "    def g(self): return 1\n\n    def h(self):\n        return 2\n"
    )
    first, second = toolgen.file_functions("p/a.py", file)
    assert (first.docstring, first.signature) == ("Do it.", "def f(self,\n      x=1):")
    assert first.body == "    if x:\n        return x"
    assert (second.id, second.docstring, second.body) == ("p/a.py:A.h#10", "", "    return 2")


def test_code_of_held_out_repositories_is_known_whatever_its_layout():
    first = next(toolgen.file_functions("requests", locate("requests").root / "api.py"))
    code = toolgen.code_hash(first.signature + "  ", first.body.replace("    ", "\t"))
    assert code in toolgen.held_out_codes()
