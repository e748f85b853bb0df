"""A model over two cards answers as on one: prefill, steps, rows that leave, samples that share a
prompt, choices, scores.
"""

import pytest
import torch
from tiny_architectures import assert_equal, every_way
from two_cards import TwoCards, spread

from lookuplab.models import Prompt
from lookuplab.models.local import LocalModel

PROMPTS = [Prompt(f"{i}", "x = client.\n" * (i % 3) + "import boto3\nclient.") for i in range(6)]
SECOND = {
    "llama": ("model.layers.1", "model.norm"),
    "t5": ("encoder.block.1", "encoder.final_layer_norm", "decoder.block.1"),
}


@pytest.mark.parametrize("architecture", SECOND)
def test_a_model_over_two_cards_answers_as_on_one(checkpoint, architecture):
    model = LocalModel(checkpoint(architecture))
    expected = [*every_way(model, PROMPTS)]
    with spread(model.module, SECOND[architecture]):
        for one, other in zip(every_way(model, PROMPTS), expected, strict=True):
            assert_equal(one, other)


def test_tensors_of_two_cards_do_not_meet():
    first = torch.zeros(2, 3)
    first.card = torch.device("cuda", 0)
    with TwoCards():
        second = first.to("cuda:1")
        index = torch.tensor([1], device="cuda:0")
        for meets in first.add, lambda one: torch.cat([first, one]):
            with pytest.raises(RuntimeError, match=r"tensors on \['cuda:0', 'cuda:1'\]"):
                meets(second)
        with pytest.raises(RuntimeError, match="tensors on"):
            second[index]
        assert second[index.cpu()].device == second.device != first.device
