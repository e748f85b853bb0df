"""Makes tiny checkpoints of all architectures that the three papers use. Weights are random, and
tokenizers are trained on a few lines. Also compares the answers of models.
"""

from dataclasses import replace

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    PreTrainedTokenizerFast,
)

from lookuplab.models import Decoding
from lookuplab.models.decoding import distributions

CORPUS = [
    'import boto3\nclient = boto3.client("s3")\nresponse = client.put_object(Bucket="my-bucket", '
    'Key="k")\n',
    "def read(path):\n    with open(path) as file:\n        return file.read()\n",
    "# naïve 名前（仮） — “q” 🦜\nclient.get_waiter('x').wait(timeout=30)\nfor item in items:\n    "  # noqa: RUF001
    "print(item)\n",
]
VOCABULARY = 400
CONTEXT = 96
SPECIAL = ["<s>", "</s>", "<pad>", "<unk>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>\n{{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def byte_tokenizer(
    corpus=CORPUS, vocabulary=VOCABULARY, alphabet=pre_tokenizers.ByteLevel.alphabet()
):
    """Return a byte-level BPE tokenizer like those of GPT-2, StarCoder2, DeepSeek and Granite."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _trained(tokenizer, corpus, vocabulary, SPECIAL, initial_alphabet=alphabet)


def metaspace_tokenizer(corpus=CORPUS):
    """Return a tokenizer like SentencePiece's (Gemma, Llama, T5). A piece includes the blank before
    its word, and unknown characters become bytes.
    """
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    blank = decoders.Replace("▁", " ")
    strip = decoders.Strip(content=" ", left=1)
    tokenizer.decoder = decoders.Sequence([blank, decoders.ByteFallback(), decoders.Fuse(), strip])
    texts = [text.replace(" ", "▁") for text in corpus]
    return _trained(tokenizer, texts, VOCABULARY, SPECIAL + BYTES)


def _trained(tokenizer, corpus, vocabulary, special, **options):
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=special, show_progress=False, **options
    )
    tokenizer.train_from_iterator(corpus, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(tokenizer.to_str()),
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
    )


TOKENIZERS = {"": byte_tokenizer, "pieces": metaspace_tokenizer}
COMMON = {
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
SHARED = {"num_key_value_heads": 2}  # fewer heads for keys and values than for queries
# {architecture: its settings besides COMMON}. "granite" is not Granite-Code: IBM publishes
# Granite-Code 3B and 8B as Llama models, and 20B as a GPTBigCode model.
ARCHITECTURES = {
    "starcoder2": SHARED | {"sliding_window": 24},
    "gemma": SHARED,
    "granite": SHARED,
    "llama": SHARED,
    "gpt_bigcode": {"multi_query": True},
    "gpt2": {},
    "t5": {"d_kv": 8, "d_ff": 48, "num_decoder_layers": 2, "decoder_start_token_id": 2},
    "xglm": {"ffn_dim": 48},
}


def save(
    folder,
    architecture,
    tokenizer=None,
    context=CONTEXT,
    vocabulary=VOCABULARY,
    width=32,
    settings=None,
):
    """Write a checkpoint, and return its folder. The weights are so large that the two most likely
    tokens are never nearly tied. The prefix ``pieces-`` of an architecture stands for the tokenizer
    of ``metaspace_tokenizer``.
    """
    torch.manual_seed(sum(map(ord, architecture)))
    kind, _, architecture = architecture.rpartition("-")
    tokenizer = tokenizer or TOKENIZERS[kind]()
    size = max(vocabulary, len(tokenizer))
    sizes = {"vocab_size": size, "max_position_embeddings": context, "hidden_size": width}
    sizes["head_dim"] = width // COMMON["num_attention_heads"]
    settings = settings or ARCHITECTURES[architecture]
    config = AutoConfig.for_model(architecture, **COMMON | sizes | settings)
    kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    model = kind.from_config(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                weight.normal_(0, 0.3 * (32 / width) ** 0.5)
            elif name.endswith("bias"):
                weight.normal_(0, 0.1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_chat(folder, vocabulary=170, width=32):
    """Write a Llama whose tokenizer has a chat template. Every token is ASCII text, so no character
    is split between two tokens.
    """
    printable = [chr(code) for code in range(33, 127)]
    tokenizer = byte_tokenizer(CORPUS[:2], vocabulary, printable)
    tokenizer.chat_template = CHAT_TEMPLATE
    return save(folder, "llama", tokenizer, 512, 0, width)


TOLERANCE = 1e-4  # log-probabilities differ by this much at most between batches of different sizes


def answered(model, decoding, prompts):
    """Return {(prompt's id, sample): answer}. No store is used."""
    asked = [(prompt, sample) for prompt in prompts for sample in range(decoding.n)]
    return by_request(model.generate(asked, decoding))


def every_way(model, prompts):
    """Yield five dictionaries of a model's answers: greedy answers, greedy answers that stop
    strings end early, several samples of each prompt, names from a list, and scored texts.
    """
    greedy = Decoding(max_new_tokens=24)
    yield (free := answered(model, greedy, prompts))
    # The keys are sorted, because fast machines yield answers in another order than slow ones.
    stop = {"".join(free[key].tokens[3:6]) for key in sorted(free)[::2]} - {""}
    stopped = answered(model, replace(greedy, stop=tuple(stop)), prompts)
    assert len({len(one.tokens) for one in stopped.values()}) > 1
    yield stopped
    yield answered(model, Decoding(6, temperature=1.0, top_p=0.9, n=5), prompts[:9])
    named = [replace(prompt, choices=("put_object", "read")) for prompt in prompts[:5]]
    yield answered(model, Decoding(12), named)
    yield by_request(model.score([(prompt, "put_object(x)") for prompt in prompts[:7]]))


def by_request(batches):
    return {(done.id, done.sample): done for batch in batches for done in batch}


def assert_equal(answers, expected):
    """Check that two dictionaries have equal answers, except for the last digits of
    log-probabilities and margins.
    """
    assert answers.keys() == expected.keys()
    for name, answer in answers.items():
        one = expected[name]
        assert answer == replace(one, token_logprobs=answer.token_logprobs)
        assert answer.token_logprobs == pytest.approx(one.token_logprobs, abs=TOLERANCE)
        assert answer.margin == pytest.approx(one.margin, abs=TOLERANCE)
        assert answer.record == one.record


def log_probabilities(model, before, ids):
    """Return the log-probabilities of the tokens ``ids`` after ``before``, from one plain forward
    pass.
    """
    chances = distributions(model.module, before, ids).log()
    return chances[torch.arange(len(ids)), torch.tensor(ids)].tolist()


def assert_log_probabilities(model, prompt, done):
    """Check that an answer's log-probabilities are those of one plain forward pass."""
    expected = log_probabilities(model, model.prompt_ids(prompt.text), list(done.token_ids))
    assert done.token_logprobs == pytest.approx(expected, abs=TOLERANCE)
