"""Converts texts that follow a prompt to tokens, and tokens to text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TAIL = 8  # prompt tokens given to the decoder, so that it spells new ones as a continuation
ANCHORS = ("", "\n", "(", "=")  # texts before a continuation whose tokens do not merge with it
UNFINISHED = "\ufffd"  # what an incomplete UTF-8 character decodes to


def continuations(
    tokenizer: "PreTrainedTokenizerBase", tail: Sequence[int], texts: Sequence[str]
) -> list[list[int] | None]:
    """Token ids that spell each text after the prompt's last tokens ``tail``, which are not
    changed.

    If tokenising prompt and text together leaves the prompt's tokens unchanged, the rest is used;
    otherwise the tokens of the text after one of ANCHORS. Every result is checked by decoding it
    after ``tail``; None for a text that cannot be spelled.
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


def decoded(tokenizer: "PreTrainedTokenizerBase", rows: list[list[int]]) -> list[str]:
    """The text that each row of tokens spells."""
    texts: list[str] = tokenizer.batch_decode(
        rows, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    return texts
