"""Beam search: of each prompt the most probable unfinished answers go on side by side, each under its own constraint.

The rules are those of Transformers' ``generate(num_beams=k, do_sample=False)`` with its defaults (``length_penalty``
1, ``early_stopping`` False), and so are the answers. In each step the continuations of all beams of a prompt are ranked
by the sum of their log-probabilities. Those of the first k that end are finished, with the sum divided by their number
of tokens as score; the best k that do not end go on. The search is over when k answers are finished and the best beam
that goes on, divided by its length so far, does not exceed the worst of them, or when no beam goes on.

Under a constraint a token counts with its log-probability under the *free* model; what the mask leaves is not
renormalised. The score is then the probability of the text itself, whatever ruled it: beams in a name, beams outside of
any and unconstrained answers are compared in one measure, and of the texts that the constraints permit the search looks
for the one that the model finds most probable. Renormalised, the only suggestion at a place would cost nothing however
improbable it is, and a beam would gain by going where little is permitted.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from lookuplab.models.constraint import Constraint, restrict
from lookuplab.models.rows import Row
from lookuplab.models.states import CausalState, EncoderDecoderState


@dataclass
class Beam:
    """One unfinished answer. ``score`` is the sum of its log-probabilities, ``forced`` what it must write next.

    ``place`` is the row of the state that it continues: its parent's, until the state has followed.
    """

    row: Row
    place: int
    score: float = 0.0
    forced: Sequence[int] = ()

    def constraint(self) -> Constraint | None:
        """What rules its next token."""
        return OneToken(self.forced[0]) if self.forced else self.row.constraint

    def child(self, token: int, logprob: float, masked: bool, end_of_text: frozenset[int]) -> "Beam":
        """The same answer with one more token; finished or not."""
        row = self.row.copy()
        row.push(token, logprob, end_of_text, masked)
        return Beam(row, self.place, self.score + logprob, self.forced[1:] or row.forced())


class OneToken:
    """The part of a constraint that ``restrict`` asks for, where one token must follow."""

    below = 1.0

    def __init__(self, token: int) -> None:
        self._token = token

    def allowed(self) -> torch.Tensor:
        return torch.tensor([self._token])

    def condition(self) -> None:
        return None


@dataclass
class Search:
    """The search for one prompt's answer. ``finished`` are (score a token, answer), best first."""

    running: list[Beam]
    beams: int
    finished: list[tuple[float, Row]] = field(default_factory=list)

    def advance(self, tops: list[tuple[list[int], list[float], bool]], end_of_text: frozenset[int]) -> None:
        """One token more. ``tops``: of each row of the state the best next tokens, their log-probabilities, masked."""
        continuations = [(beam.score + logprob, beam, token, logprob, tops[beam.place][2])
                         for beam in self.running
                         for token, logprob in zip(*tops[beam.place][:2], strict=True) if logprob != -math.inf]
        continuations.sort(key=lambda continuation: -continuation[0])
        going: list[Beam] = []
        for rank, (score, beam, token, logprob, masked) in enumerate(continuations):
            if len(going) == self.beams:
                break
            child = beam.child(token, logprob, masked, end_of_text)
            if child.row.finish_reason is None:
                going.append(child)
            elif rank < self.beams:
                self.finished.append((score / len(child.row.tokens), child.row))
        self.finished = sorted(self.finished, key=lambda answer: -answer[0])[: self.beams]
        self.running = going

    @property
    def over(self) -> bool:
        """Whether nothing better is expected; an estimate, since a longer answer may still gain a token's mean."""
        if not self.running or len(self.finished) < self.beams:
            return not self.running
        best = self.running[0]
        return best.score / len(best.row.tokens) <= self.finished[-1][0]


def beam_search(state: CausalState | EncoderDecoderState, logits: torch.Tensor, rows: list[Row], beams: int,
                end_of_text: frozenset[int]) -> None:
    """Turn each row into its best finished answer. ``state`` and ``logits`` (rows, vocabulary) are behind the prompts.

    A prompt has as many rows in the state as it has beams, one at first.
    """
    searches = [Search([Beam(row, place)], beams) for place, row in enumerate(rows)]
    count = beams * (1 + max(1, len(end_of_text)))  # so many that ``beams`` of them go on, whichever ends there are
    unfinished = searches
    while unfinished:
        tops = _best([beam for search in unfinished for beam in search.running], logits, count)
        for search in unfinished:
            search.advance(tops, end_of_text)
        unfinished = [search for search in unfinished if not search.over]
        going = [beam for search in unfinished for beam in search.running]
        if not going:
            break
        places = [beam.place for beam in going]
        if places != list(range(len(logits))):
            state.keep(places)
        for place, beam in enumerate(going):
            beam.place = place
        logits = state.step(torch.tensor([beam.row.tokens[-1] for beam in going], device=logits.device))
    for row, search in zip(rows, searches, strict=True):
        vars(row).update(vars(search.finished[0][1]))


def _best(beams: list[Beam], logits: torch.Tensor, count: int) -> list[tuple[list[int], list[float], bool]]:
    """Of each row the best permitted tokens, their log-probabilities without a mask, and whether there was a mask."""
    restricted, masked, _ = restrict(logits, [beam.constraint() for beam in beams])
    best = restricted.topk(min(count, logits.shape[-1]))
    logprobs = best.values - logits.logsumexp(-1, keepdim=True)
    return list(zip(best.indices.tolist(), logprobs.tolist(), masked, strict=True))
