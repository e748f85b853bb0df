"""What goes into a model and what comes out: the shared vocabulary of every room."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Prompt:
    """One question to a model. ``id`` names it in every table; ``system`` is used by chat models only.

    ``choices`` are the names (identifiers) that may stand first in the answer; None and () leave it free. Only a local
    model can be held to them, and only where the answer continues the prompt or begins a text of its own (no chat).
    ``place`` says where the answer will stand, for a model whose answer depends on that too: a stored answer is found
    again under the same place only.
    """

    id: str
    text: str
    system: str | None = None
    choices: tuple[str, ...] | None = None
    place: str | None = None


@dataclass(frozen=True)
class Decoding:
    """How to decode. The defaults are CloudAPIBench's: greedy, one sequence, up to 256 tokens (Section 2.3).

    ``temperature`` 0 is greedy. ``n`` samples are drawn per prompt, each seeded by (seed, prompt id, sample index),
    so that a sample does not depend on the batch that it was drawn in. ``stop`` strings and ``stop_rule`` (a name in
    ``models.stopping.STOP_RULES``, e.g. ``"first_call"``) end a row while decoding. ``truncation`` says which end
    of a too long prompt to drop (``"left"`` or ``"right"``); without it such a prompt is an error.
    ``beams`` above 1 is a beam search with so many beams a prompt (``models.beam``): it takes the place of greedy
    decoding, so the temperature is 0 and n is 1.
    A prompt's ``choices`` bind where the model's most likely token has a probability below ``choices_below``: 1 is
    always, 0 never (see ``models.constraint``).
    """

    max_new_tokens: int = 256
    temperature: float = 0.0
    top_p: float = 1.0
    n: int = 1
    seed: int = 0
    stop: tuple[str, ...] = ()
    stop_rule: str | None = None
    truncation: str | None = None
    choices_below: float = 1.0
    beams: int = 1


@dataclass(frozen=True)
class Completion:
    """One answer. ``tokens``, ``token_ids`` and ``token_logprobs`` are parallel; joined tokens spell ``text``.

    ``token_logprobs`` are natural logarithms under the unscaled distribution (temperature 1), None where an endpoint
    gives none. ``finish_reason`` is ``"eos"``, ``"stop"`` (a stop string or rule), ``"length"`` or, for a continuation
    that was only scored, ``"scored"``. After ``"eos"`` a local model's last token is the end-of-text token; it spells
    nothing, like every special token. ``text`` keeps the whole last token: cutting is the scorer's work.
    ``prompt_tokens`` counts what the model saw, ``prompt_dropped`` what the truncation policy removed.
    ``margin`` is the narrowest decision on the way to the answer (see ``models.decode``): noise above it could have
    made another answer. None where there was no decision or nobody measured it; equality leaves it out.
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


@dataclass
class Work:
    """What a local model has done since it was loaded, repeated work (after a lack of memory) included.

    ``passes`` are forward passes of a whole batch (an encoder's belongs to the first of its decoder), ``prompt_tokens``
    and ``new_tokens`` what went in and came out: samples of one prompt in one batch read it once. Of several beams
    the answer alone came out. Padding is not in it.
    """

    passes: int = 0
    prompt_tokens: int = 0
    new_tokens: int = 0


class Model(Protocol):
    """What ``complete`` needs of a model, local or remote."""

    name: str

    @property
    def identity(self) -> dict[str, str]:
        """Everything about the model that changes its answers (name or content hash, revision, adapter, dtype ...)."""
        ...

    def generate(self, requests: Sequence[tuple[Prompt, int]], decoding: Decoding) -> Iterator[list[Completion]]:
        """Answer each (prompt, sample index); completions are yielded as soon as their rows finish, in any order."""
        ...
