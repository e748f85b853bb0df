"""What goes into a model and what comes out: the vocabulary that all packages share."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Prompt:
    """One question to a model. ``id`` names it in every table; ``system`` is used by chat models only.

    ``choices`` are the names (identifiers) that may stand first in the answer; None and () leave it
    free. Only a local model can be held to them, and only where the answer continues the prompt or
    begins a text of its own (no chat). ``place`` says where the answer will stand, for a model whose
    answer depends on that too; it is part of the key of a stored answer.
    """

    id: str
    text: str
    system: str | None = None
    choices: tuple[str, ...] | None = None
    place: str | None = None


class StopRule(Protocol):
    """Reads one completion piece by piece. ``name`` stands for the rule in the keys of stored answers."""

    name: str

    def feed(self, piece: str) -> bool:
        """True once nothing that follows can matter."""
        ...


@dataclass(frozen=True)
class Decoding:
    """How to decode. The defaults are CloudAPIBench's: greedy, one sequence, up to 256 tokens (Section 2.3).

    ``temperature`` 0 is greedy. ``n`` samples are drawn per prompt, each seeded by (seed, prompt id,
    sample index), so that a sample does not depend on the batch that it was drawn in. ``stop`` strings
    and ``stop_rule`` (called once for each answer, for a fresh ``StopRule``) end an answer while it is written.
    ``truncation`` "left" drops the beginning of a too long prompt; without it such a prompt is an error.
    """

    max_new_tokens: int = 256
    temperature: float = 0.0
    top_p: float = 1.0
    n: int = 1
    seed: int = 0
    stop: tuple[str, ...] = ()
    stop_rule: Callable[[], StopRule] | None = None
    truncation: str | None = None

    def stopper(self) -> Callable[[str], bool]:
        """A reader for one answer: fed piece by piece, it says True where ``stop`` or the rule ends it."""
        rule, read = self.stop_rule and self.stop_rule(), ""
        overlap = max(map(len, self.stop), default=1) - 1

        def over(piece: str) -> bool:
            nonlocal read
            read = read[max(0, len(read) - overlap) :] + piece
            return any(text in read for text in self.stop) or bool(rule and rule.feed(piece))

        return over


@dataclass(frozen=True)
class Completion:
    """One answer. ``tokens``, ``token_ids`` and ``token_logprobs`` are parallel; joined tokens spell ``text``.

    ``token_logprobs`` are natural logarithms under the unscaled distribution (temperature 1), None
    where an endpoint gives none. ``finish_reason`` is ``"eos"``, ``"stop"`` (a stop string or rule),
    ``"length"`` or, for a continuation that was only scored, ``"scored"``. After ``"eos"`` a local
    model's last token is the end-of-text token; it spells nothing, like every special token. ``text``
    keeps the whole last token: cutting is the scorer's work. ``prompt_tokens`` counts what the model
    saw, ``prompt_dropped`` what truncation removed. ``margin`` is the smallest gap between a chosen token
    and the runner-up (see ``local.choose``): larger numerical noise could have changed the answer. None
    where there was no choice or it was not measured. ``record`` (JSON) is the log of a constraint, for
    callers that keep one (ToolGen). ``==`` ignores both.
    """

    id: str
    sample: int
    text: str
    tokens: tuple[str, ...]
    token_ids: tuple[int, ...]
    token_logprobs: tuple[float, ...] | None
    finish_reason: str
    prompt_tokens: int
    prompt_dropped: int = 0
    margin: float | None = field(default=None, compare=False)
    record: object = field(default=None, compare=False)


class Model(Protocol):
    """What ``complete`` and the paper rooms need of a model, local or remote.

    ``chat`` says that prompts are asked through a chat template; ``tokenizer`` is the Transformers one.
    """

    name: str
    chat: bool | None
    tokenizer: object

    @property
    def identity(self) -> dict[str, str]:
        """Everything about the model that changes its answers (content hash or name, revision, dtype ...)."""
        ...

    def generate(
        self, requests: Sequence[tuple[Prompt, int]], decoding: Decoding
    ) -> Iterator[list[Completion]]:
        """Answer each (prompt, sample index), in any order; a batch is yielded as soon as it is done."""
        ...

    def score(self, pairs: Sequence[tuple[Prompt, str]]) -> Iterator[list[Completion]]:
        """Log-probabilities of a given continuation of each prompt."""
        ...


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
