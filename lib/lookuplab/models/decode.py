"""The decode loop: prefill once, then one token a step for all rows, dropping rows as they finish.

Prefill and decode are apart, as in gpt-fast; the model itself is Transformers' own and can be any causal or
encoder-decoder checkpoint. Batches hold *different* prompts. Nothing in here depends on who shares a batch, up to the
last bits of floating point arithmetic.

Rows may have a constraint (``models.constraint``). What it forces a row to write is appended in one pass, while the
other rows take one token. With several beams a prompt ``models.beam`` takes the place of this loop.
"""

import numpy as np
import torch

from lookuplab.models.beam import beam_search
from lookuplab.models.constraint import restrict
from lookuplab.models.rows import Row, uniforms
from lookuplab.models.states import CausalState, EncoderDecoderState, begin
from lookuplab.models.types import Decoding, Work

COMPACT = 8  # drop finished rows when they are one in so many of the batch: each time the cache is copied


def choose(logits: torch.Tensor, chance: torch.Tensor | None, decoding: Decoding,
           restricted: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Next token (rows,), its natural log-probability (rows,) at temperature 1, and how near the choice was to another
    one (rows,). ``chance`` (rows,) is in [0, 1).

    It is chosen by the logits (rows, vocabulary), or by the ``restricted`` ones if there are any; the log-probability
    is always that of ``logits``.
    Sampling inverts the cumulative distribution in the order of the vocabulary, so that last-bit noise in the logits
    moves a boundary between two tokens and never reorders them.
    How near: the gap of the two largest logits in nats or, of a draw, of ``chance`` to the nearer end of the token's
    interval, or of ``top_p`` to the nearest sum at which it could cut.
    """
    scores = logits if restricted is None else restricted
    if chance is None:
        token = scores.argmax(-1)
        best = scores.topk(2).values
        margin = best[:, 0] - best[:, 1]
    else:
        chosen = torch.softmax(scores.double() / decoding.temperature, dim=-1)
        if decoding.top_p < 1:
            ranked, order = chosen.sort(dim=-1, descending=True, stable=True)
            before = ranked.cumsum(-1) - ranked
            outside = before >= decoding.top_p  # the token that crosses top_p stays
            chosen = chosen.masked_fill(torch.zeros_like(outside).scatter(-1, order, outside), 0)
        total = chosen.cumsum(-1)
        point = chance.double() * total[:, -1]
        token = torch.searchsorted(total, point[:, None], right=True)[:, 0].clamp(max=logits.shape[-1] - 1)
        upper = total.gather(-1, token[:, None])[:, 0]
        margin = torch.minimum(upper - point, point - upper + chosen.gather(-1, token[:, None])[:, 0])
        if decoding.top_p < 1:
            margin = torch.minimum(margin, (before - decoding.top_p).abs().amin(-1))
    return token, logits.gather(-1, token[:, None])[:, 0] - logits.logsumexp(-1), margin


@torch.inference_mode()
def decode(module, rows: list[Row], decoding: Decoding, end_of_text: frozenset[int], context: int | None,
           work: Work) -> None:
    """Generate until every row is finished; the rows are filled in place, and ``work`` counts what it took."""
    state, logits = begin(module, [row.encoded.ids for row in rows], max(row.limit for row in rows), context, work)
    if decoding.beams > 1:
        beam_search(state, logits, rows, decoding.beams, end_of_text)
    else:
        _finish(state, logits, rows, decoding, end_of_text)
    work.new_tokens += sum(len(row.tokens) for row in rows)


def _finish(state: CausalState | EncoderDecoderState, logits: torch.Tensor, rows: list[Row], decoding: Decoding,
            end_of_text: frozenset[int]) -> None:
    """One token a step, greedy or sampled, from ``logits`` (rows, vocabulary) behind the prompts."""
    chances = None
    if decoding.temperature > 0:
        chances = torch.from_numpy(np.stack([uniforms(row, decoding) for row in rows])).to(logits.device)
    while True:
        tokens = _append(rows, logits, chances, decoding, end_of_text)
        going = [i for i, row in enumerate(rows) if row.finish_reason is None]
        if not going:
            break
        chains = [row.forced() if state.extends else [] for row in rows]
        longer = any(chains)
        finished = len(rows) - len(going)
        if finished and (longer or finished * COMPACT >= len(rows)):
            state.keep(going)
            rows, tokens, chains = [rows[i] for i in going], tokens[going], [chains[i] for i in going]
            chances = None if chances is None else chances[going]
        logits = _extended(state, rows, chains, end_of_text) if longer else state.step(tokens)


def _append(rows: list[Row], logits: torch.Tensor, chances: torch.Tensor | None, decoding: Decoding,
            end_of_text: frozenset[int]) -> torch.Tensor:
    """One more token in every unfinished row; returns the tokens (rows,)."""
    restricted, masked, gated = restrict(logits, [row.active() for row in rows])
    if chances is not None:  # rows with forced tokens are further on than others
        at = torch.tensor([min(len(row.tokens), chances.shape[1] - 1) for row in rows], device=chances.device)
        chances = chances.gather(1, at[:, None])[:, 0]
    tokens, logprobs, margins = choose(logits, chances, decoding, restricted)
    margins = torch.minimum(margins, gated)
    for row, token, logprob, bound, margin in zip(rows, tokens.tolist(), logprobs.tolist(), masked, margins.tolist(),
                                                  strict=True):
        if row.finish_reason is None:
            row.push(token, logprob, end_of_text, bound, margin)
    return tokens


def _extended(state: CausalState | EncoderDecoderState, rows: list[Row], chains: list[list[int]],
              end_of_text: frozenset[int]) -> torch.Tensor:
    """Logits (rows, vocabulary) after the last token and the forced ones, which are appended; one forward pass.

    A row that a stop rule ends within its forced tokens leaves out the rest of them.
    """
    new = [1 + len(chain) for chain in chains]
    texts = [state.text(row.encoded.ids, row.tokens + chain) for row, chain in zip(rows, chains, strict=True)]
    logits = state.extend(texts, new)
    for i, (row, chain) in enumerate(zip(rows, chains, strict=True)):
        if not chain:
            continue
        before = logits[i, -len(chain) - 1 : -1]
        ids = torch.tensor(chain, device=logits.device)
        logprobs = before.gather(-1, ids[:, None])[:, 0] - before.logsumexp(-1)
        for token, logprob in zip(chain, logprobs.tolist(), strict=True):
            if row.finish_reason is None:
                row.push(token, logprob, end_of_text, masked=True)
    return logits[:, -1]
