"""Models that run here: any causal or encoder-decoder checkpoint of Hugging Face Transformers.

What it adds to ``generate`` of Transformers: batches of different prompts, stop rules that end a row while it is
decoded, log-probabilities of every token under the unscaled distribution, and answers that depend neither on the batch
nor on the order of the prompts. Left out on purpose: penalties, assisted decoding; a checkpoint's own
sampling defaults are ignored, ``Decoding`` alone decides.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from lookuplab.errors import UserError
from lookuplab.models import chat as chat_models
from lookuplab.models.batching import BatchSize, in_batches
from lookuplab.models.checkpoint import Checkpoint, context_of, open_checkpoint
from lookuplab.models.constraint import Constraint, NameTries
from lookuplab.models.decode import decode
from lookuplab.models.rows import Row
from lookuplab.models.scoring import Scored, teacher_force
from lookuplab.models.stopping import stopping
from lookuplab.models.tokens import Encoded, Spelling, encode, fit
from lookuplab.models.types import Completion, Decoding, Prompt, Work

SMALL = 50e6  # parameters
ROWS = 64  # of a batch; a small model on a CPU gains from more, because the last rows of a batch run almost alone
ROWS_SMALL = 128
TOKENS_CPU = 8192  # rows x longest prompt of a batch: more only pads and leaves the processor's caches


@dataclass
class LocalModel:
    """A loaded checkpoint that answers prompts (see ``models.types.Model``); made by ``load_local``.

    ``chat``: True asks every prompt through the chat template, False none, None those that bring a system prompt.
    ``context`` is the longest prompt plus completion in tokens, None without a limit. ``work`` counts what it does.
    """

    checkpoint: Checkpoint
    batch: BatchSize
    context: int | None
    chat: bool | None = None
    work: Work = field(default_factory=Work)

    @property
    def name(self) -> str:
        return self.checkpoint.name

    @property
    def module(self):
        """The Transformers model."""
        return self.checkpoint.module

    @property
    def tokenizer(self):
        """The Transformers tokenizer."""
        return self.checkpoint.tokenizer

    @cached_property
    def identity(self) -> dict[str, str]:
        """What changes the answers: content hash or name and revision, adapter, dtype, context, chat template."""
        chat = {None: "by prompt", False: "never", True: f"always {chat_models.LISTING_ID}"}[self.chat]
        return {**self.checkpoint.identity, "context": str(self.context), "chat": chat}

    def generate(self, requests: Sequence[tuple[Prompt, int]], decoding: Decoding,
                 constrain: Callable[[Prompt, list[int]], Constraint | None] | None = None
                 ) -> Iterator[list[Completion]]:
        """Answer each (prompt, sample index), longest prompts first, one list a batch.

        ``constrain`` makes a row's constraint from its prompt and the tokens that the answer continues ([] if it begins
        a text of its own); without it a prompt's ``choices`` do.
        UserError for a prompt that is too long, choices that are no names or meet a chat prompt, an unknown stop rule,
        and when not even one row fits into memory.
        """
        for prompt, _ in requests:
            self._check_choices(prompt)
        encoded = self._encoded([prompt for prompt, _ in requests], decoding)
        order = sorted(
            zip(requests, encoded, strict=True),
            key=lambda item: (-len(item[1].ids), item[0][0].id, item[0][1]),
        )
        end_of_text = self.end_of_text()
        rule = constrain or partial(self._named, below=decoding.choices_below)

        def run(batch: list[tuple[tuple[Prompt, int], Encoded]]) -> list[Completion]:
            rows = [self._row(prompt, sample, ids, decoding, rule) for (prompt, sample), ids in batch]
            decode(self.module, rows, decoding, end_of_text, self.context, self.work)
            return [row.completion() for row in rows]

        yield from in_batches(order, lambda item: len(item[1].ids), run, self.batch, self.name, decoding.beams)

    def score(self, pairs: Sequence[tuple[Prompt, str]]) -> Iterator[list[Completion]]:
        """Log-probabilities of a given continuation of each prompt (teacher forcing), one list a batch, any order.

        ``text`` is the continuation, ``finish_reason`` is ``"scored"``. UserError where both together are too long.
        """
        encoded = self._encoded([prompt for prompt, _ in pairs], Decoding(max_new_tokens=1))
        scored = [self._scored(prompt, text, ids) for (prompt, text), ids in zip(pairs, encoded, strict=True)]
        def length(item: Scored) -> int:
            return len(item.prompt_ids) + len(item.ids)

        def run(batch: list[Scored]) -> list[Completion]:
            return teacher_force(self.module, batch, self.work)

        scored.sort(key=lambda item: (-length(item), item.prompt.id))
        yield from in_batches(scored, length, run, self.batch, self.name)

    def _encoded(self, prompts: list[Prompt], decoding: Decoding) -> list[Encoded]:
        """Token ids of every prompt; each different text is tokenised once."""
        causal = not self.module.config.is_encoder_decoder
        ids: dict[tuple[str, bool], list[int]] = {}
        texts = [self._text(prompt) for prompt in prompts]
        for special in (True, False):
            wanted = list(dict.fromkeys(text for text, plain in texts if plain is special))
            found = encode(self.tokenizer, wanted, special, causal) if wanted else []
            ids |= {(text, special): row for text, row in zip(wanted, found, strict=True)}
        keep = {i for i in (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id) if i is not None}
        return [fit(p.id, ids[text], self.context, decoding, keep) for p, text in zip(prompts, texts, strict=True)]

    def _text(self, prompt: Prompt) -> tuple[str, bool]:
        """What the model reads, and whether the tokenizer adds its special tokens (a chat template has its own)."""
        through_chat = self.chat
        if through_chat is None:
            through_chat = prompt.system is not None and bool(self.tokenizer.chat_template)
        return (chat_models.render(self.tokenizer, prompt), False) if through_chat else (prompt.text, True)

    def _row(self, prompt: Prompt, sample: int, encoded: Encoded, decoding: Decoding, constrain: Callable) -> Row:
        alone = self.module.config.is_encoder_decoder  # its answer begins a text of its own
        room = decoding.max_new_tokens if self.context is None or alone else self.context - len(encoded.ids)
        before = [] if alone else encoded.ids
        return Row(prompt, sample, encoded, min(decoding.max_new_tokens, room), stopping(decoding),
                   Spelling(self.tokenizer, before), constrain(prompt, before))

    def _named(self, prompt: Prompt, before: list[int], below: float) -> Constraint | None:
        """What holds a row to its prompt's choices."""
        return self._tries.constraint(before, tuple(sorted(set(prompt.choices))), below) if prompt.choices else None

    @cached_property
    def _tries(self) -> NameTries:
        return NameTries(self.tokenizer, self.end_of_text())

    def _check_choices(self, prompt: Prompt) -> None:
        if prompt.choices and not self._text(prompt)[1]:
            raise UserError(f"prompt {prompt.id!r}: a chat model's answer begins with backticks, so it cannot be held "
                            "to given names (choices); ask it as a base model or leave them out")
        wrong = [name for name in prompt.choices or () if not name.isidentifier()]
        if wrong:
            raise UserError(f"prompt {prompt.id!r}: the choice {wrong[0]!r} is no name (identifier); leave it out")

    def _scored(self, prompt: Prompt, continuation: str, encoded: Encoded) -> Scored:
        """The continuation's tokens: as in both texts together, where that leaves the prompt's tokens whole."""
        text, special = self._text(prompt)
        causal = not self.module.config.is_encoder_decoder
        ids = self.tokenizer(continuation, add_special_tokens=False, verbose=False)["input_ids"]
        if causal:
            (whole,) = encode(self.tokenizer, [text + continuation], special, causal)
            if whole[: len(encoded.ids)] == encoded.ids:
                ids = whole[len(encoded.ids) :]
        total = len(encoded.ids) + len(ids)
        if causal and self.context is not None and total > self.context:
            raise UserError(f"prompt {prompt.id!r} and its continuation have {total} tokens and the model's context "
                            f"is {self.context}; shorten one of them")
        spelling = Spelling(self.tokenizer, encoded.ids if causal else [])
        return Scored(prompt, encoded.ids, list(ids), spelling, continuation)

    def end_of_text(self) -> frozenset[int]:
        """Every token that ends an answer, from the generation configuration and the tokenizer."""
        configured = getattr(self.module.generation_config, "eos_token_id", None)
        configured = configured if isinstance(configured, list) else [configured]
        return frozenset(i for i in [*configured, self.tokenizer.eos_token_id] if i is not None)


