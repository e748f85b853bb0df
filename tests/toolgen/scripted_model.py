"""A GPT-2 whose next token depends on the last one alone, by a table of probabilities: what it writes is known."""

import torch
from tokenizers import Tokenizer, decoders, models
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from lookuplab.models.local import LocalModel, load_local
from lookuplab.toolgen.marking import MARK
from lookuplab.toolgen.pairs import add_mark

END, UNKNOWN = "<end>", "<unk>"
ASCII = [chr(code) for code in range(32, 127)] + ["\n"]


def scripted(folder, table: dict[str, dict[str, float]], pieces=(), mark=True, context=1024) -> LocalModel:
    """``table``: {last token: {next token: probability}}, tokens written as text; MARK and END stand for themselves.

    What a row leaves of 1 is spread over the other tokens. Texts are tokenised greedily, longest piece first; the
    pieces are the tokens of the table, ``pieces`` and all ASCII characters.
    """
    written = {text for row in table.items() for text in (row[0], *row[1])} - {MARK, END}
    vocabulary = dict.fromkeys([END, UNKNOWN, *ASCII, *sorted(written | set(pieces))])
    backend = Tokenizer(models.WordPiece({text: i for i, text in enumerate(vocabulary)}, unk_token=UNKNOWN,
                                         continuing_subword_prefix="", max_input_chars_per_word=10_000))
    backend.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=END, unk_token=UNKNOWN)
    if mark:
        add_mark(tokenizer)
    size = len(tokenizer)
    config = GPT2Config(vocab_size=size, n_positions=context, n_embd=size, n_layer=1, n_head=1, n_inner=1,
                        eos_token_id=tokenizer.eos_token_id, bos_token_id=None, tie_word_embeddings=False)
    model = GPT2LMHeadModel(config)
    logits = torch.zeros(size, size)
    for last, row in table.items():
        rest = (1 - sum(row.values())) / (size - len(row))
        probabilities = torch.full((size,), max(rest, 1e-9))
        for text, probability in row.items():
            probabilities[tokenizer.convert_tokens_to_ids(text)] = probability
        logits[tokenizer.convert_tokens_to_ids(last)] = probabilities.log()
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        spread = (1 / size - 1 / size**2 + config.layer_norm_epsilon) ** 0.5  # of a unit vector
        model.transformer.wte.weight.copy_(torch.eye(size))
        model.transformer.ln_f.weight.fill_(spread)
        model.transformer.ln_f.bias.fill_(1 / size)  # what normalising takes away
        model.lm_head.weight.copy_(logits.T)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return load_local(str(folder))
