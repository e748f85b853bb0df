"""One answer, looked at step by step: what the model thought, what the tool offered, what the trie allowed (Figure 5).

``page`` shows a step as HTML, ``explore`` all steps of several functions with a slider and a dropdown. Both show the
same, so that a notebook without a kernel behind it loses only the moving.
"""

import base64
import html
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import ipywidgets
import torch
from matplotlib.figure import Figure

from lookuplab.models.complete import Store
from lookuplab.models.local import LocalModel
from lookuplab.models.scoring import distributions
from lookuplab.models.tokens import encode
from lookuplab.models.types import Decoding
from lookuplab.plots import prefix_tree
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.generation import DECODING, ToolModel
from lookuplab.toolgen.jedi_tool import JediTool
from lookuplab.toolgen.marking import MARK
from lookuplab.toolgen.tool_use import ToolUse, Vocabulary
from lookuplab.toolgen.trace import Step, trace

LIKELY, NAMES = 6, 60  # how many tokens and names a page lists
_MARKED = f'<span style="background:#fde0b2;color:#8a4b00;padding:0 2px">{html.escape(MARK)}</span>'
_NOW = '<span style="background:#222;color:#fff">{}</span>'
_CHOSEN = '<span style="background:#e3f2e1;color:#1b7837">{}</span>'


@dataclass(frozen=True)
class Walk:
    """The steps of one answer, and the free model's probabilities (steps, vocabulary) before each of them."""

    function: Function
    prompt: str
    steps: Sequence[Step]
    probabilities: torch.Tensor = field(repr=False)
    vocabulary: Vocabulary = field(repr=False)

    def question(self, at: int) -> int | None:
        """The step behind which the tool was asked for what is chosen in step ``at``; itself, if it is that step."""
        while at > 0 and not self.steps[at].asked and self.steps[at].allowed is not None:
            at -= 1
        return at if self.steps[at].asked and self.steps[at].offered else None

    def choices(self) -> list[int]:
        """The steps in which the model had several tokens of suggestions to choose from."""
        return [at for at, step in enumerate(self.steps) if step.allowed is not None and len(step.allowed) > 1]

    def overruled(self) -> list[int]:
        """The steps within names in which the free model would have written another token."""
        wanted = self.probabilities.argmax(-1).tolist()
        return [at for at, step in enumerate(self.steps) if step.allowed and step.token != wanted[at]]

    def counts(self) -> dict[str, int]:
        """How many tokens, marks, questions, choices among several tokens, forced and overruled tokens."""
        return {"tokens": len(self.steps), "marks": sum(step.mark for step in self.steps),
                "questions": sum(step.asked for step in self.steps), "choices": len(self.choices()),
                "forced_tokens": sum(step.forced for step in self.steps), "overruled_tokens": len(self.overruled())}

    def likely(self, at: int, only: bool = False) -> list[tuple[str, float]]:
        """(token, probability) of the LIKELY most likely tokens of step ``at``; ``only`` of those that were allowed."""
        row, spell = self.probabilities[at], self._spell
        if only:
            allowed = set(self.steps[at].allowed or ())
            ids = [i for i in range(len(row)) if spell(i) in allowed]
            ids = sorted(ids, key=lambda i: -row[i])[:LIKELY]
        else:
            ids = row.topk(min(LIKELY, len(row))).indices.tolist()
        return [(spell(i), float(row[i])) for i in ids]

    def mark_probability(self, at: int) -> float:
        """P(mark) before step ``at``; 0 for a model without a mark."""
        return 0.0 if self.vocabulary.mark is None else float(self.probabilities[at, self.vocabulary.mark])

    def tree(self, question: int) -> Figure | None:
        """The suggestions that ``question`` brought as a trie, with what was chosen; None if none can be spelled."""
        text = "".join(step.text for step in self.steps[:question + 1])
        prefix = re.search(r"\w*\Z", text)[0]
        trie = self.vocabulary.trie(self.steps[question].token, self.steps[question].offered, prefix)
        if trie is None:
            return None
        names, stack = [], [((), 0)]
        while stack:
            path, node = stack.pop()
            if path and (trie.terminal(node) or trie.closed(node)):
                names.append(path)
            stack += [((*path, i), trie.child(node, i)) for i in trie.allowed(node).tolist()]
        chosen, node, probabilities = (), 0, {}
        for at in range(question + 1, len(self.steps)):
            children = trie.allowed(node).tolist()
            probabilities |= {self._texts((*chosen, i)): float(self.probabilities[at, i]) for i in children}
            node = trie.child(node, self.steps[at].token)
            if self.steps[at].allowed is None or node is None:
                break
            chosen = (*chosen, self.steps[at].token)
        title = f"{len(self.steps[question].offered)} suggestions behind \u2026{text.splitlines()[-1].strip()[-40:]}"
        return prefix_tree([self._texts(path) for path in names], self._texts(chosen), title=title,
                           probabilities=probabilities) if names else None

    def _texts(self, path: Sequence[int]) -> tuple[str, ...]:
        return tuple(self._spell(token) for token in path)

    def _spell(self, token: int) -> str:
        return MARK if token == self.vocabulary.mark else self.vocabulary.piece(token)


