"""One answer, looked at step by step: what the model thought, what the tool offered, what the trie
allowed (Figure 5).

``page`` shows a step as HTML, ``explore`` all steps of several functions under sliders. Both show
the same, so that a notebook without a kernel behind it loses only the moving.
"""

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from matplotlib.figure import Figure

from lookuplab.models.complete import Store
from lookuplab.models.local import LocalModel
from lookuplab.models.scoring import distributions
from lookuplab.models.tokens import encode
from lookuplab.models.types import Decoding
from lookuplab.plots import prefix_tree
from lookuplab.sliders import image, slide, table
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.generation import DECODING, generate
from lookuplab.toolgen.jedi_tool import JediTool, suggestions
from lookuplab.toolgen.marking import MARK
from lookuplab.toolgen.tool_use import ToolUse, Vocabulary

if TYPE_CHECKING:
    import ipywidgets

LIKELY, NAMES = 6, 60  # how many tokens and names a page lists


@dataclass(frozen=True)
class Step:
    """One token of an answer: its id, what it spells, and its probability under the free model.

    ``asked`` says that the tool was asked behind this token, ``offered`` are the names of its
    answer. ``allowed`` are the tokens of names that could stand here, as text, and None where any
    token could; ``may_end``, whether tokens could that only end a name. ``forced``: a single one.
    """

    token: int
    text: str
    probability: float
    mark: bool
    asked: bool
    offered: tuple[str, ...]
    allowed: tuple[str, ...] | None
    may_end: bool
    forced: bool


@dataclass(frozen=True)
class Walk:
    """The steps of one answer, and the free model's probabilities (steps, vocabulary) before each
    of them.
    """

    function: Function
    prompt: str
    steps: Sequence[Step]
    probabilities: torch.Tensor = field(repr=False)
    vocabulary: Vocabulary = field(repr=False)

    def question(self, at: int) -> int | None:
        """The step behind which the tool was asked for what is chosen in step ``at``."""
        while at > 0 and not self.steps[at].asked and self.steps[at].allowed is not None:
            at -= 1
        return at if self.steps[at].offered else None

    def choices(self) -> list[int]:
        """The steps in which the model had several tokens of suggestions to choose from."""
        return [at for at, step in enumerate(self.steps) if len(step.allowed or ()) > 1]

    def overruled(self) -> list[int]:
        """The steps within names in which the free model would have written another token."""
        wanted = self.probabilities.argmax(-1).tolist()
        steps = enumerate(self.steps)
        return [at for at, step in steps if step.allowed and step.token != wanted[at]]

    def counts(self) -> dict[str, int]:
        """How many tokens, marks, questions, choices among several tokens, forced and overruled
        tokens.
        """
        return {
            "tokens": len(self.steps),
            "marks": sum(step.mark for step in self.steps),
            "questions": sum(step.asked for step in self.steps),
            "choices": len(self.choices()),
            "forced_tokens": sum(step.forced for step in self.steps),
            "overruled_tokens": len(self.overruled()),
        }

    def likely(self, at: int, only: bool = False) -> list[tuple[str, float]]:
        """(token, probability) of the LIKELY most likely tokens of step ``at``; ``only`` of those
        that were allowed.
        """
        values, ids = self.probabilities[at].sort(descending=True, stable=True)
        allowed, spell = set(self.steps[at].allowed or ()), self._spell
        found = ((spell(i), p) for i, p in zip(ids.tolist(), values.tolist(), strict=True))
        return [pair for pair in found if not only or pair[0] in allowed][:LIKELY]

    def mark_probability(self, at: int) -> float:
        """P(mark) before step ``at``; 0 for a model without a mark."""
        mark = self.vocabulary.mark
        return 0.0 if mark is None else float(self.probabilities[at, mark])

    def tree(self, question: int) -> Figure | None:
        """The suggestions that ``question`` brought as a trie, with what was chosen; None if none
        can be spelled.
        """
        asked, text = self.steps[question], "".join(one.text for one in self.steps[: question + 1])
        trie = self.vocabulary.trie(asked.token, asked.offered, re.search(r"\w*\Z", text)[0])
        if trie is None:
            return None
        names, stack = [], [((), 0)]
        while stack:
            path, node = stack.pop()
            if path and (trie.terminal(node) or trie.closed(node)):
                names.append(path)
            stack += [
                ((*path, self._spell(i)), trie.child(node, i)) for i in trie.allowed(node).tolist()
            ]
        chosen, node, probabilities = (), 0, {}
        for step, likely in zip(self.steps[question + 1 :], self.probabilities[question + 1 :]):
            for i in trie.allowed(node).tolist():
                probabilities[*chosen, self._spell(i)] = float(likely[i])
            node = trie.child(node, step.token)
            if step.allowed is None or node is None:
                break
            chosen = (*chosen, self._spell(step.token))
        end = text.splitlines()[-1].strip()[-40:]
        title = f"{len(asked.offered)} suggestions behind \u2026{end}"
        return (
            prefix_tree(names, chosen, title=title, probabilities=probabilities) if names else None
        )

    def _spell(self, token: int) -> str:
        return MARK if token == self.vocabulary.mark else self.vocabulary.piece(token)


