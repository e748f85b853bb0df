#!/usr/bin/env bash
# transformers 5.24.0: if training texts are packed into one row, some models read the text before, others do not. Nothing warns.
#
# Expected: DataCollatorWithFlattening puts texts in one row and starts position_ids at 0 for each. The model sees from them where a text begins, so the
# logits of a text do not depend on what stands before it. This is so for Llama, Qwen2, GPT-2, StarCoder2 and DeepSeek-V3.
# Seen: in GPT-OSS, GraniteMoeHybrid (here with attention only), OPT, BLOOM and XGLM, the second text attends to the first, because their code does not hand
# position_ids to the mask. In Qwen3-Next, LFM2, Bamba and Jamba, the state of the first text flows into the second. The logits differ by more than 1.
# Why it matters: fine-tuning packs its texts for speed (trl builds the same rows). Every text is then trained after an unrelated one, and a comparison of
# two model families, both trained by the same script, compares one trained correctly with one that was not.
# What to do: feed two texts alone and packed, and compare the logits. If they differ, train without packing.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6 transformers==5.24.0 2>/dev/null
HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error "$place/venv/bin/python" -W ignore - <<'PY' 2>"$place/err" || { tail -3 "$place/err" >&2; exit 1; }
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, DataCollatorWithFlattening

common = {"vocab_size": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
gpt2 = dict(common, n_embd=32, n_layer=2, n_head=4)
llama = dict(common, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64)
experts = {"num_experts_per_tok": 2, "moe_intermediate_size": 32}
mamba = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_n_groups": 1, "mamba_chunk_size": 8}
linear = {"linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8}
deepseek = {"num_key_value_heads": 4, "n_routed_experts": 4, "n_group": 1, "topk_group": 1, "q_lora_rank": 16, "kv_lora_rank": 16}
deepseek |= {"qk_rope_head_dim": 8, "v_head_dim": 8, "qk_nope_head_dim": 8, "first_k_dense_replace": 1, **experts}
models = {  # random weights: the equality must hold for any
    "llama": llama,
    "qwen2": llama,
    "gpt2": gpt2,
    "starcoder2": llama,
    "deepseek_v3": llama | deepseek,
    "gpt_oss": dict(llama, head_dim=8, num_local_experts=4, num_experts_per_tok=2),
    "granitemoehybrid": dict(llama, layer_types=["attention", "attention"], num_local_experts=0, shared_intermediate_size=32, **mamba),
    "opt": dict(common, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, word_embed_proj_dim=32),
    "bloom": dict(common, hidden_size=32, n_layer=2, n_head=4),
    "xglm": dict(common, d_model=32, num_layers=2, attention_heads=4, ffn_dim=64),
    "qwen3_next": dict(llama, layer_types=["linear_attention", "full_attention"], num_experts=4, shared_expert_intermediate_size=32, **experts, **linear),
    "lfm2": dict(llama, layer_types=["conv", "full_attention"]),
    "bamba": dict(llama, attn_layer_indices=[1], **mamba),
    "jamba": dict(llama, mamba_d_state=8, mamba_dt_rank=4, use_mamba_kernels=False, attn_layer_period=2, attn_layer_offset=1, num_experts=2),
}
apart = []
print("transformers", transformers.__version__)
for name, settings in models.items():
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(name, **settings)).float().eval()
    for weight in model.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=0.3)
    first, second = torch.randint(3, 64, (7,)).tolist(), torch.randint(3, 64, (12,)).tolist()
    row = DataCollatorWithFlattening(return_tensors="pt")([{"input_ids": first}, {"input_ids": second}])
    with torch.no_grad():
        packed = model(input_ids=row["input_ids"], position_ids=row["position_ids"], use_cache=False).logits[:, len(first) :]
        alone = model(input_ids=torch.tensor([second]), use_cache=False).logits
    difference = (packed - alone).abs().max().item()
    print(f"{name}: the logits of the second text, packed and alone, differ by {difference:.1e}", flush=True)
    apart += [name] if difference < 1e-4 else []
    assert difference < 1e-4 or difference > 1, "the behaviour changed"
assert apart == ["llama", "qwen2", "gpt2", "starcoder2", "deepseek_v3"], f"the behaviour changed: {apart}"
PY
