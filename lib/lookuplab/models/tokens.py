"""Converts between text and tokens, in particular for texts that follow a prompt. Also constrains
the tokens of an answer. A constraint limits the choice of the next token in one row (an answer in
progress). The module defines the interface of constraints, and a constraint to given names.

Under a constraint to names, an answer must begin with one of the names. A complete name must be
followed by a *break*, or by the rest of a longer given name. ``foo`` therefore becomes ``foobar``
only if ``foobar`` is also given. A break is either the end-of-text token, or a token whose first
character cannot continue an identifier. After the break, any token is allowed.

The trie contains two tokenisations of each name: of the name alone, and of the name followed by
"(", because a tokenizer may merge "(" with the end of the name. In both cases, the tokenizer reads
the text as a continuation of the prompt (``continuations``). No other sequence of tokens may spell
the name.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from lookuplab.errors import UserError

if TYPE_CHECKING:
    from concurrent.futures import Future

    import torch
    from transformers import PreTrainedTokenizerBase

# an answer's tokens are decoded together with this many tokens from the end of the prompt, because
# a token may be decoded differently at the beginning of a text
TAIL = 8
# If a continuation cannot be tokenised after the prompt, it is tokenised after one of these texts.
# Tokenizers do not merge the end of such a text with the continuation.
ANCHORS = ("", "\n", "(", "=")
UNFINISHED = "\ufffd"  # the replacement character: what an incomplete UTF-8 character decodes to


def continuations(
    tokenizer: "PreTrainedTokenizerBase", tail: Sequence[int], texts: Sequence[str]
) -> list[list[int] | None]:
    """Return the token ids of each text, tokenised as a text that follows ``tail``, the prompt's
    last tokens. A text that cannot be tokenised in this way gets None.

    First, the text is tokenised together with the decoded ``tail`` before it. If this fails, each
    of ANCHORS is tried in place of ``tail``. The tokens of ``tail`` or of the anchor are cut off.
    An attempt succeeds if ``tail`` and the remaining tokens decode to the decoded ``tail`` plus
    exactly the text.
    """
    before = decode(tokenizer, [list(tail)])[0]
    found: list[list[int] | None] = [None] * len(texts)
    for anchor in dict.fromkeys([before, *ANCHORS]):
        left = [i for i, ids in enumerate(found) if ids is None]
        if not left:
            break
        read = [anchor, *(anchor + texts[i] for i in left)]
        alone, *whole = tokenizer(read, add_special_tokens=False, verbose=False)["input_ids"]
        ids = [row[len(alone) :] for row in whole]
        spelled = decode(tokenizer, [[*tail, *row] for row in ids])
        for i, row, text in zip(left, ids, spelled, strict=True):
            if row and text == before + texts[i]:
                found[i] = row
    return found


def token_spans(
    tokenizer: "PreTrainedTokenizerBase", text: str, special: bool = False
) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the token ids of a text, and the position of each token in the text as (start, end),
    in characters. ``special`` adds the tokenizer's special tokens.
    """
    how = {"add_special_tokens": special, "verbose": False}
    read = tokenizer(text, return_offsets_mapping=True, **how)
    return read["input_ids"], read["offset_mapping"]


def decode(tokenizer: "PreTrainedTokenizerBase", rows: list[list[int]]) -> list[str]:
    """Return the decoded text of each row of tokens, without special tokens."""
    texts: list[str] = tokenizer.backend_tokenizer.decode_batch(rows, skip_special_tokens=True)
    return texts


class Lost(UserError):
    """Raised if a row cannot continue because its query to a tool has failed. Other rows go on."""


class Constraint(Protocol):
    """The interface of a constraint on one row. A constraint need not be active from the beginning
    of the row.

    A constraint that needs another program's answer (a completion tool's, say) sends its query in
    ``push`` and collects the answer in ``restrict``. The model's forward pass runs in between.
    """

    asks: ClassVar[bool]  # whether the constraint queries another program

    @property
    def pending(self) -> "Future[Any] | None":
        """Return the future of another program's answer if the next call of ``restrict`` would have
        to wait for this answer. Otherwise return None.
        """
        ...

    def restrict(self, logits: "torch.Tensor") -> "tuple[torch.Tensor, float] | None":
        """Return None if any token may come next. Otherwise return a pair: the logits
        (vocabulary,), with -inf for tokens that may not come next, and a margin.

        Some constraints become active when a probability passes a threshold. For these constraints,
        the margin is the distance between the probability and the threshold. For all others, the
        margin is inf.
        """
        ...

    def push(self, token: int, logprob: float) -> None:
        """Tell the constraint that ``token`` was appended to the row. ``logprob`` is the
        log-probability that the token would have without any constraint.
        """
        ...

    def log(self) -> object:
        """Return the constraint's log of a finished row, for ``Completion.record``."""
        ...


