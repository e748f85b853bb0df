"""Generates the answers of local models. The module contains the decoding loop, the state of one
row (an answer in progress), the choice of a row's next token, and the forward passes of a batch of
rows (``models.fast`` has faster ones for some models on a CPU).

As in gpt-fast, all prompts are read once, and then each step adds one token to every row. The loop
is used in place of ``generate`` of Transformers, because it offers all of this:

- The prompts of a batch may be *different*.
- Stop rules can end a row during decoding.
- Every token gets a log-probability, always at temperature 1.
- Answers depend neither on the batch nor on the order of the prompts. In float32, only the last
  bits of log-probabilities vary. In 16 bits, where only the head is computed in float32, a near tie
  between two tokens may go either way; ``Completion.margin`` tells how near a tie was.
- A constraint can query another program, such as Jedi, and wait for its answer.

Beam search, penalties and assisted decoding are left out on purpose. The sampling defaults in a
checkpoint's generation_config.json are ignored; only ``Decoding`` counts.
"""

import inspect
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size
from tokenizers.decoders import DecodeStream
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    DynamicCache,
    EncoderDecoderCache,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.cache_utils import Cache

from lookuplab.errors import UserError, first_line
from lookuplab.models.completions import Batches, Completion, Decoding, Prompt, Work
from lookuplab.models.fast import Fast, Packed
from lookuplab.models.names import table_name
from lookuplab.models.store import NOT_NUMBERS
from lookuplab.models.tokens import TAIL, Constraint, Lost
from lookuplab.paths import digest
from lookuplab.work import say

if TYPE_CHECKING:
    from lookuplab.models.local import LocalModel

# Type of device -> number of batches. If rows query a tool such as Jedi, they are split into this
# number of batches (1 on other devices). A GPU's forward pass takes less time than Jedi's answer,
# so the GPU computes one batch while the other batches wait for Jedi.
TURNS = {"cuda": 4}
# The largest batch on a CPU: number of rows times number of tokens of the longest prompt. Larger
# batches have more padding and do not fit into the processor's caches. The limit is twice as high
# on the fast path, which has no padding, or if a prompt is read once for several samples.
CPU_TOKENS = 8192
# The largest batch by default, in rows. A step of the fast path costs little more for more rows.
ROWS, FAST_ROWS = 128, 192
GROUP = 64  # see ``top_two``
# ``nucleus`` ranks only this many tokens, if they suffice to decide which tokens are kept
LIKELIEST = 32
KEEP_SECONDS = 1.0  # a finished answer is yielded within about this time
# The largest relative difference between logits that rounding in 16 bits can explain. An
# architecture that ignores the cache would give a difference of about 1.
APART_IN_16_BITS = 0.5


