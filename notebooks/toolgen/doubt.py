"""Applies DAG++'s rule while a model writes: it calls the completion tool when the model is unsure.
The model needs neither a mark nor fine-tuning.

The tool is called before a name if the most likely next token begins a name, but has a probability
below a threshold. The model then chooses among the names that the tool offers. As in monitor-guided
decoding, the token after the name must be one that cannot continue an identifier.
"""

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lookuplab.errors import UserError
from lookuplab.models.tokens import UNFINISHED
from lookuplab.toolgen.generation import Question, ToolConstraint, ToolUse
from lookuplab.toolgen.jedi_tool import suggestions
from lookuplab.toolgen.marking import NEVER_MARKED
from lookuplab.toolgen.rules import PAPER_RULES, Rules

if TYPE_CHECKING:
    import torch

NAME = re.compile(r"( ?)\b([^\W\d]\w*)")  # a name's beginning, matched where the text so far ends


@dataclass(frozen=True)
class Doubt(ToolUse):
    """Calls the tool before a name if the name's first token is less probable than ``below``. If
    ``below`` is 0, the tool is never called. It is never called before a name in NEVER_MARKED,
    either. The model never writes a mark.
    """

    below: float = 0.0

    def __str__(self) -> str:
        return f"doubt below {float(self.below)}, {super().__str__()}"

    def constraint(self, *of_row: Any) -> ToolConstraint:
        return InDoubt(self, *of_row)


def doubting(below: float, rules: Rules = PAPER_RULES) -> ToolUse:
    """Return the rule with the threshold ``below``. If ``below`` is 0, return the rule of plain
    generation, whose answers may already be stored. Raises UserError if ``below`` is not a
    probability.
    """
    if not 0 <= below <= 1:
        raise UserError(f"a doubt of {below}: give a probability, from 0 to 1")
    ends = replace(rules, name_end_rule="break", boundary=True)
    return Doubt(None, ends, below) if below else ToolUse(None, rules)


class InDoubt(ToolConstraint):
    """Constrains one row of a batch by the rule ``use``, which is a Doubt."""

    def restrict(self, logits: "torch.Tensor") -> "tuple[torch.Tensor, float] | None":
        margin = math.inf
        # ``node`` is None outside of a name, and ``unanswered`` is true if the tool was already
        # tried at this position and gave no name that the model can write
        if self.node is None and not self.unanswered:
            margin = self._doubted(logits)
        restricted = super().restrict(logits)
        if restricted is None:
            return None if margin == math.inf else (logits, margin)
        return restricted[0], min(restricted[1], margin)

    def _doubted(self, logits: "torch.Tensor") -> float:
        """Call the tool if the most likely token begins a name and its probability is below the
        threshold. Return the distance between the token's probability and the threshold, or inf if
        the token begins no name or a name in SKIPPED.
        """
        piece = self.vocabulary.piece
        likely = int(logits.argmax())
        last = [*self.before, *self.tokens][-1:]
        before = "".join(map(piece, last))
        name = NAME.match(before + piece(likely), len(before))
        if not (name and before) or name[2] in NEVER_MARKED:
            return math.inf
        doubt = self.use.below - (logits[likely] - logits.logsumexp(-1)).exp().item()  # type: ignore[attr-defined]
        if doubt > 0:
            self._ask_before(last[0], name[1])
        return abs(doubt)

    def _ask_before(self, last: int, blank: str) -> None:
        """Call the tool after the last token and the text ``blank`` (" " or ""), where the name
        would begin. Then restrict the row to the names that the tool offers, each preceded by
        ``blank``.
        """
        text = self.text() + blank
        self.unanswered = True
        if text.endswith(UNFINISHED):  # the last token ends inside a character
            return
        answer = self.ask(text).result()
        question = Question(len(self.tokens) - 1, "", suggestions(answer), answer.failure)
        self.questions.append(question)
        self._begin_name(last, [blank + name for name in question.offered], "")
