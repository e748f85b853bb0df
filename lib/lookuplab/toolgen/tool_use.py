"""How the completion tool takes part in decoding (paper, Algorithms 2 and 3), as a constraint on
one row.

A row is free until the tool is asked. The answer becomes a trie of tokens, in which the model
chooses; behind the name comes a *break*, a token that cannot continue an identifier, and the row is
free again. Neither Algorithm 3 nor the replication package has that boundary: there a chosen
``foo`` may run on into ``foobar``, which nobody offered.

Without suggestions (an empty list, a failed call) the row goes on unconstrained. The mark has
spelled nothing, and it may not follow itself: the same question would have the same answer.
"""

import math
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property

import torch

from lookuplab.errors import UserError
from lookuplab.models.constraint import NameTries, Trie
from lookuplab.models.tokens import TAIL, UNFINISHED, decoded
from lookuplab.toolgen.jedi_tool import Answer, behind_a_dot, suggestions
from lookuplab.toolgen.marking import MARK, VARIANTS

NEVER = 2.0  # what no probability reaches
_KNOWN = {
    "trigger": ("mark", "dot", None),
    "variant": VARIANTS,
    "ends": ("first", "mean", "break"),
}


@dataclass(frozen=True)
class ToolUse:
    """When the tool is asked and where a suggestion ends.

    ``trigger``: "mark" asks where the model writes the mark, "dot" behind a dot that follows an
    expression (monitor-guided decoding: no fine-tuning, any model), None never; a mark that
    triggers nothing is not written.
    ``gate``: the mark is written only if its probability is at least this (0: wherever it is the
    most likely token).
    ``ends``: at a node that ends one suggestion and continues to others, "first" ends there
    (Algorithm 3), "mean" goes on unless the mean probability of the name's tokens exceeds that with
    the best child, "break" takes a child or a break, whichever the model prefers. None is the
    variant's: 0 and "first" for "paper", 0.8 and "mean" for "package". Monitor-guided decoding
    masks until a break, so that "dot" has "break".
    ``variant`` also decides how the tool is asked (``jedi_tool.unsaved``).
    """

    trigger: str | None = "mark"
    variant: str = "paper"
    gate: float | None = None
    ends: str | None = None

    def __post_init__(self) -> None:
        gate, ends = (0.0, "first") if self.variant == "paper" else (0.8, "mean")
        ends = "break" if self.trigger == "dot" else ends
        object.__setattr__(self, "gate", gate if self.gate is None else float(self.gate))
        object.__setattr__(self, "ends", self.ends or ends)
        for name, known in _KNOWN.items():
            if getattr(self, name) not in known:
                raise UserError(
                    f"tool use: {name} is {getattr(self, name)!r}; it must be one of "
                    f"{', '.join(map(str, known))}"
                )


class Vocabulary:
    """One model's tokens, as the constraints of its rows need them. ``mark`` is the mark's id, None
    without one.
    """

    def __init__(self, tokenizer, end_of_text: frozenset[int]) -> None:
        self.tokenizer = tokenizer
        self.names = NameTries(tokenizer, end_of_text)
        self.mark: int | None = tokenizer.get_added_vocab().get(MARK)

    def piece(self, token: int) -> str:
        """What one token spells behind other text, "" for ids behind the tokenizer's last: models
        are padded.
        """
        return self.names.texts[token] if token < len(self.names.texts) else ""

    def text(self, before: Sequence[int], tokens: Sequence[int]) -> str:
        """What the tokens spell behind those of ``before``, the mark nothing."""
        tail = list(before[-TAIL:])
        start, whole = decoded(self.tokenizer, [tail, [*tail, *tokens]])
        return whole[len(start) :]

    @cached_property
    def behind_mark(self) -> tuple[int, ...]:
        """Tokens behind which a marked name is tokenised."""
        return (*self.tokenizer("x.", add_special_tokens=False)["input_ids"], self.mark)

    def trie(self, last: int, names: Sequence[str], prefix: str) -> Trie | None:
        """The suggestions that begin with ``prefix``, which is written, as a trie of what is left
        of them.

        ``last`` is the row's last token. Behind a mark a name is tokenised as it was in training,
        by itself. None if no name begins so and can be spelled.
        """
        tail = self.behind_mark if last == self.mark else (last,)
        rests = [name[len(prefix) :] for name in names if name.startswith(prefix)]
        paths, closed, _ = self.names.paths(tail, [rest for rest in rests if rest])
        if "" in rests:
            paths = [[], *paths]
        return Trie.of(paths, closed) if paths else None


