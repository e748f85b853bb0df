"""How a local model's answers are written: a row of a batch, the choice of the next token, and what
a batch carries from one forward pass to the next.

The loop is that of gpt-fast: prefill once, then one token per step for all rows. Beyond
``generate`` of Transformers, it offers batches of *different* prompts, stop rules that end a row
during decoding, log-probabilities of every token under the unscaled distribution, answers that
depend neither on the batch nor on the order of the prompts (in float32, up to the last bits; in 16
bits only the head is computed in float32, and a near tie may fall either way, which
``Completion.margin`` shows), and constraints that wait for another program. Left out on purpose:
beam search, penalties and assisted decoding. A checkpoint's own sampling defaults are ignored; only
``Decoding`` counts.
"""

import hashlib
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size
from tokenizers.decoders import DecodeStream
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from transformers.cache_utils import DynamicCache, DynamicLayer, EncoderDecoderCache

from lookuplab.errors import UserError
from lookuplab.models.completions import Completion, Decoding, Prompt
from lookuplab.models.constraint import Constraint
from lookuplab.models.local import CPU_TOKENS, LocalModel, Work
from lookuplab.models.tokens import TAIL, decoded

GPU_SHARE = 0.8  # of the free memory, for keys and values
# drop finished rows once they are one in this many of the batch: each drop copies the cache
COMPACT = 8
LIKELY = (16, 256)  # numbers of tokens that sampling with top_p looks at first and second
BLOCK = 64  # positions that the cache reserves at once


