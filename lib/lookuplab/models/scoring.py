"""Teacher forcing: how likely a model finds a continuation that somebody else wrote."""

from dataclasses import dataclass

import torch

from lookuplab.models.states import accepts, decoder_start, left_padded, right_padded
from lookuplab.models.tokens import Spelling
from lookuplab.models.types import Completion, Prompt, Work


@dataclass(frozen=True)
class Scored:
    """A prompt's tokens and those of the continuation whose log-probabilities are wanted."""

    prompt: Prompt
    prompt_ids: list[int]
    ids: list[int]
    spelling: Spelling
    continuation: str

    def completion(self, logprobs: list[float]) -> Completion:
        """The answer; ``logprobs`` has one number per token of the continuation."""
        pieces = [self.spelling.piece(token) for token in self.ids]
        if pieces and not pieces[-1]:
            pieces[-1] = self.spelling.rest(self.ids, pieces)
        return Completion(self.prompt.id, 0, self.continuation, tuple(pieces), tuple(self.ids), tuple(logprobs),
                          "scored", len(self.prompt_ids))


@torch.inference_mode()
def distributions(module, prompt_ids: list[int], ids: list[int]) -> torch.Tensor:
    """Probabilities (len(ids), vocabulary) that the model gives before each token of a continuation."""
    return _logits(module, [(prompt_ids, ids)], len(ids))[0].softmax(-1)


@torch.inference_mode()
def teacher_force(module, batch: list[Scored], work: Work) -> list[Completion]:
    """One forward pass for all rows; log-probabilities are natural and at temperature 1."""
    longest = max(len(item.ids) for item in batch)
    if not longest:
        return [item.completion([]) for item in batch]
    work.passes += 1
    work.prompt_tokens += sum(len(item.prompt_ids) + len(item.ids) for item in batch)
    logits = _logits(module, [(item.prompt_ids, item.ids) for item in batch], longest)
    targets, _ = left_padded([item.ids for item in batch], logits.device)  # (rows, longest), as the logits
    logprobs = logits.gather(-1, targets[..., None])[..., 0] - logits.logsumexp(-1)
    return [item.completion(row[longest - len(item.ids) :]) for item, row in zip(batch, logprobs.tolist(), strict=True)]


def _logits(module, rows: list[tuple[list[int], list[int]]], longest: int) -> torch.Tensor:
    """Logits (rows, longest, vocabulary), for rows of prompt and continuation."""
    return (_encoder_decoder if module.config.is_encoder_decoder else _causal)(module, rows, longest)


def _causal(module, rows: list[tuple[list[int], list[int]]], longest: int) -> torch.Tensor:
    """Logits (rows, longest, vocabulary) before each token of the continuations, which end in the last column."""
    ids, mask = left_padded([prompt + ids for prompt, ids in rows], module.device)
    optional = {"position_ids": (mask.cumsum(1) - 1).clamp(min=0), "logits_to_keep": longest + 1}
    known = accepts(module, *optional)
    output = module(input_ids=ids, attention_mask=mask, use_cache=False,
                    **{name: value for name, value in optional.items() if known[name]})
    return output.logits[:, -longest - 1 : -1].float()


def _encoder_decoder(module, rows: list[tuple[list[int], list[int]]], longest: int) -> torch.Tensor:
    """Logits (rows, longest, vocabulary), shifted so that the continuations end in the last column."""
    prompts, mask = right_padded([prompt for prompt, _ in rows], module.device)
    start = decoder_start(module)
    inputs, _ = right_padded([[start, *ids[:-1]] for _, ids in rows], module.device)
    logits = module(input_ids=prompts, attention_mask=mask, decoder_input_ids=inputs, use_cache=False).logits.float()
    shifted = [row.roll(longest - len(ids), 0) for row, (_, ids) in zip(logits, rows, strict=True)]
    return torch.stack(shifted)
