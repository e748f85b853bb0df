"""From prompts to token ids, and from token ids back to the text that they spell."""

from collections.abc import Sequence

from tokenizers.decoders import DecodeStream

from lookuplab.errors import UserError
from lookuplab.models.types import Decoding

TAIL = 8  # tokens of the prompt that a decoder sees, so that it spells the first new one as a continuation
ANCHORS = ("", "\n", "(", "=")  # texts before a continuation whose tokens do not merge with it
UNFINISHED = "\ufffd"  # what half a UTF-8 character decodes to


def encode(tokenizer, text: str, special: bool, causal: bool) -> list[int]:
    """Token ids of a text, with the tokenizer's own special tokens if ``special``.

    A causal prompt must stay open: an end-of-text token that the tokenizer adds is taken off. An empty
    prompt becomes one begin-of-text token, because a model cannot begin from nothing.
    """
    ids = tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"]
    if causal and len(ids) > 1 and ids[-1] == tokenizer.eos_token_id:
        return ids[:-1]
    if ids:
        return ids
    for start in (tokenizer.bos_token_id, tokenizer.eos_token_id):
        if start is not None:
            return [start]
    raise UserError("an empty prompt needs a tokenizer with a begin- or end-of-text token")


def fit(tokenizer, name: str, ids: list[int], context: int | None, decoding: Decoding) -> list[int]:
    """The prompt within the context window.

    Without a policy a prompt must leave room for one new token, else UserError. With truncation on the left it is
    cut so that all ``max_new_tokens`` find room; a begin-of-text token stays.
    """
    cut = decoding.truncation == "left"
    if context is None or len(ids) + (decoding.max_new_tokens if cut else 1) <= context:
        return ids
    if not cut:
        raise UserError(
            f"prompt {name!r} has {len(ids)} tokens and the model's context is {context}; shorten it "
            "or cut its beginning (truncation 'left')"
        )
    first = ids[:1] if ids[0] == tokenizer.bos_token_id else []
    room = max(1, context - decoding.max_new_tokens) - len(first)
    return first + ids[len(ids) - room :]


def continuations(tokenizer, tail: Sequence[int], texts: Sequence[str]) -> list[list[int] | None]:
    """Token ids that spell each text behind the prompt's last tokens ``tail``, which stay as they are.

    They are those of both together if that leaves the prompt's tokens whole; otherwise those of the
    text behind one of ANCHORS. Whatever is found is decoded again behind ``tail``; None for a text
    that no way spells.
    """
    before = decoded(tokenizer, [list(tail)])[0]
    found: list[list[int] | None] = [None] * len(texts)
    for anchor in dict.fromkeys([before, *ANCHORS]):
        left = [i for i, ids in enumerate(found) if ids is None]
        if not left:
            break
        read = [anchor, *(anchor + texts[i] for i in left)]
        alone, *whole = tokenizer(read, add_special_tokens=False, verbose=False)["input_ids"]
        ids = [row[len(alone) :] if row[: len(alone)] == alone else [] for row in whole]
        spelled = decoded(tokenizer, [[*tail, *row] for row in ids])
        for i, row, text in zip(left, ids, spelled, strict=True):
            if row and text == before + texts[i]:
                found[i] = row
    return found


def single_texts(tokenizer) -> list[str]:
    """What each token of the vocabulary adds to a text that has begun; "" for special tokens."""
    begun = tokenizer("x", add_special_tokens=False)["input_ids"]
    rows = [begun, *([*begun, token] for token in range(len(tokenizer)))]
    before, *texts = decoded(tokenizer, rows)
    return [text[len(before) :] for text in texts]


def decoded(tokenizer, rows: list[list[int]]) -> list[str]:
    """The text that each row of tokens spells."""
    return tokenizer.batch_decode(
        rows, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )


class Spelling:
    """The text of a growing row of tokens, one piece a token, at a cost that does not grow with the row.

    Half a character is held back until the token that completes it; special tokens spell nothing.
    """

    def __init__(self, tokenizer, prompt_ids: Sequence[int]) -> None:
        self._tokenizer, self._ids = tokenizer, list(prompt_ids[-TAIL:])
        self._stream = DecodeStream(ids=self._ids, skip_special_tokens=True)
        self._read = len(decoded(tokenizer, [self._ids])[0])

    def piece(self, token: int) -> str:
        """What this token adds to the text; "" while a character is unfinished."""
        self._ids.append(token)
        new = self._stream.step(self._tokenizer.backend_tokenizer, token) or ""
        self._read += len(new)
        return new

    def rest(self) -> str:
        """What is held back after the last token (bytes that never became a character)."""
        return decoded(self._tokenizer, [self._ids])[0][self._read :]
