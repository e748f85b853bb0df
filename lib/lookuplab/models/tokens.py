"""Converts texts that follow a prompt to tokens, and tokens to text."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TAIL = 8  # prompt tokens given to the decoder, so that it decodes new ones as a continuation
ANCHORS = ("", "\n", "(", "=")  # texts before a continuation whose tokens do not merge with it
UNFINISHED = "\ufffd"  # the replacement character, to which an incomplete UTF-8 character decodes


def continuations(
    tokenizer: "PreTrainedTokenizerBase", tail: Sequence[int], texts: Sequence[str]
) -> list[list[int] | None]:
    """Return token ids for each text, as a continuation of the prompt's last tokens ``tail``, which
    are not changed.

    If prompt and text tokenised together give the prompt's tokens and then tokens of the text,
    those are used; otherwise the tokens of the text after one of ANCHORS. Every result is checked
    by decoding it after ``tail``. It is None for a text without such tokens.
    """
    before = decoded(tokenizer, [list(tail)])[0]
    found: list[list[int] | None] = [None] * len(texts)
    for anchor in dict.fromkeys([before, *ANCHORS]):
        left = [i for i, ids in enumerate(found) if ids is None]
        if not left:
            break
        read = [anchor, *(anchor + texts[i] for i in left)]
        alone, *whole = tokenizer(read, add_special_tokens=False, verbose=False)["input_ids"]
        ids = [row[len(alone) :] for row in whole]
        spelled = decoded(tokenizer, [[*tail, *row] for row in ids])
        for i, row, text in zip(left, ids, spelled, strict=True):
            if row and text == before + texts[i]:
                found[i] = row
    return found


def speller(
    tokenizer: "PreTrainedTokenizerBase", before: Sequence[int]
) -> Callable[[int], str | None]:
    """Return a reader of the tokens that follow ``before``: it gets them one by one and returns the
    text that each adds. An incomplete character is held back until it is complete.
    """
    from tokenizers.decoders import DecodeStream

    stream = DecodeStream(ids=list(before), skip_special_tokens=True)
    return partial(stream.step, tokenizer.backend_tokenizer)


def located(
    tokenizer: "PreTrainedTokenizerBase", text: str, special: bool = False
) -> tuple[list[int], list[tuple[int, int]]]:
    """Return a text's tokens, with the tokenizer's special ones if ``special``, and the start and
    end of each in the text.
    """
    how = {"add_special_tokens": special, "verbose": False}
    read = tokenizer(text, return_offsets_mapping=True, **how)
    return read["input_ids"], read["offset_mapping"]


def decoded(tokenizer: "PreTrainedTokenizerBase", rows: list[list[int]]) -> list[str]:
    """Return the decoded text of each row of tokens."""
    texts: list[str] = tokenizer.batch_decode(
        rows, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    return texts
