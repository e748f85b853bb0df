"""What a batch carries from one forward pass to the next: key/value cache, mask and positions of its rows.

Rows always end in the last column, so that the distance of two columns is the distance of two tokens: masks by sliding
window and relative positions are right without knowing of padding.
"""

import inspect

import torch

from lookuplab.models.cache import RoomyCache, decoder_cache, encoder_decoder_cache
from lookuplab.models.types import Work


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


def rewind(cache: RoomyCache, width: int, lengths: torch.Tensor, new: torch.Tensor) -> int:
    """Prepare a pass in which every row reads its last ``max(new)`` tokens, ``new`` (rows,) of them for the first time.

    Rows with fewer new tokens read old ones again, so the cache forgets these first and moves each row up to the right:
    all rows have equally many columns then, and no row has a hole. ``lengths`` (rows,) are the tokens in the cache,
    in the last of ``width`` columns. Returns the width that remains.
    """
    kept = (lengths + new - new.max()).clamp(min=0)
    if torch.equal(kept, lengths):
        return width
    remaining = int(kept.max())
    column = torch.arange(remaining, device=kept.device)
    cache.gather((column + (kept - lengths)[:, None] + width - remaining).clamp(min=0))
    return remaining


class CausalState:
    """Cache, mask and positions of the rows of a causal model."""

    def __init__(self, module, room: int, context: int | None, work: Work) -> None:
        self.module, self.room, self.context, self.work = module, room, context, work
        self.known = accepts(module, "position_ids", "logits_to_keep")
        self.cache = decoder_cache(module.config)
        # recurrent layers cannot forget tokens, so their rows take one token at a time
        self.extends = isinstance(self.cache, RoomyCache)

    def prefill(self, prompts: list[list[int]], copies: list[int]) -> torch.Tensor:
        """Read the different prompts; ``copies`` says which of them each row continues. Logits (rows, vocabulary)."""
        ids, mask = left_padded(prompts, self.module.device)
        self.width = ids.shape[1]
        self.mask = torch.cat([mask, mask.new_ones(len(prompts), self.room)], dim=1)
        self.lengths = mask.sum(1)
        logits = self._forward(ids, (mask.cumsum(1) - 1).clamp(min=0))[:, -1]
        self.work.prompt_tokens += sum(map(len, prompts))
        if copies != list(range(len(prompts))):
            self.keep(copies)
            logits = logits[copies]
        return logits

    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits (rows, vocabulary) after one more token (rows,) in each row."""
        self.width += 1
        self.lengths = self.lengths + 1
        if self.context is not None:  # rows that are finished and not dropped yet run on
            self.lengths = self.lengths.clamp(max=self.context)
        return self._forward(tokens[:, None], self.lengths[:, None] - 1)[:, -1]

    def text(self, prompt: list[int], answer: list[int]) -> list[int]:
        """Everything that the decoder reads of a row."""
        return prompt + answer

    def extend(self, texts: list[list[int]], new: list[int]) -> torch.Tensor:
        """Logits (rows, most new, vocabulary) when the last ``new`` tokens of each row's whole text are added to it."""
        added = torch.tensor(new, device=self.mask.device)
        most = max(new)
        self.width = rewind(self.cache, self.width, self.lengths, added) + most
        self.lengths = self.lengths + added
        column = torch.arange(self.width + self.room, device=self.mask.device)
        self.mask = (column >= self.width - self.lengths[:, None]).long()
        ids, _ = left_padded([text[-most:] for text in texts], self.mask.device)
        position = self.lengths[:, None] + torch.arange(-most, 0, device=self.mask.device)
        return self._forward(ids, position.clamp(min=0), most)

    def keep(self, rows: list[int]) -> None:
        """Only these rows go on."""
        index = torch.tensor(rows, device=self.mask.device)
        self.cache.batch_select_indices(index)
        self.mask, self.lengths = self.mask[index], self.lengths[index]

    def _forward(self, ids: torch.Tensor, position: torch.Tensor, keep: int = 1) -> torch.Tensor:
        optional = {"position_ids": position, "logits_to_keep": keep}
        output = self.module(
            input_ids=ids,
            attention_mask=self.mask[:, : self.width],
            past_key_values=self.cache,
            use_cache=True,
            **{name: value for name, value in optional.items() if self.known[name]},
        )
        self.work.passes += 1
        return output.logits[:, -keep:].float()


