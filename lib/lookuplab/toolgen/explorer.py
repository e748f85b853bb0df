"""One answer, looked at step by step: what the model thought, what the tool offered, what the trie
allowed (Figure 5).

``page`` shows a step as HTML, ``explore`` all steps of several functions under sliders. Both show
the same, so that a notebook without a kernel behind it loses only the moving.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from lookuplab.models.complete import Store
from lookuplab.models.local import LocalModel, distributions
from lookuplab.models.types import Decoding
from lookuplab.sliders import slide, table
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.generation import DECODING, generate
from lookuplab.toolgen.jedi_tool import JediTool
from lookuplab.toolgen.marking import MARK
from lookuplab.toolgen.tool_use import Step, ToolUse, Vocabulary

if TYPE_CHECKING:
    import ipywidgets

LIKELY, NAMES = 6, 60  # how many tokens and names a page lists


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

    def mark_probability(self, at: int) -> float:
        """P(mark) before step ``at``; 0 for a model without a mark."""
        mark = self.vocabulary.mark
        return 0.0 if mark is None else float(self.probabilities[at, mark])

    def tree(self, question: int) -> str:
        """The suggestions that ``question`` brought, a line for each name as its tokens, the likely
        ones first: a probability behind each token that the model could choose, and ``>`` before
        the names on the chosen path. Empty if none can be spelled.
        """
        asked, text = self.steps[question], "".join(one.text for one in self.steps[: question + 1])
        trie = self.vocabulary.trie(asked.token, asked.offered, re.search(r"\w*\Z", text)[0])
        if trie is None:
            return ""
        names, stack = [], [((), trie)]
        while stack:
            path, node = stack.pop()
            if path and (node.terminal or node.closed):
                names.append(path)
            stack += [((*path, self._spell(i)), node[i]) for i in sorted(node)]
        chosen, node, probabilities = (), trie, {}
        for step, likely in zip(
            self.steps[question + 1 :], self.probabilities[question + 1 :], strict=True
        ):
            for i in sorted(node):
                probabilities[*chosen, self._spell(i)] = float(likely[i])
            node = node.get(step.token)
            if step.allowed is None or node is None:
                break
            chosen = (*chosen, self._spell(step.token))

        def line(name: tuple[str, ...]) -> str:
            paths = [name[:length] for length in range(1, len(name) + 1)]
            known = [
                f" {probabilities[path]:.2f}" if path in probabilities else "" for path in paths
            ]
            mark = "> " if name[: len(chosen)] == chosen else "  "
            return mark + " | ".join(map("".join, zip(name, known, strict=True)))

        names.sort(key=lambda name: (-probabilities.get(name[:1], 0), name))
        return "\n".join(map(line, names[:NAMES]))

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
    ids = model.prompt_ids(prompt.text)
    probabilities = distributions(model.module, ids, list(answer.token_ids)).cpu()
    return Walk(function, prompt.text, written.model.steps(answer), probabilities, vocabulary)


def explore(walks: Sequence[Walk]) -> "ipywidgets.VBox":
    """The pages of several walks under a slider for the function and one for the step."""

    def shown(function: float, step: float) -> str:
        walked = walks[int(function) - 1]
        return page(walked, min(int(step), len(walked.steps)) - 1)

    longest = max(len(walked.steps) for walked in walks)
    return slide(shown, function=(1, len(walks), 1, 1), step=(1, longest, 1, 1))


def page(walked: Walk, at: int) -> str:
    """Step ``at`` (from 0) as HTML: the text so far, what the model wished, the suggestions and
    their trie.
    """
    step, question, row = walked.steps[at], walked.question(at), walked.probabilities[at]
    before = "".join(MARK if one.mark else one.text for one in walked.steps[:at])
    now = MARK if step.mark else step.text.replace("\n", "\u21b5\n").replace(" ", "\u2423")
    asked = f"asked, {len(step.offered)} suggestions" if step.asked else "not asked"
    facts = {"P(mark)": f"{walked.mark_probability(at):.3f}", "the tool": asked}
    for token in [step.token, *row.topk(min(LIKELY, len(row))).indices.tolist()]:
        known = " (a suggestion's)" if token in (step.allowed or ()) else ""
        facts.setdefault(f"P({walked._spell(token)!r})", f"{float(row[token]):.3f}{known}")
    parts = [
        f"<p><b>{html.escape(walked.function.id)}</b>, step {at + 1} of {len(walked.steps)}</p>",
        f'<pre><span style="color:#888">{html.escape(walked.prompt)}</span>{html.escape(before)}',
        f'<span style="background:#222;color:#fff">{html.escape(now or "end")}</span></pre>',
        table(["", ""], facts.items()),
    ]
    if question is not None:
        names = walked.steps[question].offered
        listed = html.escape(", ".join(names[:NAMES]))
        parts.append(f"<p><b>{len(names)} suggestions:</b> {listed}</p>")
        parts.append(f"<pre>{html.escape(walked.tree(question))}</pre>")
    return "".join(parts)
