"""Models that run here: any causal or encoder-decoder checkpoint of Hugging Face Transformers.

From top to bottom: what is on the disk (``Checkpoint``), the model that answers (``LocalModel``), the
decode loop, what a batch carries from one forward pass to the next, and teacher forcing.

The loop is gpt-fast's: prefill once, then one token a step for all rows. What it adds to ``generate``
of Transformers: batches of *different* prompts, stop rules that end a row while it is decoded,
log-probabilities of every token under the unscaled distribution, and answers that depend neither on
the batch nor on the order of the prompts (in float32, up to the last bits; in 16 bits the head alone is
computed in float32, and a near tie may fall either way: ``Completion.margin`` tells). Left out on
purpose: beams, penalties, assisted decoding; a checkpoint's own sampling defaults are ignored,
``Decoding`` alone decides.
"""

import gc
import hashlib
import inspect
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size
from huggingface_hub import HfApi, snapshot_download, try_to_load_from_cache
from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError
from peft import PeftModel
from torch.nn import functional
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    GenerationConfig,
)
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, EncoderDecoderCache

from lookuplab.errors import UserError
from lookuplab.models.constraint import Constraint, NameTries, pushed, restricted
from lookuplab.models.load import base_of, content_hash, is_adapter
from lookuplab.models.tokens import Spelling, encode, fit
from lookuplab.models.types import Completion, Decoding, Prompt, Work

DTYPES = ("float32", "bfloat16", "float16")
HUB_SECONDS = 10  # how long to wait for the hub before only its local cache is tried
ROWS = 128  # of a batch, at most
CPU_TOKENS = 8192  # rows x longest prompt: more only pads and leaves the processor's caches
GPU_SHARE = 0.8  # of the free memory, for keys and values
COMPACT = 8  # drop finished rows when they are one in so many of the batch: each time the cache is copied
BLOCK = 64  # positions of room that the cache reserves at a time
ONEDNN_ROWS = 16  # below this oneDNN's preparations cost more than they save


