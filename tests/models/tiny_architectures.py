"""A tiny random checkpoint of every architecture that the three papers use, with small trained tokenizers."""

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GemmaConfig,
    GemmaForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GPTBigCodeConfig,
    GPTBigCodeForCausalLM,
    GraniteConfig,
    GraniteForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Starcoder2Config,
    Starcoder2ForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    XGLMConfig,
    XGLMForCausalLM,
)

CORPUS = [
    'import boto3\nclient = boto3.client("s3")\nresponse = client.put_object(Bucket="my-bucket", Key="k")\n',
    "def read(path):\n    with open(path) as file:\n        return file.read()\n",
    "# naïve 名前（仮） — “q” 🦜\nclient.get_waiter('x').wait(timeout=30)\nfor item in items:\n    print(item)\n",
]
VOCABULARY = 400
CONTEXT = 96
SPECIAL = ["<s>", "</s>", "<pad>", "<unk>"]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>\n{{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
BOS, EOS, PAD = 0, 1, 2


def byte_tokenizer(
    corpus=CORPUS, vocabulary=VOCABULARY, alphabet=pre_tokenizers.ByteLevel.alphabet()
) -> PreTrainedTokenizerFast:
    """Byte-level BPE, as GPT-2, StarCoder2, DeepSeek and Granite have it."""
    tokenizer = Tokenizer(models.BPE(unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return trained(tokenizer, corpus, vocabulary, SPECIAL, initial_alphabet=alphabet)


def metaspace_tokenizer(corpus=CORPUS, vocabulary=VOCABULARY) -> PreTrainedTokenizerFast:
    """Pieces that carry their leading blank and fall back to bytes, as SentencePiece makes them (Gemma, Llama, T5)."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    blank, strip = decoders.Replace("▁", " "), decoders.Strip(content=" ", left=1)
    tokenizer.decoder = decoders.Sequence([blank, decoders.ByteFallback(), decoders.Fuse(), strip])
    special = SPECIAL + [f"<0x{byte:02X}>" for byte in range(256)]
    return trained(tokenizer, [text.replace(" ", "▁") for text in corpus], vocabulary, special)


def trained(tokenizer, corpus, vocabulary, special, **options):
    """It has learned from the corpus. Written and read once: what follows depends on no state of the training."""
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=special, show_progress=False, **options
    )
    tokenizer.train_from_iterator(corpus, trainer)
    named = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    if tokenizer.model.unk_token:
        named["unk_token"] = "<unk>"
    read = Tokenizer.from_str(tokenizer.to_str())
    return PreTrainedTokenizerFast(tokenizer_object=read, **named)


COMMON = {"vocab_size": VOCABULARY, "bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": PAD}
LLAMA_LIKE = dict(
    COMMON,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=CONTEXT,
)
GPT2 = dict(COMMON, n_embd=32, n_layer=2, n_head=4, n_positions=CONTEXT)
T5 = dict(
    COMMON, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=PAD
)
XGLM = dict(
    COMMON, d_model=32, ffn_dim=48, num_layers=2, attention_heads=4, max_position_embeddings=CONTEXT
)

ARCHITECTURES = {  # IBM's Granite-Code 3B and 8B are published as Llamas, the 20B as GPTBigCode
    "starcoder2": (Starcoder2ForCausalLM, Starcoder2Config, dict(LLAMA_LIKE, sliding_window=24)),
    "gemma": (GemmaForCausalLM, GemmaConfig, dict(LLAMA_LIKE, head_dim=8)),
    "granite": (GraniteForCausalLM, GraniteConfig, LLAMA_LIKE),
    "llama": (LlamaForCausalLM, LlamaConfig, LLAMA_LIKE),
    "gpt_bigcode": (GPTBigCodeForCausalLM, GPTBigCodeConfig, dict(GPT2, multi_query=True)),
    "gpt2": (GPT2LMHeadModel, GPT2Config, GPT2),
    "t5": (T5ForConditionalGeneration, T5Config, T5),
    "xglm": (XGLMForCausalLM, XGLMConfig, XGLM),
}


def save(folder, architecture, tokenizer=None, context=CONTEXT, vocabulary=VOCABULARY):
    """Write the checkpoint; weights are large enough that its most likely tokens stand clear of each other."""
    torch.manual_seed(sum(map(ord, architecture)))
    tokenizer = tokenizer or byte_tokenizer()
    kind, config, settings = ARCHITECTURES[architecture]
    longest = {"max_position_embeddings", "n_positions"} & settings.keys()
    size = dict.fromkeys(longest, context) | {"vocab_size": max(vocabulary, len(tokenizer))}
    model = kind(config(**settings | size)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                weight.normal_(0, 0.3)
            elif name.endswith("bias"):
                weight.normal_(0, 0.1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_chat(folder, vocabulary=170):
    """A Llama with a chat template, whose tokens decode to ASCII each by itself, so that those of an answer spell it."""
    printable = [chr(code) for code in range(33, 127)]
    tokenizer = byte_tokenizer(CORPUS[:2], vocabulary, printable)
    tokenizer.chat_template = CHAT_TEMPLATE
    return save(folder, "llama", tokenizer, context=512, vocabulary=0)
