"""Shows one answer step by step: the model's preference, the tool's suggestions, and the tokens
that the trie allowed (Figure 5).

``page`` shows one step as HTML. ``explore`` shows any step of several functions, with sliders.
The content is the same, so a notebook without a running kernel loses only the interaction.
"""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from lookuplab.errors import needs
from lookuplab.models import Decoding
from lookuplab.models.completions import StoreOrPath
from lookuplab.models.decoding import distributions
from lookuplab.models.local import LocalModel
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.generation import FUNCTION_DECODING, Question, ToolUse, Vocabulary, generate
from lookuplab.toolgen.jedi_tool import JediTool
from lookuplab.toolgen.marking import MARK
from lookuplab_notebooks.sliders import slide, table
from lookuplab_notebooks.toolgen.tool_calls import asked_questions

with needs("widgets"):
    from ipywidgets import VBox

LIKELY, NAMES = 6, 15  # the most tokens and names that a page lists


@dataclass
class Step:
    """One token of an answer: its id, its text, its probability under the unconstrained model, and
    whether it is the mark.

    ``asked`` is the call to the tool after this token, if there was one. Within a name,
    ``question`` is the call that suggested the name. For the token right before a name,
    ``question`` equals ``asked``. ``allowed`` has the ids of the tokens that could begin or
    continue a suggestion here. It is [] if no suggestion could be continued, and None if any token
    was possible. ``forced`` means that only one token was possible.
    """

    token: int
    text: str
    probability: float
    mark: bool
    asked: Question | None = None
    question: Question | None = None
    allowed: list[int] | None = None
    forced: bool = False


class Walk(NamedTuple):
    """The steps of one answer, and the unconstrained model's ``probabilities`` of the next token
    before each step, (steps, vocabulary).
    """

    function: Function
    prompt: str
    steps: Sequence[Step]
    probabilities: torch.Tensor
    vocabulary: Vocabulary

    def choices(self) -> list[int]:
        """Return the numbers (from 0) of the steps in which the model could choose among several
        suggested tokens.
        """
        return [at for at, step in enumerate(self.steps) if len(step.allowed or ()) > 1]

    def overruled(self) -> list[int]:
        """Return the numbers (from 0) of the steps within names in which the unconstrained model
        would have written a different token.
        """
        wanted = self.probabilities.argmax(-1).tolist()
        steps = enumerate(self.steps)
        return [at for at, step in steps if step.allowed and step.token != wanted[at]]

    def counts(self) -> dict[str, int]:
        """Return how many tokens, marks, calls to the tool ("questions"), choices among several
        tokens, forced tokens and overruled tokens there are.
        """
        return {
            "tokens": len(self.steps),
            "marks": sum(step.mark for step in self.steps),
            "questions": sum(step.asked is not None for step in self.steps),
            "choices": len(self.choices()),
            "forced_tokens": sum(step.forced for step in self.steps),
            "overruled_tokens": len(self.overruled()),
        }

    def mark_probability(self, at: int) -> float:
        """Return P(mark) before step ``at``."""
        return float(self.probabilities[at, self.vocabulary.mark])

    def spelled(self, at: int) -> list[tuple[int, ...]]:
        """Return the names that were offered after step ``at``, each as a tuple of token ids."""
        step = self.steps[at]
        if step.asked is None:
            return []
        ways = self.vocabulary.spellings(step.token, step.asked.offered, step.asked.begun)
        return sorted({tuple(path) for paths in ways for path in paths if path})

    def tree(self, at: int) -> str:
        """Return the suggestions after step ``at``, one line for each name: the probability of its
        first token, and the name, split into its tokens. The names whose first token is most likely
        come first, and ``>`` marks the name that was written. The text is empty if there was
        nothing to choose.
        """
        asked = self.steps[at].asked
        if not (asked and asked.choices):
            return ""
        likely = self.probabilities[at + 1].tolist()
        written = tuple(step.token for step in self.steps[at + 1 :])
        lines = []
        for path in sorted(self.spelled(at), key=lambda path: -likely[path[0]])[:NAMES]:
            mark = ">" if path == written[: len(path)] else " "
            tokens = " | ".join(map(self._spell, path))
            lines.append(f"{mark} {likely[path[0]]:.2f} {tokens}")
        return "\n".join(lines)

    def _spell(self, token: int) -> str:
        return MARK if token == self.vocabulary.mark else self.vocabulary.piece(token)