def walk(model: LocalModel, function: Function, tool: JediTool, use: ToolUse = ToolUse(),
         decoding: Decoding = DECODING, store: Store = None) -> Walk | None:
    """Write the function as ``generation.generate`` does and keep what happened; None if its prompt does not fit."""
    steps = trace(model, function, tool, use, decoding, store)
    if not steps:
        return None
    tooled = ToolModel(model, [function], tool, use)
    prompt = tooled.prompts()[0].text
    (ids,) = encode(model.tokenizer, [prompt], True, tooled.kind == "decoder")
    probabilities = distributions(model.module, ids, [step.token for step in steps]).cpu()
    return Walk(function, prompt, steps, probabilities, tooled.vocabulary)


def page(walked: Walk, at: int) -> str:
    """Step ``at`` (from 0) as HTML: the text so far, the model's wishes, the suggestions and their trie."""
    step, question = walked.steps[at], walked.question(at)
    names = walked.steps[question].offered if question is not None else ()
    parts = [f"<p><b>{html.escape(walked.function.id)}</b>, step {at + 1} of {len(walked.steps)}</p>",
             f'<pre style="border:1px solid #ddd;padding:6px"><span style="color:#888">{html.escape(walked.prompt)}'
             f"</span>{_written(walked, at)}</pre>", _facts(walked, at), _wishes(walked, at)]
    if names:
        more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
        parts.append(f"<p><b>Suggestions:</b> {html.escape(', '.join(names[:NAMES]))}{more}</p>")
        if (figure := walked.tree(question)) is not None:
            parts.append(_image(figure))
    return "".join(parts)


def explore(walks: Sequence[Walk]) -> ipywidgets.VBox:
    """A dropdown for the function, a slider for the step, and the page of that step. It begins with the first walk."""
    functions = ipywidgets.Dropdown(options=[(each.function.id, i) for i, each in enumerate(walks)],
                                    description="function", layout={"width": "90%"})
    slider = ipywidgets.IntSlider(1, 1, len(walks[0].steps), description="step", layout={"width": "90%"})
    shown = ipywidgets.HTML(page(walks[0], 0))

    def draw(_: object = None) -> None:
        shown.value = page(walks[functions.value], slider.value - 1)

    def other(_: object) -> None:
        slider.value = 1
        slider.max = len(walks[functions.value].steps)
        draw()

    functions.observe(other, "value")
    slider.observe(draw, "value")
    return ipywidgets.VBox([functions, slider, shown])


def _written(walked: Walk, at: int) -> str:
    def one(i: int, step: Step) -> str:
        text = _MARKED if step.mark else html.escape(step.text)
        in_name = step.allowed is not None and not step.mark and re.fullmatch(r"\w+", step.text)
        shown = step.text.replace("\n", "\u21b5\n").replace(" ", "\u2423") if i == at else ""
        return (text if step.mark else _NOW.format(html.escape(shown or "\u25a1")) if i == at
                else _CHOSEN.format(text) if in_name else text)

    return "".join(one(i, step) for i, step in enumerate(walked.steps[:at + 1]))


def _facts(walked: Walk, at: int) -> str:
    step = walked.steps[at]
    tool = f"asked, {len(step.offered)} suggestions" if step.asked else "not asked"
    several = "a token that ends the name" if step.may_end else ""
    if step.allowed:
        several = f"{len(step.allowed)} of the suggestions' tokens" + (f", or {several}" if several else "")
    allowed = "any token" if step.allowed is None else several + (": forced" if step.forced else "")
    rows = {"token": MARK if step.mark else repr(step.text), "its probability": f"{step.probability:.3f}",
            "P(mark) here": f"{walked.mark_probability(at):.3f}", "allowed here": allowed, "the tool": tool}
    return _table(["", ""], rows.items())


def _wishes(walked: Walk, at: int) -> str:
    free = [(repr(text), f"{p:.3f}") for text, p in walked.likely(at)]
    parts = [_table(["the model would write", "probability"], free)]
    if walked.steps[at].allowed:
        parts.append(_table(["of what is allowed", "probability"],
                            [(repr(text), f"{p:.3f}") for text, p in walked.likely(at, only=True)]))
    return f'<div style="display:flex;gap:2em">{"".join(parts)}</div>'


def _table(heads: Sequence[str], rows) -> str:
    head = "".join(f"<th style='text-align:left'>{html.escape(text)}</th>" for text in heads)
    body = "".join("<tr>" + "".join(f"<td style='text-align:left'>{html.escape(cell)}</td>" for cell in row) + "</tr>"
                   for row in rows)
    return f"<table>{f'<tr>{head}</tr>' if any(heads) else ''}{body}</table>"


def _image(figure: Figure) -> str:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=90, bbox_inches="tight", metadata={"Software": None})
    return f'<img src="data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}">'
