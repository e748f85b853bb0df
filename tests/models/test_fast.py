"""Tests the fast path of local models on a CPU: it gives the answers of the general path, or it is
not taken.
"""

import pytest
import torch
from tiny_architectures import answered, assert_equal, assert_log_probabilities, every_way, save

from lookuplab.models import Decoding, Prompt
from lookuplab.models.fast import KINDS
from lookuplab.models.local import LocalModel

START = "import boto3\nclient = boto3.client('s3')\n"
TEXTS = ("x =", START, START, START + "client.", START + "client.put_object(", "def read(path):\n")
# There are more prompts than fit in one block, and the prompts become longer, so that the cache
# must grow.
PROMPTS = [Prompt(f"{at}", at // 6 * "# a\n" + TEXTS[at % 6]) for at in range(40)]
GREEDY = Decoding(max_new_tokens=24)


@pytest.mark.parametrize("name", KINDS)
def test_the_fast_path_answers_as_the_general_one(checkpoint, name):
    fast = LocalModel(checkpoint(name))
    general = LocalModel(checkpoint(name), attn_implementation="sdpa")
    for found, expected in zip(*(every_way(one, PROMPTS) for one in (fast, general)), strict=True):
        assert_equal(found, expected)
    assert fast.fast and not general.fast
    assert fast.work.prompt_tokens < general.work.prompt_tokens, "shared beginnings are read once"


def takes_it(model):
    module = model.module
    return model.fast is not None and model.fast.is_current(module)


@pytest.mark.parametrize("change", ["hook", "weight"])
def test_a_module_that_was_changed_takes_the_general_path(checkpoint, change):
    model = LocalModel(checkpoint("llama"))
    attention = model.module.model.layers[1].self_attn
    assert takes_it(model)
    if change == "hook":
        attention.register_forward_hook(lambda *given: (2 * given[2][0], None))
    else:
        with torch.no_grad():
            attention.v_proj.weight.mul_(2)
    assert not takes_it(model)
    assert_log_probabilities(model, PROMPTS[1], answered(model, GREEDY, PROMPTS)["1", 0])


@pytest.mark.parametrize("change", ["dtype", "window", "rotation"])
def test_what_the_fast_path_does_not_know_takes_the_general_one(tmp_path, change):
    save(tmp_path, "starcoder2" if change == "window" else "llama")
    if change == "rotation":
        file = tmp_path / "config.json"
        dynamic = '"rope_type": "dynamic", "factor": 2.0'
        file.write_text(file.read_text().replace('"rope_type": "default"', dynamic))
    model = LocalModel(str(tmp_path), dtype="bfloat16" if change == "dtype" else "float32")
    assert not takes_it(model)