def walk(
    model: LocalModel,
    function: Function,
    tool: JediTool,
    use: ToolUse = ToolUse(),
    decoding: Decoding = FUNCTION_DECODING,
    store: StoreOrPath = None,
) -> Walk | None:
    """Write the function as ``generation.generate`` does, and return every step. Return None if the
    function's prompt does not fit the model.
    """
    written = generate(model, [function], tool, use, decoding, store, progress=False)
    answer = written.completions.get(function.id)
    vocabulary = written.model.vocabulary
    if answer is None:
        return None
    tokens = zip(answer.token_ids, answer.tokens, answer.token_logprobs, strict=True)
    steps = [
        Step(token, text, math.exp(sure), token == vocabulary.mark) for token, text, sure in tokens
    ]
    for question in asked_questions(answer):
        asked = steps[question.step]
        asked.asked = asked.question = question
        held = zip(steps[question.step + 1 :], question.choices, strict=False)
        for step, (allowed, may_end) in held:
            step.question = question
            step.allowed = allowed
            step.forced = len(allowed) == 1 and not may_end
    prompt = written.model.prompts()[0].text
    ids = model.prompt_ids(prompt)
    probabilities = distributions(model.module, ids, list(answer.token_ids)).cpu()
    return Walk(function, prompt, steps, probabilities, vocabulary)


def explore(walks: Sequence[Walk]) -> VBox:
    """Return the pages of several walks, with one slider for the function and one for the step."""

    def shown(function: float, step: float) -> str:
        walked = walks[int(function) - 1]
        return page(walked, min(int(step), len(walked.steps)) - 1)

    longest = max(len(walked.steps) for walked in walks)
    return slide(shown, function=(1, len(walks), 1, 1), step=(1, longest, 1, 1))


def page(walked: Walk, at: int) -> str:
    """Return step ``at`` (from 0) as HTML: the text so far, the model's preferences, the
    suggestions and their trie.
    """
    step, row = walked.steps[at], walked.probabilities[at]
    before = "".join(MARK if one.mark else one.text for one in walked.steps[:at])
    now = MARK if step.mark else step.text.replace("\n", "\u21b5\n").replace(" ", "\u2423")
    asked = f"asked, {len(step.asked.offered)} suggestions" if step.asked else "not asked"
    facts = {"P(mark)": f"{walked.mark_probability(at):.3f}", "the tool": asked}
    for token in [step.token, *row.topk(LIKELY).indices.tolist()]:
        known = " (in a suggestion)" if token in (step.allowed or ()) else ""
        facts.setdefault(f"P({walked._spell(token)!r})", f"{float(row[token]):.3f}{known}")
    parts = [
        f"<p><b>{html.escape(walked.function.id)}</b>, step {at + 1} of {len(walked.steps)}</p>",
        f'<pre><span style="color:#888">{html.escape(walked.prompt)}</span>{html.escape(before)}',
        f'<span style="background:#222;color:#fff">{html.escape(now or "end")}</span></pre>',
        table(["", ""], facts.items()),
    ]
    if step.question and (names := step.question.offered):
        listed = ", ".join(names[:NAMES])
        parts += [
            f"<p><b>{len(names)} suggestions:</b> {html.escape(listed)}</p>",
            f"<pre>{html.escape(walked.tree(step.question.step))}</pre>",
        ]
    return "".join(parts)
