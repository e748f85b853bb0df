"""A widened model computes the same function as the small one."""

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from lookuplab.errors import UserError
from lookuplab.models.widen import widened


@pytest.fixture
def small():
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=32, n_embd=12, n_layer=2, n_head=3)).eval()
    for parameter in model.parameters():  # as made, biases are zero and layer norms one
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.mark.parametrize(("width", "layers"), [(12, 2), (24, 2), (48, 5)])
def test_logits_are_those_of_the_small_model(small, width, layers):
    wide = widened(small, width, layers)
    assert (wide.config.n_embd, len(wide.transformer.h), wide.config.n_head) == (width, layers, 3 * width // 12)
    ids = torch.randint(0, 50, (3, 20))
    with torch.inference_mode():
        torch.testing.assert_close(wide(ids).logits, small(ids).logits, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("width", "layers"), [(18, 2), (24, 1)])
def test_a_shape_that_cannot_be_reached_is_refused(small, width, layers):
    with pytest.raises(UserError, match="only a GPT-2"):
        widened(small, width, layers)


def test_another_architecture_is_refused():
    model = LlamaForCausalLM(LlamaConfig(vocab_size=50, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                                         num_attention_heads=2))
    with pytest.raises(UserError, match="LlamaForCausalLM"):
        widened(model, 32, 1)
