"""How the completion tool takes part in decoding (paper, Algorithms 2 and 3), as a constraint on
one row.

A row is unconstrained until the tool is asked. The answer becomes a trie of tokens, in which the
model chooses; after the name comes a *break*, a token that cannot continue an identifier, and the
row is unconstrained again. Neither
Algorithm 3 nor the replication package has that boundary: without it (``boundary=False``) a chosen
``foo`` may continue to ``foobar``, which was not offered.

Without suggestions (an empty list, a failed call) the row continues unconstrained. The mark itself
spells nothing, and it may not follow itself, because the same question would have the same answer.
"""

import math
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from lookuplab.errors import UserError, check_choice
from lookuplab.models.constraint import NameTries, Trie
from lookuplab.models.tokens import TAIL, UNFINISHED, decoded
from lookuplab.toolgen.jedi_tool import ToolAnswer, behind_a_dot, suggestions
from lookuplab.toolgen.marking import SKIPPED
from lookuplab.toolgen.pairs import add_mark, mark_of
from lookuplab.toolgen.rules import PAPER_RULES, Rules

if TYPE_CHECKING:
    import torch

NEVER = 2.0  # higher than any probability


@dataclass(frozen=True)
class ToolUse:
    """When the tool is asked and where a suggestion ends.

    ``trigger``: "mark" asks where the model writes the mark, "dot" after a dot that follows an
    expression (monitor-guided decoding: no fine-tuning, any model), None never; a mark that is not
    the trigger is not written.

    ``gate``: the tool is asked only if the mark's probability is at least this (0: wherever the
    mark is the most likely token). A less probable mark is not written; with
    ``rules.weak_marks`` it is written, but the tool is not asked.

    ``ends``: what happens when one suggestion is complete and longer ones continue it. "first": the
    name ends there (Algorithm 3). "mean": the name goes on if the most likely next token of a
    longer one is at least as probable as the name's tokens so far on average. "break": the model
    chooses between such a token and a break; this is the value for "dot", because monitor-guided
    decoding constrains the model until a break.

    ``boundary``: a break follows the name; otherwise the row is unconstrained from the end of the
    name.

    None means the default of ``rules``: 0, "first" and a boundary for the paper's; 0.8, "mean" and
    no boundary for the package's. Anything else raises UserError.

    ``rules`` also decide how the tool is asked (``jedi_tool.unsaved``), how the prompt is
    written (``pairs.prompt_text``), and what is offered: with the package's whatever Jedi would insert,
    including keywords,
    ``__x__`` and ``name=``, unless it is nothing but words of ``marking.SKIPPED``.
    """

    trigger: Literal["mark", "dot"] | None = "mark"
    rules: Rules = PAPER_RULES
    gate: float | None = None
    ends: Literal["first", "mean", "break"] | None = None
    boundary: bool | None = None

    def __post_init__(self) -> None:
        check_choice("trigger", self.trigger, ("mark", "dot", None))
        check_choice("ends", self.ends, ("first", "mean", "break", None))
        check_choice("boundary", self.boundary, (True, False, None))
        if self.gate is not None and not 0 <= self.gate <= NEVER:
            raise UserError(f"gate is {self.gate}; it must be a probability, or {NEVER} for never")
        rules, dot = self.rules, self.trigger == "dot"
        own = {
            "gate": rules.gate,
            "ends": "break" if dot else rules.ends,
            "boundary": rules.boundary or dot,
        }
        for name, value in own.items():
            if (given := getattr(self, name)) is not None:
                value = type(value)(given)
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        """As in the keys of stored answers: the paper's rules have a boundary unless it says
        otherwise.
        """
        parts = {
            "trigger": self.trigger,
            "variant": self.rules,
            "gate": self.gate,
            "ends": self.ends,
            "boundary": self.boundary,
        }
        if self.rules.boundary and self.boundary:
            del parts["boundary"]
        return ", ".join(f"{name} {value}" for name, value in parts.items())


def role_of(name: str) -> tuple[str, str]:
    """A model's name and condition in tables: ``gpt-toolgen`` is "gpt", "toolgen"; a name that ends
    in neither ``-toolgen`` nor ``-base`` is a base model's.
    """
    role, _, condition = name.rpartition("-")
    return (role, condition) if condition in ("base", "toolgen") else (name, "base")


class Vocabulary(NameTries):
    """One model's tokens, as the constraints of its rows need them. ``mark`` is the mark's id, None
    if it has none.
    """

    def __init__(self, tokenizer, end_of_text: frozenset[int]) -> None:
        super().__init__(tokenizer, end_of_text)
        self.tokenizer = tokenizer
        has_mark = mark_of(tokenizer) in tokenizer.get_added_vocab()
        # a special token from now on
        self.mark: int | None = add_mark(tokenizer) if has_mark else None

    def piece(self, token: int) -> str:
        """What one token spells after other text.

        It is "" for ids beyond the tokenizer's last, because models are padded.
        """
        return self.texts[token] if token < len(self.texts) else ""

    def spellings(
        self, last: int, names: Sequence[str], begun: str
    ) -> tuple[list[list[int]], list[list[int]]]:
        """The suggestions that begin with ``begun``, which is already written, as the tokens of
        what is left of them; and those whose last token also contains a character after the name.

        ``last`` is the row's last token. After a mark, a name is tokenised by itself, as it was in
        training.
        """
        alone = self.tokenizer("x.", add_special_tokens=False)["input_ids"]
        tail = (*alone, last) if last == self.mark else (last,)
        rests = [name[len(begun) :] for name in names if name.startswith(begun)]
        paths, closed, _ = self.paths(tail, [rest for rest in rests if rest])
        return [[]] * ("" in rests) + paths, closed


