"""A tiny Llama as llama.cpp reads it, and llama.cpp's server: `python tiny_gguf.py FOLDER PORT`."""

import json
import sys
import time
from pathlib import Path

import gguf
import xllamacpp
from transformers import AutoModelForCausalLM, AutoTokenizer

PARTS = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "model.layers.": "blk.",
}


def write(folder, file):
    """Convert a Llama with byte-level BPE."""
    model, tokenizer = (
        kind.from_pretrained(folder) for kind in (AutoModelForCausalLM, AutoTokenizer)
    )
    config, out = model.config, gguf.GGUFWriter(file, "llama")
    out.add_context_length(config.max_position_embeddings)
    out.add_embedding_length(config.hidden_size)
    out.add_block_count(config.num_hidden_layers)
    out.add_feed_forward_length(config.intermediate_size)
    out.add_head_count(config.num_attention_heads)
    out.add_head_count_kv(config.num_key_value_heads)
    out.add_layer_norm_rms_eps(config.rms_norm_eps)
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list(tokenizer.convert_ids_to_tokens(range(len(tokenizer))))
    special, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    ids = tokenizer.all_special_ids
    out.add_token_types([special if id in ids else normal for id in range(len(tokenizer))])
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    out.add_token_merges([" ".join(pair) for pair in merges])
    out.add_eos_token_id(tokenizer.eos_token_id)
    out.add_add_bos_token(False)
    for name, weight in model.state_dict().items():
        for old, new in PARTS.items():
            name = name.replace(old, new)
        if "attn_q" in name or "attn_k" in name:  # rotated in pairs of neighbours there
            heads = config.num_attention_heads if "_q" in name else config.num_key_value_heads
            halves = weight.unflatten(0, (heads, 2, -1))
            weight = halves.transpose(1, 2).flatten(0, 2)
        out.add_tensor(name, weight.float().contiguous().numpy())
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


if __name__ == "__main__":
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(Path(sys.argv[1]) / "tiny.gguf")
    write(sys.argv[1], parameters.model.path)
    parameters.port, parameters.n_parallel, parameters.model_alias = int(sys.argv[2]), 2, ["tiny"]
    parameters.cache_type_k = parameters.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    parameters.n_ctx = 1024  # of the two together
    server = xllamacpp.Server(parameters)
    time.sleep(10**6)