class Trie(dict[int, "Trie"]):
    """A node of a prefix tree over token ids, ``{token: node}`` (ToolGen, Algorithm 3).

    A name is complete at a ``terminal`` node, but the node may have children that continue the name
    to a longer one. A name is also complete at a ``closed`` node, but the token that leads there
    contains a character after the name, as the token ``t(`` does for a name that ends with ``t``.
    """

    terminal = closed = False

    @classmethod
    def of(cls, names: Iterable[Sequence[int]], closed: Iterable[Sequence[int]] = ()) -> "Trie":
        """Return the root of a tree with a path for each token sequence. A sequence in ``names``
        spells just a name, so the path ends in a terminal node. The last token of a sequence in
        ``closed`` goes beyond the name, so the path ends in a closed node.
        """
        root = cls()
        for kind, paths in (("terminal", names), ("closed", closed)):
            for path in paths:
                node = root
                for token in path:
                    node = node.setdefault(token, cls())
                setattr(node, kind, True)
        return root


class NameTries:
    """Makes constraints that restrict the answers of one model to given names. Caches the tokens of
    each name for each ending of a prompt, because a name's tokens also depend on this ending.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", end_of_text: frozenset[int]) -> None:
        self.tokenizer = tokenizer
        self._end_of_text = end_of_text
        self._spelled: dict[
            tuple[tuple[int, ...], str], list[int] | None
        ] = {}  # (tail, text) -> the text's tokens

    def constraint(self, prompt_ids: Sequence[int], names: Sequence[str]) -> "NameConstraint":
        """Return a constraint that makes the answer of one row begin with one of the names.
        ``prompt_ids`` are the tokens that the answer continues, or [] if the answer begins a text.

        No tokenizer of a code model merges a name with the line before it, so the name's tokens
        depend only on the prompt's tokens after the last line break. All prompts whose last line is
        ``response = client.`` therefore share the cached tokens. Raises UserError for names that
        the tokenizer cannot spell.
        """
        tail = tuple(prompt_ids[-TAIL:])
        lines = [at for at, token in enumerate(tail[:-1], 1) if "\n" in self.texts[token]]
        paths, closed, unspelled = self.paths(tail[max(lines, default=0) :], names)
        if unspelled:
            raise UserError(
                f"choices: the model's tokenizer cannot spell {min(unspelled)!r} ({len(unspelled)} "
                "such names); leave them out"
            )
        return NameConstraint(self, Trie.of(paths, closed))

    @cached_property
    def texts(self) -> list[str]:
        """Return, for each token of the vocabulary, the text that it adds to the end of another
        text. Special tokens add "".
        """
        begun = self.tokenizer("x", add_special_tokens=False)["input_ids"]
        rows = [begun, *([*begun, token] for token in range(len(self.tokenizer)))]
        before, *texts = decode(self.tokenizer, rows)
        return [text[len(before) :] for text in texts]

    @cached_property
    def breaks(self) -> "torch.Tensor":
        """Return the ids (n,) of the tokens that end a name: end-of-text tokens, and tokens whose
        first character cannot continue an identifier. Other special tokens do not end a name, and
        neither do incomplete characters.
        """
        import torch

        ends = {
            token
            for token, text in enumerate(self.texts)
            if text[:1] not in ("", UNFINISHED) and not f"a{text[0]}".isidentifier()
        }
        return torch.tensor(sorted(ends | self._end_of_text))

    def only(self, logits: "torch.Tensor", tokens: Iterable[int], may_end: bool) -> "torch.Tensor":
        """Return the logits (vocabulary,), with -inf for all tokens except ``tokens`` and, if
        ``may_end``, the breaks.
        """
        kept = logits.new_zeros(len(logits)).bool()
        kept[list(tokens)] = True
        if may_end:
            self.breaks = self.breaks.to(logits.device)  # copied only the first time
            kept[self.breaks] = True
        return logits.masked_fill(~kept, -math.inf)

    def paths(
        self, tail: tuple[int, ...], names: Sequence[str]
    ) -> tuple[list[list[int]], list[list[int]], list[str]]:
        """Return three lists for ``names`` that follow ``tail``, the prompt's last tokens: the
        paths of tokens to terminal nodes of the trie, the paths to closed nodes, and the names that
        the tokenizer cannot spell. Each name is tokenised only once for each ``tail``.
        """
        texts = [text for name in names for text in (name, f"{name}(")]
        new = [text for text in texts if (tail, text) not in self._spelled]
        for text, ids in zip(new, continuations(self.tokenizer, tail, new), strict=True):
            self._spelled[tail, text] = ids
        paths = []
        closed = []
        unspelled = []
        for name in names:
            path = self._spelled[tail, name]
            call = self._spelled[tail, f"{name}("]
            if path is None:
                unspelled.append(name)
            else:
                paths.append(path)
            # if "(" is a separate token, the tokens before "(" spell the name
            if call is not None and self.texts[call[-1]] == "(":
                paths.append(call[:-1])
            elif call is not None:
                closed.append(call)
        return paths, closed, unspelled


@dataclass
class NameConstraint:
    """A constraint that makes a row begin with one of the names in a trie. ``node`` is the node
    that the row has reached, or None once the name has ended.
    """

    names: NameTries
    node: Trie | None
    asks: ClassVar[bool] = False
    pending = None

    def restrict(self, logits: "torch.Tensor") -> "tuple[torch.Tensor, float] | None":
        if self.node is None:
            return None
        return self.names.only(logits, self.node, self.node.terminal), math.inf

    def push(self, token: int, _logprob: float) -> None:
        node = None if self.node is None else self.node.get(token)
        self.node = None if node is None or node.closed else node

    def log(self) -> None:
        """Return None: this constraint keeps no log."""