def decode_rows(
    model: "LocalModel", rows: list["DecodingRow"], decoding: Decoding, end_of_text: frozenset[int]
) -> Batches:
    """Decode the rows in batches, in the given order (longest prompts first). About once a second,
    yield the answers that have ended, so that a killed process loses only answers in progress.

    A batch has at most ``batch_size`` rows (by default, ROWS or FAST_ROWS). On a CPU,
    ``CPU_TOKENS`` is another limit. A row that may pass ``turning_length`` is a batch of its own.
    If memory runs out, or if the architecture cannot read a batch beyond the context, the
    unfinished rows of the batch start again in batches of half the size, and later batches are no
    larger. Raises UserError if a single row does not fit. A row whose tool failed (``tokens.Lost``)
    is reported and left out.

    The order is fixed, so an uninterrupted run forms the same batches each time, unless memory runs
    out. A run that is resumed after a kill forms other batches, which may change the last digits of
    log-probabilities.

    No row enters a running batch. Each layer's cache is one tensor, in which all rows end in the
    same column. To add a row, the cache of every layer would have to be copied and padded, and the
    last digits of the new row's log-probabilities would depend on when other rows ended. vLLM's
    paged cache avoids both problems (``vllm:NAME``).
    """
    on_cpu = bool(rows) and model.module.device.type == "cpu"
    budget = CPU_TOKENS * (2 if model.fast or decoding.n > 1 else 1) if on_cpu else math.inf
    most = model.batch_size or (FAST_ROWS if on_cpu and model.fast else ROWS)
    turn = turning_length(model.module) if rows else math.inf
    while rows:
        each = len(rows[0].ids)
        size = max(1, int(min(most, budget // each)))
        if each + rows[0].limit > turn:  # a shorter row beside it would be rotated as this one
            size = 1
        batch, rows = rows[:size], rows[size:]
        size = len(batch)
        kept = time.monotonic()
        try:
            for row in batch:
                row.begin(model.tokenizer, decoding)
            asks = any(row.constraint and row.constraint.asks for row in batch)
            parts = min(TURNS.get(model.module.device.type, 1), len(batch)) if asks else 1
            turns = [_decode(model, batch[i::parts], decoding, end_of_text) for i in range(parts)]
            while turns:
                turns = [steps for steps in turns if next(steps, 0)]
                if turns and time.monotonic() - kept >= KEEP_SECONDS:
                    if ended := [*_ended(model.work, batch)]:
                        yield ended
                    batch = [row for row in batch if not row.finish_reason]
                    kept = time.monotonic()
        except RuntimeError as error:
            # Beside a longer prompt, a short prompt's answer ends in a column beyond the context.
            # Architectures with a mask or biases of the context's size (GPT-Neo, MPT) then fail.
            width = each + max(len(row.tokens) for row in batch)
            is_beyond = size > 1 and width > (model.context or math.inf)
            if not (is_beyond or should_reduce_batch_size(error)):
                raise
            if size == 1:
                raise UserError(
                    f"{model.name}: not enough memory for a single prompt; use shorter prompts, "
                    "fewer new tokens, a smaller dtype or a larger device"
                ) from error
            budget = size // 2 * each
            rows = batch + rows  # ``batch`` has only the unfinished rows
        else:
            yield [*_ended(model.work, batch)]
            continue
        # outside the except block, which would keep the failed batch's tensors alive
        clear_device_cache(garbage_collection=True)


def _ended(work: Work, rows: list["DecodingRow"]) -> Iterator[Completion]:
    """Yield the completions of the rows that have ended. A row whose tool has failed has no
    completion; a message on stderr reports it.
    """
    for row in rows:
        if not row.finish_reason:
            continue
        work.new_tokens += len(row.tokens)
        try:
            if row.lost:
                raise row.lost
            yield row.completion()
        except Lost as lost:
            say(f"left out: {lost}")


@torch.inference_mode()
def _decode(
    model: "LocalModel", rows: list["DecodingRow"], decoding: Decoding, end_of_text: frozenset[int]
) -> Iterator[int]:
    """Append tokens to the rows until every row is finished. Finished rows leave the batch a few at
    a time.

    Yield the number of unfinished rows whenever a forward pass has been started. A GPU may still be
    computing the pass; in the meantime, the caller can turn to another batch.
    """
    module = model.module  # loading the module sets ``model.fast`` (``check_steps``)
    prompts = [row.ids for row in rows]
    batch: Batch | Packed
    if model.fast and model.fast.is_current(module):
        batch = Packed(model.fast, prompts, model.work)
    else:
        batch = Batch(module, prompts, model.context, model.work)
    chance = None
    while True:
        logits = scores = batch.logits
        gates = [math.inf] * len(rows)
        for i, row in enumerate(rows):
            if row.constraint and not row.finish_reason:
                try:
                    allowed = row.constraint.restrict(logits[i])
                except Lost as lost:
                    row.lost, row.finish_reason = lost, "lost"
                    continue
                if allowed:
                    scores = scores.clone() if scores is logits else scores
                    scores[i], gates[i] = allowed
        if decoding.temperature > 0:
            drawn = [row.chances[len(row.tokens)] for row in rows]
            chance = torch.tensor(drawn, dtype=torch.float64, device=scores.device)
        tokens, logprobs, margins = choose(logits, scores, chance, decoding)
        chosen = torch.stack([tokens, logprobs.double(), margins], 1).tolist()
        for row, (token, logprob, margin), gate in zip(rows, chosen, gates, strict=True):
            if not row.finish_reason:
                row.push(int(token), logprob, min(margin, gate), end_of_text)
        unfinished = [i for i, row in enumerate(rows) if not row.finish_reason]
        if not unfinished:
            break
        over = len(rows) - len(unfinished)
        if over and over >= batch.spare * len(rows):
            # the last unfinished rows move into the slots of finished rows; the other rows stay in
            # their slots, so that they need not be copied
            kept, last = {*unfinished}, unfinished.copy()
            unfinished = [i if i in kept else last.pop() for i in range(len(unfinished))]
            batch.keep(unfinished)
            rows = [rows[i] for i in unfinished]
            tokens = tokens[unfinished]
        batch.step(tokens)
        yield len(unfinished)


@dataclass
class DecodingRow:
    """One answer in progress. ``push`` adds tokens until ``finish_reason`` is set.

    ``ids`` are the tokens of the prompt, and ``dropped`` is the number of prompt tokens that
    truncation removed. ``before`` are the tokens that the answer continues: the prompt's tokens, or
    [] for an encoder-decoder. The answer ends after ``limit`` tokens at the latest.
    ``make_constraint`` returns the row's constraint or None. If a given text is only scored,
    ``scored_text`` is this text and ``scored_tokens`` are the tokens of the text.
    """

    prompt: Prompt
    sample: int
    ids: list[int]
    dropped: int
    before: list[int]
    limit: int
    make_constraint: Callable[[], Constraint | None]
    scored_tokens: list[int] = field(default_factory=list)
    scored_text: str = ""

    def begin(self, tokenizer: PreTrainedTokenizerBase, decoding: Decoding) -> None:
        """Reset the answer to its empty state. Called before the first token, and again if memory
        ran out.
        """
        self.tokenizer = tokenizer.backend_tokenizer
        self.tail = self.before[-TAIL:]
        self.over = decoding.stopper()
        # decodes one token after another; holds an incomplete character back until it is complete
        self.stream = DecodeStream(ids=self.tail, skip_special_tokens=True)
        self.constraint = self.make_constraint()
        self.lost: Lost | None = None
        self.margin = math.inf
        self.finish_reason = ""
        self.tokens: list[int] = []
        self.logprobs: list[float] = []
        self.pieces: list[str] = []
        if decoding.temperature > 0:
            # Random numbers in [0, 1): one for each token, and one more for a finished row, which
            # draws tokens until it leaves the batch. These tokens are ignored.
            random = np.random.default_rng(row_seed(self, decoding))
            self.chances = random.random(decoding.max_new_tokens + 1)

    def push(self, token: int, logprob: float, margin: float, end_of_text: frozenset[int]) -> None:
        """Append one token, and set ``finish_reason`` if the answer ends with this token.
        ``margin`` is the margin of the token's choice (see ``choose``).

        A special token or an incomplete character adds no text.
        """
        piece = self.stream.step(self.tokenizer, token) or ""
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
        """Return the answer of a finished row. If the answer ends with an incomplete character, the
        last token gets U+FFFD as its text.
        """
        if not self.pieces[-1]:
            rows = [self.tail, self.tail + self.tokens]
            start, whole = self.tokenizer.decode_batch(rows, skip_special_tokens=True)
            self.pieces[-1] = whole[len(start) + len("".join(self.pieces)) :]
        return Completion(
            self.prompt.id,
            self.sample,
            self.scored_text or "".join(self.pieces),  # a given text may be a special token
            tuple(self.pieces),
            tuple(self.tokens),
            tuple(self.logprobs),
            "scored" if self.scored_tokens else self.finish_reason,
            len(self.ids),
            self.dropped,
            None if self.margin == math.inf else self.margin,
            self.constraint and self.constraint.log(),
        )


def choose(
    logits: torch.Tensor, scores: torch.Tensor, chance: torch.Tensor | None, decoding: Decoding
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Choose the next token of each row. Return the tokens, their natural log-probabilities at
    temperature 1, and the margins of the choices, each of the shape (rows,).

    The tokens are chosen by ``scores`` (rows, vocabulary), which are the ``logits`` after the rows'
    constraints have been applied. The log-probabilities are always computed from ``logits``.
    Sampling inverts the cumulative distribution, in the order of the vocabulary, at ``chance``
    (rows,), a random number in [0, 1). Noise in the last bits of the logits can thus move a
    boundary between two tokens, but never reorders the tokens.

    The margin says how large an error would have led to another token. In greedy decoding, the
    margin is the gap between the two largest scores, in nats. In sampling, the margin is the
    smaller of two distances between probabilities: from ``chance`` to the nearer end of the token's
    interval, and from ``top_p`` to the nearest value that would cut off other tokens (``nucleus``).
    """
    best, order = top_two(scores)
    token = order[:, 0]
    margin = (best[:, 0] - best[:, 1]).double()
    if chance is not None:
        alone = margin == torch.inf  # only one token is allowed, so no change could lead to another
        near = torch.full_like(margin, torch.inf)
        chosen = scores.double().div_(decoding.temperature).softmax(-1)
        if decoding.top_p < 1:
            chosen, near = nucleus(chosen, decoding.top_p)
        total = chosen.cumsum(-1)
        # scaled, because after the cut at ``top_p`` the probabilities no longer add up to 1
        point = chance.double() * total[:, -1]
        at = torch.searchsorted(total, point[:, None], right=True).clamp(max=total.shape[-1] - 1)
        upper = total.gather(-1, at)[:, 0]
        lower = upper - chosen.gather(-1, at)[:, 0]
        token = at[:, 0]
        margin = torch.minimum(torch.minimum(upper - point, point - lower), near)
        margin = margin.masked_fill(alone, torch.inf)
    return token, logits.log_softmax(-1).gather(-1, token[:, None])[:, 0], margin


def top_two(scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the two largest scores of each row and their tokens, each of the shape (rows, 2).

    The result is that of ``topk``, which takes twice as long on a CPU. Here the vocabulary is split
    into groups of GROUP tokens, which are ranked by their highest score. The first two groups must
    contain the two largest scores, so ``topk`` searches only these.
    """
    rows, vocabulary = scores.shape
    apart = vocabulary // GROUP  # tokens of one group are this far apart
    if apart < 2 or vocabulary % GROUP:
        best, order = scores.topk(2)
        return best, order
    groups = scores.view(rows, GROUP, apart)
    both = groups.amax(1).topk(2).indices  # (rows, 2)
    best, at = groups.gather(2, both[:, None].expand(-1, GROUP, -1)).flatten(1).topk(2)
    return best, at // 2 * apart + both.gather(1, at % 2)


def nucleus(chances: torch.Tensor, top_p: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Set the probabilities of unlikely tokens to zero. Return the resulting probabilities, of the
    same shape (rows, vocabulary) as ``chances``, and the margin of the cut (rows,).

    Tokens are kept, the likeliest first, until the sum of their probabilities has reached
    ``top_p``. Of equally likely tokens at the cut, the first in the vocabulary are kept. The margin
    is the distance from ``top_p`` to the nearest cumulative sum of the sorted probabilities.
    """
    ranked, order = chances.topk(min(LIKELIEST, chances.shape[-1]))
    kept, cut, margin = _cut(chances, ranked, order, top_p)
    # If ``top_p`` cuts none of these tokens, more tokens may have to be kept. ``topk`` returns tied
    # tokens in any order, which matters only if the cut falls within a tie.
    tied = (cut[:, 1:] != cut[:, :-1]) & (ranked[:, 1:] == ranked[:, :-1])
    unsure = (~cut[:, -1] | tied.any(-1)).nonzero()[:, 0]
    if len(unsure):  # sorting the whole vocabulary takes ten times as long
        rest = chances[unsure]
        kept[unsure], _, margin[unsure] = _cut(
            rest, *rest.sort(dim=-1, descending=True, stable=True), top_p
        )
    return kept, margin


def _cut(
    chances: torch.Tensor, ranked: torch.Tensor, order: torch.Tensor, top_p: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return (the probabilities that ``nucleus`` keeps, whether each of the ``ranked`` tokens is
    cut, the margin), where ``order`` has the ranked tokens' indices in the vocabulary.
    """
    before = ranked.cumsum(-1) - ranked
    cut = before >= top_p
    kept = torch.zeros_like(chances).scatter_(-1, order, ranked.masked_fill(cut, 0))
    return kept, cut, (before - top_p).abs().amin(-1)


def row_seed(row: DecodingRow, decoding: Decoding) -> int:
    """Return a row's random seed of 128 bits. The seed depends only on ``decoding.seed``, the
    prompt's id and the index of the sample.
    """
    name = f"{decoding.seed}\x1f{row.prompt.id}\x1f{row.sample}"
    return int(digest(name), 16)


class Batch:
    """A batch of prompts. Each slot holds a prompt and its answer. Between forward passes, the
    batch keeps the key/value cache, the mask, the positions and the next-token ``logits`` (slots,
    vocabulary).

    Equal prompts are read once. A causal model's texts are padded on the left, and all end in the
    last column. The distance between two columns is thus the distance between two tokens, and
    sliding-window masks and relative positions need not take padding into account. The prompts of
    an encoder-decoder are padded on the right; the answers are all equally long and not padded.
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
        may be on different devices. The tensor of slots is therefore moved to all these devices.
        """
        index = torch.tensor(slots, device=self.mask.device)
        self.mask, self.lengths = self.mask[index], self.lengths[index]
        self.logits = self.logits[index]
        # reorder_cache moves ``index`` to each layer's device; batch_select_indices does not
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


def turning_length(module: PreTrainedModel) -> float:
    """Return the number of tokens from which on Transformers rotates all positions of a batch by
    other angles (``longrope``, in Phi-3), even those of shorter texts. Return inf for a model whose
    angles do not depend on the longest text.
    """
    rotation = getattr(module.config.get_text_config(), "rope_parameters", None) or {}
    if rotation.get("rope_type") != "longrope":
        return math.inf
    return float(rotation["original_max_position_embeddings"])


def decoder_start(module: PreTrainedModel) -> int:
    """Return the token with which the answers of an encoder-decoder model begin. Raises UserError
    if the model's configuration does not state it.
    """
    for config in module.generation_config, module.config:
        if (start := getattr(config, "decoder_start_token_id", None)) is not None:
            return int(start)
    raise UserError("an encoder-decoder model needs a decoder_start_token_id in its config.json")


@torch.inference_mode()
def distributions(module: PreTrainedModel, prompt_ids: list[int], ids: list[int]) -> torch.Tensor:
    """Return the model's next-token probabilities (len(ids), vocabulary) before each token of
    ``ids``, a continuation of the prompt. Raises UserError if a probability is NaN.
    """
    read = torch.tensor([prompt_ids], device=module.device)
    if module.config.is_encoder_decoder:
        begun = torch.tensor([[decoder_start(module), *ids[:-1]]], device=module.device)
        logits = module(input_ids=read, decoder_input_ids=begun).logits[0]
    else:
        logits = module(torch.cat([read, read.new_tensor([ids])], 1)).logits[
            0, len(prompt_ids) - 1 : -1
        ]
    chances: torch.Tensor = logits.float().softmax(-1)
    if chances.isnan().any():
        raise UserError(f"model {table_name(str(module.config.name_or_path))}: {NOT_NUMBERS}")
    return chances


@torch.inference_mode()
def check_steps(model: "LocalModel", module: PreTrainedModel) -> None:
    """Decide whether the model uses the fast path (``model.fast``) or the general one. Each path,
    the fast one first, is tried on a batch of three prompts, token by token. A path is used if its
    logits agree with the logits of plain forward passes over each prompt alone. Raises UserError if
    neither path gives such logits.

    Some architectures ignore ``past_key_values``, because their cache has another form. Others
    attend to the padding of a shorter prompt. Without this check, both would silently give wrong
    answers.
    """
    texts = "x =", "def add(a, b):\n    return a + b\n", "def add(a, c):\n"
    rows = [model.prompt_ids(text) for text in texts]
    ids = (3 * rows[1])[:3]
    # the fast path has its own attention, so it cannot respect a user's ``attn_implementation``
    may_be_fast = "attn_implementation" not in model.given
    plain: list[torch.Tensor] = []
    for is_fast in (True, False) if may_be_fast else (False,):
        try:
            plain = plain or [distributions(module, row, ids).log() for row in rows]
            model.fast = fast = Fast(module) if is_fast else None
            batch = Packed(fast, rows, Work()) if fast else Batch(module, rows, None, Work())
            difference = _relative_difference(torch.stack(plain), _stepped(batch, ids))
        # an architecture may raise any exception for a cache that it does not support
        except Exception as error:
            if isinstance(error, UserError) or should_reduce_batch_size(error):
                raise
            reason = first_line(error)[:200]
        else:
            if difference < (batch.apart if model.dtype == "float32" else APART_IN_16_BITS):
                return
            reason = f"its logits differ by {difference:.0%} from those of a plain forward pass"
    raise UserError(
        f"model {model.name}: its architecture ({module.config.model_type}) cannot generate token "
        f"by token in a batch here: {reason}; serve the model and name the endpoint"
    )


def _stepped(batch: Batch | Packed, ids: Sequence[int]) -> torch.Tensor:
    """Return the log-probabilities (3, len(ids), vocabulary) that a batch of three rows gives
    before each of the tokens ``ids``. The rows change slots before each step, so that ``keep`` is
    tested, too.
    """
    stepped = [batch.logits]
    order = [0, 1, 2]
    for token in ids[:-1]:
        batch.keep([2, 0, 1])
        order = [order[i] for i in (2, 0, 1)]
        batch.step(torch.full_like(batch.logits[:, 0], token, dtype=torch.long))
        stepped.append(torch.empty_like(batch.logits))
        stepped[-1][order] = batch.logits
    return torch.stack(stepped, 1).log_softmax(-1)


def _relative_difference(expected: torch.Tensor, found: torch.Tensor) -> float:
    """Return the largest relative difference between the ``expected`` and the ``found`` next-token
    log-probabilities, over all rows and steps. The relative difference in one step is the norm of
    the difference divided by the norm of the centred expected log-probabilities.
    """
    # if both had -inf for a token, the difference would be NaN
    expected, found = (each.clamp(min=-100) for each in (expected, found))
    scale = (expected - expected.mean(-1, keepdim=True)).norm(dim=-1) + 1e-9
    return ((found - expected).norm(dim=-1) / scale).max().item()
