"""Implements a batch of prompts that a local model answers together, and the state that the batch
keeps between forward passes.
"""

import inspect
from collections.abc import Sequence

import torch
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicCache, EncoderDecoderCache, PreTrainedModel
from transformers.cache_utils import Cache

from lookuplab.errors import UserError
from lookuplab.models.completions import Work


class Batch:
    """A batch of prompts with their answers, one in each slot. Between forward passes, it keeps the
    key/value cache, the mask, the positions and the next-token ``logits`` (slots, vocabulary).

    Equal prompts are read once. A causal model's texts are padded on the left, and all end in the
    last column. The distance between two columns is thus the distance between two tokens, and
    sliding-window masks and relative positions need not take padding into account. The prompts of
    an encoder-decoder are padded on the right. Its answers need no padding, because they all have
    the same length.
    """

    # finished rows are dropped only once they make up this share of all rows, because each drop
    # copies the cache
    spare = 1 / 8
    apart = 0.01  # rounding in float32 can explain at most this relative difference between logits

    def __init__(
        self,
        module: PreTrainedModel,
        prompts: Sequence[Sequence[int]],
        context: int | None,
        work: Work,
    ) -> None:
        self.module = module
        self.context = context
        self.work = work
        self.parameters = inspect.signature(module.forward).parameters
        first = {ids: i for i, ids in enumerate(dict.fromkeys(map(tuple, prompts)))}
        work.prompt_tokens += sum(map(len, first))
        side = "right" if module.config.is_encoder_decoder else "left"
        ids = pad_sequence(list(map(torch.tensor, first)), True, -1, side).to(module.device)
        self.mask = (ids >= 0).long()
        ids = ids.clamp(min=0)
        self.lengths = self.mask.sum(1)
        self.encoded = None
        self.cache: Cache
        if side == "left":
            self.cache = DynamicCache(config=module.config)
            self.logits = self._forward(ids, (self.mask.cumsum(1) - 1).clamp(min=0))
        else:
            self.cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
            self.encoded = module.get_encoder()(input_ids=ids, attention_mask=self.mask)
            self.logits = self._forward(torch.full_like(self.mask[:, :1], decoder_start(module)))
        if len(first) < len(prompts):
            self.keep([first[tuple(ids)] for ids in prompts])

    def step(self, tokens: torch.Tensor) -> None:
        """Make the model read one more token in each slot. ``tokens`` has the shape (slots,)."""
        if self.encoded is None:
            self.mask = functional.pad(self.mask, (0, 1), value=1)
        # until a finished row is dropped, it goes on reading tokens, perhaps beyond the context
        self.lengths = self.lengths + 1
        if self.context:
            self.lengths = self.lengths.clamp(max=self.context)
        self.logits = self._forward(tokens[:, None], self.lengths[:, None] - 1)

    def keep(self, slots: list[int]) -> None:
        """Keep only these slots, in this order. A slot that occurs several times is copied.

        If a model is spread over several devices, the caches of the layers and the encoder's output
        may be on different devices. The slots' index is therefore moved to each of these devices.
        """
        index = torch.tensor(slots, device=self.mask.device)
        self.mask, self.lengths = self.mask[index], self.lengths[index]
        self.logits = self.logits[index]
        # reorder_cache moves the index to each layer's device; batch_select_indices does not
        self.cache.reorder_cache(index)  # type: ignore[arg-type]  # a LongTensor is a Tensor
        if self.encoded is not None:
            read = self.encoded.last_hidden_state
            self.encoded.last_hidden_state = read[index.to(read.device)]

    def _forward(self, ids: torch.Tensor, position: torch.Tensor | None = None) -> torch.Tensor:
        inputs = {"encoder_outputs": self.encoded, "decoder_input_ids": ids}
        if self.encoded is None:
            inputs = {"input_ids": ids, "position_ids": position, "logits_to_keep": 1}
            inputs = {name: value for name, value in inputs.items() if name in self.parameters}
        self.work.passes += 1
        output = self.module(
            **inputs, attention_mask=self.mask, past_key_values=self.cache, use_cache=True
        )
        logits: torch.Tensor = output.logits[:, -1].float().to(self.mask.device)
        return logits


def decoder_start(module: PreTrainedModel) -> int:
    """Return the token with which the answers of an encoder-decoder model begin. Raises UserError
    if the model's configuration does not state it.
    """
    for config in module.generation_config, module.config:
        if (start := getattr(config, "decoder_start_token_id", None)) is not None:
            return int(start)
    raise UserError("an encoder-decoder model needs a decoder_start_token_id in its config.json")
