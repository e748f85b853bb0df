"""How a local model's answers are written: a row of a batch, and the choice of its next token.

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
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from lookuplab.errors import UserError
from lookuplab.models.batch import Batch, decoder_start
from lookuplab.models.completions import Batches, Completion, Decoding, Prompt, Work
from lookuplab.models.constraint import Constraint, Lost
from lookuplab.models.fast import Fast, Packed
from lookuplab.models.names import table_name
from lookuplab.models.store import NOT_NUMBERS
from lookuplab.models.tokens import TAIL, decoded, speller
from lookuplab.work.progress import say

if TYPE_CHECKING:
    from lookuplab.models.local import LocalModel

# Rows that ask a tool are so many batches, by the type of the device, which take turns: a GPU's
# forward pass is shorter than Jedi's answer, so it computes one while the others wait for theirs.
TURNS = {"cuda": 4}
CPU_TOKENS = 8192  # rows x longest prompt; larger batches pad more and overflow the caches
KEEP_SECONDS = 1.0  # how long at most an answer that has ended waits to be kept
# a relative difference of logits that rounding explains in 16 bits; an ignored cache makes it 1
APART_IN_16_BITS = 0.5


def decode_rows(
    model: "LocalModel", rows: list["DecodingRow"], decoding: Decoding, end_of_text: frozenset[int]
) -> Batches:
    """Finish the model's rows, longest prompts first, in batches, and yield those that have ended
    about once a second, so that a kill costs only what is in progress.

    A batch has at most ``batch_size`` rows, on a CPU also ``CPU_TOKENS`` of prompts, padding
    included. If memory runs out, what is left of the batch is halved and repeated, and later ones
    are no larger; UserError if a single row does not fit. The order is fixed, so an unbroken run
    forms the same batches each time on a CPU. One that goes on after a kill forms others, which may
    change the last digits of log-probabilities. A row that its tool has lost (``constraint.Lost``)
    is said and left out.

    No row enters a running batch. Its cache is one tensor in each layer, whose rows end in the same
    column: to let a row in is to copy and pad every layer, and its answer's last digits would
    depend on when others ended. A paged cache does that well, and vLLM has one (``vllm:NAME``).
    """
    at = 0
    on_cpu = bool(rows) and model.module.device.type == "cpu"
    # samples of a prompt read it once
    budget = CPU_TOKENS * min(2, decoding.n) if on_cpu else math.inf
    while at < len(rows):
        each = len(rows[at].ids)
        batch = rows[at : at + max(1, int(min(model.batch_size, budget // each)))]
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
            if not should_reduce_batch_size(error):
                raise
            if size == 1:
                raise UserError(
                    f"{model.name}: not enough memory for a single prompt; use shorter prompts, "
                    "fewer new tokens, a smaller dtype or a larger device"
                ) from error
            budget = size // 2 * each
            rows = rows[:at] + batch + rows[at + size :]
        else:
            at += size
            yield [*_ended(model.work, batch)]
            continue
        # outside the except block, so that the failed batch's tensors are free
        clear_device_cache(garbage_collection=True)


def _ended(work: Work, rows: list["DecodingRow"]) -> Iterator[Completion]:
    """Yield the completions of rows that have ended, but for those that their tool has lost."""
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
    """Append tokens until every row is finished. Finished rows leave the batch a few at a time.

    Yields the number of unfinished rows after each forward pass, which a GPU has only begun then.
    """
    module = model.module  # its check sets how a batch begins
    batch = model.begin(module, [row.ids for row in rows], model.context, model.work)
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
                if not math.isfinite(logprob):  # also found where it is stored, but much later
                    raise UserError(f"model {model.name}, prompt {row.prompt.id!r}: {NOT_NUMBERS}")
                row.push(int(token), logprob, min(margin, gate), end_of_text)
        unfinished = [i for i, row in enumerate(rows) if not row.finish_reason]
        if not unfinished:
            break
        over = len(rows) - len(unfinished)
        if over and over >= batch.spare * len(rows):
            # the last take the places of the finished, so that a batch can leave others in theirs
            kept, last = {*unfinished}, unfinished.copy()
            unfinished = [i if i in kept else last.pop() for i in range(len(unfinished))]
            batch.keep(unfinished)
            rows = [rows[i] for i in unfinished]
            tokens = tokens[unfinished]
        batch.step(tokens)
        yield len(unfinished)


@dataclass
class DecodingRow:
    """One answer: grows by ``push`` until ``finish_reason`` is set.

    ``before`` are the prompt tokens that it continues, none for an encoder-decoder; ``limit`` is
    the number of tokens that it may add. ``given`` are the tokens of an answer that is only scored.
    """

    prompt: Prompt
    sample: int
    ids: list[int]
    dropped: int
    before: list[int]
    limit: int
    make_constraint: Callable[[], Constraint | None]
    given: list[int] = field(default_factory=list)

    def begin(self, tokenizer: PreTrainedTokenizerBase, decoding: Decoding) -> None:
        """Reset the answer, also to start over after running out of memory."""
        self.tokenizer = tokenizer
        self.tail = self.before[-TAIL:]
        self.over = decoding.stopper()
        self.spell = speller(tokenizer, self.tail)
        self.constraint = self.make_constraint()
        self.lost: Lost | None = None
        self.margin = math.inf
        self.finish_reason = ""
        self.tokens: list[int] = []
        self.logprobs: list[float] = []
        self.pieces: list[str] = []
        if decoding.temperature > 0:  # in [0, 1): one for each token and one more
            random = np.random.default_rng(row_seed(self, decoding))
            self.chances = random.random(decoding.max_new_tokens + 1)

    def push(self, token: int, logprob: float, margin: float, end_of_text: frozenset[int]) -> None:
        """Append one token and check whether it was the last. ``margin``: how near the choice was
        to a different one.

        Special tokens spell nothing, and neither does an incomplete character.
        """
        piece = self.spell(token) or ""
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
        """Return the finished row. Bytes that never became a character are added to the
        last token.
        """
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
            self.constraint and self.constraint.log(),
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
    token = best.indices[:, 0]
    margin = (best.values[:, 0] - best.values[:, 1]).double()
    if chance is not None:
        alone = margin == torch.inf
        near = torch.full_like(margin, torch.inf)
        chosen = torch.softmax(scores.double() / decoding.temperature, dim=-1)
        if decoding.top_p < 1:
            chosen, near = nucleus(chosen, decoding.top_p)
        total = chosen.cumsum(-1)
        point = chance.double() * total[:, -1]
        at = torch.searchsorted(total, point[:, None], right=True).clamp(max=total.shape[-1] - 1)
        upper = total.gather(-1, at)[:, 0]
        lower = upper - chosen.gather(-1, at)[:, 0]
        token = at[:, 0]
        margin = torch.minimum(torch.minimum(upper - point, point - lower), near)
        margin = margin.masked_fill(alone, torch.inf)
    return token, logits.gather(-1, token[:, None])[:, 0] - logits.logsumexp(-1), margin


def nucleus(chances: torch.Tensor, top_p: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the ``chances`` (rows, vocabulary) of the likeliest tokens, and the margin of the cut.

    Chances are set to zero after those that together reach ``top_p`` (the one that crosses it
    stays). The margin (rows,) is the distance of ``top_p`` to the nearest sum at which it could
    cut. Of equally likely tokens at the cut, those first in the vocabulary stay.
    """
    ranked, order = chances.sort(dim=-1, descending=True, stable=True)
    before = ranked.cumsum(-1) - ranked
    kept = torch.zeros_like(chances).scatter(-1, order, ranked.masked_fill(before >= top_p, 0))
    return kept, (before - top_p).abs().amin(-1)


