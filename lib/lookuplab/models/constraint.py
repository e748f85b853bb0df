"""What may come next in a row: the hook through which the decode loop is constrained, and names as such a constraint.

A name is constrained from the first token of the answer. It must be one of the given names, and once it is spelled it
must end: with a *break* (a token that begins with a character which cannot continue an identifier, or the end of the
text), so that ``foo`` cannot run on into ``foobar``; or it goes on as a longer one of the names. Behind the break the
row is free. Two spellings of a name are paths of the trie: the tokenizer's own, in the context of the prompt's end,
and the one with "(" behind it, because a tokenizer may merge it with the name's end. Other spellings are not: under a
gate a model that freely begins one has left the names.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch

from lookuplab.errors import UserError
from lookuplab.models.tokens import TAIL, continuations, single_texts
from lookuplab.models.trie import ROOT, TokenTrie


@dataclass(frozen=True)
class Condition:
    """Tokens that need a probability to come: the most likely of ``ids`` (n,), allowed ones, must have ``least``.

    If it has, the next token is one of ``ids`` where ``binding``, and any that is allowed otherwise; if it has not, it
    is none of them.
    """

    ids: torch.Tensor
    least: float
    binding: bool = False


class Constraint(Protocol):
    """Rules one row. It may be idle at first and become active in the middle of the row.

    At each step the loop asks ``below``, ``allowed`` and ``condition``, chooses a token and tells it by ``push``, then
    asks for ``forced``. A constraint that waits for another program (a completion tool, say) asks it in ``push`` and
    collects the answer in ``allowed``: the model's forward pass lies between the two.
    """

    @property
    def below(self) -> float:
        """The mask is in force if the model's most likely token has a probability below this; 1 is always."""
        ...

    def allowed(self) -> torch.Tensor | None:
        """Ids (n,), at least one, of the tokens that may come next; None if any may."""
        ...

    def condition(self) -> Condition | None:
        """Which of the allowed tokens come only with enough probability; None without such tokens."""
        ...

    def push(self, token: int, logprob: float, masked: bool) -> None:
        """``token`` was appended; ``logprob`` as recorded; ``masked`` says whether the mask was in force."""
        ...

    def forced(self) -> Sequence[int]:
        """Tokens that must follow, whatever the model thinks of them; the loop appends them in one forward pass."""
        ...

    def copy(self) -> "Constraint":
        """The same rules in the same state, for another row that goes on from here; beams ask for it before ``push``.

        What never changes may be shared, and so may an answer that both are waiting for.
        """
        ...


class NameConstraint:
    """The row begins with one of a trie's names.

    ``below`` is the gate, a probability. Under a gate below 1 the model's free choice stands wherever it is sure
    enough; if that choice leaves the trie, the row is free from there: a confidently invented name stays possible.
    Once the mask was in force in a name, the rest of this name stays constrained.
    """

    def __init__(self, trie: TokenTrie, breaks: torch.Tensor, below: float = 1.0) -> None:
        self._trie, self._breaks, self._gate = trie, breaks, below
        self._node: int | None = ROOT  # None: the name is over

    @property
    def below(self) -> float:
        return self._gate

    def allowed(self) -> torch.Tensor | None:
        if self._node is None:
            return None
        children = self._trie.allowed(self._node)
        if not self._trie.terminal(self._node):
            return children
        return torch.cat([children, self._breaks]) if len(children) else self._breaks

    def condition(self) -> None:
        return None

    def push(self, token: int, logprob: float, masked: bool) -> None:
        if self._node is None:
            return
        if masked:
            self._gate = 1.0
        self._node = self._trie.child(self._node, token)
        if self._node is not None and self._trie.closed(self._node):
            self._node = None

    def forced(self) -> Sequence[int]:
        return self._trie.forced(self._node) if self._node is not None and self._gate >= 1 else ()

    def copy(self) -> "NameConstraint":
        return copy.copy(self)  # trie and breaks stay as they are


class NameTries:
    """Makes the name constraints of one model; keeps the tries of the (end of the prompt, names) that it has seen."""

    def __init__(self, tokenizer, end_of_text: frozenset[int]) -> None:
        self._tokenizer, self._end_of_text = tokenizer, end_of_text
        self._tries: dict[tuple[tuple[int, ...], tuple[str, ...]], TokenTrie] = {}
        self._paths: dict[tuple[tuple[int, ...], str], tuple[list[int] | None, ...]] = {}

    def constraint(self, prompt_ids: Sequence[int], names: tuple[str, ...], below: float) -> NameConstraint:
        """For one row. ``prompt_ids`` are the tokens that its answer continues, [] if it begins a text of its own.

        UserError for names that the tokenizer cannot spell.
        """
        key = (self._context(prompt_ids), names)
        if key not in self._tries:
            self._tries[key] = self._trie(*key)
        return NameConstraint(self._tries[key], self.breaks, below)

    def _context(self, prompt_ids: Sequence[int]) -> tuple[int, ...]:
        """What of the prompt decides how a name is spelled: its last tokens, from the last line break on.

        No tokenizer of a code model merges a name with the line before, and so all prompts that end in the line
        ``response = client.`` share their tries.
        """
        tail = tuple(prompt_ids[-TAIL:])
        lines = [at for at, token in enumerate(tail[:-1]) if "\n" in self.texts[token]]
        return tail[lines[-1] + 1 :] if lines else tail

    @cached_property
    def breaks(self) -> torch.Tensor:
        """Ids (n,) of the tokens that end a name: end of text, and what begins with a character outside identifiers.

        Half a character is none of them, and neither is a special token, which spells nothing.
        """
        ends = {i for i, text in enumerate(self.texts) if text and not continues_a_name(text[0])}
        return torch.tensor(sorted(ends | self._end_of_text), dtype=torch.long)

    @cached_property
    def texts(self) -> list[str]:
        """What each token spells behind other text, "" for special tokens."""
        return single_texts(self._tokenizer)

    def paths(self, tail: tuple[int, ...], names: Sequence[str]) -> tuple[list[list[int]], list[list[int]], list[str]]:
        """How the names are spelled behind the tokens ``tail``: paths of a TokenTrie, its closed ones, and the names
        that the tokenizer cannot spell. A name is tokenised once behind each tail."""
        missing = [name for name in dict.fromkeys(names) if (tail, name) not in self._paths]
        if missing:
            plain = continuations(self._tokenizer, tail, missing)
            called = continuations(self._tokenizer, tail, [f"{name}(" for name in missing])
            for name, path, call in zip(missing, plain, called, strict=True):
                separate = call is not None and self.texts[call[-1]] == "("
                self._paths[tail, name] = path, call[:-1] if separate else None, None if separate else call
        found = [self._paths[tail, name] for name in names]
        return ([path for plain, other, _ in found for path in (plain, other) if path is not None],
                [closed for _, _, closed in found if closed is not None],
                [name for name, (plain, _, _) in zip(names, found, strict=True) if plain is None])

    def _trie(self, tail: tuple[int, ...], names: tuple[str, ...]) -> TokenTrie:
        paths, closed, unspelled = self.paths(tail, names)
        if unspelled:
            raise UserError(f"choices: the model's tokenizer cannot spell {unspelled[0]!r} ({len(unspelled)} such "
                            "names); leave them out")
        return TokenTrie(paths, closed)


