"""One row of a batch: a prompt, what has been generated after it, and whether it is finished."""

import hashlib
import math
from copy import deepcopy
from dataclasses import dataclass, field, replace

import numpy as np

from lookuplab.models.constraint import Constraint
from lookuplab.models.stopping import Rule
from lookuplab.models.tokens import Encoded, Spelling
from lookuplab.models.types import Completion, Decoding, Prompt


@dataclass
class Row:
    """Grows by ``push`` until ``finish_reason`` is set. ``limit`` is how many new tokens it may have."""

    prompt: Prompt
    sample: int
    encoded: Encoded
    limit: int
    rules: list[Rule]
    spelling: Spelling
    constraint: Constraint | None = None
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    margin: float = math.inf
    finish_reason: str | None = None

    def push(self, token: int, logprob: float, end_of_text: frozenset[int], masked: bool = False,
             margin: float = math.inf) -> None:
        """Append one token and see whether it was the last. ``masked``: the constraint left out other tokens.

        ``margin``: how near the choice was to another one; inf where there was none.
        """
        piece = self.spelling.piece(token)
        self.tokens.append(token)
        self.logprobs.append(logprob)
        self.pieces.append(piece)
        self.margin = min(self.margin, margin)
        if self.constraint:
            self.constraint.push(token, logprob, masked)
        if token in end_of_text:
            self.finish_reason = "eos"
        elif piece and any([rule.feed(piece) for rule in self.rules]):
            self.finish_reason = "stop"
        elif len(self.tokens) >= self.limit:
            self.finish_reason = "length"

    def copy(self) -> "Row":
        """A row that goes on from here by itself; what it shares with this one never changes."""
        return replace(self, rules=deepcopy(self.rules), spelling=self.spelling.copy(),
                       constraint=self.constraint and self.constraint.copy(),
                       tokens=[*self.tokens], logprobs=[*self.logprobs], pieces=[*self.pieces])

    def active(self) -> Constraint | None:
        """The constraint, while the row is not finished."""
        return self.constraint if self.finish_reason is None else None

    def forced(self) -> list[int]:
        """Tokens that the constraint makes the row write now, as far as there is room for them."""
        constraint = self.active()
        return list(constraint.forced()[: self.limit - len(self.tokens)]) if constraint else []

    def completion(self) -> Completion:
        """The finished row. Bytes that never became a character are spelled by the last token."""
        pieces = list(self.pieces)
        if pieces and not pieces[-1]:
            pieces[-1] = self.spelling.rest(self.tokens, pieces)
        return Completion(
            id=self.prompt.id,
            sample=self.sample,
            text="".join(pieces),
            tokens=tuple(pieces),
            token_ids=tuple(self.tokens),
            token_logprobs=tuple(self.logprobs),
            finish_reason=self.finish_reason,
            prompt_tokens=len(self.encoded.ids),
            prompt_dropped=self.encoded.dropped,
            margin=None if self.margin == math.inf else self.margin,
        )


def uniforms(row: Row, decoding: Decoding) -> np.ndarray:
    """The row's own random numbers in [0, 1), one a token: they depend on seed, prompt id and sample alone."""
    name = f"{decoding.seed}\x1f{row.prompt.id}\x1f{row.sample}"
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "big")
    return np.random.default_rng(seed).random(decoding.max_new_tokens)
