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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tokenizers import AddedToken

from lookuplab.errors import UserError
from lookuplab.models.tokens import TAIL, continuations, decoded

MARK = "<COMP>"  # one added token of the vocabulary
KINDS = ("decoder", "encoder-decoder")
IGNORED = -100  # the label of a token without a loss
FIELDS = ("id", "docstring", "signature", "body", "marked_signature", "marked_body")  # of a record that are needed here


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
        return prompt_text(self.docstring, unmarked(self).signature, indent_of(self.body), kind)

    def answer(self, kind: str) -> str:
        """What it writes."""
        return answer_text(self.signature, self.body, kind)


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


@dataclass(frozen=True)
class Example:
    """A pair in tokens. ``prompt`` ends where the model begins to write, ``answer`` ends with the end of text.
    ``exact``: the answer spells the pair's text; some tokenizers know no line breaks, or not all characters."""

    id: str
    prompt: list[int]
    answer: list[int]
    exact: bool = True


def read(path: Path) -> tuple[list[dict[str, Any]], Counter]:
    """The records of a marked corpus (JSON Lines, ``.gz`` too), without functions whose own text spells the mark; those
    are counted. UserError for a line that is no record."""
    records, left_out, number = [], Counter(), 1
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                record = json.loads(line)
                if any(MARK in text for text in [record[name] for name in FIELDS][:4]):
                    left_out[f"spelling {MARK} themselves"] += 1
                else:
                    records.append(record)
    except (ValueError, KeyError, TypeError, EOFError, gzip.BadGzipFile) as error:
        raise UserError(f"{path}, line {number} is no record of a marked corpus ({type(error).__name__}: {error}); "
                        "`lookuplab data mark` writes one") from error
    return records, left_out


def pairs(records: Iterable[dict[str, Any]], marked: bool) -> list[Pair]:
    """The pairs of a corpus' records (``toolgen.corpus``): augmented functions, or the same without marks."""
    names = ("marked_signature", "marked_body") if marked else ("signature", "body")
    return [Pair(record["id"], record["docstring"], *(record[name] for name in names)) for record in records]


def kind_of(config: Any) -> str:
    """Which of KINDS a Transformers configuration is."""
    return "encoder-decoder" if config.is_encoder_decoder else "decoder"


def prompt_text(docstring: str, signature: str, indent: str, kind: str) -> str:
    """What the model reads. ``indent`` is that of the body's first line (decoder-only models see it).

    An empty docstring leaves out its part; the papers' functions all have one.
    """
    if kind == "encoder-decoder":
        return (f"### Description:\n{docstring}\n\n" if docstring else "") + f"### Signature:\n{signature}"
    return f"{signature}\n" + (f"{indent}'''{docstring}'''\n" if docstring else "")


def answer_text(signature: str, body: str, kind: str) -> str:
    """What the model writes: the body, or the function without docstring."""
    return f"{signature}\n{body}" if kind == "encoder-decoder" else body


def indent_of(body: str) -> str:
    """The whitespace before a body's first line of code; four blanks if there is none."""
    found = re.search(r"^([ \t]+)\S", body, re.MULTILINE)
    return found.group(1) if found else "    "


def add_mark(tokenizer: Any, module: Any = None) -> int:
    """Make MARK a token, give it a row in the model's embeddings if one is given, return its id. Does so once only."""
    tokenizer.add_tokens([AddedToken(MARK, special=True, normalized=False, lstrip=False, rstrip=False)],
                         special_tokens=True)
    if module is not None and module.get_input_embeddings().num_embeddings < len(tokenizer):
        module.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    return tokenizer.convert_tokens_to_ids(MARK)


def without(tokens: Sequence[int], mark: int) -> list[int]:
    """The tokens without the mark's."""
    return [token for token in tokens if token != mark]


def encode(tokenizer: Any, pair: Pair, kind: str) -> Example:
    """The pair in tokens. Prompt and answer are tokenised apart, as they are when the model answers.

    Only a decoder's prompt begins with the tokenizer's begin-of-text token, where it has one of its own.
    """
    return encode_all(tokenizer, [pair], kind)[0]


def encode_all(tokenizer: Any, pairs: Sequence[Pair | TextPair], kind: str) -> list[Example]:
    """``encode`` for many pairs at once: the tokenizers' own threads share the work."""
    if not pairs:
        return []
    prompts = [pair.prompt(kind) for pair in pairs]
    answers = [pair.answer(kind) for pair in pairs]
    read = _tokens(tokenizer, prompts, special=True)
    written = _tokens(tokenizer, answers, special=False)
    end = tokenizer.eos_token_id
    if kind == "decoder":
        read = [row[:-1] if len(row) > 1 and row[-1] == end else row for row in read]
    tails = [row[-TAIL:] if kind == "decoder" else [] for row in read]
    exact = _spelled(tokenizer, tails, written, answers)
    for i in [i for i, right in enumerate(exact) if not right]:
        if row := _in_pieces(tokenizer, tails[i], answers[i]):
            written[i], (exact[i],) = row, _spelled(tokenizer, [tails[i]], [row], [answers[i]])
    return [Example(pair.id, prompt, [*answer, end], right)
            for pair, prompt, answer, right in zip(pairs, read, written, exact, strict=True)]


def _spelled(tokenizer: Any, tails: list[list[int]], rows: list[list[int]], texts: list[str]) -> list[bool]:
    """Whether each row, behind the last tokens of its prompt, spells its text: marks, special tokens, spell nothing."""
    before = decoded(tokenizer, tails)
    whole = decoded(tokenizer, [tail + row for tail, row in zip(tails, rows, strict=True)])
    return [all_of_it == start + text.replace(MARK, "")
            for start, all_of_it, text in zip(before, whole, texts, strict=True)]


def _in_pieces(tokenizer: Any, tail: list[int], text: str) -> list[int] | None:
    """Tokens of ``text``, each piece between marks as the continuation that it is; None if one cannot be spelled.

    Tokenizers of the SentencePiece kind put a blank before every piece (Llama's ``self.<COMP> add``).
    """
    mark = tokenizer.convert_tokens_to_ids(MARK)
    behind_mark = [*tokenizer("x.", add_special_tokens=False)["input_ids"], mark]
    row: list[int] = []
    for number, piece in enumerate(text.split(MARK)):
        start = behind_mark if number else tail
        ids = continuations(tokenizer, start, [piece])[0] if piece and start else _tokens(tokenizer, [piece], False)[0]
        if ids is None:
            return None
        row += [mark] * bool(number) + ids
    return row


def unmarked(pair: Pair | TextPair) -> Pair | TextPair:
    """The same pair without marks."""
    if isinstance(pair, TextPair):
        return pair
    return replace(pair, signature=pair.signature.replace(MARK, ""), body=pair.body.replace(MARK, ""))


def _tokens(tokenizer: Any, texts: list[str], special: bool) -> list[list[int]]:
    return tokenizer(texts, add_special_tokens=special, verbose=False)["input_ids"]
