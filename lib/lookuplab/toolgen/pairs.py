"""Makes the pairs of docstring and function from which models learn (paper, Section III-B-2): reads
them from a marked corpus, and turns them into text (in the formats of ``rules.prompt_text``) and
into tokens.

The mark is a single special token of the vocabulary. Decoding skips special tokens, so a mark adds
no text. Marks are removed from an answer's token ids, and never from the decoded text. In decoded
text, some tokenizers add a blank after a mark. If the mark were removed together with the blanks
around it, as the replication package does, ``in <COMP>items`` would become ``initems``.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tokenizers import AddedToken

from lookuplab.errors import UserError
from lookuplab.models.tokens import TAIL, continuations, decode, token_spans
from lookuplab.paths import json_lines
from lookuplab.toolgen.rules import (
    MARK,
    PAPER_RULES,
    ModelKind,
    Rules,
    prompt_text,
    rules_of,
    writes_def,
)

IGNORED = -100  # the label of a token without a loss


@dataclass(frozen=True)
class Pair:
    """The first sentence of a docstring, and the function that it describes. ``signature`` is the
    text from ``def`` to the colon, ``body`` the text after the docstring.

    If the function is augmented, signature and body contain MARK before each marked identifier.
    """

    id: str
    docstring: str
    signature: str
    body: str
    rules: Rules = PAPER_RULES

    def prompt(self, kind: ModelKind) -> str:
        """Return the prompt for a model of this ``kind``. A prompt has no marks."""
        return prompt_text(self.unmarked(), kind, self.rules)

    def answer(self, kind: ModelKind) -> str:
        """Return the text that a model of this ``kind`` should write: the body or, if
        ``writes_def``, the whole function without its docstring.
        """
        return f"{self.signature}\n{self.body}" if writes_def(kind, self.rules) else self.body

    def unmarked(self) -> "Pair":
        """Return the same pair without marks."""
        return replace(
            self, signature=self.signature.replace(MARK, ""), body=self.body.replace(MARK, "")
        )


@dataclass(frozen=True)
class EncodedPair:
    """A pair in token ids. ``prompt`` ends where the model begins to write; ``answer`` ends with
    the end-of-text token.

    ``exact`` says whether decoding the answer's tokens gives the answer's text again; some
    tokenizers lose line breaks or characters. ``signature`` is the number of tokens that spell the
    signature at the beginning of a decoder's prompt.
    """

    prompt: list[int]
    answer: list[int]
    exact: bool = True
    signature: int = 0


# the types of some fields of a record; every other field is a string
_NON_STRING_FIELDS = {"marks": int | list, "docstring_tokens": int, "function_tokens": int}


def corpus_records(path: Path, names: Collection[str]) -> list[dict[str, Any]]:
    """Return the records of a marked corpus, which is a file that ``lookuplab data mark`` wrote
    (JSON Lines, plain or ``.gz``). Raises UserError if a record lacks one of the fields ``names``,
    or if one of these fields has the wrong type.
    """
    corpus = []
    for number, record in json_lines(path):
        if missing := set(names) - set(record):
            raise UserError(
                f"{path} is not a marked corpus: line {number} has no {min(missing)!r}; "
                "`lookuplab data mark` writes one"
            )
        wrong = [
            one for one in names if not isinstance(record[one], _NON_STRING_FIELDS.get(one, str))
        ]
        if wrong:
            value = record[wrong[0]]
            raise UserError(
                f"{path}, line {number}: {wrong[0]!r} has the wrong type: {value!r:.40}"
            )
        corpus.append(record)
    return corpus


def read_pairs(path: Path, given_signature: bool = True) -> tuple[list[Pair], Counter[str]]:
    """Return a list of pairs with the augmented functions of a marked corpus, and {reason: number
    of functions left out}. A function is left out if its original text already contains the mark.
    ``given_signature`` is as in ``Rules``.
    """
    fields = ("id", "docstring", "signature", "body")
    corpus = corpus_records(path, (*fields, "marked_signature", "marked_body"))
    pairs = [
        Pair(
            record["id"],
            record["docstring"],
            record["marked_signature"],
            record["marked_body"],
            rules_of(record.get("variant", "paper"), given_signature=given_signature),
        )
        for record in corpus
        if not any(MARK in record[name] for name in fields)
    ]
    # the plus sign removes a reason that has no functions
    return pairs, +Counter({f"containing {MARK} already": len(corpus) - len(pairs)})


def kind_of(config: Any) -> ModelKind:
    """Return the kind of the model whose Transformers configuration is ``config``."""
    return "encoder-decoder" if config.is_encoder_decoder else "decoder"


def add_mark(tokenizer: Any, module: Any = None) -> int:
    """Make the mark a special token of the tokenizer, and return its id. If a model is given as
    ``module``, its embeddings get a row for the mark. A second call changes nothing.
    """
    mark = AddedToken(MARK, special=True, normalized=False, lstrip=False, rstrip=False)
    tokenizer.add_tokens([mark], special_tokens=True)
    if module is not None and module.get_input_embeddings().num_embeddings < len(tokenizer):
        module.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    return int(tokenizer.convert_tokens_to_ids(MARK))


def encode(tokenizer: Any, pairs: Sequence[Pair], kind: ModelKind) -> list[EncodedPair]:
    """Return the pairs in token ids. Prompt and answer are tokenised separately, because at
    inference only the prompt is tokenised.

    The prompt has the special tokens that the tokenizer adds, such as begin-of-text. An end-of-text
    token at the end of a decoder's prompt is removed, because the answer continues the prompt.
    """
    end = tokenizer.eos_token_id
    examples = []
    for pair in pairs:
        bare = pair.unmarked()
        tail = []
        prompt, spans = token_spans(tokenizer, pair.prompt(kind), special=True)
        end_of_signature = len(bare.signature) if bare.rules.given_signature else 0
        signature = sum(start < end_of_signature for start, _ in spans)
        if kind == "decoder":
            if len(prompt) > 1 and prompt[-1] == end:
                prompt.pop()
            tail = prompt[-TAIL:]
        text = pair.answer(kind)
        spelled = bare.answer(kind)
        row = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        exact = _spells(tokenizer, tail, row, spelled)
        if not exact and (pieces := _in_pieces(tokenizer, tail, text.split(MARK))):
            row = pieces
            exact = _spells(tokenizer, tail, pieces, spelled)
        examples.append(EncodedPair(prompt, [*row, end], exact, signature))
    return examples


def _spells(tokenizer: Any, tail: list[int], row: list[int], text: str) -> bool:
    """Return whether the tokens ``row`` spell exactly ``text`` when they follow ``tail``, the last
    tokens of the prompt. Marks are special tokens and add no text.
    """
    before, whole = decode(tokenizer, [tail, tail + row])
    return whole == before + text


def _in_pieces(tokenizer: Any, tail: list[int], pieces: list[str]) -> list[int] | None:
    """Return the tokens of the text ``pieces``, with a mark between one piece and the next. Each
    piece is tokenised as a continuation of the text before it. Return None if a piece cannot be
    written as a continuation.

    This is needed because a SentencePiece tokenizer adds a blank to the text after a mark: with
    Llama's, ``self.<COMP>add`` becomes ``self.<COMP> add``.
    """
    mark = tokenizer.convert_tokens_to_ids(MARK)
    row: list[int] = []
    for piece in pieces:
        ids = continuations(tokenizer, tail, [piece])[0] if piece else []
        if ids is None:
            return None
        row += [*ids, mark]
        tail = [*tokenizer("x.", add_special_tokens=False)["input_ids"], mark]
    return row[:-1]
