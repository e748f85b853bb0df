"""Models that run here: any causal or encoder-decoder checkpoint of Hugging Face Transformers.

From top to bottom: the model that answers, a row of its batch and how the next token is chosen, and what a
batch carries from one forward pass to the next.

The loop is gpt-fast's: prefill once, then one token a step for all rows. What it adds to ``generate``
of Transformers: batches of *different* prompts, stop rules that end a row while it is decoded,
log-probabilities of every token under the unscaled distribution, and answers that depend neither on
the batch nor on the order of the prompts (in float32, up to the last bits; in 16 bits the head alone is
computed in float32, and a near tie may fall either way: ``Completion.margin`` tells), and constraints
that wait for another program, in beam search, too. Left out on purpose: penalties, assisted decoding; a
checkpoint's own sampling defaults are ignored, ``Decoding`` alone decides.
"""

import copy
import gc
import hashlib
import inspect
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size
from huggingface_hub import try_to_load_from_cache
from peft import PeftModel
from tokenizers.decoders import DecodeStream
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    GenerationConfig,
)
from transformers.cache_utils import DynamicCache, DynamicLayer, EncoderDecoderCache

from lookuplab.errors import UserError
from lookuplab.models.complete import Completion, Decoding, Prompt
from lookuplab.models.constraint import Constraint, NameConstraint, NameTries, Trie
from lookuplab.models.load import base_of, content_hash, is_adapter
from lookuplab.models.tokens import TAIL, decoded

DTYPES = ("float32", "bfloat16", "float16")
ROWS = 128  # of a batch, at most
CPU_TOKENS = 8192  # rows x longest prompt: more only pads and leaves the processor's caches
GPU_SHARE = 0.8  # of the free memory, for keys and values
# drop finished rows when they are one in so many of the batch: each time the cache is copied
COMPACT = 8
LIKELY = (16, 256)  # tokens that a draw with top_p looks at first, and then
BLOCK = 64  # positions of room that the cache reserves at a time


@dataclass
class Work:
    """What a local model has done since it was loaded, repeated work (after a lack of memory) included.

    ``passes`` are forward passes of a whole batch (an encoder's belongs to the first of its decoder),
    ``prompt_tokens`` and ``new_tokens`` what went in and came out: samples of one prompt in one batch
    read it once. Padding is not in it.
    """

    passes: int = 0
    prompt_tokens: int = 0
    new_tokens: int = 0


