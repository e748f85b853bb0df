"""Tests text-generating architectures of Transformers, with tiny random checkpoints in float32.

A local model must give the same answers as plain forward passes without a cache. Architectures for
which this is not so are refused.
"""

import pytest
import transformers
from doors import refused
from tiny_architectures import ARCHITECTURES, SHARED, answered, byte_tokenizer, save

from lookuplab.models import Decoding, Prompt
from lookuplab.models.decoding import distributions
from lookuplab.models.local import LocalModel

EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
WINDOWS = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 8}
RIGHT = {
    # this and the next one have recurrent layers as well as attention layers
    "bamba": SHARED
    | {"attn_layer_indices": [1], "mamba_n_heads": 8, "mamba_d_head": 8, "mamba_chunk_size": 16},
    "qwen3_next": SHARED
    | {"layer_types": ["linear_attention", "full_attention"]}
    | {"num_experts": 4, "num_experts_per_tok": 2}
    | {"moe_intermediate_size": 48, "shared_expert_intermediate_size": 48}
    | {"linear_num_key_heads": 2, "linear_num_value_heads": 4}
    | {"linear_key_head_dim": 8, "linear_value_head_dim": 8},
    "lfm2": SHARED | {"full_attn_idxs": [1]},  # convolutions
    "mpt": {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 96}  # ALiBi
    | {"max_position_embeddings": None},
    "gpt_neo": {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]},
    "llama4_text": SHARED | EXPERTS | {"attention_chunk_size": 16, "intermediate_size_mlp": 48},
    "gemma3_text": SHARED | WINDOWS,
    "gpt_oss": SHARED | EXPERTS | WINDOWS,  # attention sinks
    "bart": {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2}
    | {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "decoder_start_token_id": 2},
}
WRONG = {
    "mamba": {"state_size": 8},
    "rwkv": {"attention_hidden_size": 32},
    "minimax": SHARED | EXPERTS,
}
TEXTS = (
    "x =",
    "def read(path):\n    with open(path) as file:",
    "client = boto3.client('s3')\nclient.",
)
PROMPTS = [Prompt(str(at), text) for at, text in enumerate((*TEXTS, "# a\n" * 6 + TEXTS[1]))]
EIGHT = Decoding(max_new_tokens=8)


@pytest.mark.parametrize("name", [*ARCHITECTURES, *RIGHT])
def test_an_architecture_answers_alone_and_in_a_batch_as_without_a_cache(tmp_path, name):
    model = LocalModel(str(save(tmp_path, name, settings=RIGHT.get(name))))
    for model.batch_size in 1, 4:
        for (at, _), one in answered(model, EIGHT, PROMPTS).items():
            read = model.prompt_ids(PROMPTS[int(at)].text)
            best = distributions(model.module, read, list(one.token_ids)).log().max(-1)
            assert best.indices.tolist() == [*one.token_ids]
            assert one.token_logprobs == pytest.approx(best.values.tolist(), abs=1e-4)


@pytest.mark.parametrize("name", ["gpt_neo", "mpt", "bart"])
def test_answers_end_at_the_last_position_and_a_prompt_beyond_it_is_refused(tmp_path, name):
    model = LocalModel(str(save(tmp_path, name, settings=RIGHT[name])))
    together, alone = (
        {id: one.token_ids for id, one in answered(model, Decoding(200), PROMPTS).items()}
        for model.batch_size in (4, 1)
    )
    assert together == alone and max(map(len, alone.values())) > 80
    with refused("and the model's context is 96"):
        answered(model, EIGHT, [Prompt("long", TEXTS[1] * 9)])


def refusal(folder):
    with refused("") as raised:
        answered(LocalModel(str(folder)), EIGHT, PROMPTS)
    return str(raised.value)


@pytest.mark.parametrize("name", WRONG)
def test_an_architecture_that_would_answer_otherwise_is_refused_in_one_line(tmp_path, name):
    said = f"its architecture ({name}) cannot generate token by token in a batch here: "
    assert said in refusal(save(tmp_path, name, settings=WRONG[name]))


def test_a_model_that_does_not_read_text_alone_is_refused_in_one_line(tmp_path):
    transformers.WhisperConfig().save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    assert "cannot load model" in refusal(tmp_path)