def continues_a_name(character: str) -> bool:
    """Whether an identifier may go on with it; unfinished bytes may."""
    return f"a{character}".isidentifier() or character == "\ufffd"


def restrict(logits: torch.Tensor, constraints: Sequence[Constraint | None]
             ) -> tuple[torch.Tensor, list[bool], torch.Tensor]:
    """Logits (rows, vocabulary) in which every token that may not come next is -inf, and the rows that have a mask.

    Free rows come back as they are. One scatter for the whole batch, whatever the number of names.
    Last, of each row, how far the probability that a gate or a condition asked for was from what it needed; inf
    without such a question.
    """
    margin = logits.new_full((len(logits),), torch.inf)
    asked = [(i, constraint.below, constraint.allowed()) for i, constraint in enumerate(constraints) if constraint]
    asked = [(i, below, ids) for i, below, ids in asked if ids is not None]
    if any(below < 1 for _, below, _ in asked):
        likely = (logits.max(-1).values - logits.logsumexp(-1)).exp()
        gates = torch.ones(len(logits))
        for i, below, _ in asked:
            gates[i] = below
        margin = (likely - gates.to(likely)).abs().masked_fill((gates >= 1).to(margin.device), torch.inf)
        surest = likely.tolist()
        asked = [(i, below, ids) for i, below, ids in asked if below >= 1 or surest[i] < below]
    masked = [False] * len(constraints)
    for i, _, _ in asked:
        masked[i] = True
    restricted = _only(logits, logits, [(i, ids) for i, _, ids in asked]) if asked else logits
    conditions = [(i, constraint.condition()) for i, constraint in enumerate(constraints) if constraint]
    conditions = [(i, condition) for i, condition in conditions if condition]
    return (_conditioned(logits, restricted, conditions, margin) if conditions else restricted), masked, margin


def _only(logits: torch.Tensor, restricted: torch.Tensor, allowed: list[tuple[int, torch.Tensor]]) -> torch.Tensor:
    """``restricted`` with the logits of these tokens alone in the rows named; all (rows, vocabulary)."""
    rows, at, ids = _places(allowed, logits.device)
    restricted = restricted.index_fill(0, rows, -torch.inf)
    restricted[at, ids] = logits[at, ids]
    return restricted


def _places(ids: list[tuple[int, torch.Tensor]], device: torch.device) -> tuple[torch.Tensor, ...]:
    """Rows (named,), and row and token of every id: the indices of a scatter."""
    rows = torch.tensor([i for i, _ in ids])
    at = rows.repeat_interleave(torch.tensor([len(tokens) for _, tokens in ids]))
    return rows.to(device), at.to(device), torch.cat([tokens for _, tokens in ids]).to(device)


def _conditioned(logits: torch.Tensor, restricted: torch.Tensor, conditions: list[tuple[int, Condition]],
                 margin: torch.Tensor) -> torch.Tensor:
    """``restricted`` (rows, vocabulary) under conditions on ``logits``. The device is not waited for.

    ``margin`` (rows,) is lowered to the distances from what the conditions need.
    """
    rows, at, ids = _places([(i, condition.ids) for i, condition in conditions], logits.device)
    least = torch.tensor([condition.least for _, condition in conditions], device=logits.device)
    values = restricted[at, ids]
    best = logits.new_full((len(logits),), -torch.inf).scatter_reduce(0, at, values, "amax")
    reached = torch.zeros(len(logits), dtype=torch.bool, device=logits.device)
    sure = (best - logits.logsumexp(-1)).exp()[rows]
    reached[rows] = sure >= least
    margin[rows] = torch.minimum(margin[rows], (sure - least).abs())
    binding = torch.tensor([i for i, condition in conditions if condition.binding], device=logits.device)
    restricted = restricted.clone()
    if len(binding):
        restricted[binding] = restricted[binding].masked_fill(reached[binding, None], -torch.inf)
    restricted[at, ids] = values.masked_fill(~reached[at], -torch.inf)
    return restricted
