"""A tiny random checkpoint of every architecture that the three papers use, with small trained tokenizers."""

import json

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
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=SPECIAL,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )


def metaspace_tokenizer(corpus=CORPUS, vocabulary=VOCABULARY) -> PreTrainedTokenizerFast:
    """Pieces that carry their leading blank and fall back to bytes, as SentencePiece makes them (Gemma, Llama, T5)."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(content=" ", left=1),
        ]
    )
    special = SPECIAL + [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=special, show_progress=False
    )
    tokenizer.train_from_iterator([text.replace(" ", "▁") for text in corpus], trainer)
    state = tokenizer.to_str()
    tokenizer = Tokenizer.from_str(state)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
    )


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


# What config.json on the hub says of one of the papers' models of each architecture, by the name of data/sources.toml;
# the depth comes last. That the parameters come out as they are counted there is tested.
def _wide(hidden, inner, heads, groups, vocabulary, context, **more):
    return dict(
        hidden_size=hidden,
        intermediate_size=inner,
        num_attention_heads=heads,
        num_key_value_heads=groups,
        vocab_size=vocabulary,
        max_position_embeddings=context,
        **more,
    )


REAL = {
    "starcoder2-3b": (
        "starcoder2",
        _wide(3072, 12288, 24, 2, 49152, 16384, use_bias=True, sliding_window=4096),
        30,
    ),
    "codegemma-2b": ("gemma", _wide(2048, 16384, 8, 1, 256000, 8192, head_dim=256), 18),
    "deepseek-coder-1_3b": ("llama", _wide(2048, 5504, 16, 16, 32256, 16384), 24),
    "granite-code-20b": (
        "gpt_bigcode",
        {"vocab_size": 49152, "n_embd": 6144, "n_inner": 24576, "n_head": 48, "n_positions": 8192},
        52,
    ),
    "codegpt-small-py": (
        "gpt2",
        {"vocab_size": 50001, "n_embd": 768, "n_head": 12, "n_positions": 1024},
        12,
    ),
    "codet5-base": (
        "t5",
        {"vocab_size": 32100, "d_model": 768, "d_kv": 64, "d_ff": 3072, "num_heads": 12},
        12,
    ),
    "incoder-1b": (
        "xglm",
        {
            "vocab_size": 50518,
            "d_model": 2048,
            "ffn_dim": 8192,
            "attention_heads": 32,
            "max_position_embeddings": 2048,
        },
        24,
    ),
}


def real(name, layers=None):
    """A model of the papers at its real width and vocabulary, with so many layers (all without it)."""
    architecture, settings, depth = REAL[name]
    kind, config, small = ARCHITECTURES[architecture]
    deep = {
        one: layers or depth
        for one in ("num_hidden_layers", "n_layer", "num_layers")
        if one in small
    }
    ids = {one: small[one] for one in ("bos_token_id", "eos_token_id", "pad_token_id")}
    more = {one: small[one] for one in ("multi_query", "decoder_start_token_id") if one in small}
    return kind(config(**settings, **deep, **ids, **more))


def save_real(folder, name, tokenizer, layers):
    """Write it in bfloat16 with a tokenizer of as many words, most of which no text has; return its parameters."""
    with torch.device("meta"):
        model = real(name, layers).to(torch.bfloat16).eval()
    model.to_empty(device="cpu")
    torch.manual_seed(0)
    # drawing each weight would take minutes
    noise = torch.empty(2**20).normal_(0, 0.02).to(torch.bfloat16)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(
                noise.repeat(-(-weight.numel() // len(noise)))[: weight.numel()].view(weight.shape)
            )
    model.tie_weights()
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    words = state["model"]["vocab"]
    words |= {f"word {at}": at for at in range(len(words), REAL[name][1]["vocab_size"])}
    PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(state)),
        **{f"{one}_token": getattr(tokenizer, f"{one}_token") for one in ("bos", "eos", "pad")},
    ).save_pretrained(folder)
    model.save_pretrained(folder)
    return sum(weight.numel() for weight in model.parameters())


def save(folder, architecture, tokenizer=None, context=CONTEXT, vocabulary=VOCABULARY):
    """Write the checkpoint; weights are large enough that its most likely tokens stand clear of each other."""
    torch.manual_seed(sum(map(ord, architecture)))
    tokenizer = tokenizer or byte_tokenizer()
    kind, config, settings = ARCHITECTURES[architecture]
    longest = {
        name: context for name in ("max_position_embeddings", "n_positions") if name in settings
    }
    model = kind(
        config(**{**settings, **longest, "vocab_size": max(vocabulary, len(tokenizer))})
    ).eval()
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
