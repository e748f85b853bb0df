"""A Llama that is a Markov chain: the next token depends on the last one alone, with given probabilities."""

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

END = "$"  # the end of a text


def save(folder, probabilities: dict[str, dict[str, float]]):
    """``probabilities``: {last character: {next character: probability}}; ``$`` ends a text. Returns the folder.

    What is left of a row goes to the other characters in equal parts. The attention adds nothing to the embeddings,
    which are the unit vectors, and so the last layer's weights are the logarithms of the probabilities.
    """
    texts = sorted(set(probabilities).union(*probabilities.values()) | {END})
    tokenizer = Tokenizer(models.BPE({text: i for i, text in enumerate(texts)}, [], unk_token=END))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, pad_token=END
    ).save_pretrained(folder)
    size, width = len(texts), len(texts) + len(texts) % 2
    module = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=size,
            hidden_size=width,
            intermediate_size=4,
            num_hidden_layers=1,
            num_attention_heads=1,
            max_position_embeddings=64,
            bos_token_id=None,
            eos_token_id=texts.index(END),
            pad_token_id=texts.index(END),
        )
    )
    chain = torch.full((size, size), 0.0)
    for before, row in probabilities.items():
        rest = (1 - sum(row.values())) / max(1, size - len(row))
        chain[texts.index(before)] = torch.tensor([row.get(text, rest) for text in texts])
    with torch.no_grad():
        for weight in module.model.layers.parameters():
            weight.zero_()
        module.model.norm.weight.fill_((1 / width + module.config.rms_norm_eps) ** 0.5)
        module.model.embed_tokens.weight.copy_(torch.eye(size, width))
        module.lm_head.weight.copy_(
            torch.nn.functional.pad(chain.T.clamp(min=1e-9).log(), (0, width - size))
        )
    module.save_pretrained(folder)
    return folder
