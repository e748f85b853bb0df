"""Tests that a model spread over two cards gives the answers and scores of a model on one card.
Among the answers are short ones, several samples of a prompt, and names from a list.
"""

import pytest
from tiny_architectures import assert_equal, every_way
from two_cards import spread

from lookuplab.models import Prompt
from lookuplab.models.local import LocalModel

PROMPTS = [Prompt(f"{i}", "x = client.\n" * (i % 3) + "import boto3\nclient.") for i in range(4)]
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
