"""Tests architectures of Transformers that can write text, with tiny random checkpoints in float32.
A local model gives the same answers as plain forward passes without a cache, or is refused.
"""

import pytest
import torch
import transformers
from tiny_architectures import answered, byte_tokenizer
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

from lookuplab.errors import UserError
from lookuplab.models import Decoding, Prompt
from lookuplab.models.decoding import distributions
from lookuplab.models.local import LocalModel

# one of each kind: recurrent layers next to attention layers, linear attention, convolutions,
# ALiBi, chunked attention, sliding windows, experts with attention sinks, an encoder
RIGHT = "bamba qwen3_next lfm2 mpt llama4_text gemma3_text gpt_oss bart".split()
WRONG = "mamba rwkv minimax".split()
TEXTS = (
    "x =",
    "def read(path):\n    with open(path) as file:",
    "client = boto3.client('s3')\nclient.",
)
PROMPTS = [Prompt(str(at), text) for at, text in enumerate((*TEXTS, "# a\n" * 6 + TEXTS[1]))]
EIGHT = Decoding(max_new_tokens=8)
LAYERS = 4
# number -> the sizes that get this number, by all names that configurations have for them
SIZES = {
    32: "hidden_size d_model n_embd dim embed_dim embedding_size rotary_dim decoder_hidden_size",
    48: "intermediate_size ffn_dim d_ff n_inner encoder_ffn_dim decoder_ffn_dim "
    "moe_intermediate_size shared_expert_intermediate_size shared_intermediate_size "
    "ffn_hidden_size block_ff_dim intermediate_size_mlp moe_shared_expert_intermediate_size "
    "dense_intermediate_size",
    LAYERS: "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers "
    "num_decoder_layers num_attention_heads n_head n_heads num_heads encoder_attention_heads "
    "decoder_attention_heads num_local_experts num_experts n_routed_experts moe_num_experts "
    "linear_num_value_heads",
    2: "num_key_value_heads num_kv_heads num_experts_per_tok top_k moe_topk "
    "linear_num_key_heads num_experts_per_token attn_layer_period expert_layer_period moe_k",
    1: "n_group topk_group n_shared_experts attn_layer_offset mamba_n_groups n_groups "
    "expert_layer_offset",
    8: "head_dim d_kv kv_channels qk_rope_head_dim qk_nope_head_dim v_head_dim "
    "linear_key_head_dim linear_value_head_dim kv_lora_rank mamba_d_head ssm_state_size "
    "mamba_d_state state_size sliding_window attention_window_size",
    16: "q_lora_rank qk_head_dim global_head_dim mamba_dt_rank time_step_rank "
    "mamba_chunk_size chunk_size attention_chunk_size",
    96: "max_position_embeddings n_positions max_seq_len context_length n_ctx seq_length "
    "max_sequence_length",
}
TINY = {name: size for size, names in SIZES.items() for name in names.split()}
TOKENS = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, "decoder_start_token_id": 0}
# settings that cannot be derived from the names of the sizes
OWN = {
    "bamba": {"mamba_n_heads": 8, "mamba_expand": 2, "attn_layer_indices": [1, 3]},
    "gemma3_text": {"layer_types": ["sliding_attention", "full_attention"] * 2},
    "lfm2": {"full_attn_idxs": [1, 3], "layer_types": None},
    "mpt": {"expansion_ratio": 2},
    "qwen3_next": {"layer_types": ["linear_attention", "full_attention"] * 2},
    "rwkv": {"attention_hidden_size": 32},
    "llama4_text": {"head_dim": 8, "moe_layers": None},
}


def configured(kind):
    """Return a tiny configuration of this class. The configurations within it are tiny, too."""
    usual = kind()
    usual.allow_global_per_layer_attribute_access = True
    given = {name: size for name, size in TINY.items() if is_size(usual, name)}
    given |= {name: token for name, token in TOKENS.items() if hasattr(usual, name)}
    if hasattr(usual, "vocab_size"):
        given["vocab_size"] = 400
    for name, inner in getattr(kind, "sub_configs", {}).items():
        if isinstance(inner, type) and inner is not AutoConfig:
            given[name] = configured(inner)
        elif getattr(usual, name, None) is not None:
            given[name] = configured(type(getattr(usual, name)))
    return kind(**given | OWN.get(kind.model_type, {}))


def is_size(config, name):
    is_fixed = isinstance(getattr(type(config), name, None), property)
    return type(getattr(config, name, None)) is int and not is_fixed


def save(folder, name):
    """Write a tiny checkpoint whose most likely tokens are never nearly tied."""
    torch.manual_seed(0)
    config = configured(transformers.CONFIG_MAPPING[name])
    if config.is_encoder_decoder:
        config.decoder_start_token_id = TOKENS["decoder_start_token_id"]
    byte_tokenizer(vocabulary=400).save_pretrained(folder)
    config.save_pretrained(folder)
    kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    if type(config) not in kind._model_mapping:
        # no class that reads text has this configuration, so there are no weights to write
        return folder
    module = kind.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for part, weight in module.named_parameters():
            if weight.dim() > 1 and part.endswith("weight"):
                weight.normal_(0, 0.3)
    module.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("name", RIGHT)
def test_an_architecture_answers_alone_and_in_a_batch_as_without_a_cache(tmp_path, name):
    model = LocalModel(str(save(tmp_path, name)))
    for model.batch_size in 1, 4:
        for (at, _), one in answered(model, EIGHT, PROMPTS).items():
            read = model.prompt_ids(PROMPTS[int(at)].text)
            best = distributions(model.module, read, list(one.token_ids)).log().max(-1)
            assert best.indices.tolist() == [*one.token_ids]
            assert one.token_logprobs == pytest.approx(best.values.tolist(), abs=1e-4)


def refusal(folder):
    with pytest.raises(UserError, match=r"^.*$") as raised:  # the message has one line
        answered(LocalModel(str(folder)), EIGHT, PROMPTS)
    return str(raised.value)


@pytest.mark.parametrize("name", WRONG)
def test_an_architecture_that_would_answer_otherwise_is_refused_in_one_line(tmp_path, name):
    said = f"its architecture ({name}) cannot generate token by token in a batch here: "
    assert said in refusal(save(tmp_path, name))


@pytest.mark.parametrize("name", ["whisper", "musicgen"])
def test_a_model_that_does_not_read_text_alone_is_refused_in_one_line(tmp_path, name):
    assert "cannot load model" in refusal(save(tmp_path, name))