def load_local(
    name: str,
    *,
    revision: str | None = None,
    dtype: str = "auto",
    device_map: str | None = None,
    batch_size: int | None = None,
    adapter: str | None = None,
    context: int | None = None,
    chat: bool | None = None,
) -> LocalModel:
    """Load a checkpoint by hub name or folder.

    ``dtype`` "auto" is float32 on a CPU and the checkpoint's own on GPUs, where ``device_map`` defaults to "auto" (all
    of them, through accelerate). ``adapter`` is a PEFT adapter's folder or hub name. ``context`` overrides what the
    checkpoint says about its longest sequence. ``batch_size`` is where to begin: it is halved when memory does not
    suffice, and an interrupted run loses at most one batch. UserError for whatever is missing or out of range.
    """
    if batch_size is not None and batch_size < 1:
        raise UserError(f"batch_size is {batch_size}; it must be at least 1")
    checkpoint = open_checkpoint(str(name), revision, dtype, device_map, adapter)
    context = context if context is not None else context_of(checkpoint.module.config)
    return LocalModel(checkpoint, _batch_size(checkpoint.module, batch_size), context, chat)


def _batch_size(module, rows: int | None) -> BatchSize:
    on_cpu = module.device.type == "cpu"
    small = on_cpu and sum(weight.numel() for weight in module.parameters()) <= SMALL
    return BatchSize(rows or (ROWS_SMALL if small else ROWS), TOKENS_CPU if on_cpu else None)
