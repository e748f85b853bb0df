"""Use of the completion tool in decoding (paper, Algorithms 2 and 3), as a constraint on one row.

A row is unconstrained until the tool is called. The answer becomes a trie of tokens, within which
the model chooses; after the name the row is unconstrained again. A chosen ``foo`` may therefore
continue to ``foobar``, which was not offered: Algorithm 3 allows it, and so does the replication
package. With the rule ``boundary`` a *break* must follow the name, a token that cannot continue an
identifier. Without suggestions (an empty list, a failed call) the row continues unconstrained. The
mark itself adds no text. It may not follow itself, because the same question would have the same
answer.
"""

import math
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from lookuplab.errors import check_choice
from lookuplab.models.constraint import NameTries, Trie
from lookuplab.models.tokens import TAIL, UNFINISHED, decoded
from lookuplab.toolgen.jedi_tool import behind_a_dot, suggestions
from lookuplab.toolgen.jedi_worker import ToolAnswer
from lookuplab.toolgen.marking import SKIPPED
from lookuplab.toolgen.pairs import add_mark, mark_of
from lookuplab.toolgen.rules import NEVER, PAPER_RULES, Rules

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class ToolUse:
    """When the tool is called, and by which rules: those of the paper, of the package, or
    ``dataclasses.replace(PAPER_RULES, ...)``.

    ``trigger``: "mark" calls the tool where the model writes the mark; "dot" calls it after a dot
    that follows an expression (monitor-guided decoding: no fine-tuning, any model); None never
    calls it. A mark that is not the trigger is not written. Monitor-guided decoding constrains the
    model until a break, so for "dot" the name always ends by the rule "break". Raises UserError for
    any other trigger.

    ``rules`` also decide how the tool is called (``jedi_tool.unsaved``), how the prompt is written
    (``pairs.prompt_text``), and which names are offered. The packages offer all texts that Jedi
    would insert, including ``name=``. package-2023 leaves out the words of ``marking.SKIPPED``;
    package-2024 keeps them, but offers nothing if there are no other words.
    """

    trigger: Literal["mark", "dot"] | None = "mark"
    rules: Rules = PAPER_RULES

    def __post_init__(self) -> None:
        check_choice("trigger", self.trigger, ("mark", "dot", None))
        if self.trigger == "dot":
            rules = replace(self.rules, name_end_rule="break", boundary=True)
            object.__setattr__(self, "rules", rules)

    def __str__(self) -> str:
        """Return the text in the keys of stored answers, which mentions only a missing boundary."""
        rules = self.rules
        parts = {
            "trigger": self.trigger,
            "variant": rules,
            "gate": float(rules.min_mark_probability),
            "ends": rules.name_end_rule,
            **rules.changes(),
        }
        for name in ("min_mark_probability", "name_end_rule", "boundary"):
            parts.pop(name, None)
        if not rules.boundary:
            parts["boundary"] = False
        return ", ".join(f"{name} {value}" for name, value in parts.items())

    def constraint(self, *of_row: Any) -> "ToolConstraint":
        """Return the constraint of one row; ``of_row`` are the further arguments of
        ToolConstraint.
        """
        return ToolConstraint(self, *of_row)


def role_of(name: str) -> tuple[str, str]:
    """Return a model's name and condition in tables: ``gpt-toolgen`` is "gpt", "toolgen". A name
    that ends in neither ``-toolgen`` nor ``-base`` is a base model's.
    """
    role, _, condition = name.rpartition("-")
    return (role, condition) if condition in ("base", "toolgen") else (name, "base")


class Vocabulary(NameTries):
    """One model's tokens, as the constraints of its rows need them. ``mark`` is the mark's id, None
    if the tokenizer has no mark.
    """

    def __init__(self, tokenizer: Any, end_of_text: frozenset[int]) -> None:
        super().__init__(tokenizer, end_of_text)
        self.tokenizer = tokenizer
        has_mark = mark_of(tokenizer) in tokenizer.get_added_vocab()
        # makes the mark a special token
        self.mark: int | None = add_mark(tokenizer) if has_mark else None

    def piece(self, token: int) -> str:
        """Return the text that one token adds after other text.

        It is "" for ids beyond the tokenizer's last, because models' vocabularies are padded.
        """
        return self.texts[token] if token < len(self.texts) else ""

    def spellings(
        self, last: int, names: Sequence[str], begun: str
    ) -> tuple[list[list[int]], list[list[int]]]:
        """Return the tokens that complete each suggestion that begins with ``begun``, which is
        already written. The second list has the paths whose last token also contains a character
        after the name.

        ``last`` is the row's last token. After a mark, a name is tokenised by itself, as it was in
        training.
        """
        alone = self.tokenizer("x.", add_special_tokens=False)["input_ids"]
        tail = (*alone, last) if last == self.mark else (last,)
        rests = [name[len(begun) :] for name in names if name.startswith(begun)]
        paths, closed, _ = self.paths(tail, [rest for rest in rests if rest])
        return ([[], *paths] if "" in rests else paths), closed


@dataclass
class Question:
    """One question to the tool, as in a row's record.

    ``step``: the index of the answer's token, from 0, after which the tool was called. ``begun``:
    the part of a name that is written there. ``offered``: the names of the tool's answer;
    ``failure`` says why there are none. ``choices``, for each token that was restricted to these
    names: the possible ids, and whether the name could end (with the break after it). It is empty
    if no offered name begins with ``begun`` and can be written in tokens.
    """

    step: int
    begun: str
    offered: tuple[str, ...] = ()
    failure: str = ""
    choices: tuple[tuple[list[int], bool], ...] = ()


