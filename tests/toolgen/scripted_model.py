"""Makes a GPT-2 whose next tokens have given probabilities. They depend on the last token (a table)
or on the step of the answer (a script). Also has the code of small repositories, for which this
model writes functions.
"""

import torch
from tokenizers import Tokenizer, decoders, models
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from lookuplab.models.local import LocalModel
from lookuplab.toolgen.marking import MARK
from lookuplab.toolgen.pairs import add_mark, prompt_text

END, UNKNOWN = "<end>", "<unk>"
ASCII = [chr(code) for code in range(32, 127)] + ["\n"]
BASE = """
class Base:
    def __init__(self):
        self._registered_updates = set()
        self.name = "base"
"""
CONTAINER = '''from base import Base


class Container(Base):
    def register_updates(self, *updates):
        """Register the given updates."""
        return None if updates else self

    @property
    def label(self):
        """Name of this container."""
        label = self.name
        return label
'''
SHAPES = '''def area(width, height):
    """Area of a rectangle."""
    total = width * height
    return total
'''


def scripted(folder, table=None, script=(), prompt="", pieces=(), mark=True):
    """Write a model to a folder, and return it as a LocalModel. It follows ``table`` or ``script``.

    ``table`` is {last token: {next token: probability}}. After a token that is not in the table,
    the text ends. ``script`` has a dictionary {token: probability} for each step after ``prompt``.
    Tokens are given as texts; MARK and END are the special ones.

    If the given probabilities do not add up to 1, all other tokens share the rest equally. The
    vocabulary has the tokens of ``table`` and ``script``, ``pieces`` and all ASCII characters. A
    text is split greedily: each token is the longest that fits.
    """
    table = table or {}
    rows = [*table.values(), *script]
    tokenizer = _tokenizer({*table, *pieces, *(text for row in rows for text in row)}, mark)
    size, steps = len(tokenizer), len(script)
    # The embeddings have a dimension for each possible last token, one for each step, and one for
    # all positions outside the script.
    width = size + steps + 1
    config = GPT2Config(
        vocab_size=size,
        n_embd=width,
        n_layer=1,
        n_head=1,
        n_inner=1,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        tie_word_embeddings=False,
    )
    model = GPT2LMHeadModel(config)
    first = len(tokenizer(prompt)["input_ids"]) - 1
    # every embedding has two ones and otherwise zeros; this is its standard deviation
    deviation = (2 / width - (2 / width) ** 2 + config.layer_norm_epsilon) ** 0.5
    columns = {tokenizer.convert_tokens_to_ids(last): row for last, row in table.items()}
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        model.transformer.wte.weight[:, :size] = torch.eye(size)
        model.transformer.wpe.weight[:, -1] = 1
        model.transformer.wpe.weight[first : first + steps, size:] = torch.eye(steps, steps + 1)
        model.transformer.ln_f.weight.fill_(deviation)
        model.transformer.ln_f.bias.fill_(2 / width)  # adds the mean, which the norm subtracts
        if table:
            model.lm_head.weight[:, :size] = _logits(tokenizer, {END: 0.9})[:, None]
        for column, row in [*columns.items(), *enumerate(script, size)]:
            model.lm_head.weight[:, column] = _logits(tokenizer, row)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return LocalModel(str(folder))


def wanting(folder, function, *tokens, mark=True):
    """Write a model that answers the prompt of ``function`` with ``tokens``. Each of them is a
    text, with the probability 0.8, or a dictionary {text: probability} for one step.
    """
    script = [{one: 0.8} if isinstance(one, str) else one for one in tokens]
    return scripted(folder, script=script, prompt=prompt_text(function, "decoder"), mark=mark)


def _logits(tokenizer, row):
    rest = (1 - sum(row.values())) / (len(tokenizer) - len(row))
    probabilities = torch.full((len(tokenizer),), max(rest, 1e-9))
    for text, probability in row.items():
        probabilities[tokenizer.convert_tokens_to_ids(text)] = probability
    return probabilities.log()


def _tokenizer(written, mark):
    vocabulary = dict.fromkeys([END, UNKNOWN, *ASCII, *sorted(written - {MARK, END})])
    backend = Tokenizer(
        models.WordPiece(
            {text: i for i, text in enumerate(vocabulary)},
            unk_token=UNKNOWN,
            continuing_subword_prefix="",
            max_input_chars_per_word=10_000,
        )
    )
    backend.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=END, unk_token=UNKNOWN)
    if mark:
        add_mark(tokenizer)
    return tokenizer