class EncoderDecoderState:
    """Encoded prompts and decoder cache of the rows of an encoder-decoder model."""

    def __init__(self, module, room: int, context: int | None, work: Work) -> None:
        self.module, self.work = module, work
        # absolute positions are those of columns here, and rows of different length would have wrong ones
        self.extends = hasattr(module.config, "relative_attention_num_buckets")

    def prefill(self, prompts: list[list[int]], copies: list[int]) -> torch.Tensor:
        """Encode the different prompts and begin each row. Logits (rows, vocabulary)."""
        ids, self.mask = right_padded(prompts, self.module.device)
        self.encoded = self.module.get_encoder()(input_ids=ids, attention_mask=self.mask)
        self.work.prompt_tokens += sum(map(len, prompts))
        self.cache = self.decoder_mask = None
        self.width, self.lengths = 0, torch.zeros(len(prompts), dtype=torch.long, device=self.mask.device)
        self.keep(copies)
        self.cache = encoder_decoder_cache(self.module.config)
        return self.step(torch.full((len(copies),), decoder_start(self.module), device=self.mask.device))

    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits (rows, vocabulary) after one more token (rows,) in each row."""
        self.width += 1
        self.lengths = self.lengths + 1
        if self.decoder_mask is not None:
            self.decoder_mask = torch.cat([self.decoder_mask, torch.ones_like(self.decoder_mask[:, :1])], dim=1)
        return self._forward(tokens[:, None])[:, -1]

    def text(self, prompt: list[int], answer: list[int]) -> list[int]:
        """Everything that the decoder reads of a row."""
        return [decoder_start(self.module), *answer]

    def extend(self, texts: list[list[int]], new: list[int]) -> torch.Tensor:
        """Logits (rows, most new, vocabulary) when the last ``new`` tokens of each row's whole text are added to it."""
        added = torch.tensor(new, device=self.mask.device)
        most = max(new)
        self.width = rewind(self.cache.self_attention_cache, self.width, self.lengths, added) + most
        self.lengths = self.lengths + added
        column = torch.arange(self.width, device=self.mask.device)
        self.decoder_mask = (column >= self.width - self.lengths[:, None]).long()
        ids, _ = left_padded([text[-most:] for text in texts], self.mask.device)
        return self._forward(ids)

    def keep(self, rows: list[int]) -> None:
        """Only these rows go on."""
        index = torch.tensor(rows, device=self.mask.device)
        self.mask, self.lengths = self.mask[index], self.lengths[index]
        self.encoded.last_hidden_state = self.encoded.last_hidden_state[index]
        if self.decoder_mask is not None:
            self.decoder_mask = self.decoder_mask[index]
        if self.cache is not None:
            self.cache.batch_select_indices(index)

    def _forward(self, ids: torch.Tensor) -> torch.Tensor:
        output = self.module(
            encoder_outputs=self.encoded,
            attention_mask=self.mask,
            decoder_input_ids=ids,
            decoder_attention_mask=self.decoder_mask,
            past_key_values=self.cache,
            use_cache=True,
        )
        self.work.passes += 1
        return output.logits.float()


def begin(module, prompts: list[list[int]], room: int, context: int | None,
          work: Work) -> tuple[CausalState | EncoderDecoderState, torch.Tensor]:
    """Read the prompts, equal ones once. The state and logits (prompts, vocabulary) of a row for each of them.

    ``room`` is how many tokens a row may get, ``context`` the most that it may have with its prompt.
    """
    different = list(dict.fromkeys(map(tuple, prompts)))
    place = {ids: i for i, ids in enumerate(different)}
    state = (EncoderDecoderState if module.config.is_encoder_decoder else CausalState)(module, room, context, work)
    return state, state.prefill([list(ids) for ids in different], [place[tuple(ids)] for ids in prompts])


def decoder_start(module) -> int:
    """The token that an encoder-decoder model's answers begin with."""
    for config in (module.generation_config, module.config):
        for name in ("decoder_start_token_id", "bos_token_id"):
            if getattr(config, name, None) is not None:
                return getattr(config, name)
    return 0