def written(
    model: LocalModel, rows: list["Row"], decoding: Decoding, end_of_text: frozenset[int]
) -> Iterator[list[Completion]]:
    """Finish the model's rows, longest prompts first, in batches.

    A batch has at most ``batch_size`` rows and as many tokens, padding included, as the memory
    allows: on GPUs, as many as would fit if every attention head stored its own keys and values;
    the memory saved by models whose heads share them is left for activations. If memory runs out,
    the budget is halved and the batch repeated; UserError if a single row does not fit. The order
    is fixed and results are whole batches. So an interrupted run resumes with the same batches on a
    CPU; on GPUs they may differ, because the budget depends on the free memory.
    """
    rows.sort(key=lambda row: (-len(row.ids), row.prompt.id, row.sample))
    at, budget, new = 0, CPU_TOKENS * min(2, decoding.n), 0  # samples share lanes at first
    if rows and model.module.device.type == "cuda":
        free = 0
        for i in range(torch.cuda.device_count()):  # what PyTorch keeps for reuse is free, too
            free += torch.cuda.mem_get_info(i)[0]
            free += torch.cuda.memory_reserved(i) - torch.cuda.memory_allocated(i)
        text, new = model.config.get_text_config(decoder=True), decoding.max_new_tokens
        each = 2 * text.num_hidden_layers * text.hidden_size * model.module.dtype.itemsize
        budget = int(GPU_SHARE * free / each)
    while at < len(rows):
        longest = len(rows[at].ids) + new
        batch = rows[at : at + max(1, min(model.batch_size, budget // longest))]
        try:
            for row in batch:
                row.begin(model.tokenizer, decoding)
            _decode(model, batch, decoding, end_of_text)
        except RuntimeError as error:
            if not should_reduce_batch_size(error):
                raise
            if len(batch) == 1:
                raise UserError(
                    f"{model.name}: not enough memory for a single prompt; use shorter prompts, "
                    "fewer "
                    "new tokens, a smaller dtype or a larger device"
                ) from error
            budget = len(batch) // 2 * longest
        else:
            at += len(batch)
            model.work.new_tokens += sum(len(row.tokens) for row in batch)
            yield [row.completion() for row in batch]
            continue
        # outside the except block, so that the failed batch's tensors are free
        clear_device_cache(garbage_collection=True)


@torch.inference_mode()
def _decode(
    model: LocalModel, rows: list["Row"], decoding: Decoding, end_of_text: frozenset[int]
) -> None:
    """Append tokens until every row is finished.

    Rows with the same prompt share a lane of the batch as long as they have written the same, so
    samples cost nothing before they differ.
    """
    batch, chance = Batch(model.module, rows, model.context, model.work), None
    lanes = batch.lanes
    while True:
        logits = batch.logits
        if lanes != [*range(len(logits))]:
            logits = logits[lanes]
        scores, gates = logits, [math.inf] * len(rows)
        for i, row in enumerate(rows):
            if row.constraint and (found := row.constraint.restrict(logits[i])):
                scores = scores.clone() if scores is logits else scores
                scores[i], gates[i] = found
        if decoding.temperature > 0:
            drawn = [row.chances[len(row.tokens)] for row in rows]
            chance = torch.tensor(drawn, dtype=torch.float64, device=scores.device)
        tokens, logprobs, margins = choose(logits, scores, chance, decoding)
        told = torch.stack([tokens, logprobs.double(), margins], 1).tolist()
        going = []
        for row, lane, numbers, gate in zip(rows, lanes, told, gates, strict=True):
            token, logprob, margin = numbers
            row.push(int(token), logprob, min(margin, gate), end_of_text)
            if not row.finish_reason:
                going.append((row, lane, int(token)))
        if not going:
            break
        rows, *written = map(list, zip(*going, strict=True))
        parents, reads, lanes = branched(*written, len(batch.logits))
        if parents != [*range(len(batch.logits))]:
            batch.keep(parents)
        batch.step(torch.tensor(reads, device=scores.device))


@dataclass
class Row:
    """One answer: grows by ``push`` until ``finish_reason`` is set.

    ``before`` are the prompt tokens that it continues, none for an encoder-decoder; ``limit`` is
    the number of tokens that it may add.
    """

    prompt: Prompt
    sample: int
    ids: list[int]
    dropped: int
    before: list[int]
    limit: int
    make_constraint: Callable[[], Constraint | None]

    def begin(self, tokenizer, decoding: Decoding) -> None:
        """Reset the answer, also to start over after running out of memory."""
        self.tokenizer, self.tail, self.over = tokenizer, self.before[-TAIL:], decoding.stopper()
        self.spelling = DecodeStream(ids=list(self.tail), skip_special_tokens=True)
        self.constraint, self.margin, self.finish_reason = self.make_constraint(), math.inf, ""
        self.tokens, self.logprobs, self.pieces = [], [], []
        if decoding.temperature > 0:
            self.chances = uniforms(self, decoding)

    def push(self, token: int, logprob: float, margin: float, end_of_text: frozenset[int]) -> None:
        """Append one token and check whether it was the last. ``margin``: how near the choice was
        to a different one.

        Decoding is incremental, so each token costs the same. An incomplete character is held back
        until it is complete; special tokens spell nothing.
        """
        piece = self.spelling.step(self.tokenizer.backend_tokenizer, token) or ""
        self.tokens.append(token)
        self.logprobs.append(logprob)
        self.pieces.append(piece)
        self.margin = min(self.margin, margin)
        if self.constraint:
            self.constraint.push(token, logprob)
        if token in end_of_text:
            self.finish_reason = "eos"
        elif piece and self.over(piece):
            self.finish_reason = "stop"
        elif len(self.tokens) >= self.limit:
            self.finish_reason = "length"

    def completion(self) -> Completion:
        """The finished row. Bytes that never became a character are added to the last token's text."""
        if not self.pieces[-1]:
            start, whole = decoded(self.tokenizer, [self.tail, self.tail + self.tokens])
            self.pieces[-1] = whole[len(start) + len("".join(self.pieces)) :]
        return Completion(
            self.prompt.id,
            self.sample,
            "".join(self.pieces),
            tuple(self.pieces),
            tuple(self.tokens),
            tuple(self.logprobs),
            self.finish_reason,
            len(self.ids),
            self.dropped,
            None if self.margin == math.inf else self.margin,
            self.constraint and self.constraint.record(),
        )


def choose(
    logits: torch.Tensor, scores: torch.Tensor, chance: torch.Tensor | None, decoding: Decoding
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Next token (rows,), its natural log-probability (rows,) at temperature 1, and its margin
    (rows,).

    The token is chosen by ``scores`` (rows, vocabulary), the ``logits`` under constraints; the
    log-probability is always that of ``logits``. Sampling inverts the cumulative distribution at
    ``chance`` (rows,), in [0, 1), in the order of the vocabulary, so that last-bit noise in the
    logits moves a boundary between two tokens but never reorders them. The margin says how near the
    choice was to a different one: in greedy decoding, the gap between the two largest scores in
    nats; in sampling, the distance of ``chance`` to the nearer end of the token's interval or of
    ``top_p`` to the nearest sum at which it could cut, whichever is smaller.
    """
    best = scores.topk(2)
    token, margin = best.indices[:, 0], (best.values[:, 0] - best.values[:, 1]).double()
    if chance is not None:
        alone, near = margin == torch.inf, torch.full_like(margin, torch.inf)
        chosen = torch.softmax(scores.double() / decoding.temperature, dim=-1)
        if decoding.top_p < 1:
            chosen, names, near = nucleus(chosen, decoding.top_p)
        total = chosen.cumsum(-1)
        point = chance.double() * total[:, -1]
        at = torch.searchsorted(total, point[:, None], right=True).clamp(max=total.shape[-1] - 1)
        upper = total.gather(-1, at)[:, 0]
        lower = upper - chosen.gather(-1, at)[:, 0]
        token = (names.gather(-1, at) if decoding.top_p < 1 else at)[:, 0]
        margin = torch.minimum(torch.minimum(upper - point, point - lower), near)
        margin = margin.masked_fill(alone, torch.inf)
    return token, logits.gather(-1, token[:, None])[:, 0] - logits.logsumexp(-1), margin


def nucleus(chances: torch.Tensor, top_p: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The likeliest ``chances`` (rows, k) in the order of the vocabulary, their tokens, and the
    margin of the cut.

    Chances are set to zero after those that together reach ``top_p`` (the one that crosses it
    stays). The margin (rows,) is the distance of ``top_p`` to the nearest sum at which it could
    cut. Of equally likely tokens at the cut, those first in the vocabulary stay. Sorting the whole
    vocabulary is slow, so that is done only if the ``LIKELY`` most likely tokens do not suffice.
    """
    for count in (*LIKELY, chances.shape[-1]):
        if count < chances.shape[-1]:
            ranked, order = chances.topk(count)
        else:
            ranked, order = chances.sort(dim=-1, descending=True, stable=True)
        before = ranked.cumsum(-1) - ranked
        outside = before >= top_p
        tied = (ranked[:, 1:] == ranked[:, :-1]) & outside[:, 1:] & ~outside[:, :-1]
        if outside[:, -1].all() and not tied.any():
            break
    names, places = order.sort(-1)
    kept = ranked.masked_fill(outside, 0).gather(-1, places)
    return kept, names, (before - top_p).abs().amin(-1)


def branched(
    lanes: list[int], tokens: list[int], count: int
) -> tuple[list[int], list[int], list[int]]:
    """Which of ``count`` lanes each new lane continues, the token that it reads, and each row's new
    lane.

    ``lanes`` and ``tokens``: each row's lane and the token that it wrote. Rows that share a lane go
    on in different lanes if they wrote different tokens. A lane without a row reads anything until
    such lanes are dropped.
    """
    parents, reads, places = [*range(count)], [-1] * count, {}
    for lane, token in zip(lanes, tokens, strict=True):
        if (lane, token) not in places:
            if reads[lane] < 0:
                places[lane, token], reads[lane] = lane, token
            else:
                places[lane, token] = len(parents)
                parents.append(lane)
                reads.append(token)
    kept = [lane for lane, token in enumerate(reads) if token >= 0]
    if (len(reads) - len(kept)) * COMPACT < len(reads):
        kept = [*range(len(reads))]
    at = {lane: i for i, lane in enumerate(kept)}
    new_lanes = [at[places[key]] for key in zip(lanes, tokens, strict=True)]
    return [parents[i] for i in kept], [max(0, reads[i]) for i in kept], new_lanes


def uniforms(row: Row, decoding: Decoding) -> np.ndarray:
    """The row's random numbers in [0, 1), one per token, which depend only on seed, prompt id and
    sample.
    """
    name = f"{decoding.seed}\x1f{row.prompt.id}\x1f{row.sample}"
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "big")
    return np.random.default_rng(seed).random(decoding.max_new_tokens)


class Batch:
    """What lanes carry from one forward pass to the next: key/value cache, mask, positions and
    next-token logits.

    There is one lane for each distinct prompt at first; ``lanes`` says which is whose row's.
    ``logits`` are (lanes, vocabulary). Lanes of a causal model always end in the last column, so
    that the distance between two columns is the
    distance between two tokens: sliding-window masks and relative positions are right without
    knowing about padding. An encoder-decoder's prompts begin in the first column, and its answers
    all have the same length.
    """

    def __init__(self, module, rows: list[Row], context: int | None, work: Work) -> None:
        self.module, self.context, self.work = module, context or math.inf, work
        self.known = inspect.signature(module.forward).parameters
        prompts = [tuple(row.ids) for row in rows]
        places = {ids: i for i, ids in enumerate(dict.fromkeys(prompts))}
        self.lanes = [places[ids] for ids in prompts]
        work.prompt_tokens += sum(map(len, places))
        side = "right" if module.config.is_encoder_decoder else "left"
        ids = pad_sequence(list(map(torch.tensor, places)), True, -1, side).to(module.device)
        self.mask, ids = (ids >= 0).long(), ids.clamp(min=0)
        self.lengths, self.encoded, self.cache = self.mask.sum(1), None, roomy_cache(module.config)
        if side == "left":
            self.logits = self._forward(ids, (self.mask.cumsum(1) - 1).clamp(min=0))
        else:
            self.cache = EncoderDecoderCache(self.cache, DynamicCache())
            self.encoded = module.get_encoder()(input_ids=ids, attention_mask=self.mask)
            self.logits = self._forward(torch.full_like(self.mask[:, :1], decoder_start(module)))

    def step(self, tokens: torch.Tensor) -> None:
        """Read one more token (lanes,) in each lane."""
        if self.encoded is None:
            self.mask = functional.pad(self.mask, (0, 1), value=1)
        # lanes of finished rows that are not dropped yet continue
        self.lengths = (self.lengths + 1).clamp(max=self.context)
        self.logits = self._forward(tokens[:, None], self.lengths[:, None] - 1)

    def keep(self, lanes: list[int]) -> None:
        """Go on with these lanes, some of them perhaps several times."""
        index = torch.tensor(lanes, device=self.mask.device)
        self.mask, self.lengths = self.mask[index], self.lengths[index]
        self.logits = self.logits[index]
        self.cache.batch_select_indices(index)
        if self.encoded is not None:
            self.encoded.last_hidden_state = self.encoded.last_hidden_state[index]

    def _forward(self, ids: torch.Tensor, position: torch.Tensor | None = None) -> torch.Tensor:
        inputs = {"encoder_outputs": self.encoded, "decoder_input_ids": ids}
        if self.encoded is None:
            inputs = {"input_ids": ids, "position_ids": position, "logits_to_keep": 1}
            inputs = {name: value for name, value in inputs.items() if name in self.known}
        self.work.passes += 1
        output = self.module(
            **inputs, attention_mask=self.mask, past_key_values=self.cache, use_cache=True
        )
        return output.logits[:, -1].float()


def decoder_start(module) -> int:
    """The token that an encoder-decoder model's answers begin with."""
    start = module.generation_config.decoder_start_token_id
    return module.config.decoder_start_token_id if start is None else start


class RoomyLayer(DynamicLayer):
    """Keys and values of one layer, (rows, heads, positions, width), as views of larger buffers.

    Transformers' own layer concatenates: each step copies everything it holds, which on a CPU with
    many rows costs as much as the model's arithmetic. Layers with a sliding window are also stored
    in full: the model's mask applies the window.
    """

    _rooms: Sequence[torch.Tensor] = ()

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args, **kwargs):
        """Append (rows, heads, new, width); return all keys and values so far."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        added, used = (key_states, value_states), self.get_seq_length()
        rooms, end = self._rooms or [new[:, :, :0] for new in added], used + key_states.shape[-2]
        if end > rooms[0].shape[-2]:
            rooms = [
                functional.pad(room[:, :, :used], (0, 0, 0, end - used + BLOCK)) for room in rooms
            ]
        rows = len(key_states)
        for room, new in zip(rooms, added, strict=True):
            room[:rows, :, used:end] = new
        self._rooms, (self.keys, self.values) = rooms, (room[:rows, :, :end] for room in rooms)
        return self.keys, self.values

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep only these rows, with the reserved room after them. Only rows that change their
        place are copied.
        """
        used, rows = self.get_seq_length(), len(indices)
        indices = indices.to(self.keys.device)
        moved = (indices != torch.arange(rows, device=indices.device)).nonzero()[:, 0]
        if more := max(0, rows - len(self._rooms[0])):  # twice the room, so that it seldom grows
            more = max(more, len(self._rooms[0]))
            self._rooms = [functional.pad(room, (0,) * 7 + (more,)) for room in self._rooms]
        for room in self._rooms:
            room[moved, :, :used] = room[indices[moved], :, :used]
        self.keys, self.values = (room[:rows, :, :used] for room in self._rooms)


def roomy_cache(config) -> DynamicCache:
    """An empty cache for a decoder. Models with recurrent layers keep the kind that their
    configuration needs.
    """
    kinds = getattr(config.get_text_config(decoder=True), "layer_types", None) or ()
    if set(kinds) - {"full_attention", "sliding_attention"}:
        return DynamicCache(config=config)
    cache = DynamicCache()
    cache.layer_class_to_replicate = RoomyLayer
    return cache


@torch.inference_mode()
def distributions(module, prompt_ids: list[int], ids: list[int]) -> torch.Tensor:
    """The model's probabilities (len(ids), vocabulary) before each token of a continuation."""
    read = torch.tensor([prompt_ids], device=module.device)
    if module.config.is_encoder_decoder:
        begun = torch.tensor([[decoder_start(module), *ids[:-1]]], device=module.device)
        logits = module(input_ids=read, decoder_input_ids=begun).logits[0]
    else:
        logits = module(torch.cat([read, read.new_tensor([ids])], 1)).logits[
            0, len(prompt_ids) - 1 : -1
        ]
    return logits.float().softmax(-1)
