"""The three families of the ToolGen mini models, in the roles of Table I: GPT-2 (CodeGPT), T5 (CodeT5), Llama (CodeLlama).

As small as they can be trained on two cores in minutes; saved, each is a plain checkpoint of its architecture.
"""

import torch
from torch import Tensor, nn
from transformers import (GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedModel, T5Config,
                          T5ForConditionalGeneration)

from lookuplab.mini.model import FusedCrossEntropy
from lookuplab.toolgen.pairs import IGNORED

FAMILIES = ("gpt", "t5", "llama")
POSITIONS = 512  # of the causal models; a prompt and its function are shorter than half of it
EOS, PAD = 0, 1  # ids in the kit's tokenizers
CHUNK = 256  # rows of logits held at once


def build(family: str, vocab_size: int, seed: int) -> PreTrainedModel:
    """A freshly initialised model of 2.7 to 3 million parameters, fp32, embeddings tied."""
    torch.manual_seed(seed)
    ids = dict(bos_token_id=EOS, eos_token_id=EOS, pad_token_id=PAD, vocab_size=vocab_size, tie_word_embeddings=True)
    if family == "gpt":
        model = GPT2LMHeadModel(GPT2Config(
            n_positions=POSITIONS, n_embd=192, n_layer=4, n_head=3, activation_function="gelu_pytorch_tanh",
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **ids))
    elif family == "t5":
        model = T5ForConditionalGeneration(T5Config(
            d_model=192, d_kv=64, num_heads=3, d_ff=512, num_layers=2, num_decoder_layers=3, dropout_rate=0.0,
            decoder_start_token_id=PAD, **ids))
    else:
        model = LlamaForCausalLM(LlamaConfig(
            hidden_size=192, intermediate_size=512, num_hidden_layers=5, num_attention_heads=3, head_dim=64,
            num_key_value_heads=3, max_position_embeddings=POSITIONS, **ids))
    return model


class FunctionLearner(nn.Module):
    """A model of any of the families whose forward pass is its training loss, without ever holding all logits."""

    def __init__(self, model: PreTrainedModel):
        super().__init__()
        self.model = model

    def forward(self, prompts: Tensor, answers: Tensor) -> Tensor:
        """Mean loss in nats. int64 [rows, length], padded with IGNORED on the right.

        Decoder-only: ``prompts`` are ids and ``answers`` the next ones, of the same shape. Encoder-decoder: ``answers``
        is what the decoder writes.
        """
        inputs = prompts.clamp(min=0)
        if self.model.config.is_encoder_decoder:
            shifted = torch.cat([torch.full_like(answers[:, :1], PAD), answers[:, :-1].clamp(min=0)], dim=1)
            encoded = self.model.encoder(input_ids=inputs, attention_mask=prompts >= 0).last_hidden_state
            hidden = self.model.decoder(input_ids=shifted, encoder_hidden_states=encoded,
                                        encoder_attention_mask=prompts >= 0, use_cache=False).last_hidden_state
            hidden = hidden * self.model.model_dim ** -0.5  # as T5ForConditionalGeneration does for tied embeddings
        else:
            hidden = self.model.base_model(inputs, use_cache=False).last_hidden_state
        real = answers.reshape(-1) != IGNORED
        head = self.model.get_output_embeddings().weight
        return FusedCrossEntropy.apply(hidden.reshape(-1, hidden.shape[-1])[real], head, answers.reshape(-1)[real],
                                       CHUNK if hidden.device.type == "cpu" else 8192)
