"""The settings of a fine-tuning, the paper's among them, and the order in which pairs come."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_finetunes import RECIPE

from lookuplab.errors import UserError
from lookuplab.toolgen import lora
from lookuplab.toolgen.finetune import PAPER
from lookuplab.toolgen.order import Order


def test_the_order_is_new_every_epoch_and_complete():
    for by_length in (False, True):
        order = Order([i % 7 for i in range(50)], 8, seed=3, by_length=by_length)
        epochs = []
        for order.epoch in (0, 1, 0):
            epochs.append(list(order))
        assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(50))
        assert epochs[0] == epochs[2] != epochs[1]


def test_pairs_of_like_length_share_a_batch():
    lengths = [(i * 37) % 101 for i in range(100)]
    order = list(Order(lengths, 10, seed=0, by_length=True))
    batches = [[lengths[i] for i in order[k : k + 10]] for k in range(0, 100, 10)]
    assert all(max(batch) - min(batch) <= 12 for batch in batches)
    assert batches != sorted(batches), "and the batches are shuffled"


def test_the_papers_settings_are_those_in_its_table():
    table = csv.DictReader((Path(__file__).parents[2] / "data" / "paper" / "toolgen" / "finetuning.csv").open())
    stated = {(line["model"].lower(), line["metric"]): float(line["value"]) for line in table}
    for name, recipe in PAPER.items():
        assert recipe.epochs == stated[name, "epochs"] and recipe.learning_rate == stated[name, "learning_rate"]
        assert recipe.batch_size == stated[name, "batch_size"] and recipe.seed == stated["", "seed"]
    assert (PAPER["codellama"].lora_rank, PAPER["codellama"].lora_alpha) == (
        stated["codellama", "rank"], stated["codellama", "alpha"])


def test_rank_16_on_the_four_projections_of_codellama_7b_is_a_quarter_percent():
    from transformers import LlamaConfig, LlamaForCausalLM

    def sizes(mark):
        with torch.device("meta"):  # shapes only
            model = LlamaForCausalLM(LlamaConfig(
                vocab_size=32000, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32,
                num_attention_heads=32, tie_word_embeddings=False))
            parameters = sum(weight.numel() for weight in model.parameters())
            return parameters, lora.trainable(lora.wrap(model, PAPER["codellama"], mark))

    projections = 32 * 4 * 16 * (4096 + 4096)  # layers x projections x rank x (in + out)
    assert sizes(None) == (6_738_415_616, projections) and round(100 * projections / 6_738_415_616, 4) == 0.2490
    assert sizes(31_999)[1] == projections + 2 * 4096  # 0.2491 %: the mark's row in embedding and head


@pytest.mark.parametrize("change", [{"epochs": 0}, {"lora_rank": 0}, {"loss_on": "prompt"}, {"precision": "fp8"}])
def test_a_recipe_that_cannot_be_is_refused(change):
    with pytest.raises(UserError, match=f"recipe: {next(iter(change))} is"):
        replace(RECIPE, **change)
