"""Retrieved examples before a problem, within a token budget (paper, Sections 3 and 4.3).

The prompt and the completion share the budget. What does not fit is cut "from the retrieved description and code, in
that order"; "in rare cases where the prompt itself exceeds the token budget", the paper removes "a minimal number of
tokens from the prompt". Three things it leaves open, as they are here: the example that was ranked last gives first; a
description and code lose their end; a problem loses its beginning, because its end says where the answer goes.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lookuplab.errors import UserError
from lookuplab.stackoverflow.corpus import Snippet

BUDGETS = {"codex-cushman": 2049, "codex-davinci": 4097, "incoder-1b": 1600}  # tokens (paper, Section 4.2)
MAX_EXAMPLES = 3
MAX_NEW_TOKENS = 600  # the paper: "500 to 600"
ORDERS = ("reverse", "rank", "random")
TRIMS = ("description-first", "question-first", "examples-only")
TEMPLATE = "Problem:\n{description}\nA:\n<code>\n{code}\n</code>\n\n"  # the form of DS-1000's completion prompts


@dataclass(frozen=True)
class Trim:
    """What one part lost. ``part``: description, code or question; ``snippet``: its id, "" for the question; tokens."""

    part: str
    snippet: str
    removed: int
    kept: int


@dataclass(frozen=True)
class Trimmed:
    """A prompt: its text, its length in tokens, the snippets shown from first to last, and every trim."""

    text: str
    tokens: int
    examples: tuple[str, ...]
    trims: tuple[Trim, ...]


def prompt(problem: str, examples: Sequence[Snippet], budget: int, max_new_tokens: int, tokenizer,
           order: str = "reverse", trim: str = "description-first", seed: int = 0) -> Trimmed:
    """``problem`` behind 0 to 3 ``examples`` (best first), cut so that ``max_new_tokens`` more fit into ``budget``.

    order: "reverse" puts the best example last, next to the problem, as the paper does; "rank" puts it first; "random"
    depends on ``seed`` and the examples' ids.
    trim: "description-first" is the paper's (descriptions, then code, then the problem); "question-first" cuts the
    problem before the examples, for comparison; "examples-only" never cuts the problem.
    An example whose description and code are gone is left out. Raises UserError for more examples than the paper's
    three, an unknown order or trim, a budget without room, and a problem that "examples-only" would have to cut.
    """
    _check(examples, order, trim, budget, max_new_tokens)
    room = budget - max_new_tokens
    parts = _Parts(problem, tuple(examples), tokenizer, _order(examples, order, seed))
    retrieved = [(field, at) for field in ("description", "code") for at in reversed(range(len(examples)))]
    steps = {"description-first": [*retrieved, ("question", None)], "question-first": [("question", None), *retrieved],
             "examples-only": retrieved}[trim]
    trims = []
    for field, at in steps:
        if parts.tokens() <= room:
            break
        parts, done = _shortened(parts, field, at, room)
        trims.append(done)
    if (tokens := parts.tokens()) > room:
        raise UserError(f"the problem alone has {_Parts(problem, (), tokenizer, ()).tokens()} tokens, more than the "
                        f"{room} that a budget of {budget} leaves beside {max_new_tokens} new ones; raise the budget"
                        + (", or let the problem be cut: trim=\"description-first\"" * (trim == "examples-only")))
    shown = tuple(one.id for one in parts.shown())
    return Trimmed(parts.text(), tokens, shown, tuple(one for one in trims if one.removed))


@dataclass(frozen=True)
class _Parts:
    """A prompt that can still be cut: examples best first, and the order in which they are shown."""

    question: str
    examples: tuple[Snippet, ...]
    tokenizer: object
    order: tuple[int, ...]

    def shown(self) -> list[Snippet]:
        return [self.examples[at] for at in self.order if self.examples[at].description or self.examples[at].code]

    def text(self) -> str:
        shown = [TEMPLATE.format(description=one.description, code=one.code) for one in self.shown()]
        return "".join(shown) + self.question

    def tokens(self) -> int:
        return len(self.tokenizer(self.text(), verbose=False)["input_ids"])

    def part(self, field: str, at: int | None) -> str:
        return self.question if at is None else getattr(self.examples[at], field)

    def with_part(self, field: str, at: int | None, text: str) -> "_Parts":
        if at is None:
            return replace(self, question=text)
        changed = replace(self.examples[at], **{field: text})
        return replace(self, examples=(*self.examples[:at], changed, *self.examples[at + 1:]))


def _shortened(parts: _Parts, field: str, at: int | None, room: int) -> tuple[_Parts, Trim]:
    """The part cut by as few tokens as make the whole fit, or by all of them if that is not enough."""
    text = parts.part(field, at)
    read = parts.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    spans = read["offset_mapping"]

    def kept(count: int) -> _Parts:
        if at is None:  # the end of the problem stays
            return parts.with_part(field, at, text[spans[-count][0]:] if count else "")
        return parts.with_part(field, at, text[:spans[count - 1][1]] if count else "")

    low, high = int(at is None), len(spans)  # tokens kept: the fewest (a problem keeps one), and too many
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if kept(middle).tokens() <= room else (low, middle)
    snippet = "" if at is None else parts.examples[at].id
    return kept(low), Trim(field, snippet, len(spans) - low, low)


def _order(examples: Sequence[Snippet], order: str, seed: int) -> tuple[int, ...]:
    places = list(range(len(examples)))
    if order == "random":
        random.Random(f"{seed} {[one.id for one in examples]}").shuffle(places)
    return tuple(reversed(places) if order == "reverse" else places)


def _check(examples: Sequence[Snippet], order: str, trim: str, budget: int, max_new_tokens: int) -> None:
    if len(examples) > MAX_EXAMPLES:
        raise UserError(f"{len(examples)} examples; a prompt takes {MAX_EXAMPLES} at most")
    if order not in ORDERS:
        raise UserError(f"order {order!r} is none of {', '.join(ORDERS)}")
    if trim not in TRIMS:
        raise UserError(f"trim {trim!r} is none of {', '.join(TRIMS)}")
    if not 0 < max_new_tokens < budget:
        raise UserError(f"a budget of {budget} tokens leaves no prompt beside {max_new_tokens} new ones; raise it")
