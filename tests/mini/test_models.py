"""The committed mini models: sizes, formats, cards, and that they answer as a code model should."""

import json

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from lookuplab import paths
from lookuplab.cloudapi.benchmark import load_tasks
from lookuplab.models import Decoding, Prompt, complete, load

SIZES = ("small", "medium", "large")
FOLDERS = {size: paths.MINI / "models" / size for size in SIZES}


def _parameters(size):
    model = AutoModelForCausalLM.from_pretrained(FOLDERS[size])
    return sum(parameter.numel() for parameter in model.parameters())


def test_three_sizes_grow_and_the_largest_has_4_to_8_million_parameters():
    counts = [_parameters(size) for size in SIZES]
    assert counts == sorted(counts)
    assert 4e6 <= counts[-1] <= 8e6


@pytest.mark.parametrize("size", SIZES)
def test_weights_are_fp16_and_at_most_20_mb(size):
    config = json.loads((FOLDERS[size] / "config.json").read_text())
    assert config["dtype"] == "float16"
    assert (FOLDERS[size] / "model.safetensors").stat().st_size <= 20e6


@pytest.mark.parametrize("size", SIZES)
def test_the_card_names_corpus_seed_time_and_device(size):
    card = json.loads((FOLDERS[size] / "card.json").read_text())
    text = (FOLDERS[size] / "README.md").read_text()
    assert card["corpus"]["sha256"] in text
    assert all(word in text for word in ("seed", "minutes on", "Licence"))


def test_all_sizes_were_trained_on_the_same_corpus():
    assert len({json.loads((FOLDERS[size] / "card.json").read_text())["corpus"]["sha256"] for size in SIZES}) == 1


@pytest.mark.parametrize("size", SIZES)
def test_the_tokenizer_gives_prompts_back_letter_by_letter(size):
    tokenizer = AutoTokenizer.from_pretrained(FOLDERS[size])
    for task in load_tasks(limit=30):
        assert tokenizer.decode(tokenizer(task.prompt)["input_ids"]) == task.prompt


def test_a_mini_model_writes_a_call_and_stops_there():
    task = next(task for task in load_tasks() if task.frequency == "high")
    (answer,) = complete(load("mini-small"), [Prompt(task.id, task.prompt)], Decoding(max_new_tokens=120, stop_rule="first_call"),
                         store=False, progress=False)
    assert answer.finish_reason == "stop"
    assert ")" in answer.text
