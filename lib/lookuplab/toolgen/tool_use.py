"""How the completion tool takes part in decoding (paper, Algorithms 2 and 3), as a constraint on
one row.

A row is free until the tool is asked. The answer becomes a trie of tokens, in which the model
chooses; behind the name comes a *break*, a token that cannot continue an identifier, and the row is
free again. Neither Algorithm 3 nor the replication package has that boundary: there a chosen
``foo`` may run on into ``foobar``, which nobody offered.

Without suggestions (an empty list, a failed call) the row goes on unconstrained. The mark has
spelled nothing, and it may not follow itself: the same question would have the same answer.
"""

import copy
import math
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property

import torch

from lookuplab.errors import UserError
from lookuplab.models.constraint import Condition, NameTries
from lookuplab.models.tokens import TAIL, UNFINISHED, decoded
from lookuplab.models.trie import ROOT, TokenTrie
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

    def trie(self, last: int, names: Sequence[str], prefix: str) -> TokenTrie | None:
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
        return TokenTrie(paths, closed) if paths else None


@dataclass
class Step:
    """One token of a row: its id, its natural log-probability under the free model, the ids (n,)
    that could stand here (None: any), and, where the tool was asked behind it, the answer.
    """

    token: int
    logprob: float
    allowed: torch.Tensor | None
    asked: Future[Answer] | None = None


class ToolConstraint:
    """One row's; ``steps`` is the record of what happened in it. ``ask`` takes the text of the
    function so far, without marks, and promises the tool's answer; ``before`` are the tokens that
    the row continues ([] if it begins a text of its own).
    """

    below = 1.0

    def __init__(
        self,
        use: ToolUse,
        vocabulary: Vocabulary,
        before: Sequence[int],
        ask: Callable[[str], Future[Answer]],
    ) -> None:
        self._use, self._vocabulary, self._before, self._ask = use, vocabulary, before, ask
        self.steps: list[Step] = []
        self._waiting = False  # for the answer to the last step's question
        self._prefix = ""  # what of a name was written when the tool was asked
        self._trie: TokenTrie | None = None
        self._node: int | None = None  # in the trie; None outside of names
        self._ending = False  # a name is over and its break is to come
        self._unanswered = False  # the last token asked for suggestions, and there are none
        self._sum = self._count = 0.0  # of the probabilities of the name's tokens

    def allowed(self) -> torch.Tensor | None:
        if self._waiting:
            self._collect()
        if self._ending:
            return self._vocabulary.names.breaks
        if self._node is None:
            return None
        children = self._trie.allowed(self._node)
        if not self._trie.terminal(self._node):
            return children
        return torch.cat([children, self._vocabulary.names.breaks])

    def condition(self) -> Condition | None:
        if self._node is not None:
            if self._use.ends != "mean" or not self._trie.terminal(self._node):
                return None
            mean = self._sum / max(1, self._count)
            return Condition(self._trie.allowed(self._node), mean, binding=True)
        mark = self._vocabulary.mark
        if self._ending or mark is None:
            return None
        least = NEVER if self._unanswered or self._use.trigger != "mark" else self._use.gate
        return Condition(torch.tensor([mark]), least) if least > 0 else None

    def push(self, token: int, logprob: float, masked: bool) -> None:
        self.steps.append(Step(token, logprob, self.allowed()))
        self._unanswered = False
        if self._node is not None:
            self._follow(token, logprob)
            if self._node is not None or self._ending:
                return
        self._ending = False
        text = self._question(token)
        if text is not None and text.endswith(UNFINISHED):
            self._unanswered = True  # within a character; no name can follow
        elif text is not None:
            self._prefix = re.search(r"\w*\Z", text)[0]
            self.steps[-1].asked, self._waiting = self._ask(text), True

    def forced(self) -> Sequence[int]:
        return self._trie.forced(self._node) if self._node is not None else ()

    def copy(self) -> "ToolConstraint":
        twin = copy.copy(self)
        twin.steps = list(self.steps)
        return twin

    def _question(self, token: int) -> str | None:
        """The text behind which the tool is asked after this token; None if it is not."""
        marked = self._use.trigger == "mark" and token == self._vocabulary.mark
        piece = self._vocabulary.piece(token)
        if not marked and not (self._use.trigger == "dot" and re.search(r"\.\w*\Z", piece)):
            return None
        text = self._vocabulary.text(self._before, [step.token for step in self.steps])
        return text if marked or behind_a_dot(text) else None

    def _collect(self) -> None:
        """Go into the trie of the answer that is waited for."""
        last, self._waiting = self.steps[-1], False
        names = suggestions(last.asked.result(), self._use.trigger)
        self._trie = self._vocabulary.trie(last.token, names, self._prefix)
        self._sum = self._count = 0.0
        self._unanswered = self._trie is None
        if self._trie is not None:
            self._enter(ROOT)

    def _follow(self, token: int, logprob: float) -> None:
        self._sum += math.exp(logprob)
        self._count += 1
        child = self._trie.child(self._node, token)
        if child is None or self._trie.closed(child):  # the break was read, alone or in this token
            self._node = None
        else:
            self._enter(child)

    def _enter(self, node: int) -> None:
        self._node = node
        leaf = not len(self._trie.allowed(node))
        if self._trie.terminal(node) and (self._use.ends == "first" or leaf):
            self._node, self._ending = None, True
