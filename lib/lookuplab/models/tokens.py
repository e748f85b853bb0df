"""Converts between text and tokens, in particular for texts that follow a prompt."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# an answer's tokens are decoded together with this many tokens at the end of the prompt, because a
# token at the beginning of a text may be decoded differently
TAIL = 8
# texts after which a continuation can be tokenised instead of after the prompt, because tokenizers
# do not merge the end of these texts with the continuation
ANCHORS = ("", "\n", "(", "=")
UNFINISHED = "\ufffd"  # the replacement character: what an incomplete UTF-8 character decodes to


def continuations(
    tokenizer: "PreTrainedTokenizerBase", tail: Sequence[int], texts: Sequence[str]
) -> list[list[int] | None]:
    """Return the token ids of each text, tokenised as a text that follows ``tail``, the prompt's
    last tokens. A text that cannot be tokenised in this way gets None.

    The text is tokenised after the decoded ``tail`` and, if that fails, after each of ANCHORS. The
    tokens of the text before it are then cut off. An attempt succeeds if ``tail`` and the remaining
    tokens together decode to exactly the decoded ``tail`` and the text.
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


def speller(
    tokenizer: "PreTrainedTokenizerBase", before: Sequence[int]
) -> Callable[[int], str | None]:
    """Return a function that decodes the tokens that follow ``before`` one by one. Call it with
    each token in turn. It returns the text that the token adds, or None if there is none: an
    incomplete character is held back until a later token completes it.
    """
    from tokenizers.decoders import DecodeStream

    stream = DecodeStream(ids=list(before), skip_special_tokens=True)
    return partial(stream.step, tokenizer.backend_tokenizer)


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
    texts: list[str] = tokenizer.batch_decode(
        rows, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    return texts