@dataclass
class ToolConstraint:
    """The constraint of one row.

    ``before`` are the tokens that the row continues ([] if it begins a text of its own). ``ask``
    takes the text of the function so far, without marks, and returns a future of the tool's answer.
    """

    asks: ClassVar[bool] = True
    use: ToolUse
    vocabulary: Vocabulary
    before: Sequence[int]
    ask: Callable[[str], Future[ToolAnswer]]
    tokens: tuple[int, ...] = ()
    questions: list[Question] = field(default_factory=list)
    # the pending answer to the question after the last token
    pending: Future[ToolAnswer] | None = None
    node: Trie | None = None  # of the suggestions; None if any token may come next
    # the tool was called after the last token, and there are no suggestions
    unanswered: bool = False
    name_probabilities: tuple[float, ...] = ()  # of the name's tokens

    def log(self) -> list[dict[str, Any]]:
        """Return the row's questions (see ``Question``); call it when the row is complete."""
        self._collect()
        return [vars(question) for question in self.questions]

    def restrict(self, logits: "torch.Tensor") -> "tuple[torch.Tensor, float] | None":
        self._collect()
        rules = self.use.rules
        mark = self.vocabulary.mark
        margin = math.inf
        if self.node is not None:
            tokens, may_end = self._choices(self.node)
            if tokens and may_end and rules.name_end_rule == "mean":
                probability = _probability(logits, tokens)
                mean = math.fsum(self.name_probabilities) / max(1, len(self.name_probabilities))
                tokens, may_end = (tokens, False) if probability >= mean else ([], True)
                margin = abs(probability - mean)
            if tokens or rules.boundary:
                return self.vocabulary.only(logits, tokens, may_end), margin
            self.node = None
        forbidden = self.unanswered or self.use.trigger != "mark"
        threshold = NEVER if forbidden else rules.min_mark_probability
        if mark is None or threshold <= 0:
            return None if margin == math.inf else (logits, margin)
        probability = _probability(logits, [mark])
        if probability < threshold and (forbidden or not rules.is_package):
            logits = logits.clone()
            logits[mark] = -math.inf
        return logits, min(margin, abs(probability - threshold))

    def push(self, token: int, logprob: float) -> None:
        rules = self.use.rules
        trigger = self.use.trigger
        probability = math.exp(logprob)
        self.tokens += (token,)
        self.unanswered = False
        if self.node is not None:
            self.questions[-1].choices += (self._choices(self.node),)
            self.node = self.node.get(token)
            if self.node is not None and not self.node.closed:
                self.name_probabilities += (probability,)
                first = rules.name_end_rule == "first"
                ended = self.node.terminal and (first or not self.node)
                if rules.boundary or not ended:
                    return
            self.node = None  # the name has ended, or the break was read, alone or in this token
        if trigger == "mark" and token == self.vocabulary.mark:
            self.unanswered = rules.is_package and probability < rules.min_mark_probability
            if not self.unanswered:
                self._ask()
        elif trigger == "dot" and re.search(r"\.\w*\Z", self.vocabulary.piece(token)):
            self._ask()

    def _ask(self) -> None:
        """Call the tool after the last token, if a name can follow there."""
        tail = list(self.before[-TAIL:])
        start, whole = decoded(self.vocabulary.tokenizer, [tail, [*tail, *self.tokens]])
        text = whole[len(start) :]  # the function so far, without marks
        if self.use.trigger == "dot" and not behind_a_dot(text):
            return
        self.unanswered = text.endswith(UNFINISHED)  # inside a character of several tokens
        if not self.unanswered:
            self.questions.append(Question(len(self.tokens) - 1, re.split(r"\W", text)[-1]))
            self.pending = self.ask(text)

    def _collect(self) -> None:
        """If an answer is pending, wait for it and restrict the row to its suggestions."""
        if self.pending is None:
            return
        question = self.questions[-1]
        rules = self.use.rules
        answer = self.pending.result()
        self.pending = None
        question.failure = answer.failure
        if not rules.is_package or self.use.trigger == "dot":
            question.offered = suggestions(answer, self.use.trigger)
        else:
            inserted = [text.strip() for text in answer.inserted if text.strip()]
            if rules.is_first_package:
                inserted = [text for text in inserted if text not in SKIPPED]
            if not SKIPPED.issuperset(inserted):
                question.offered = tuple(question.begun + text for text in inserted)
        paths, closed = self.vocabulary.spellings(self.tokens[-1], question.offered, question.begun)
        self.node = Trie.of(paths, closed if rules.boundary else ()) if paths else None
        if self.node is not None and not rules.boundary and not self._choices(self.node)[0]:
            self.node = None  # the name that was begun is complete
        self.unanswered = self.node is None
        self.name_probabilities = ()

    def _choices(self, node: Trie) -> tuple[list[int], bool]:
        """Return the tokens of suggestions that may come next, and whether the name may end."""
        over = node.terminal and self.use.rules.name_end_rule == "first"
        return [] if over else sorted(node), node.terminal


def _probability(logits: "torch.Tensor", tokens: list[int]) -> float:
    """Return the probability of the most likely of ``tokens``."""
    return (logits[tokens].max() - logits.logsumexp(-1)).exp().item()