class LocalModel:
    """A checkpoint, or an adapter on its base, that answers prompts (see ``models.Model``): a folder, or a name on the
    hub. Read as far as it is asked for.

    ``chat`` asks every prompt through the chat template. ``dtype`` is bfloat16 on GPUs and float32 on a CPU
    unless it is stated, whatever the files are in. On GPUs ``device_map`` defaults to "auto": all of them,
    through accelerate; a dictionary, part of the model -> device, puts each where it says. ``batch_size``
    bounds the rows of a batch. ``context`` is the longest prompt plus completion in tokens, None without a
    limit; the checkpoint says it, and the option overrides it. ``causal`` says that answers continue the
    prompt (else they begin a text of their own). ``work`` counts what the model does. UserError for whatever
    is missing, cannot be read, or does not fit on the GPUs.
    """

    def __init__(
        self,
        place: str,
        revision: str | None = None,
        *,
        name: str | None = None,
        chat: bool = False,
        dtype: str | None = None,
        device_map: str | dict[str, str | int] | None = None,
        batch_size: int = ROWS,
        context: int | None = None,
    ) -> None:
        folder, gpu = Path(place).expanduser(), torch.cuda.is_available()
        self.name = name or (folder.resolve().name if folder.is_dir() else place)
        self.adapter = folder if is_adapter(folder) else None
        self.source = (str(folder) if folder.is_dir() else place), revision
        if self.adapter:
            self.source = base_of(folder)
        self.dtype = dtype or ("bfloat16" if gpu else "float32")
        if self.dtype not in DTYPES:
            raise UserError(
                f"model {self.name}: dtype is {dtype!r}; it must be {', '.join(DTYPES)}"
            )
        self.device_map = device_map or ("auto" if gpu else None)
        self.config = self._read(AutoConfig.from_pretrained)
        self.causal = not self.config.is_encoder_decoder
        # encoder-decoders here have relative positions and no limit
        text = self.config.get_text_config()
        limit = getattr(text, "max_position_embeddings", None) if self.causal else None
        self.chat, self.batch_size, self.context = chat, max(1, batch_size), context or limit
        self.work = Work()

    @cached_property
    def identity(self) -> dict[str, str]:
        """What changes the answers: content hash or name and commit, dtype, adapter, context, chat template.

        Needs no weights.
        """
        # as keys have had it since there was a third way
        chat = "always" if self.chat else "by prompt"
        found = {"dtype": self.dtype, "context": str(self.context), "chat": chat}
        place, revision = self.source
        if Path(place).is_dir():
            found["content"] = content_hash(Path(place))
        else:  # what a branch or tag stands for, told by the cache's folder: configurations need not say it
            file = try_to_load_from_cache(place, "config.json", revision=revision)
            found["checkpoint"] = (
                f"{place}@{Path(file).parent.name if file else revision or 'main'}"
            )
        if self.adapter:  # in 16 bits merging would round it away
            found["adapter"] = content_hash(self.adapter) + " merged" * (self.dtype == "float32")
        return found

    @cached_property
    def tokenizer(self):
        """The Transformers tokenizer, the adapter's own if it brings one."""
        own = self.adapter and (self.adapter / "tokenizer_config.json").is_file()
        tokenizer = self._read(AutoTokenizer.from_pretrained, str(self.adapter) if own else "")
        # made up where there are no files
        if not tokenizer("client", add_special_tokens=False)["input_ids"]:
            raise UserError(
                f"checkpoint {self.name} has no usable tokenizer; save one beside the weights"
            )
        return tokenizer

    @cached_property
    def module(self):
        """The Transformers model, ready to decode. One that nobody holds any more is freed before."""
        gc.collect()
        torch.cuda.empty_cache()
        kind = AutoModelForCausalLM if self.causal else AutoModelForSeq2SeqLM
        module, report = self._read(
            kind.from_pretrained,
            dtype=getattr(torch, self.dtype),
            device_map=self.device_map,
            output_loading_info=True,
        )
        if report["missing_keys"]:
            raise UserError(
                f"checkpoint {self.name} lacks weights ({min(report['missing_keys'])} ...); is it complete, "
                "and of the architecture that its config.json names?"
            )
        devices = set(map(str, getattr(module, "hf_device_map", {}).values()))
        chosen = self.device_map == "cpu" or isinstance(self.device_map, dict)
        if torch.cuda.is_available() and not chosen and devices & {"cpu", "disk"}:
            raise UserError(
                f"model {self.name} does not fit on the GPUs in {self.dtype}: part of it would run on the "
                "CPU; take more GPUs or another dtype (NAME?dtype=bfloat16)"
            )
        if self.adapter:
            if len(self.tokenizer) > module.get_input_embeddings().num_embeddings:
                module.resize_token_embeddings(len(self.tokenizer), mean_resizing=False)
            with warnings.catch_warnings():  # PEFT 0.21 still asks for an attribute by its old name
                warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
                adapted = self._read(partial(PeftModel.from_pretrained, module), str(self.adapter))
            if self.dtype == "float32":
                adapted.merge_and_unload()
        head = module.get_output_embeddings()
        if type(head) is torch.nn.Linear and head.weight.dtype != torch.float32:
            # in bfloat16 logits between 16 and 32 are .125 apart; a copy, for embeddings may share the weight
            head.weight = torch.nn.Parameter(head.weight.float(), requires_grad=False)
            head.register_forward_pre_hook(lambda _, inputs: (inputs[0].float(),))
        return module.eval()

    def _read(self, load: Callable, place: str = "", **options: Any) -> Any:
        """``load`` a part of the model; UserError with the first line of whatever keeps it from loading."""
        name, revision = (place, None) if place else self.source
        try:
            return load(name, revision=revision, **options)
        # Transformers, PEFT, the hub client and safetensors raise a dozen kinds
        except Exception as error:
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise UserError(
                f"cannot load model {self.name}: {said} (it must be a complete folder that save_pretrained "
                "wrote, or the name of one on the hub that is cached or can be reached; private ones: hf auth login)"
            ) from error

    @cached_property
    def end_of_text(self) -> frozenset[int]:
        """Every token that ends an answer, from the generation configuration and the tokenizer."""
        try:
            config = GenerationConfig.from_pretrained(self.source[0], revision=self.source[1])
        except OSError:  # there is none
            config = self.config
        ends = config.eos_token_id
        configured = ends if isinstance(ends, list) else [ends]
        return frozenset({*configured, self.tokenizer.eos_token_id} - {None})

    @cached_property
    def names(self) -> NameTries:
        """How its tokens spell names."""
        return NameTries(self.tokenizer, self.end_of_text)

    def prompt_ids(self, text: str, special: bool = True) -> list[int]:
        """Token ids of a prompt, with the tokenizer's own special tokens if ``special`` (a chat template has its own).

        A causal prompt must stay open: an end-of-text token that the tokenizer adds is taken off. An empty
        prompt becomes one begin-of-text token, because a model cannot begin from nothing.
        """
        ids = self.tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"]
        if self.causal and len(ids) > 1 and ids[-1] == self.tokenizer.eos_token_id:
            return ids[:-1]
        if ids:
            return ids
        for start in (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id):
            if start is not None:
                return [start]
        raise UserError("an empty prompt needs a tokenizer with a begin- or end-of-text token")

    def generate(
        self,
        requests: Sequence[tuple[Prompt, int]],
        decoding: Decoding,
        constrain: Callable[[Prompt, list[int]], Constraint | None] | None = None,
    ) -> Iterator[list[Completion]]:
        """Answer each (prompt, sample index), longest prompts first, one list a batch.

        ``constrain`` makes a row's constraint from its prompt and the tokens that the answer continues
        ([] if it begins a text of its own); without it a prompt's ``choices`` do. UserError for a prompt
        that is too long, choices for a chat model, and when not even one row fits into memory.
        """

        asked = {prompt for prompt, _ in requests}
        encoded, rows = {prompt: self._encode(prompt) for prompt in asked}, []
        for prompt, sample in requests:
            ids = encoded[prompt]
            kept = self._fit(prompt.id, ids, decoding)
            before, limit = (kept if self.causal else []), decoding.max_new_tokens
            limit = min(limit, self.context - len(before)) if self.context else limit
            make = partial(constrain or self._named, prompt, before)
            rows.append(Row(prompt, sample, kept, len(ids) - len(kept), before, limit, make))
        yield from self._written(rows, decoding)

    def _named(self, prompt: Prompt, before: list[int]) -> Constraint | None:
        if prompt.choices and self.chat:
            raise UserError(
                f"prompt {prompt.id!r}: a chat model cannot be held to given names (choices)"
            )
        return self.names.constraint(before, prompt.choices) if prompt.choices else None

    def score(self, pairs: Sequence[tuple[Prompt, str]]) -> Iterator[list[Completion]]:
        """Log-probabilities of a given continuation of each prompt, one list a batch, any order.

        The continuation's tokens are those of both texts together, where that leaves the prompt's tokens
        whole; they are written as an answer is, under a constraint that leaves nothing else. ``text`` is
        the continuation, ``finish_reason`` ``"scored"``. UserError where both together are too long.
        """
        rows, texts = [], {}
        for prompt, text in pairs:
            ids = self._encode(prompt)
            added = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
            if self.causal:
                whole = self._encode(prompt, text)
                added = whole[len(ids) :] if whole[: len(ids)] == ids else added
                self._fit(prompt.id, ids + added[1:], Decoding())
            if added:
                before, texts[prompt.id] = ids if self.causal else [], text
                dictate = partial(NameConstraint, self.names, Trie.of([added]))
                rows.append(Row(prompt, 0, ids, 0, before, len(added), dictate))
            else:
                yield [Completion(prompt.id, 0, text, (), (), (), "scored", len(ids))]
        for batch in self._written(rows, Decoding(), frozenset()):
            yield [replace(one, text=texts[one.id], finish_reason="scored") for one in batch]

    def _encode(self, prompt: Prompt, answer: str = "") -> list[int]:
        """What the model reads: the prompt, or its place in the chat template, and the beginning of an answer.

        A template that refuses the system role (Gemma's does) gets the system text at the head of the
        user turn.
        """
        if not self.chat:
            return self.prompt_ids(prompt.text + answer)
        if not self.tokenizer.chat_template:
            raise UserError(f"{self.name} has no chat template: use it as a base model")
        from jinja2.exceptions import TemplateError  # Transformers renders with jinja2

        def read(*turns: tuple[str, str]) -> list[int]:
            said = [{"role": role, "content": text} for role, text in turns]
            text = self.tokenizer.apply_chat_template(
                said, tokenize=False, add_generation_prompt=True
            )
            return self.prompt_ids(text + answer, special=False)

        system = [("system", prompt.system)] if prompt.system else []
        try:
            return read(*system, ("user", prompt.text))
        except TemplateError:
            return read(("user", f"{prompt.system}\n{prompt.text}"))

    def _fit(self, name: str, ids: list[int], decoding: Decoding) -> list[int]:
        """The prompt within the context window.

        Without a policy a prompt must leave room for one new token, else UserError. With truncation on the left it is
        cut so that all ``max_new_tokens`` find room; a begin-of-text token stays.
        """
        cut, context = decoding.truncation == "left", self.context
        if context is None or len(ids) + (decoding.max_new_tokens if cut else 1) <= context:
            return ids
        if not cut:
            raise UserError(
                f"prompt {name!r} has {len(ids)} tokens and the model's context is {context}; shorten it "
                "or cut its beginning (truncation 'left')"
            )
        first = ids[:1] if ids[0] == self.tokenizer.bos_token_id else []
        room = max(1, context - decoding.max_new_tokens) - len(first)
        return first + ids[len(ids) - room :]

    def _written(
        self, rows: list["Row"], decoding: Decoding, end_of_text: frozenset[int] | None = None
    ) -> Iterator[list[Completion]]:
        """Finish the rows, longest prompts first, in batches.

        A batch has at most ``batch_size`` rows and as many tokens, padding included, as the memory allows:
        on GPUs as many as fit if every attention head stored its own keys and values; what models whose heads
        share them save is left for activations. Out of memory: the budget is halved and the batch tried again;
        UserError when a single row does not fit. With a fixed order and whole batches as results, a run
        that was interrupted goes on with the same batches.
        """
        rows.sort(key=lambda row: (-len(row.ids), row.prompt.id, row.sample))
        end_of_text = self.end_of_text if end_of_text is None else end_of_text
        at, budget, new = 0, CPU_TOKENS, 0
        if rows and self.module.device.type == "cuda":
            free = sum(torch.cuda.mem_get_info(i)[0] for i in range(torch.cuda.device_count()))
            text, new = self.config.get_text_config(decoder=True), decoding.max_new_tokens
            each = 2 * text.num_hidden_layers * text.hidden_size * self.module.dtype.itemsize
            budget = int(GPU_SHARE * free / each)
        while at < len(rows):
            longest = decoding.beams * (len(rows[at].ids) + new)
            size = min(self.batch_size // decoding.beams, budget // longest)
            batch = rows[at : at + max(1, size)]
            try:
                for row in batch:
                    row.begin(self.tokenizer, decoding)
                write = self._decode if decoding.beams == 1 else self._search
                write(batch, decoding, end_of_text)
            except RuntimeError as error:
                if not should_reduce_batch_size(error):
                    raise
                if len(batch) == 1:
                    raise UserError(
                        f"{self.name}: not enough memory for a single prompt; use shorter prompts, fewer "
                        "new tokens, a smaller dtype or a larger device"
                    ) from error
                budget = len(batch) // 2 * longest
            else:
                at += len(batch)
                self.work.new_tokens += sum(len(row.tokens) for row in batch)
                yield [row.completion() for row in batch]
                continue
            # outside of the except block, so that the failed batch's tensors are free
            clear_device_cache(garbage_collection=True)

    @torch.inference_mode()
    def _decode(self, rows: list["Row"], decoding: Decoding, end_of_text: frozenset[int]) -> None:
        """Append tokens until every row is finished."""
        batch, chance = Batch(self.module, rows, self.context, self.work), None
        while True:
            scores, gates = batch.logits, [math.inf] * len(rows)
            for i, row in enumerate(rows):
                if row.constraint and not row.finish_reason:
                    if found := row.constraint.restrict(batch.logits[i]):
                        scores = scores.clone() if scores is batch.logits else scores
                        scores[i], gates[i] = found
            if decoding.temperature > 0:  # of a row that is finished: any
                drawn = [row.chances[len(row.tokens)] for row in rows]
                chance = torch.tensor(drawn, dtype=torch.float64, device=scores.device)
            tokens, logprobs, margins = choose(batch.logits, scores, chance, decoding)
            told = torch.stack([tokens, logprobs.double(), margins], 1).tolist()
            for row, (token, logprob, margin), gate in zip(rows, told, gates, strict=True):
                if not row.finish_reason:
                    row.push(int(token), logprob, min(margin, gate), end_of_text)
            left = [i for i, row in enumerate(rows) if not row.finish_reason]
            if not left:
                break
            if (len(rows) - len(left)) * COMPACT >= len(rows):
                batch.keep(left)
                rows, tokens = [rows[i] for i in left], tokens[left]
            batch.step(tokens)

    @torch.inference_mode()
    def _search(self, rows: list["Row"], decoding: Decoding, end_of_text: frozenset[int]) -> None:
        """Finish every row by beam search."""
        batch = Batch(self.module, rows, self.context, self.work)
        searches = [Search(row, decoding.beams, end_of_text) for row in rows]
        while searches:
            first, parents = 0, []
            for search in searches:
                logits = batch.logits[first:][: len(search.running)]
                parents += [first + parent for parent in search.step(logits)]
                first += len(logits)
            searches = [search for search in searches if search.running]
            if searches:
                batch.keep(parents)
                last = [beam.tokens[-1] for search in searches for beam in search.running]
                batch.step(torch.tensor(last, device=batch.mask.device))


@dataclass
class Row:
    """One answer: grows by ``push`` until ``finish_reason`` is set.

    ``before`` are the tokens of the prompt that it continues, none for an encoder-decoder; ``limit`` is how
    many it may add.
    """

    prompt: Prompt
    sample: int
    ids: list[int]
    dropped: int
    before: list[int]
    limit: int
    make_constraint: Callable[[], Constraint | None]

    def begin(self, tokenizer, decoding: Decoding) -> None:
        """Empty the answer, also to start over when the memory did not suffice."""
        self.tokenizer, self.tail, self.over = tokenizer, self.before[-TAIL:], decoding.stopper()
        self.spelling = DecodeStream(ids=list(self.tail), skip_special_tokens=True)
        self.constraint, self.margin, self.finish_reason = self.make_constraint(), math.inf, ""
        self.tokens, self.logprobs, self.pieces = [], [], []
        if decoding.temperature > 0:
            self.chances = uniforms(self, decoding)

    def push(self, token: int, logprob: float, margin: float, end_of_text: frozenset[int]) -> None:
        """Append one token and see whether it was the last. ``margin``: how near the choice was to another one.

        What is spelled costs the same for each token; half a character is held back until the token that
        completes it, and special tokens spell nothing.
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
        """The finished row. Bytes that never became a character are spelled by the last token."""
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


@dataclass
class Beam:
    """A beginning of an answer; ``score`` is the sum of its log-probabilities."""

    constraint: Constraint | None
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    score: float = 0.0

    def mean(self) -> float:
        return self.score / len(self.tokens)

    def grown(self, token: int, logprob: float, score: float) -> "Beam":
        """With one more token; the constraint goes on apart from this beam's."""
        constraint = copy.copy(self.constraint)
        if constraint:
            constraint.push(token, logprob)
        return Beam(constraint, (*self.tokens, token), (*self.logprobs, logprob), score)


class Search:
    """Beam search for one row, as Transformers has it with its defaults.

    The ``width`` likeliest beginnings go on as ``running``. Those that end among the likeliest are ``finished``,
    and the one with the best mean log-probability is the answer, as soon as there are ``width`` and the best
    beginning has no better mean than the worst of them.
    """

    def __init__(self, row: Row, width: int, end_of_text: frozenset[int]) -> None:
        self.row, self.width, self.end_of_text = row, width, end_of_text
        self.running, self.finished = [Beam(row.constraint)], []

    def step(self, logits: torch.Tensor) -> list[int]:
        """One token more, by the logits (running, vocabulary): which of the beginnings each new one continues. None at the
        end, when the row has its answer. What a constraint forbids is no candidate; scores are those without it.
        """
        logprobs = logits.log_softmax(-1)
        scores = logprobs + logprobs.new_tensor([[beam.score] for beam in self.running])
        for beam, own, each in zip(self.running, scores, logits, strict=True):
            if beam.constraint and (found := beam.constraint.restrict(each)):
                own.masked_fill_(found[0] == -torch.inf, -torch.inf)
        # so many that ``width`` of them do not end
        best = scores.flatten().topk(min(self.width * (1 + len(self.end_of_text)), scores.numel()))
        before, self.running, parents = self.running, [], []
        for rank, (score, place) in enumerate(zip(*(part.tolist() for part in best), strict=True)):
            parent, token = divmod(place, logits.shape[1])
            ends = token in self.end_of_text or len(before[parent].tokens) + 1 == self.row.limit
            if score > -math.inf and (rank if ends else len(self.running)) < self.width:
                logprob = logprobs[parent, token].item()
                (self.finished if ends else self.running).append(
                    before[parent].grown(token, logprob, score)
                )
                parents += [] if ends else [parent]
        self.finished = sorted(self.finished, key=Beam.mean, reverse=True)[: self.width]
        full = len(self.finished) == self.width
        if full and self.running and self.running[0].mean() <= self.finished[-1].mean():
            self.running = []
        if not self.running:
            self._answer(self.finished[0])
        return parents if self.running else []

    def _answer(self, beam: Beam) -> None:
        """Push the beam's tokens to the row, whose constraint has seen none of them."""
        self.row.constraint = None
        for token, logprob in zip(beam.tokens, beam.logprobs, strict=True):
            self.row.push(token, logprob, math.inf, self.end_of_text)
        self.row.constraint = beam.constraint


def choose(
    logits: torch.Tensor, scores: torch.Tensor, chance: torch.Tensor | None, decoding: Decoding
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Next token (rows,), its natural log-probability (rows,) at temperature 1, and how near the choice was to another
    one (rows,). ``chance`` (rows,) is in [0, 1).

    It is chosen by ``scores`` (rows, vocabulary), the ``logits`` under constraints; the log-probability
    is always that of ``logits``. Sampling inverts the cumulative distribution in the order of the
    vocabulary, so that last-bit noise in the logits moves a boundary between two tokens and never
    reorders them. How near: the gap of the two largest logits in nats or, of a draw, of ``chance`` to the
    nearer end of the token's interval, or of ``top_p`` to the nearest sum at which it could cut.
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
    """The likeliest of ``chances`` (rows, vocabulary) in the order of the vocabulary, zero behind those that together
    come to ``top_p`` (the one that crosses it stays); which tokens they are; and how near a sum at which it could cut
    was to ``top_p`` (rows,).

    Of equally likely tokens at the cut those that come first in the vocabulary stay. To sort the whole vocabulary is
    slow, so that is done only where the ``LIKELY`` most likely tokens do not tell.
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


def uniforms(row: Row, decoding: Decoding) -> np.ndarray:
    """The row's own random numbers in [0, 1), one a token: they depend on seed, prompt id and sample alone."""
    name = f"{decoding.seed}\x1f{row.prompt.id}\x1f{row.sample}"
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "big")
    return np.random.default_rng(seed).random(decoding.max_new_tokens)


class Batch:
    """What rows carry from one forward pass to the next: key/value cache, mask, positions and ``logits``
    (rows, vocabulary) of the next token. Equal prompts are read once.

    Rows of a causal model always end in the last column, so that the distance of two columns is the
    distance of two tokens: masks by sliding window and relative positions are right without knowing of
    padding. An encoder-decoder's prompts begin in the first column, and its answers all have one length.
    """

    def __init__(self, module, rows: list[Row], context: int | None, work: Work) -> None:
        self.module, self.context, self.work = module, context or math.inf, work
        self.known = inspect.signature(module.forward).parameters
        prompts = [tuple(row.ids) for row in rows]
        places = {ids: i for i, ids in enumerate(dict.fromkeys(prompts))}
        copies = [places[ids] for ids in prompts]
        work.prompt_tokens += sum(map(len, places))
        side = "right" if module.config.is_encoder_decoder else "left"
        ids = pad_sequence(list(map(torch.tensor, places)), True, -1, side).to(module.device)
        self.mask, ids = (ids >= 0).long(), ids.clamp(min=0)
        self.lengths, self.encoded, self.cache = self.mask.sum(1), None, roomy_cache(module.config)
        if side == "left":
            logits = self._forward(ids, (self.mask.cumsum(1) - 1).clamp(min=0))
            self.keep(copies)
            self.logits = logits[copies]
        else:
            self.cache = EncoderDecoderCache(self.cache, DynamicCache())
            self.encoded = module.get_encoder()(input_ids=ids, attention_mask=self.mask)
            self.keep(copies)
            self.logits = self._forward(torch.full_like(self.mask[:, :1], decoder_start(module)))

    def step(self, tokens: torch.Tensor) -> None:
        """Read one more token (rows,) in each row."""
        if self.encoded is None:
            self.mask = functional.pad(self.mask, (0, 1), value=1)
        # rows that are finished and not dropped yet run on
        self.lengths = (self.lengths + 1).clamp(max=self.context)
        self.logits = self._forward(tokens[:, None], self.lengths[:, None] - 1)

    def keep(self, rows: list[int]) -> None:
        """Only these rows go on."""
        index = torch.tensor(rows, device=self.mask.device)
        self.mask, self.lengths = self.mask[index], self.lengths[index]
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

    Transformers' own layer concatenates: each step copies all that it holds, which on a CPU with many rows
    costs as much as the model's arithmetic. Layers with a sliding window are kept whole too: the model's
    mask applies the window.
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
        for room, new in zip(rooms, added, strict=True):
            room[:, :, used:end] = new
        self._rooms, (self.keys, self.values) = rooms, (room[:, :, :end] for room in rooms)
        return self.keys, self.values

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Only keep these rows, and the room ahead of them."""
        used = self.get_seq_length()
        self._rooms = [room.index_select(0, indices.to(room.device)) for room in self._rooms]
        self.keys, self.values = (room[:, :, :used] for room in self._rooms)


def roomy_cache(config) -> DynamicCache:
    """An empty cache for a decoder. Models with recurrent layers keep the kind that their configuration asks for."""
    kinds = getattr(config.get_text_config(decoder=True), "layer_types", None) or ()
    if set(kinds) - {"full_attention", "sliding_attention"}:
        return DynamicCache(config=config)
    cache = DynamicCache()
    cache.layer_class_to_replicate = RoomyLayer
    return cache


@torch.inference_mode()
def distributions(module, prompt_ids: list[int], ids: list[int]) -> torch.Tensor:
    """Probabilities (len(ids), vocabulary) that the model gives before each token of a continuation."""
    read = torch.tensor([prompt_ids], device=module.device)
    if module.config.is_encoder_decoder:
        begun = torch.tensor([[decoder_start(module), *ids[:-1]]], device=module.device)
        logits = module(input_ids=read, decoder_input_ids=begun).logits[0]
    else:
        logits = module(torch.cat([read, read.new_tensor([ids])], 1)).logits[
            0, len(prompt_ids) - 1 : -1
        ]
    return logits.float().softmax(-1)
