"""The mini models' tokenizer: byte-level BPE whose pieces are the parts of identifiers.

Names are cut at underscores and at changes of case, digits stand alone, a line break takes its indentation with it. A
small model that copies ``list_identity_pool_usage`` or ``IdentityPoolId`` out of documentation then handles few,
frequent and meaningful pieces.
"""

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

EOS, PAD = "<|endoftext|>", "<|pad|>"
PIECES = "|".join([
    r"[\r\n]+[ \t]*",  # line breaks with the indentation that follows
    r"[ _]?\p{Lu}?[\p{Ll}\p{Lo}\p{Lm}\p{M}]+",  # word, _word, Word, _Word, with its space
    r"[ _]?\p{Lu}+(?!\p{Ll})",  # ACRONYM
    r"[ _]?\p{Lu}",
    r"\p{N}",  # digits one by one
    r" ?[^\s\p{L}\p{N}_]+",  # runs of punctuation
    r"_+(?=_\p{L})|_+",  # __init__: the underscore before a letter belongs to the word
    r"[^\S\r\n]+(?= \S)|[^\S\r\n]+",
])


def train_tokenizer(texts: Iterable[str], vocab_size: int = 4096) -> PreTrainedTokenizerFast:
    """Learn the merges from ``texts``; deterministic. ``decode(encode(text)) == text`` for every text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=[EOS, PAD], initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        max_token_length=20, show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=EOS, bos_token=EOS, pad_token=PAD, padding_side="left",
        clean_up_tokenization_spaces=False, model_max_length=2048,
    )


def load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """The tokenizer saved beside a mini model."""
    return PreTrainedTokenizerFast.from_pretrained(folder)
