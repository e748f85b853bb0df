"""What may come next in a row: the hook through which decoding is constrained, and names as such a constraint.

A name is constrained from the first token of the answer. It must be one of the given names, and once
it is spelled it must end: with a *break* (a token that begins with a character which cannot continue
an identifier, or the end of the text), so that ``foo`` cannot run on into ``foobar``; or it goes on as
a longer one of the names. Behind the break the row is free. Two spellings of a name are paths of the
trie: the tokenizer's own, in the context of the prompt's end, and the one with "(" behind it, because
a tokenizer may merge it with the name's end. Other spellings are not: under a gate a model that freely
begins one has left the names.
"""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Protocol

import torch

from lookuplab.errors import UserError
from lookuplab.models.tokens import TAIL, UNFINISHED, continuations, decoded


class Constraint(Protocol):
    """Rules one row. It may be idle at first and become active in the middle of the row.

    One that waits for another program (a completion tool, say) asks it in ``push`` and collects the
    answer in ``restrict``: the model's forward pass lies between the two. ``copy.copy`` gives one for
    another continuation of the same beginning.
    """

    def restrict(self, logits: torch.Tensor) -> tuple[torch.Tensor, float] | None:
        """Logits (vocabulary,) with -inf for what may not come next; None if any token may.

        Also how far a probability was from what a gate asked of it, inf where none did.
        """
        ...

    def push(self, token: int, logprob: float) -> None:
        """``token`` was appended; ``logprob`` is that of the model without any constraint."""
        ...

    def record(self) -> object:
        """What a finished row's answer keeps of it (``Completion.record``)."""
        ...


class Trie(dict[int, "Trie"]):
    """A node of a prefix tree over token ids, ``{token: node}`` (ToolGen, Algorithm 3).

    At a ``terminal`` node a name is spelled and may go on into a longer one; at a ``closed`` node its
    last token holds a character behind the name as well, as in ``t(``.
    """

    terminal = closed = False

    @classmethod
    def of(cls, names: Iterable[Sequence[int]], closed: Iterable[Sequence[int]] = ()) -> "Trie":
        """The root; ``names`` end in terminal nodes, ``closed`` in closed ones."""
        root = cls()
        for kind, paths in (("terminal", names), ("closed", closed)):
            for path in paths:
                node = root
                for token in path:
                    node = node.setdefault(token, cls())
                setattr(node, kind, True)
        return root


class NameTries:
    """How one model's tokens spell names; keeps the tries of the (end of the prompt, names) that it has seen."""

    def __init__(self, tokenizer, end_of_text: frozenset[int]) -> None:
        self._tokenizer, self._end_of_text = tokenizer, end_of_text
        self._tries: dict[tuple, Trie] = {}
        # (tail, name) -> tokens of the name, and of the name with "(" behind it
        self._spelled: dict[tuple, list] = {}

    def constraint(self, prompt_ids: Sequence[int], names: Sequence[str]) -> "NameConstraint":
        """For one row; ``prompt_ids`` are the tokens that its answer continues, [] if it begins a text.

        What of the prompt decides how a name is spelled is its last tokens from the last line break on:
        no tokenizer of a code model merges a name with the line before, and so all prompts that end in
        ``response = client.`` share their tries. UserError for names that the tokenizer cannot spell.
        """
        tail = tuple(prompt_ids[-TAIL:])
        lines = [at for at, token in enumerate(tail[:-1]) if "\n" in self.texts[token]]
        tail = tail[lines[-1] + 1 :] if lines else tail
        key = tail, tuple(sorted(set(names)))
        if key not in self._tries:
            paths, closed, unspelled = self.paths(*key)
            if unspelled:
                raise UserError(
                    f"choices: the model's tokenizer cannot spell {unspelled[0]!r} ({len(unspelled)} "
                    "such names); leave them out"
                )
            self._tries[key] = Trie.of(paths, closed)
        return NameConstraint(self, self._tries[key])

    @cached_property
    def texts(self) -> list[str]:
        """What each token of the vocabulary spells behind other text; "" for special tokens."""
        begun = self._tokenizer("x", add_special_tokens=False)["input_ids"]
        rows = [begun, *([*begun, token] for token in range(len(self._tokenizer)))]
        before, *texts = decoded(self._tokenizer, rows)
        return [text[len(before) :] for text in texts]

    @cached_property
    def breaks(self) -> torch.Tensor:
        """Ids (n,) of the tokens that end a name: end of text, and what begins with a character outside identifiers.

        Half a character is none of them, and neither is a special token, which spells nothing.
        """

        def ends_a_name(text: str) -> bool:
            return text[:1] not in ("", UNFINISHED) and not f"a{text[0]}".isidentifier()

        ends = {token for token, text in enumerate(self.texts) if ends_a_name(text)}
        return torch.tensor(sorted(ends | self._end_of_text))

    def only(self, logits: torch.Tensor, tokens: Iterable[int], may_end: bool) -> torch.Tensor:
        """Logits (vocabulary,) with -inf for all but ``tokens`` and, if ``may_end``, the breaks."""
        kept = torch.zeros_like(logits, dtype=torch.bool)
        kept[list(tokens)] = True
        if may_end:
            self.breaks = self.breaks.to(logits.device)  # once
            kept[self.breaks] = True
        return logits.masked_fill(~kept, -torch.inf)

    def paths(
        self, tail: tuple[int, ...], names: Sequence[str]
    ) -> tuple[list[list[int]], list[list[int]], list[str]]:
        """How the names are spelled behind the tokens ``tail``: the paths of a trie, its closed ones, and the
        names that the tokenizer cannot spell. A name is tokenised once behind each tail."""
        if missing := [name for name in names if (tail, name) not in self._spelled]:
            plain = continuations(self._tokenizer, tail, missing)
            called = continuations(self._tokenizer, tail, [f"{name}(" for name in missing])
            for name, *both in zip(missing, plain, called, strict=True):
                self._spelled[tail, name] = both
        paths, closed, unspelled = [], [], []
        for name in names:
            path, call = self._spelled[tail, name]
            if path is None:
                unspelled.append(name)
            else:
                paths.append(path)
            if call is not None and self.texts[call[-1]] == "(":
                paths.append(call[:-1])
            elif call is not None:
                closed.append(call)
        return paths, closed, unspelled


class NameConstraint:
    """The row begins with one of a trie's names."""

    def __init__(self, names: NameTries, trie: Trie) -> None:
        self._names = names
        self._node: Trie | None = trie  # None: the name is over

    def restrict(self, logits: torch.Tensor) -> tuple[torch.Tensor, float] | None:
        if self._node is None:
            return None
        return self._names.only(logits, self._node, self._node.terminal), math.inf

    def push(self, token: int, logprob: float) -> None:
        node = None if self._node is None else self._node.get(token)
        self._node = None if node is None or node.closed else node

    def record(self) -> None:
        """Nothing."""