def walk(
    model: LocalModel,
    function: Function,
    tool: JediTool,
    use: ToolUse = ToolUse(),
    decoding: Decoding = DECODING,
    store: Store = None,
) -> Walk | None:
    """Write the function as ``generation.generate`` does and keep what happened; None if its prompt
    does not fit.
    """
    written = generate(model, [function], tool, use, decoding, store, progress=False)
    answer, vocabulary = written[0].completion, written.model.vocabulary
    if answer is None:
        return None
    (prompt,) = written.model.prompts()
    (ids,) = encode(model.tokenizer, [prompt.text], True, written.model.kind == "decoder")
    ends, steps = set(vocabulary.names.breaks.tolist()), []
    for step, text in zip(written.model.steps(answer), answer.tokens, strict=True):
        allowed = None if step.allowed is None else step.allowed.tolist()
        names = allowed and tuple(vocabulary.piece(i) for i in allowed if i not in ends)
        steps.append(
            Step(
                step.token,
                text,
                math.exp(step.logprob),
                mark=step.token == vocabulary.mark,
                asked=step.asked is not None,
                offered=suggestions(step.asked.result(), use.trigger) if step.asked else (),
                allowed=names,
                may_end=bool(ends.intersection(allowed or ())),
                forced=allowed is not None and len(allowed) == 1,
            )
        )
    probabilities = distributions(model.module, ids, list(answer.token_ids)).cpu()
    return Walk(function, prompt.text, steps, probabilities, vocabulary)


def explore(walks: Sequence[Walk]) -> "ipywidgets.VBox":
    """The pages of several walks under a slider for the function and one for the step."""

    def shown(function: float, step: float) -> str:
        walked = walks[int(function) - 1]
        return page(walked, min(int(step), len(walked.steps)) - 1)

    longest = max(len(walked.steps) for walked in walks)
    return slide(shown, function=(1, len(walks), 1, 1), step=(1, longest, 1, 1))


def page(walked: Walk, at: int) -> str:
    """Step ``at`` (from 0) as HTML: the text so far, the model's wishes, the suggestions and their
    trie.
    """
    step, question = walked.steps[at], walked.question(at)
    several = [f"{len(step.allowed)} of the suggestions' tokens"] if step.allowed else []
    several += ["a token that ends the name"] if step.may_end else []
    allowed = "any token" if step.allowed is None else ", or ".join(several)
    facts = {
        "token": MARK if step.mark else repr(step.text),
        "its probability": f"{step.probability:.3f}",
        "P(mark) here": f"{walked.mark_probability(at):.3f}",
        "allowed here": allowed + (": forced" if step.forced else ""),
        "the tool": f"asked, {len(step.offered)} suggestions" if step.asked else "not asked",
    }
    parts = [
        f"<p><b>{html.escape(walked.function.id)}</b>, step {at + 1} of {len(walked.steps)}</p>",
        f'<pre style="border:1px solid #ddd;padding:6px"><span style="color:#888">'
        f"{html.escape(walked.prompt)}</span>{_written(walked, at)}</pre>",
        table(["", ""], facts.items()),
    ]
    for head, only in (("the model would write", False), ("of what is allowed", True)):
        if likely := walked.likely(at, only):
            cells = [(repr(text), f"{p:.3f}") for text, p in likely]
            parts.append(table([head, "probability"], cells))
    if question is not None:
        names = walked.steps[question].offered
        more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
        listed = html.escape(", ".join(names[:NAMES]))
        parts.append(f"<p><b>Suggestions:</b> {listed}{more}</p>")
        if (figure := walked.tree(question)) is not None:
            parts.append(image(figure, "the suggestions as a trie of tokens"))
    return "".join(parts)


def _written(walked: Walk, at: int) -> str:
    """The answer up to step ``at``: marks, names that were chosen and the last token coloured."""
    parts = []
    for step in walked.steps[:at]:
        text = html.escape(MARK if step.mark else step.text)
        named = step.allowed is not None and re.fullmatch(r"\w+", step.text)
        colour = "#8a4b00" if step.mark else "#1b7837" if named else "inherit"
        parts.append(f'<span style="color:{colour}">{text}</span>')
    now = walked.steps[at]
    text = now.text.replace("\n", "\u21b5\n").replace(" ", "\u2423") or "\u25a1"
    text = html.escape(MARK if now.mark else text)
    return "".join(parts) + f'<span style="background:#222;color:#fff">{text}</span>'