class Checkpoint:
    """A checkpoint or an adapter on its base: a folder, or a name on the hub. Read as far as it is asked for.

    ``dtype`` is bfloat16 on GPUs and float32 on a CPU unless it is stated, whatever the files are in.
    On GPUs ``device_map`` defaults to "auto": all of them, through accelerate. ``adapter`` is a PEFT
    adapter's folder or hub name. ``context`` is the longest prompt plus completion in tokens, None
    without a limit. UserError for whatever is missing, cannot be read, or does not fit on the GPUs.
    """

    def __init__(
        self,
        place: str,
        revision: str | None = None,
        *,
        dtype: str | None = None,
        device_map: str | None = None,
        adapter: str | None = None,
    ) -> None:
        folder = Path(place).expanduser()
        self.name = folder.resolve().name if folder.is_dir() else place
        if is_adapter(folder):
            adapter, (place, revision) = str(folder), base_of(folder)
        gpu = torch.cuda.is_available()
        self.place, self.revision = place, revision
        self.dtype = dtype or ("bfloat16" if gpu else "float32")
        if self.dtype not in DTYPES:
            raise UserError(f"model {self.name}: dtype is {dtype!r}; it must be {', '.join(DTYPES)}")
        self.device_map = device_map or ("auto" if gpu else None)
        self._from, self._options = _source(place, revision)
        self.config = _try(self.name, AutoConfig.from_pretrained, self._from, **self._options)
        self.adapter = adapter and Path(_try(adapter, _folder, adapter))
        text = self.config.get_text_config()  # encoder-decoders here have relative positions and no limit
        limit = None if self.is_encoder_decoder else getattr(text, "max_position_embeddings", None)
        self.context: int | None = limit

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether an answer begins a text of its own; else it continues the prompt."""
        return self.config.is_encoder_decoder

    @cached_property
    def identity(self) -> dict[str, str]:
        """What changes the answers: content hash or name and commit, dtype, adapter. Needs no weights."""
        found = {"dtype": self.dtype}
        folder = Path(self.place).expanduser()
        if folder.is_dir():
            found["content"] = content_hash(folder)
        else:  # what a branch or tag stands for, told by the cache's folder: configurations need not say it
            file = try_to_load_from_cache(self.place, "config.json", revision=self.revision)
            commit = Path(file).parent.name if isinstance(file, str) else self.revision or "main"
            found["checkpoint"] = f"{self.place}@{commit}"
        if self.adapter:
            found["adapter"] = content_hash(self.adapter) + " merged" * self._merges
        return found

    @property
    def _merges(self) -> bool:
        """An adapter is merged into the weights, so that it costs no time; in 16 bits that would round it away."""
        return self.dtype == "float32"

    @cached_property
    def tokenizer(self):
        """The Transformers tokenizer, the adapter's own if it brings one."""
        own = self.adapter and (self.adapter / "tokenizer_config.json").is_file()
        place, options = _source(str(self.adapter), None) if own else (self._from, self._options)
        tokenizer = _try(self.name, AutoTokenizer.from_pretrained, place, **options)
        if not tokenizer("client", add_special_tokens=False)["input_ids"]:  # made up where there are no files
            raise UserError(f"checkpoint {self.name} has no usable tokenizer; save one beside the weights")
        return tokenizer

    @cached_property
    def module(self):
        """The Transformers model, with its weights. One that nobody holds any more is freed before."""
        gc.collect()
        torch.cuda.empty_cache()
        kind = AutoModelForSeq2SeqLM if self.is_encoder_decoder else AutoModelForCausalLM
        options = {"dtype": getattr(torch, self.dtype), "device_map": self.device_map, **self._options}
        module, report = _try(
            self.name, kind.from_pretrained, self._from, output_loading_info=True, **options
        )
        if lacking := sorted(report["missing_keys"]):
            raise UserError(
                f"checkpoint {self.name} lacks weights ({lacking[0]} ...); is it complete, and of the "
                "architecture that its config.json names?"
            )
        devices = set(map(str, getattr(module, "hf_device_map", {}).values()))
        if self.device_map == "auto" and torch.cuda.is_available() and devices & {"cpu", "disk"}:
            raise UserError(
                f"model {self.name} does not fit on the GPUs in {self.dtype}: part of it would run on the "
                "CPU; take more GPUs or another dtype (NAME?dtype=bfloat16)"
            )
        return _try(self.name, self._adapted, module) if self.adapter else module

    def _adapted(self, module):
        if len(self.tokenizer) > module.get_input_embeddings().num_embeddings:
            module.resize_token_embeddings(len(self.tokenizer), mean_resizing=False)
        with warnings.catch_warnings():  # PEFT 0.21 still asks for an attribute by its old name
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
            adapted = PeftModel.from_pretrained(module, str(self.adapter))
        if self._merges:
            adapted.merge_and_unload()
        return module


def _try(name: str, load: Callable, *arguments: Any, **options: Any) -> Any:
    """``load`` with the first line of whatever keeps it from loading."""
    try:
        return load(*arguments, **options)
    except Exception as error:  # Transformers, PEFT, the hub client and safetensors raise a dozen kinds
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(
            f"cannot load model {name}: {said} (it must be a complete folder that save_pretrained wrote, "
            "or the name of one on the hub that is cached or can be reached; private ones: hf auth login)"
        ) from error


def _source(place: str, revision: str | None) -> tuple[str, dict[str, Any]]:
    """Arguments of ``from_pretrained``; without the hub's answer only its cache is tried, and no row of retries."""
    folder = Path(place).expanduser()
    local = folder.exists() or not _try(place, _hub_answers, place, revision)
    return str(folder) if folder.exists() else place, {"revision": revision, "local_files_only": local}


def _hub_answers(place: str, revision: str | None) -> bool:
    try:
        HfApi().model_info(place, revision=revision, timeout=HUB_SECONDS)
        return True
    except (RepositoryNotFoundError, RevisionNotFoundError):
        raise
    except Exception:  # no network, a proxy, offline mode, no name: the loader says what it misses
        return False