@dataclass
class Step:
    """One token of a row: its id, its probability under the free model, whether it is the mark.

    ``allowed`` are the ids of the suggestions' tokens that could stand here, [] where a name had to
    end, None where any token could; ``forced``: a single one could, and the model was not asked.
    ``asked`` says that the tool was asked behind this token, ``offered`` are the names of its
    answer, ``failure`` is why there is none. ``text`` is what the token spells in the answer.
    """

    token: int
    probability: float
    mark: bool
    allowed: list[int] | None
    forced: bool
    text: str = ""
    asked: bool = False
    offered: tuple[str, ...] = ()
    failure: str = ""


class ToolConstraint:
    """One row's; ``steps`` is the record of what happened in it. ``ask`` takes the text of the
    function so far, without marks, and promises the tool's answer; ``before`` are the tokens that
    the row continues ([] if it begins a text of its own).
    """

    def __init__(
        self,
        use: ToolUse,
        vocabulary: Vocabulary,
        before: Sequence[int],
        ask: Callable[[str], Future[Answer]],
    ) -> None:
        self._use, self._vocabulary, self._before, self._ask = use, vocabulary, before, ask
        self.steps: list[Step] = []
        self._answer: Future[Answer] | None = None  # to the last step's question
        self._prefix = ""  # what of a name was written when the tool was asked
        self._node: Trie | None = None  # in the answer's trie; None outside of names
        self._ending = False  # a name is over and its break is to come
        self._unanswered = False  # the last token asked for suggestions, and there are none
        self._sum = self._count = 0.0  # of the probabilities of the name's tokens

    def choices(self) -> tuple[list[int], bool] | None:
        """(Tokens of suggestions, whether a name may end) that may come next; None: any token."""
        self._collect()
        if self._ending:
            return [], True
        return None if self._node is None else (sorted(self._node), self._node.terminal)

    def restrict(self, logits: torch.Tensor) -> tuple[torch.Tensor, float] | None:
        choices, mark, margin = self.choices(), self._vocabulary.mark, math.inf
        if choices is None:
            least = NEVER if self._unanswered or self._use.trigger != "mark" else self._use.gate
            if mark is None or least <= 0:
                return None
            sure = (logits[mark] - logits.logsumexp(-1)).exp().item()
            if sure < least:
                logits = logits.clone()
                logits[mark] = -torch.inf
            return logits, abs(sure - least)
        tokens, may_end = choices
        if tokens and may_end and self._use.ends == "mean":
            sure = (logits[tokens].max() - logits.logsumexp(-1)).exp().item()
            mean = self._sum / max(1, self._count)
            tokens, may_end = (tokens, False) if sure >= mean else ([], True)
            margin = abs(sure - mean)
        return self._vocabulary.names.only(logits, tokens, may_end), margin

    def push(self, token: int, logprob: float) -> None:
        allowed, may_end = self.choices() or (None, False)
        forced = len(allowed or ()) == 1 and not may_end
        probability, mark = math.exp(logprob), token == self._vocabulary.mark
        self.steps.append(Step(token, probability, mark, allowed, forced))
        self._unanswered = False
        if self._node is not None:
            self._follow(token, probability)
            if self._node is not None or self._ending:
                return
        self._ending = False
        text = self._question(token)
        if text is not None and text.endswith(UNFINISHED):
            self._unanswered = True  # within a character; no name can follow
        elif text is not None:
            self._prefix = re.search(r"\w*\Z", text)[0]
            self.steps[-1].asked, self._answer = True, self._ask(text)

    def _question(self, token: int) -> str | None:
        """The text behind which the tool is asked after this token; None if it is not."""
        marked = self._use.trigger == "mark" and token == self._vocabulary.mark
        piece = self._vocabulary.piece(token)
        if not marked and not (self._use.trigger == "dot" and re.search(r"\.\w*\Z", piece)):
            return None
        text = self._vocabulary.text(self._before, [step.token for step in self.steps])
        return text if marked or behind_a_dot(text) else None

    def _collect(self) -> None:
        """Go into the trie of the answer that is waited for, if one is."""
        if self._answer is None:
            return
        last, answer, self._answer = self.steps[-1], self._answer.result(), None
        last.offered, last.failure = suggestions(answer, self._use.trigger), answer.failure
        trie = self._vocabulary.trie(last.token, last.offered, self._prefix)
        self._sum = self._count = 0.0
        self._unanswered = trie is None
        if trie is not None:
            self._enter(trie)

    def _follow(self, token: int, probability: float) -> None:
        self._sum += probability
        self._count += 1
        child = self._node.get(token)
        if child is None or child.closed:  # the break was read, alone or in this token
            self._node = None
        else:
            self._enter(child)

    def _enter(self, node: Trie) -> None:
        self._node = node
        if node.terminal and (self._use.ends == "first" or not node):
            self._node, self._ending = None, True
