"""From prompts to token ids, and from token ids back to the text that they spell."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers.decoders import DecodeStream

from lookuplab.errors import UserError
from lookuplab.models.types import Decoding

TAIL = 8  # tokens of the prompt that a decoder sees, so that it spells the first new token as a continuation
ANCHORS = ("", "\n", "(", "=")  # texts before a continuation whose tokens do not merge with it, one or the other
UNFINISHED = "\ufffd"  # what half a UTF-8 character decodes to


@dataclass(frozen=True)
class Encoded:
    """A prompt's token ids as the model will see them, and how many the truncation policy removed."""

    ids: list[int]
    dropped: int = 0


def encode(tokenizer, texts: list[str], special: bool, causal: bool) -> list[list[int]]:
    """Token ids of each text, with the tokenizer's own special tokens if ``special``.

    A causal prompt must stay open: an end-of-text token that the tokenizer adds is taken off. An empty prompt becomes
    one begin-of-text token, because a model cannot begin from nothing.
    """
    encoded = tokenizer(texts, add_special_tokens=special, padding=False, truncation=False, verbose=False)["input_ids"]
    start = next((i for i in (tokenizer.bos_token_id, tokenizer.eos_token_id) if i is not None), None)
    rows = []
    for ids in encoded:
        if causal and len(ids) > 1 and ids[-1] == tokenizer.eos_token_id:
            ids = ids[:-1]
        if not ids and start is None:
            raise UserError("an empty prompt needs a tokenizer with a begin- or end-of-text token; this one has none")
        rows.append(list(ids) or [start])
    return rows


def fit(name: str, ids: list[int], context: int | None, decoding: Decoding, keep: set[int]) -> Encoded:
    """The prompt within the context window.

    Without a policy a prompt must leave room for one new token, else UserError. With ``decoding.truncation`` it is cut
    so that all ``max_new_tokens`` find room; first and last tokens in ``keep`` (begin and end of text) stay.
    """
    if decoding.truncation not in (None, "left", "right"):
        raise UserError(f"truncation is {decoding.truncation!r}; it must be 'left', 'right' or None")
    if context is None:
        return Encoded(ids)
    if decoding.truncation is None:
        if len(ids) + 1 > context:
            raise UserError(
                f"prompt {name!r} has {len(ids)} tokens and the model's context is {context}; shorten it or name a "
                "truncation policy ('left' or 'right')"
            )
        return Encoded(ids)
    excess = len(ids) - max(1, context - decoding.max_new_tokens)
    if excess <= 0:
        return Encoded(ids)
    first = ids[:1] if ids[0] in keep else []
    last = ids[-1:] if ids[-1] in keep else []
    middle = ids[len(first) : len(ids) - len(last)]
    middle = middle[excess:] if decoding.truncation == "left" else middle[: max(0, len(middle) - excess)]
    kept = first + middle + last
    return Encoded(kept, dropped=len(ids) - len(kept))


def continuations(tokenizer, tail: Sequence[int], texts: Sequence[str]) -> list[list[int] | None]:
    """Token ids that spell each text behind the prompt's last tokens ``tail``, which stay as they are.

    They are those of both together if that leaves the prompt's tokens whole; otherwise those of the text behind one of
    ANCHORS. Whatever is found is decoded again behind ``tail``; None for a text that no way spells.
    """
    before = decoded(tokenizer, [list(tail)])[0]
    found: list[list[int] | None] = [None] * len(texts)
    for anchor in dict.fromkeys([before, *ANCHORS]):
        open_texts = [i for i, ids in enumerate(found) if ids is None]
        if not open_texts:
            break
        alone, *whole = tokenizer([anchor, *(anchor + texts[i] for i in open_texts)], add_special_tokens=False,
                                  padding=False, truncation=False, verbose=False)["input_ids"]
        ids = [row[len(alone):] if row[:len(alone)] == alone else [] for row in whole]
        spelled = decoded(tokenizer, [[*tail, *row] for row in ids])
        for i, row, text in zip(open_texts, ids, spelled, strict=True):
            if row and text == before + texts[i]:
                found[i] = row
    return found


def single_texts(tokenizer) -> list[str]:
    """What each token of the vocabulary adds to a text that has begun; "" for special tokens."""
    begun = tokenizer("x", add_special_tokens=False)["input_ids"]
    before, *texts = decoded(tokenizer, [begun, *([*begun, token] for token in range(len(tokenizer)))])
    return [text[len(before):] for text in texts]


def decoded(tokenizer, rows: list[list[int]]) -> list[str]:
    """The text that each row of tokens spells."""
    return tokenizer.batch_decode(rows, skip_special_tokens=True, clean_up_tokenization_spaces=False)


class Spelling:
    """The text of a growing row of tokens, one piece per token, at a cost that does not grow with the row.

    Half a character is held back until the token that completes it; special tokens spell nothing.
    """

    def __init__(self, tokenizer, prompt_ids: list[int]) -> None:
        self._tokenizer = tokenizer
        self._prompt = prompt_ids[-TAIL:]
        self._stream = DecodeStream(ids=self._prompt, skip_special_tokens=True) if tokenizer.is_fast else None
        self._window = list(self._prompt)  # for tokenizers without a native stream
        self._read = self._decode(self._window) if self._stream is None else ""

    def piece(self, token: int) -> str:
        """What this token adds to the text; "" while a character is unfinished."""
        if self._stream is not None:
            return self._stream.step(self._tokenizer.backend_tokenizer, token) or ""
        self._window.append(token)
        text = self._decode(self._window)
        if text.endswith(UNFINISHED):
            return ""
        new = text[len(self._read) :]
        if new:
            self._window = self._window[-TAIL:]
            self._read = self._decode(self._window)
        return new

    def copy(self) -> "Spelling":
        """A second one that has read the same tokens."""
        twin = copy.copy(self)
        twin._stream, twin._window = copy.copy(self._stream), list(self._window)
        return twin

    def rest(self, tokens: list[int], pieces: list[str]) -> str:
        """What is still held back after the last token (bytes that never became a character)."""
        before = self._decode(self._prompt)
        return self._decode(self._prompt + tokens)[len(before) + sum(map(len, pieces)) :]

    def _decode(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