def row_seed(row: DecodingRow, decoding: Decoding) -> int:
    """128 bits, which depend only on seed, prompt id and sample."""
    name = f"{decoding.seed}\x1f{row.prompt.id}\x1f{row.sample}"
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "big")


@torch.inference_mode()
def distributions(module: PreTrainedModel, prompt_ids: list[int], ids: list[int]) -> torch.Tensor:
    """Return the model's probabilities (len(ids), vocabulary) before each token of
    a continuation.
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
    """Choose how the model's batches begin: the first way that gives, token by token, what plain
    forward passes of each of three prompts alone give. Raises UserError where none does.

    Some architectures keep what they have read in another way than by ``past_key_values``, and
    ignore it; some read the padding beside a shorter prompt. Both would give wrong answers without
    a word.
    """
    texts = "x =", "def add(a, b):\n    return a + b\n", "def add(a, c):\n"
    rows = [model.prompt_ids(text) for text in texts]
    ids = (3 * rows[1])[:3]
    # whoever names an attention gets it
    kinds = (Batch,) if "attn_implementation" in model.given else (Fast, Batch)
    plain: list[torch.Tensor] = []
    for kind in kinds:
        try:
            plain = plain or [distributions(module, row, ids).log() for row in rows]
            model.begin = Fast(module) if kind is Fast else Batch
            batch = model.begin(module, rows, None, Work())
            apart = _apart(torch.stack(plain), _stepped(batch, ids))
        # whatever an architecture does with a cache that it does not know
        except Exception as error:
            if isinstance(error, UserError) or should_reduce_batch_size(error):
                raise
            said = (str(error) or type(error).__name__).splitlines()[0][:200]
        else:
            if apart < (batch.apart if model.dtype == "float32" else APART_IN_16_BITS):
                return
            said = f"its logits differ by {apart:.0%} from those of a plain forward pass"
    raise UserError(
        f"model {model.name}: its architecture ({module.config.model_type}) cannot write token by "
        f"token in a batch here: {said}; serve it and name the endpoint"
    )


def _stepped(batch: Batch | Packed, ids: Sequence[int]) -> torch.Tensor:
    """Return log-probabilities (3, len(ids), vocabulary) of three rows before each of the ``ids``,
    while they change places.
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


def _apart(expected: torch.Tensor, found: torch.Tensor) -> float:
    """Return the largest relative difference of logits."""
    expected, found = (each.clamp(min=-100) for each in (expected, found))
    scale = (expected - expected.mean(-1, keepdim=True)).norm(dim=-1) + 1e-9
    return ((found - expected).norm(dim=-1) / scale).max().item()