@dataclass
class Question:
    """One question to the tool, as in a row's record.

    ``step``: the token of the answer, from 0, after which it was asked; ``begun``: the part of a
    name that is written there. ``offered`` are the names of the tool's answer; ``failure`` says why
    there is none. ``choices``, for each
    token that was restricted to these names: the ids that were possible, and whether the name could
    end (with the break after it). It is empty if no offered name begins that way and can be
    spelled.
    """

    step: int
    begun: str
    offered: tuple[str, ...] = ()
    failure: str = ""
    choices: tuple[tuple[list[int], bool], ...] = ()


@dataclass
class ToolConstraint:
    """The constraint of one row.

    ``before`` are the tokens that the row continues ([] if it begins a text of its own); ``ask``
    takes the text of the function so far, without marks, and returns a future of the tool's answer.
    """

    use: ToolUse
    vocabulary: Vocabulary
    before: Sequence[int]
    ask: Callable[[str], Future[ToolAnswer]]
    tokens: tuple[int, ...] = ()
    questions: list[Question] = field(default_factory=list)
    answer: Future[ToolAnswer] | None = (
        None  # to the question after the last token, until it is read
    )
    node: Trie | None = None  # of the suggestions; None where any token may come next
    unanswered: bool = False  # the last token asked for suggestions, and there are none
    chances: tuple[float, ...] = ()  # of the name's tokens

    def record(self) -> list[dict]:
        """The row's questions (see ``Question``), once it is written."""
        self._collect()
        return [vars(question) for question in self.questions]

    def restrict(self, logits: "torch.Tensor") -> "tuple[torch.Tensor, float] | None":
        self._collect()
        use, mark, margin = self.use, self.vocabulary.mark, math.inf
        if self.node is not None:
            tokens, may_end = self._choices()
            if tokens and may_end and use.ends == "mean":
                sure = _probability(logits, tokens)
                mean = math.fsum(self.chances) / max(1, len(self.chances))
                tokens, may_end = (tokens, False) if sure >= mean else ([], True)
                margin = abs(sure - mean)
            if tokens or use.boundary:
                return self.vocabulary.only(logits, tokens, may_end), margin
            self.node = None
        forbidden = self.unanswered or use.trigger != "mark"
        least = NEVER if forbidden else use.gate
        if mark is None or least <= 0:
            return None if margin == math.inf else (logits, margin)
        sure = _probability(logits, [mark])
        if sure < least and (forbidden or not use.rules.weak_marks):
            logits = logits.clone()
            logits[mark] = -math.inf
        return logits, min(margin, abs(sure - least))

    def push(self, token: int, logprob: float) -> None:
        use = self.use
        self.tokens += (token,)
        self.unanswered = False
        if self.node is not None:
            self.questions[-1].choices += (self._choices(),)
            self.node = self.node.get(token)
            if self.node is not None and not self.node.closed:
                self.chances += (math.exp(logprob),)
                free = self.node.terminal and (use.ends == "first" or not self.node)
                if use.boundary or not free:
                    return
            self.node = None  # the name has ended, or the break was read, alone or in this token
        marked = use.trigger == "mark" and token == self.vocabulary.mark
        dot = use.trigger == "dot" and re.search(r"\.\w*\Z", self.vocabulary.piece(token))
        if marked and use.rules.weak_marks and math.exp(logprob) < use.gate:
            self.unanswered = True
        elif marked or dot:
            self._ask()

    def _ask(self) -> None:
        """Ask after the last token, if a name can follow there."""
        tail = list(self.before[-TAIL:])
        start, whole = decoded(self.vocabulary.tokenizer, [tail, [*tail, *self.tokens]])
        text = whole[len(start) :]  # the function so far, without marks
        if self.use.trigger == "dot" and not behind_a_dot(text):
            return
        self.unanswered = text.endswith(UNFINISHED)  # inside a character
        if not self.unanswered:
            begun = re.search(r"\w*\Z", text)[0]
            self.questions.append(Question(len(self.tokens) - 1, begun))
            self.answer = self.ask(text)

    def _collect(self) -> None:
        """If an answer is pending, wait for it and enter its trie."""
        if self.answer is None:
            return
        question, answer, self.answer = self.questions[-1], self.answer.result(), None
        question.failure = answer.failure
        if not self.use.rules.whatever_fits or self.use.trigger == "dot":
            question.offered = suggestions(answer, self.use.trigger)
        else:
            left = [one.strip() for one in answer.inserted if one.strip()]
            if not SKIPPED.issuperset(left):
                question.offered = tuple(question.begun + one for one in left)
        paths, closed = self.vocabulary.spellings(self.tokens[-1], question.offered, question.begun)
        self.node = Trie.of(paths, closed if self.use.boundary else ()) if paths else None
        self.unanswered, self.chances = self.node is None, ()

    def _choices(self) -> tuple[list[int], bool]:
        """The tokens of suggestions that may come next, and whether the name may end."""
        over = self.node.terminal and self.use.ends == "first"
        return [] if over else sorted(self.node), self.node.terminal


def _probability(logits: "torch.Tensor", tokens: list[int]) -> float:
    """The probability of the most likely of ``tokens``."""
    return (logits[tokens].max() - logits.logsumexp(-1)).exp().item()
