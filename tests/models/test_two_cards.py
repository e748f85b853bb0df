"""A model over two cards answers as on one: prefill, steps, rows that leave, samples that share a
prompt, choices, scores.
"""

from dataclasses import replace

import pytest
import torch
from tiny_architectures import answered, assert_equal, by_request
from two_cards import TwoCards, spread

from lookuplab.models import Decoding, Prompt
from lookuplab.models.local import LocalModel

PROMPTS = [Prompt(f"{i}", "x = client.\n" * (i % 3) + "import boto3\nclient.") for i in range(6)]
NAMED = [replace(prompt, choices=("put_object", "read")) for prompt in PROMPTS[:3]]
PAIRS = [(prompt, "put_object(x)") for prompt in PROMPTS[:3]]
TWELVE = Decoding(max_new_tokens=12)
SECOND = {
    "llama": ("model.layers.1", "model.norm"),
    "t5": ("encoder.block.1", "encoder.final_layer_norm", "decoder.block.1"),
}


@pytest.mark.parametrize("architecture", SECOND)
def test_a_model_over_two_cards_answers_as_on_one(checkpoint, architecture):
    model = LocalModel(checkpoint(architecture))
    free = answered(model, TWELVE, PROMPTS)
    ends = {"".join(one.tokens[3:6]) for one in [*free.values()][::2]} - {""}

    def everything():
        yield answered(model, replace(TWELVE, stop=tuple(ends)), PROMPTS)
        yield answered(model, Decoding(4, temperature=1.0, n=3), PROMPTS)
        yield answered(model, TWELVE, NAMED)
        yield by_request(model.score(PAIRS))

    expected = [*everything()]
    assert len({len(one.tokens) for one in expected[0].values()}) > 1, "rows leave early"
    with spread(model.module, SECOND[architecture]):
        for one, other in zip(everything(), expected, strict=True):
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