def _folder(adapter: str) -> str:
    folder = Path(adapter).expanduser()
    if folder.is_dir():
        return str(folder)
    return snapshot_download(adapter, local_files_only=not _hub_answers(adapter, None))


class LocalModel(Checkpoint):
    """A checkpoint that answers prompts (see ``models.types.Model``).

    ``chat``: True asks every prompt through the chat template, False none, None those that bring a
    system prompt. ``batch_size`` bounds the rows of a batch, ``context`` overrides what the checkpoint
    says about its longest sequence. ``work`` counts what the model does.
    """

    def __init__(
        self,
        place: str,
        revision: str | None = None,
        *,
        name: str | None = None,
        chat: bool | None = None,
        batch_size: int | None = None,
        context: int | None = None,
        **options: str | None,
    ) -> None:
        super().__init__(place, revision, **options)
        self.name, self.chat, self.work = name or self.name, chat, Work()
        self.batch_size = ROWS if batch_size is None else batch_size
        self.context = context or self.context
        if self.batch_size < 1:
            raise UserError(f"batch_size is {batch_size}; it must be at least 1")

    @cached_property
    def identity(self) -> dict[str, str]:
        """What changes the answers: that of the checkpoint, context, chat template."""
        chat = {None: "by prompt", False: "never", True: "always"}[self.chat]
        return {**super().identity, "context": str(self.context), "chat": chat}

    @cached_property
    def module(self):
        """The Transformers model, ready to decode."""
        module = super().module.eval()
        _use_onednn(module)
        head = module.get_output_embeddings()
        if type(head) is torch.nn.Linear and head.weight.dtype != torch.float32:
            # in bfloat16 logits between 16 and 32 are .125 apart; a copy, for embeddings may share the weight
            head.weight = torch.nn.Parameter(head.weight.float(), requires_grad=False)
            head.register_forward_pre_hook(lambda _, inputs: (inputs[0].float(),))
        return module

    def end_of_text(self) -> frozenset[int]:
        """Every token that ends an answer, from the generation configuration and the tokenizer."""
        try:
            configured = GenerationConfig.from_pretrained(self._from, **self._options).eos_token_id
        except OSError:
            configured = GenerationConfig.from_model_config(self.config).eos_token_id
        configured = configured if isinstance(configured, list) else [configured]
        return frozenset(i for i in [*configured, self.tokenizer.eos_token_id] if i is not None)

    @cached_property
    def names(self) -> NameTries:
        """How its tokens spell names."""
        return NameTries(self.tokenizer, self.end_of_text())

    def prompt_ids(self, text: str) -> list[int]:
        """The tokens of a prompt that is asked without a chat template."""
        return encode(self.tokenizer, [text], True, not self.is_encoder_decoder)[0]

    def generate(
        self,
        requests: Sequence[tuple[Prompt, int]],
        decoding: Decoding,
        constrain: Callable[[Prompt, list[int]], Constraint | None] | None = None,
    ) -> Iterator[list[Completion]]:
        """Answer each (prompt, sample index), longest prompts first, one list a batch.

        ``constrain`` makes a row's constraint from its prompt and the tokens that the answer continues
        ([] if it begins a text of its own); without it a prompt's ``choices`` do. UserError for a prompt
        that is too long, choices that are no names or meet a chat prompt, and when not even one row fits
        into memory.
        """
        for prompt, _ in requests:
            self._check_choices(prompt)
        read = self._encoded([prompt for prompt, _ in requests])
        rows = []
        for (prompt, sample), whole in zip(requests, read, strict=True):
            ids = fit(self.tokenizer, prompt.id, whole, self.context, decoding)
            limit, before = decoding.max_new_tokens, ids
            if self.is_encoder_decoder:
                before = []
            elif self.context is not None:
                limit = min(limit, self.context - len(ids))
            rows.append(Row(prompt, sample, ids, len(whole) - len(ids), before, limit))
        rows.sort(key=lambda row: (-len(row.ids), row.prompt.id, row.sample))

        def run(batch: list[Row]) -> list[Completion]:
            for row in batch:
                if constrain:
                    row.constraint = constrain(row.prompt, row.before)
                elif row.prompt.choices:
                    row.constraint = self.names.constraint(
                        row.before, row.prompt.choices, decoding.choices_below
                    )
                row.begin(self.tokenizer, decoding)
            decode(self.module, batch, decoding, self.end_of_text(), self.context, self.work)
            return [row.completion() for row in batch]

        yield from self._batches(rows, lambda row: len(row.ids), run, decoding.max_new_tokens)

    def score(self, pairs: Sequence[tuple[Prompt, str]]) -> Iterator[list[Completion]]:
        """Log-probabilities of a given continuation of each prompt (teacher forcing), one list a batch, any order.

        The continuation's tokens are those of both texts together, where that leaves the prompt's tokens
        whole. ``text`` is the continuation, ``finish_reason`` ``"scored"``. UserError where both together
        are too long.
        """
        causal = not self.is_encoder_decoder
        read = []
        for (prompt, text), ids in zip(pairs, self._encoded([one for one, _ in pairs]), strict=True):
            given, special = self._text(prompt)
            added = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
            if causal:
                (whole,) = encode(self.tokenizer, [given + text], special, causal)
                added = whole[len(ids) :] if whole[: len(ids)] == ids else added
                fit(self.tokenizer, f"{prompt.id} and its continuation", ids + added[1:], self.context, Decoding())
            read.append((prompt, text, ids, added))

        def run(batch: list[tuple[Prompt, str, list[int], list[int]]]) -> list[Completion]:
            logprobs = teacher_force(self.module, [(ids, added) for _, _, ids, added in batch], self.work)
            done = []
            for (prompt, text, ids, added), row in zip(batch, logprobs, strict=True):
                pieces = Spelling(self.tokenizer, ids if causal else []).pieces(added)
                scored = Completion(prompt.id, 0, text, tuple(pieces), tuple(added), row, "scored", len(ids))
                done.append(scored)
            return done

        read.sort(key=lambda item: (-len(item[2]) - len(item[3]), item[0].id))
        yield from self._batches(read, lambda item: len(item[2]) + len(item[3]), run)

    def _text(self, prompt: Prompt) -> tuple[str, bool]:
        """What the model reads, and whether the tokenizer adds its special tokens (a chat template has its own).

        A template that refuses the system role (Gemma's does) gets the system text at the head of the
        user turn.
        """
        through_chat = self.chat
        if through_chat is None:
            through_chat = prompt.system is not None and bool(self.tokenizer.chat_template)
        if not through_chat:
            return prompt.text, True
        if not self.tokenizer.chat_template:
            raise UserError(f"{self.name} has no chat template: use it as a base model")
        from jinja2.exceptions import TemplateError  # Transformers renders with jinja2

        user = {"role": "user", "content": prompt.text}
        asked = [{"role": "system", "content": prompt.system}, user] if prompt.system else [user]
        options = {"tokenize": False, "add_generation_prompt": True}
        try:
            return self.tokenizer.apply_chat_template(asked, **options), False
        except TemplateError:
            folded = [{"role": "user", "content": f"{prompt.system}\n{prompt.text}"}]
            return self.tokenizer.apply_chat_template(folded, **options), False

    def _encoded(self, prompts: Sequence[Prompt]) -> list[list[int]]:
        """Token ids of every prompt; each different text is tokenised once."""
        texts = [self._text(prompt) for prompt in prompts]
        ids: dict[tuple[str, bool], list[int]] = {}
        for special in (True, False):
            wanted = [one for one in dict.fromkeys(texts) if one[1] is special]
            found = encode(
                self.tokenizer, [text for text, _ in wanted], special, not self.is_encoder_decoder
            )
            ids |= zip(wanted, found, strict=True)
        return [ids[text] for text in texts]

    def _check_choices(self, prompt: Prompt) -> None:
        if prompt.choices and not self._text(prompt)[1]:
            raise UserError(
                f"prompt {prompt.id!r}: a chat model's answer begins with backticks, so it cannot be held "
                "to given names (choices); ask it as a base model or leave them out"
            )
        for name in prompt.choices or ():
            if not name.isidentifier():
                raise UserError(
                    f"prompt {prompt.id!r}: the choice {name!r} is no name (identifier); leave it out"
                )

    def _batches(
        self, items: list, length: Callable[[Any], int], run: Callable, new: int = 0
    ) -> Iterator[list[Completion]]:
        """``run(batch)`` for consecutive batches of ``items``, which come with falling ``length`` in tokens.

        A batch has at most ``batch_size`` rows and as many tokens as the memory allows. Out of memory: the
        budget is halved and the batch tried again; UserError when a single item does not fit. With a fixed
        order and whole batches as results, a run that was interrupted goes on with the same batches.
        """
        at, rows, budget = 0, self.batch_size, None
        while at < len(items):
            if budget is None:  # not before there is something to answer: the weights are read for it
                budget, new = self._token_budget(), new if self.module.device.type == "cuda" else 0
            longest = max(1, length(items[at]) + new)
            batch = items[at : at + max(1, min(rows, budget // longest))]
            done = None
            try:
                done = run(batch)
            except (RuntimeError, MemoryError) as error:
                if not (isinstance(error, MemoryError) or should_reduce_batch_size(error)):
                    raise
                if len(batch) == 1:
                    raise UserError(
                        f"{self.name}: not enough memory for a single prompt; use shorter prompts, fewer "
                        "new tokens, a smaller dtype or a larger device"
                    ) from error
            if done is None:  # outside of the except block, so that the failed batch's tensors are free
                clear_device_cache(garbage_collection=True)
                budget = len(batch) // 2 * longest
                continue
            at += len(batch)
            yield done

    def _token_budget(self) -> int:
        """Tokens of a batch, padding included: on GPUs as many as keys and values find room for, were there no
        heads that share them; those that do leave theirs to the activations."""
        if self.module.device.type != "cuda":
            return CPU_TOKENS
        free = sum(torch.cuda.mem_get_info(i)[0] for i in range(torch.cuda.device_count()))
        text = self.config.get_text_config(decoder=True)
        each = 2 * text.num_hidden_layers * text.hidden_size * self.module.dtype.itemsize
        return int(GPU_SHARE * free / each)


@dataclass
class Row:
    """One answer: grows by ``push`` until ``finish_reason`` is set.

    ``before`` are the tokens that it continues, ``limit`` is how many new ones it may have.
    """

    prompt: Prompt
    sample: int
    ids: list[int]
    dropped: int
    before: list[int]
    limit: int
    constraint: Constraint | None = None
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    margin: float = math.inf
    finish_reason: str | None = None

    def begin(self, tokenizer, decoding: Decoding) -> None:
        """Nothing is written yet (again, where the memory did not suffice)."""
        self.spelling, self.over = Spelling(tokenizer, self.before), decoding.stopper()
        self.tokens, self.logprobs, self.pieces = [], [], []
        self.margin, self.finish_reason = math.inf, None

    def push(self, token: int, logprob: float, margin: float, end_of_text: frozenset[int]) -> None:
        """Append one token and see whether it was the last. ``margin``: how near the choice was to another one."""
        piece = self.spelling.piece(token)
        self.tokens.append(token)
        self.logprobs.append(logprob)
        self.pieces.append(piece)
        self.margin = min(self.margin, margin)
        if self.constraint:
            pushed(self.constraint, token, logprob)
        if token in end_of_text:
            self.finish_reason = "eos"
        elif piece and self.over(piece):
            self.finish_reason = "stop"
        elif len(self.tokens) >= self.limit:
            self.finish_reason = "length"

    def completion(self) -> Completion:
        """The finished row. Bytes that never became a character are spelled by the last token."""
        pieces = [*self.pieces[:-1], self.pieces[-1] or self.spelling.rest()]
        return Completion(
            id=self.prompt.id,
            sample=self.sample,
            text="".join(pieces),
            tokens=tuple(pieces),
            token_ids=tuple(self.tokens),
            token_logprobs=tuple(self.logprobs),
            finish_reason=self.finish_reason,
            prompt_tokens=len(self.ids),
            prompt_dropped=self.dropped,
            margin=None if self.margin == math.inf else self.margin,
        )


@torch.inference_mode()
def decode(
    module,
    rows: list[Row],
    decoding: Decoding,
    end_of_text: frozenset[int],
    context: int | None,
    work: Work,
) -> None:
    """Generate until every row is finished; the rows are filled in place, and ``work`` counts what it took."""
    batch = Batch(module, [row.ids for row in rows], context, work)
    logits, written, chances, going = batch.prefill(), 0, None, rows
    if decoding.temperature > 0:
        chances = torch.from_numpy(np.stack([uniforms(row, decoding) for row in rows])).to(logits.device)
    while True:
        scores, gates = _restricted(logits, going)
        chance = None if chances is None else chances[:, written]
        tokens, logprobs, margins = choose(logits, scores, chance, decoding)
        told = torch.stack([tokens, logprobs.double(), torch.minimum(margins, gates)], 1).tolist()
        for row, (token, logprob, margin) in zip(going, told, strict=True):
            if row.finish_reason is None:
                row.push(int(token), logprob, margin, end_of_text)
        left = [i for i, row in enumerate(going) if row.finish_reason is None]
        if not left:
            break
        if (len(going) - len(left)) * COMPACT >= len(going):
            batch.keep(left)
            going, tokens = [going[i] for i in left], tokens[left]
            chances = None if chances is None else chances[left]
        logits, written = batch.step(tokens), written + 1
    work.new_tokens += sum(len(row.tokens) for row in rows)


def _restricted(logits: torch.Tensor, rows: list[Row]) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (rows, vocabulary) under the rows' constraints, and how near each was to a gate's probability (rows,)."""
    scores, gates = logits, [math.inf] * len(rows)
    for i, row in enumerate(rows):
        if row.constraint and row.finish_reason is None:
            if found := restricted(row.constraint, logits[i]):
                scores = logits.clone() if scores is logits else scores
                scores[i], gates[i] = found
    return scores, torch.tensor(gates, device=logits.device, dtype=torch.double)


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
    if chance is None:
        token, margin = best.indices[:, 0], (best.values[:, 0] - best.values[:, 1]).double()
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
        lower = upper - chosen.gather(-1, token[:, None])[:, 0]
        margin = torch.minimum(upper - point, point - lower)
        if decoding.top_p < 1:
            margin = torch.minimum(margin, (before - decoding.top_p).abs().amin(-1))
        margin = margin.masked_fill(best.values[:, 1] == -torch.inf, torch.inf)  # a single one was left
    return token, logits.gather(-1, token[:, None])[:, 0] - logits.logsumexp(-1), margin


def uniforms(row: Row, decoding: Decoding) -> np.ndarray:
    """The row's own random numbers in [0, 1), one a token: they depend on seed, prompt id and sample alone."""
    name = f"{decoding.seed}\x1f{row.prompt.id}\x1f{row.sample}"
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "big")
    return np.random.default_rng(seed).random(decoding.max_new_tokens)


class Batch:
    """What rows carry from one forward pass to the next: key/value cache, mask and positions; equal prompts are read once.

    Rows of a causal model always end in the last column, so that the distance of two columns is the
    distance of two tokens: masks by sliding window and relative positions are right without knowing of
    padding. An encoder-decoder's prompts begin in the first column, and its answers all have one length.
    """

    def __init__(self, module, prompts: list[list[int]], context: int | None, work: Work) -> None:
        self.module, self.context, self.work = module, context, work
        self.prompts = list(dict.fromkeys(map(tuple, prompts)))
        place = {ids: i for i, ids in enumerate(self.prompts)}
        self.copies = [place[tuple(ids)] for ids in prompts]
        self.known = inspect.signature(module.forward).parameters
        self.encoded = None

    def prefill(self) -> torch.Tensor:
        """Read the different prompts. Logits (rows, vocabulary)."""
        causal = not self.module.config.is_encoder_decoder
        ids, self.mask = padded(self.prompts, self.module.device, left=causal)
        self.work.prompt_tokens += sum(map(len, self.prompts))
        self.lengths = self.mask.sum(1)
        if causal:
            self.cache = roomy_cache(self.module.config)
            logits = self._forward(ids, (self.mask.cumsum(1) - 1).clamp(min=0))
            if self.copies != list(range(len(self.prompts))):
                self.keep(self.copies)
                logits = logits[self.copies]
            return logits
        self.cache = EncoderDecoderCache(roomy_cache(self.module.config), DynamicCache())
        self.encoded = self.module.get_encoder()(input_ids=ids, attention_mask=self.mask)
        self.keep(self.copies)
        start = torch.full((len(self.copies), 1), decoder_start(self.module), device=self.mask.device)
        return self._forward(start)

    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits (rows, vocabulary) after one more token (rows,) in each row."""
        if self.encoded is None:
            self.mask = functional.pad(self.mask, (0, 1), value=1)
        # rows that are finished and not dropped yet run on
        self.lengths = (self.lengths + 1).clamp(max=self.context or math.inf)
        return self._forward(tokens[:, None], self.lengths[:, None] - 1)

    def keep(self, rows: list[int]) -> None:
        """Only these rows go on."""
        index = torch.tensor(rows, device=self.mask.device)
        self.mask, self.lengths = self.mask[index], self.lengths[index]
        self.cache.batch_select_indices(index)
        if self.encoded is not None:
            self.encoded.last_hidden_state = self.encoded.last_hidden_state[index]

    def _forward(self, ids: torch.Tensor, position: torch.Tensor | None = None) -> torch.Tensor:
        if self.encoded is not None:
            inputs = {"encoder_outputs": self.encoded, "decoder_input_ids": ids}
        else:
            inputs = {"input_ids": ids, "position_ids": position, "logits_to_keep": 1}
            inputs = {name: value for name, value in inputs.items() if name in self.known}
        self.work.passes += 1
        output = self.module(
            **inputs, attention_mask=self.mask, past_key_values=self.cache, use_cache=True
        )
        return output.logits[:, -1].float()


def padded(sequences: Sequence[Sequence[int]], device, left: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """ids and mask (1 = real), both (rows, longest); with ``left`` all sequences end in the last column."""
    longest = max(map(len, sequences))
    ids = torch.zeros(len(sequences), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for i, sequence in enumerate(sequences):
        columns = slice(longest - len(sequence), None) if left else slice(len(sequence))
        ids[i, columns] = torch.tensor(sequence)
        mask[i, columns] = 1
    return ids.to(device), mask.to(device)


def decoder_start(module) -> int:
    """The token that an encoder-decoder model's answers begin with."""
    for config in (module.generation_config, module.config):
        for name in ("decoder_start_token_id", "bos_token_id"):
            if getattr(config, name, None) is not None:
                return getattr(config, name)
    return 0


class RoomyLayer(DynamicLayer):
    """Keys and values of one layer, (rows, heads, positions, width), as views of larger buffers.

    Transformers' own layer concatenates: each step copies all that it holds, which on a CPU with many rows
    costs as much as the model's arithmetic. Layers with a sliding window are kept whole too: the model's
    mask applies the window.
    """

    _room: tuple[torch.Tensor, ...] = ()

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args, **kwargs):
        """Append (rows, heads, new, width); return all keys and values so far."""
        used = self.get_seq_length()
        end, added = used + key_states.shape[-2], (key_states, value_states)
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        if not self._room or end > self._room[0].shape[-2]:
            held, more = (self.keys, self.values), BLOCK - end % BLOCK
            self._room = tuple(
                functional.pad(torch.cat([old, new], -2) if used else new, (0, 0, 0, more))
                for old, new in zip(held, added, strict=True)
            )
        else:
            for room, new in zip(self._room, added, strict=True):
                room[:, :, used:end] = new
        self.keys, self.values = (room[:, :, :end] for room in self._room)
        return self.keys, self.values

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Only keep these rows, and the room ahead of them."""
        if self._room:
            used = self.get_seq_length()
            self._room = tuple(room.index_select(0, indices.to(room.device)) for room in self._room)
            self.keys, self.values = (room[:, :, :used] for room in self._room)


def roomy_cache(config) -> Cache:
    """An empty cache for a decoder. Models with recurrent layers keep the kind that their configuration asks for."""
    kinds = set(getattr(config.get_text_config(decoder=True), "layer_types", None) or ["full_attention"])
    if kinds <= {"full_attention", "sliding_attention"}:
        return Cache(layer_class_to_replicate=RoomyLayer)
    return DynamicCache(config=config)


@torch.inference_mode()
def distributions(module, prompt_ids: list[int], ids: list[int]) -> torch.Tensor:
    """Probabilities (len(ids), vocabulary) that the model gives before each token of a continuation."""
    return _forced_logits(module, [(prompt_ids, ids)])[0].softmax(-1)


@torch.inference_mode()
def teacher_force(module, rows: list[tuple[list[int], list[int]]], work: Work) -> list[tuple[float, ...]]:
    """Log-probabilities, natural and at temperature 1, of the second part of each row, in one forward pass."""
    longest = max(len(ids) for _, ids in rows)
    if not longest:
        return [() for _ in rows]
    work.passes += 1
    work.prompt_tokens += sum(len(prompt) + len(ids) for prompt, ids in rows)
    logits = _forced_logits(module, rows)
    targets, _ = padded([ids for _, ids in rows], logits.device, left=True)  # as the logits
    logprobs = logits.gather(-1, targets[..., None])[..., 0] - logits.logsumexp(-1)
    return [
        tuple(row[longest - len(ids) :]) for (_, ids), row in zip(rows, logprobs.tolist(), strict=True)
    ]


def _forced_logits(module, rows: list[tuple[list[int], list[int]]]) -> torch.Tensor:
    """Logits (rows, longest continuation, vocabulary) before each token of the continuations, which end in the last
    column."""
    longest = max(len(ids) for _, ids in rows)
    if module.config.is_encoder_decoder:
        prompts, mask = padded([prompt for prompt, _ in rows], module.device, left=False)
        start = decoder_start(module)
        inputs, _ = padded([[start, *ids[:-1]] for _, ids in rows], module.device, left=False)
        output = module(
            input_ids=prompts, attention_mask=mask, decoder_input_ids=inputs, use_cache=False
        )
        logits = output.logits[:, :longest].float()
        return torch.stack([row.roll(longest - len(ids), 0) for row, (_, ids) in zip(logits, rows, strict=True)])
    ids, mask = padded([prompt + ids for prompt, ids in rows], module.device, left=True)
    position = (mask.cumsum(1) - 1).clamp(min=0)
    optional = {"position_ids": position, "logits_to_keep": longest + 1}
    known = inspect.signature(module.forward).parameters
    optional = {name: value for name, value in optional.items() if name in known}
    output = module(input_ids=ids, attention_mask=mask, use_cache=False, **optional)
    return output.logits[:, -longest - 1 : -1].float()


def _use_onednn(module: torch.nn.Module) -> None:
    """Let the float32 linear layers of a CPU model use oneDNN instead of MKL in inference mode.

    PyTorch computes them with MKL, which uses half the vector width on AMD processors: measured on one core
    of an AMD EPYC, 64 rows and layers of 256 x 704, oneDNN reaches 207 GFLOP/s instead of 105. On Intel
    processors both are equal. Results differ in the last bits only.
    """
    if torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        for layer in module.modules():
            weight = getattr(layer, "weight", None)
            if type(layer) is torch.nn.Linear and (weight.device.type, weight.dtype) == ("cpu", torch.float32):
                layer.forward = _Product(layer)


class _Product:
    """``layer``'s forward; a class and not a closure, so that the model can still be copied and pickled."""

    def __init__(self, layer: torch.nn.Linear) -> None:
        self.layer = layer

    def __call__(self, inputs: torch.Tensor) -> torch.Tensor:
        weight, bias = self.layer.weight, self.layer.bias
        if torch.is_inference_mode_enabled() and inputs.numel() >= ONEDNN_ROWS * weight.shape[1]:
            return torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], "")
        return functional.linear(inputs, weight, bias)


load_local = LocalModel  # SHIM
