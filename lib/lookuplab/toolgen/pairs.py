"""Pairs of docstring and function as a model reads and writes them, in text and in tokens (paper,
Section III-B-2).

The paper's models read a docstring and write a function. The replication package, whose two formats
these are, also gives them the signature, unless the ``Rules`` say otherwise (``given_signature``).
A decoder-only model continues after signature and docstring::

    def add(self, *updates):
        '''Register updates.'''
        for update in <COMP>updates: ...

An encoder-decoder model reads ``### Description:`` and ``### Signature:`` and writes the function
without its docstring; by the package's ``Rules`` it reads the signature without `def` and colon.
Without a signature, both kinds read the docstring in the same form and write that function.

The mark is a single special token of the vocabulary, so that it adds no text. It is removed from a
list of token ids by its id, never from a text: around the mark a tokenizer splits words
differently, and ``in <COMP>items`` would become ``initems``.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tokenizers import AddedToken, Tokenizer

from lookuplab.errors import UserError
from lookuplab.models.tokens import TAIL, continuations, decoded, located
from lookuplab.paths import json_lines
from lookuplab.toolgen.rules import PAPER_RULES, Rules, rules_of

MARK = "<COMP>"  # an added token of the vocabulary; texts always have the mark in this form
MARKS = (MARK, "<lsp>")  # the paper's mark, and that of the authors' checkpoints
IGNORED = -100  # the label of a token without a loss
ModelKind = Literal["decoder", "encoder-decoder"]  # the architecture of a model


@dataclass(frozen=True)
class Pair:
    """A docstring (its first sentence) and its function: ``signature`` from ``def`` to the colon,
    ``body`` after the docstring.

    If signature and body contain MARK, they are those of the augmented function.
    """

    id: str
    docstring: str
    signature: str
    body: str
    rules: Rules = PAPER_RULES

    def prompt(self, kind: ModelKind) -> str:
        """Return the prompt for a model of that kind, which has no marks."""
        return prompt_text(self.unmarked(), kind, self.rules)

    def answer(self, kind: ModelKind) -> str:
        """Return the text that a model of that kind writes: the body, or the function without
        docstring.
        """
        return f"{self.signature}\n{self.body}" if writes_def(kind, self.rules) else self.body

    def unmarked(self) -> "Pair":
        """Return the same pair without marks."""
        return replace(
            self, signature=self.signature.replace(MARK, ""), body=self.body.replace(MARK, "")
        )


@dataclass(frozen=True)
class EncodedPair:
    """A pair in tokens. ``prompt`` ends where the model begins to write, ``answer`` ends with the
    end of text.

    ``exact``: the tokens reproduce the pair's text; some tokenizers lack line breaks or characters.
    ``signature``: the number of a decoder's prompt tokens up to the end of the signature.
    """

    prompt: list[int]
    answer: list[int]
    exact: bool = True
    signature: int = 0


# the types of fields that are no texts
_KINDS = {"marks": int | list, "docstring_tokens": int, "function_tokens": int}


def corpus_records(path: Path, names: Collection[str]) -> list[dict[str, Any]]:
    """Return the records of a file that ``lookuplab data mark`` wrote (JSON Lines, also ``.gz``),
    with at least the fields ``names``. Raises UserError for any other file.
    """
    corpus = []
    for number, record in json_lines(path):
        if missing := set(names) - set(record):
            raise UserError(
                f"{path} is no marked corpus: line {number} has no {min(missing)!r}; "
                "`lookuplab data mark` writes one"
            )
        wrong = [one for one in names if not isinstance(record[one], _KINDS.get(one, str))]
        if wrong:
            raise UserError(f"{path}, line {number}: {wrong[0]!r} is {record[wrong[0]]!r:.40}")
        corpus.append(record)
    return corpus


def read_pairs(path: Path, given_signature: bool = True) -> tuple[list[Pair], Counter[str]]:
    """Return the augmented functions of a marked corpus, and how many were left out because their
    own text contains the mark. ``given_signature`` is as in ``Rules``.
    """
    own = ("id", "docstring", "signature", "body")
    corpus = corpus_records(path, (*own, "marked_signature", "marked_body"))
    pairs = [
        Pair(
            record["id"],
            record["docstring"],
            record["marked_signature"],
            record["marked_body"],
            rules_of(record.get("variant", "paper"), given_signature=given_signature),
        )
        for record in corpus
        if not any(MARK in record[name] for name in own)
    ]
    return pairs, +Counter({f"spelling {MARK} themselves": len(corpus) - len(pairs)})


def kind_of(config: Any) -> ModelKind:
    """Return the kind of model with a Transformers configuration."""
    return "encoder-decoder" if config.is_encoder_decoder else "decoder"


def writes_def(kind: ModelKind, rules: Rules = PAPER_RULES) -> bool:
    """Return whether such a model writes the function from its `def` on, not only the body."""
    return kind == "encoder-decoder" or not rules.given_signature


def prompt_text(function: Any, kind: ModelKind, rules: Rules = PAPER_RULES) -> str:
    """Return the prompt for a function, which has ``docstring``, ``signature`` and ``body``.

    A decoder-only model sees only the body's indentation (four blanks if there is none). An empty
    docstring is left out together with its heading; the paper's functions all have one.
    """
    docstring = function.docstring
    signature = function.signature
    if kind == "encoder-decoder":
        if rules.is_package:
            signature = re.sub(r"^(async\s+)?def\s+", "", signature).strip(" :")
        signature = signature if rules.given_signature else ""
        given = {"Description": docstring, "Signature": signature}
        return "\n\n".join(f"### {name}:\n{text}" for name, text in given.items() if text)
    if not rules.given_signature:
        return f"'''{docstring}'''\n"
    first = re.search(r"^([ \t]+)\S", function.body, re.MULTILINE)
    indent = first[1] if first else "    "
    return f"{signature}\n" + (f"{indent}'''{docstring}'''\n" if docstring else "")


def mark_of(tokenizer: Any) -> str:
    """Return the mark among MARKS that the tokenizer has; MARK if it has none."""
    known = tokenizer.get_added_vocab()
    return next((mark for mark in MARKS if mark in known), MARK)


def add_mark(tokenizer: Any, module: Any = None) -> int:
    """Make the mark a special token, give it a row in the embeddings of ``module`` if one is given,
    and return its id.

    The authors' tokenizers have it as a plain token, which becomes special here. A second call
    changes nothing.
    """
    text = mark_of(tokenizer)
    known = tokenizer.get_added_vocab().get(text)
    plain = known is not None and not tokenizer.added_tokens_decoder[known].special
    if plain:
        # change its JSON, because adding it again would leave it plain
        state = json.loads(tokenizer.backend_tokenizer.to_str())
        for token in state["added_tokens"]:
            token["normalized"] &= token["content"] != text
        tokenizer._tokenizer = Tokenizer.from_str(json.dumps(state))
    mark = AddedToken(text, special=True, normalized=False, lstrip=False, rstrip=False)
    tokenizer.add_tokens([mark], special_tokens=True)
    if module is not None and module.get_input_embeddings().num_embeddings < len(tokenizer):
        module.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    return int(tokenizer.convert_tokens_to_ids(text))


def encode(tokenizer: Any, pairs: Sequence[Pair], kind: ModelKind) -> list[EncodedPair]:
    """Return the pairs in tokens. Prompt and answer are tokenised separately, as they are when the
    model answers.

    Only a decoder's prompt begins with the tokenizer's begin-of-text token, if the tokenizer has
    one.
    """
    end = tokenizer.eos_token_id
    mark = mark_of(tokenizer)
    examples = []
    for pair in pairs:
        bare = pair.unmarked()
        tail = []
        prompt, spans = located(tokenizer, pair.prompt(kind), special=True)
        end_of_signature = len(bare.signature) if bare.rules.given_signature else 0
        signature = sum(start < end_of_signature for start, _ in spans)
        if kind == "decoder":
            if len(prompt) > 1 and prompt[-1] == end:
                prompt.pop()
            tail = prompt[-TAIL:]
        text = pair.answer(kind).replace(MARK, mark)
        spelled = bare.answer(kind)
        row = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        exact = _spells(tokenizer, tail, row, spelled)
        if not exact and (pieces := _in_pieces(tokenizer, tail, text.split(mark))):
            row = pieces
            exact = _spells(tokenizer, tail, pieces, spelled)
        examples.append(EncodedPair(prompt, [*row, end], exact, signature))
    return examples


def _spells(tokenizer: Any, tail: list[int], row: list[int], text: str) -> bool:
    """Return whether the tokens ``row`` reproduce the text after the last tokens of the prompt.
    Marks, being special tokens, add no text.
    """
    before, whole = decoded(tokenizer, [tail, tail + row])
    return whole == before + text


def _in_pieces(tokenizer: Any, tail: list[int], pieces: list[str]) -> list[int] | None:
    """Return the tokens of pieces with marks between them, each piece tokenised as a continuation;
    None if a piece has no such tokens.

    SentencePiece tokenizers put a blank before every piece (Llama's ``self.<COMP> add``).
    """
    mark = tokenizer.convert_tokens_to_ids(mark_of(tokenizer))
    row: list[int] = []
    for piece in pieces:
        ids = continuations(tokenizer, tail, [piece])[0] if piece else []
        if ids is None:
            return None
        row += [*ids, mark]
        tail = [*tokenizer("x.", add_special_tokens=False)["input_ids"], mark]
    return row[:-1]
