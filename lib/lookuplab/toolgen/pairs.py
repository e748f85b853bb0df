"""Pairs of docstring and function as a model reads and writes them, in text and in tokens (paper, Section III-B-2).

The two formats are the replication package's. A decoder-only model goes on behind signature and docstring::

    def add(self, *updates):
        '''Register updates.'''
        for update in <COMP>updates: ...

An encoder-decoder model reads ``### Description:`` and ``### Signature:`` and writes the function without its
docstring. The mark is one token of the vocabulary and a special one, so that it spells nothing. It is taken out of a row
of tokens by its id, never out of a text: around the mark a tokenizer splits words otherwise, and ``in <COMP>items``
would become ``initems``.
"""

import gzip
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tokenizers import AddedToken

from lookuplab.errors import UserError
from lookuplab.models.tokens import TAIL, continuations, decoded

MARK = "<COMP>"  # one added token of the vocabulary
KINDS = ("decoder", "encoder-decoder")
IGNORED = -100  # the label of a token without a loss


@dataclass(frozen=True)
class Pair:
    """A docstring (its first sentence) and its function: ``signature`` from ``def`` to the colon, ``body`` behind the
    docstring. With MARK in them, signature and body are the augmented function's."""

    id: str
    docstring: str
    signature: str
    body: str

    def prompt(self, kind: str) -> str:
        """What a model of that kind reads: no marks."""
        return prompt_text(self.unmarked(), kind)

    def answer(self, kind: str) -> str:
        """What it writes: the body, or the function without docstring."""
        return f"{self.signature}\n{self.body}" if kind == "encoder-decoder" else self.body

    def unmarked(self) -> "Pair":
        """The same pair without marks."""
        return replace(
            self, signature=self.signature.replace(MARK, ""), body=self.body.replace(MARK, "")
        )


@dataclass(frozen=True)
class TextPair:
    """A prompt and its answer, the same for models of every kind and without marks."""

    id: str
    read: str
    written: str

    def prompt(self, kind: str) -> str:
        return self.read

    def answer(self, kind: str) -> str:
        return self.written

    def unmarked(self) -> "TextPair":
        return self


@dataclass(frozen=True)
class Example:
    """A pair in tokens. ``prompt`` ends where the model begins to write, ``answer`` ends with the end of text.
    ``exact``: the answer spells the pair's text; some tokenizers know no line breaks, or not all characters."""

    id: str
    prompt: list[int]
    answer: list[int]
    exact: bool = True


def read(path: Path) -> tuple[list[Pair], Counter]:
    """The augmented functions of a marked corpus (JSON Lines of ``lookuplab data mark``, ``.gz`` too), without those
    whose own text spells the mark; these are counted. UserError for a line that is no record."""
    found, left_out = [], Counter()
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
            for record in map(json.loads, lines):
                names = "id", "docstring", "signature", "body"
                if any(MARK in record[name] for name in names):
                    left_out[f"spelling {MARK} themselves"] += 1
                    continue
                marked = record["marked_signature"], record["marked_body"]
                found.append(Pair(record["id"], record["docstring"], *marked))
    except (ValueError, KeyError, TypeError, EOFError, OSError) as error:
        raise UserError(
            f"{path} is no marked corpus ({type(error).__name__}: {error}, behind {len(found) + left_out.total()} "
            "records); `lookuplab data mark` writes one"
        ) from error
    return found, left_out


def kind_of(config: Any) -> str:
    """Which of KINDS a Transformers configuration is."""
    return "encoder-decoder" if config.is_encoder_decoder else "decoder"


def prompt_text(function: Any, kind: str) -> str:
    """What the model reads of a function, which has ``docstring``, ``signature`` and ``body``; of the body a
    decoder-only model sees the indentation (four blanks where there is none).

    An empty docstring leaves out its part; the papers' functions all have one.
    """
    docstring, signature = function.docstring, function.signature
    if kind == "encoder-decoder":
        return (
            f"### Description:\n{docstring}\n\n" if docstring else ""
        ) + f"### Signature:\n{signature}"
    found = re.search(r"^([ \t]+)\S", function.body, re.MULTILINE)
    indent = found.group(1) if found else "    "
    return f"{signature}\n" + (f"{indent}'''{docstring}'''\n" if docstring else "")


def add_mark(tokenizer: Any, module: Any = None) -> int:
    """Make MARK a token, give it a row in the model's embeddings if one is given, return its id. Does so once only."""
    mark = AddedToken(MARK, special=True, normalized=False, lstrip=False, rstrip=False)
    tokenizer.add_tokens([mark], special_tokens=True)
    if module is not None and module.get_input_embeddings().num_embeddings < len(tokenizer):
        module.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    return tokenizer.convert_tokens_to_ids(MARK)


def encode(tokenizer: Any, pair: Pair | TextPair, kind: str) -> Example:
    """``encode_all`` for one pair."""
    return encode_all(tokenizer, [pair], kind)[0]


def encode_all(tokenizer: Any, pairs: Sequence[Pair | TextPair], kind: str) -> list[Example]:
    """The pairs in tokens. Prompt and answer are tokenised apart, as they are when the model answers.

    Only a decoder's prompt begins with the tokenizer's begin-of-text token, where it has one of its own.
    """
    if not pairs:
        return []
    end, answers = tokenizer.eos_token_id, [pair.answer(kind) for pair in pairs]
    prompts = tokenizer([pair.prompt(kind) for pair in pairs], verbose=False)["input_ids"]
    written = tokenizer(answers, add_special_tokens=False, verbose=False)["input_ids"]
    tails = [[] for _ in pairs]
    if kind == "decoder":
        prompts = [row[:-1] if len(row) > 1 and row[-1] == end else row for row in prompts]
        tails = [row[-TAIL:] for row in prompts]
    exact = _spelled(tokenizer, tails, written, answers)
    for i in [i for i, right in enumerate(exact) if not right]:
        if row := _in_pieces(tokenizer, tails[i], answers[i]):
            written[i], exact[i] = row, _spelled(tokenizer, [tails[i]], [row], [answers[i]])[0]
    parts = zip(pairs, prompts, written, exact, strict=True)
    return [
        Example(pair.id, prompt, [*answer, end], right) for pair, prompt, answer, right in parts
    ]


def _spelled(
    tokenizer: Any, tails: list[list[int]], rows: list[list[int]], texts: list[str]
) -> list[bool]:
    """Whether each row, behind the last tokens of its prompt, spells its text: marks, special tokens, spell nothing."""
    before = decoded(tokenizer, tails)
    whole = decoded(tokenizer, [tail + row for tail, row in zip(tails, rows, strict=True)])
    expected = [start + text.replace(MARK, "") for start, text in zip(before, texts, strict=True)]
    return [found == text for found, text in zip(whole, expected, strict=True)]


def _in_pieces(tokenizer: Any, tail: list[int], text: str) -> list[int] | None:
    """Tokens of ``text``, each piece between marks as the continuation that it is; None if one cannot be spelled.

    Tokenizers of the SentencePiece kind put a blank before every piece (Llama's ``self.<COMP> add``).
    """
    mark = tokenizer.convert_tokens_to_ids(MARK)
    row: list[int] = []
    for number, piece in enumerate(text.split(MARK)):
        if number:
            row.append(mark)
            tail = [*tokenizer("x.", add_special_tokens=False)["input_ids"], mark]
        if piece and tail:
            ids = continuations(tokenizer, tail, [piece])[0]
        else:
            ids = tokenizer(piece, add_special_tokens=False)["input_ids"]
        if ids is None:
            return None
        row += ids
    return row
