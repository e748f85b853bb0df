"""The decode loop: prefill once, then one token a step for all rows, dropping rows as they finish.

Prefill and decode are apart, as in gpt-fast; the model itself is Transformers' own and can be any causal or
encoder-decoder checkpoint. Batches hold *different* prompts. Nothing in here depends on who shares a batch, up to the
last bits of floating point arithmetic.
"""

import inspect

import numpy as np
import torch

from lookuplab.models.cache import decoder_cache, encoder_decoder_cache
from lookuplab.models.rows import Row, uniforms
from lookuplab.models.types import Decoding

COMPACT = 8  # drop finished rows when they are one in so many of the batch: each time the cache is copied


def accepts(module, *names: str) -> dict[str, bool]:
    """Which of these keyword arguments the model's forward knows."""
    known = inspect.signature(module.forward).parameters
    return {name: name in known for name in names}


def left_padded(sequences: list[list[int]], device) -> tuple[torch.Tensor, torch.Tensor]:
    """ids and mask (1 = real), both (rows, longest): all prompts end in the last column."""
    longest = max(map(len, sequences))
    ids = torch.zeros(len(sequences), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for i, sequence in enumerate(sequences):
        ids[i, longest - len(sequence) :] = torch.tensor(sequence)
        mask[i, longest - len(sequence) :] = 1
    return ids.to(device), mask.to(device)


def right_padded(sequences: list[list[int]], device) -> tuple[torch.Tensor, torch.Tensor]:
    """ids and mask (1 = real), both (rows, longest): all sequences begin in the first column."""
    ids, mask = left_padded([sequence[::-1] for sequence in sequences], device)
    return ids.flip(1), mask.flip(1)


class CausalState:
    """Cache, mask and positions of the rows of a causal model."""

    def __init__(self, module, room: int, context: int | None) -> None:
        self.module, self.room, self.context = module, room, context
        self.known = accepts(module, "position_ids", "logits_to_keep")

    def prefill(self, prompts: list[list[int]], copies: list[int]) -> torch.Tensor:
        """Read the different prompts; ``copies`` says which of them each row continues. Logits (rows, vocabulary)."""
        ids, mask = left_padded(prompts, self.module.device)
        self.cache = decoder_cache(self.module.config)
        self.width = ids.shape[1]
        self.mask = torch.cat([mask, mask.new_ones(len(prompts), self.room)], dim=1)
        self.position = (mask.cumsum(1) - 1).clamp(min=0)
        logits = self._forward(ids, self.position)
        self.position = self.position[:, -1:]
        if copies != list(range(len(prompts))):
            self.keep(copies)
            logits = logits[copies]
        return logits

    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits (rows, vocabulary) after one more token (rows,) in each row."""
        self.width += 1
        self.position = self.position + 1
        if self.context is not None:  # rows that are finished and not dropped yet run on
            self.position = self.position.clamp(max=self.context - 1)
        return self._forward(tokens[:, None], self.position)

    def keep(self, rows: list[int]) -> None:
        """Only these rows go on."""
        index = torch.tensor(rows, device=self.mask.device)
        self.cache.batch_select_indices(index)
        self.mask, self.position = self.mask[index], self.position[index]

    def _forward(self, ids: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        optional = {"position_ids": position, "logits_to_keep": 1}
        output = self.module(
            input_ids=ids,
            attention_mask=self.mask[:, : self.width],
            past_key_values=self.cache,
            use_cache=True,
            **{name: value for name, value in optional.items() if self.known[name]},
        )
        return output.logits[:, -1].float()


class EncoderDecoderState:
    """Encoded prompts and decoder cache of the rows of an encoder-decoder model."""

    def __init__(self, module, room: int, context: int | None) -> None:
        self.module = module

    def prefill(self, prompts: list[list[int]], copies: list[int]) -> torch.Tensor:
        """Encode the different prompts and begin each row. Logits (rows, vocabulary)."""
        ids, self.mask = right_padded(prompts, self.module.device)
        self.encoded = self.module.get_encoder()(input_ids=ids, attention_mask=self.mask)
        self.cache = None
        self.keep(copies)
        self.cache = encoder_decoder_cache(self.module.config)
        return self.step(torch.full((len(copies),), decoder_start(self.module), device=self.mask.device))

    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits (rows, vocabulary) after one more token (rows,) in each row."""
        output = self.module(
            encoder_outputs=self.encoded,
            attention_mask=self.mask,
            decoder_input_ids=tokens[:, None],
            past_key_values=self.cache,
            use_cache=True,
        )
        return output.logits[:, -1].float()

    def keep(self, rows: list[int]) -> None:
        """Only these rows go on."""
        index = torch.tensor(rows, device=self.mask.device)
        self.mask = self.mask[index]
        self.encoded.last_hidden_state = self.encoded.last_hidden_state[index]
        if self.cache is not None:
            self.cache.batch_select_indices(index)


def decoder_start(module) -> int:
    """The token that an encoder-decoder model's answers begin with."""
    for config in (module.generation_config, module.config):
        for name in ("decoder_start_token_id", "bos_token_id"):
            if getattr(config, name, None) is not None:
                return getattr(config, name)
    return 0


def choose(logits: torch.Tensor, chance: torch.Tensor | None, decoding: Decoding) -> tuple[torch.Tensor, torch.Tensor]:
    """Next token (rows,) and its natural log-probability (rows,) at temperature 1. ``chance`` (rows,) is in [0, 1).

    Sampling inverts the cumulative distribution in the order of the vocabulary, so that last-bit noise in the logits
    moves a boundary between two tokens and never reorders them.
    """
    if chance is None:
        token = logits.argmax(-1)
    else:
        chosen = torch.softmax(logits.double() / decoding.temperature, dim=-1)
        if decoding.top_p < 1:
            ranked, order = chosen.sort(dim=-1, descending=True, stable=True)
            outside = ranked.cumsum(-1) - ranked >= decoding.top_p  # the token that crosses top_p stays
            chosen = chosen.masked_fill(outside.gather(-1, order.argsort(-1)), 0)
        total = chosen.cumsum(-1)
        token = torch.searchsorted(total, (chance.double() * total[:, -1])[:, None], right=True)[:, 0]
        token = token.clamp(max=logits.shape[-1] - 1)
    return token, logits.gather(-1, token[:, None])[:, 0] - logits.logsumexp(-1)


@torch.inference_mode()
def decode(module, rows: list[Row], decoding: Decoding, end_of_text: frozenset[int], context: int | None) -> None:
    """Generate until every row is finished; the rows are filled in place."""
    prompts = list(dict.fromkeys(tuple(row.encoded.ids) for row in rows))
    place = {ids: i for i, ids in enumerate(prompts)}
    kind = EncoderDecoderState if module.config.is_encoder_decoder else CausalState
    state = kind(module, max(row.limit for row in rows), context)
    logits = state.prefill([list(ids) for ids in prompts], [place[tuple(row.encoded.ids)] for row in rows])
    chances = None
    if decoding.temperature > 0:
        chances = torch.from_numpy(np.stack([uniforms(row, decoding) for row in rows])).to(logits.device)
    at = 0
    while True:
        tokens, logprobs = choose(logits, None if chances is None else chances[:, at], decoding)
        for row, token, logprob in zip(rows, tokens.tolist(), logprobs.tolist(), strict=True):
            if row.finish_reason is None:
                row.push(token, logprob, end_of_text)
        at += 1
        going = [i for i, row in enumerate(rows) if row.finish_reason is None]
        if not going:
            return
        if (len(rows) - len(going)) * COMPACT >= len(rows):
            state.keep(going)
            rows, tokens = [rows[i] for i in going], tokens[going]
            chances = None if chances is None else chances[going]
        logits = state.step(tokens)
