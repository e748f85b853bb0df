"""What a batch of a local model carries from one forward pass to the next."""

import inspect
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, EncoderDecoderCache

from lookuplab.models.local import Work

BLOCK = 64  # positions that the cache reserves at once


class Batch:
    """What a batch carries from one forward pass to the next: key/value cache, mask, positions and
    next-token ``logits`` (slots, vocabulary); at first there is one slot for each prompt.

    Equal prompts are read once. A causal model's texts always end in the last column, so that the
    distance between two columns is the distance between two tokens: sliding-window masks and
    relative positions are right without knowing about padding. An encoder-decoder's prompts begin
    in the first column, and its answers all have the same length.
    """

    def __init__(
        self,
        module: PreTrainedModel,
        prompts: Sequence[Sequence[int]],
        context: int | None,
        work: Work,
    ) -> None:
        self.module, self.context, self.work = module, context or math.inf, work
        self.parameters = inspect.signature(module.forward).parameters
        first = {ids: i for i, ids in enumerate(dict.fromkeys(map(tuple, prompts)))}
        work.prompt_tokens += sum(map(len, first))
        side = "right" if module.config.is_encoder_decoder else "left"
        ids = pad_sequence(list(map(torch.tensor, first)), True, -1, side).to(module.device)
        self.mask, ids = (ids >= 0).long(), ids.clamp(min=0)
        self.lengths, self.encoded = self.mask.sum(1), None
        self.cache: Cache = preallocated_cache(module.config)
        if side == "left":
            self.logits = self._forward(ids, (self.mask.cumsum(1) - 1).clamp(min=0))
        else:
            self.cache = EncoderDecoderCache(self.cache, DynamicCache())
            self.encoded = module.get_encoder()(input_ids=ids, attention_mask=self.mask)
            self.logits = self._forward(torch.full_like(self.mask[:, :1], decoder_start(module)))
        if len(first) < len(prompts):
            self.keep([first[tuple(ids)] for ids in prompts])

    def step(self, tokens: torch.Tensor) -> None:
        """Read one more token (slots,) in each slot."""
        if self.encoded is None:
            self.mask = functional.pad(self.mask, (0, 1), value=1)
        # a slot whose row is finished continues until it is dropped
        self.lengths = (self.lengths + 1).clamp(max=self.context)
        self.logits = self._forward(tokens[:, None], self.lengths[:, None] - 1)

    def keep(self, slots: list[int]) -> None:
        """Go on with these slots, some of them perhaps several times."""
        index = torch.tensor(slots, device=self.mask.device)
        self.mask, self.lengths = self.mask[index], self.lengths[index]
        self.logits = self.logits[index]
        self.cache.batch_select_indices(index)
        if self.encoded is not None:
            self.encoded.last_hidden_state = self.encoded.last_hidden_state[index]

    def _forward(self, ids: torch.Tensor, position: torch.Tensor | None = None) -> torch.Tensor:
        inputs = {"encoder_outputs": self.encoded, "decoder_input_ids": ids}
        if self.encoded is None:
            inputs = {"input_ids": ids, "position_ids": position, "logits_to_keep": 1}
            inputs = {name: value for name, value in inputs.items() if name in self.parameters}
        self.work.passes += 1
        output = self.module(
            **inputs, attention_mask=self.mask, past_key_values=self.cache, use_cache=True
        )
        logits: torch.Tensor = output.logits[:, -1].float()
        return logits


def decoder_start(module: PreTrainedModel) -> int:
    """The token that an encoder-decoder model's answers begin with."""
    start = module.generation_config.decoder_start_token_id
    return int(module.config.decoder_start_token_id if start is None else start)


class PreallocatedCacheLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """Keys and values of one layer, (rows, heads, positions, width), as views of larger buffers.

    Transformers' own layer concatenates: each step copies everything it holds, which on a CPU with
    many rows costs as much as the model's arithmetic. Layers with a sliding window are also stored
    in full: the model's mask applies the window.
    """

    _buffers: Sequence[torch.Tensor] = ()

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append (rows, heads, new, width); return all keys and values so far."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        added, used = (key_states, value_states), self.get_seq_length()
        end = used + key_states.shape[-2]
        buffers = self._buffers or [new[:, :, :0] for new in added]
        if end > buffers[0].shape[-2]:
            reserve = (0, 0, 0, end - used + BLOCK)
            buffers = [functional.pad(buffer[:, :, :used], reserve) for buffer in buffers]
        for buffer, new in zip(buffers, added, strict=True):
            buffer[:, :, used:end] = new
        return self._show(buffers, end)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep only these rows, with the reserved positions after them."""
        rows = indices.to(self._buffers[0].device)
        self._show([buffer[rows] for buffer in self._buffers], self.get_seq_length())

    def _show(self, buffers: Sequence[torch.Tensor], end: int) -> tuple[torch.Tensor, torch.Tensor]:
        self._buffers = buffers
        keys, values = (buffer[:, :, :end] for buffer in buffers)
        self.keys, self.values = keys, values
        return keys, values


def preallocated_cache(config: PreTrainedConfig) -> DynamicCache:
    """An empty cache for a decoder. Models with recurrent layers keep the kind that their
    configuration needs.
    """
    kinds = getattr(config.get_text_config(decoder=True), "layer_types", None) or ()
    if set(kinds) - {"full_attention", "sliding_attention"}:
        return DynamicCache(config=config)
    cache = DynamicCache()
    cache.layer_class_to_replicate = PreallocatedCacheLayer
    return cache
