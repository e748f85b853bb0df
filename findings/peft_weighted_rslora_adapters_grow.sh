#!/usr/bin/env bash
# peft 0.21.2: combining adapters that were trained with rsLoRA multiplies their effect by the square root of the rank.
#
# Expected: add_weighted_adapter(["a"], [1.0], "copy") gives an adapter with the effect of "a". The docstring calls `cat` and `svd` "precise methods".
# This is so for plain LoRA.
# Seen: with use_rslora=True and rank 16, the copy changes the weights 4 times as much as "a", in svd (the default), linear, cat and ties. The mean of
# two adapters, by cat or by svd with rank 32, is 5.7 times too large.
# Why it matters: averages of adapters, and sums with negative weights, are compared with each adapter alone. With rsLoRA, the combination is worse than
# both because of its scale, not because of the method. There is no warning, and merge_and_unload writes the wrong scale into the model.
# What to do: after combining, compare `get_delta_weight` with the sum, or divide the weights by the square root of the new rank.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6 transformers==5.24.0 peft==0.21.2 2>/dev/null
HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error "$place/venv/bin/python" -W ignore - <<'PY' 2>"$place/err" || { tail -3 "$place/err" >&2; exit 1; }
import peft
import torch
from transformers import LlamaConfig, LlamaForCausalLM

sizes = {"vocab_size": 50, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2}
print("peft", peft.__version__)
seen = {}
for rslora in (False, True):
    torch.manual_seed(0)
    config = peft.LoraConfig(r=16, lora_alpha=16, target_modules=["q_proj"], use_rslora=rslora)
    model = peft.get_peft_model(LlamaForCausalLM(LlamaConfig(**sizes)), config, adapter_name="a")
    model.add_adapter("b", config)
    for name, weight in model.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(weight, std=0.1)
    layer = model.base_model.model.model.layers[0].self_attn.q_proj
    for weights in ({"a": 1.0}, {"a": 0.5, "b": 0.5}):
        wanted = sum(weight * layer.get_delta_weight(name) for name, weight in weights.items())
        for method in ("svd", "linear", "cat", "ties"):
            if len(weights) > 1 and method in ("linear", "ties"):
                continue  # the docstring calls linear a rough approximation, and ties is no sum
            options = {"density": 1.0} if method == "ties" else {"svd_rank": 32 if len(weights) > 1 else 16} if method == "svd" else {}
            model.add_weighted_adapter(list(weights), list(weights.values()), "new", combination_type=method, **options)
            made = layer.get_delta_weight("new")
            ratio = (made.norm() / wanted.norm()).item()
            exact = torch.allclose(made, ratio * wanted, atol=1e-4)
            print(f"use_rslora={rslora}, {method} of {weights}: {ratio:.2f} times the weighted sum")
            seen[rslora, method, len(weights)] = round(ratio, 2) if exact else None
            model.delete_adapter("new")
assert {ratio for (rslora, *_), ratio in seen.items() if not rslora} == {1.0}, "the behaviour changed"
assert {ratio for (rslora, _, count), ratio in seen.items() if rslora and count == 1} == {4.0}, "the behaviour changed"
assert {ratio for (rslora, _, count), ratio in seen.items() if rslora and count == 2} == {5.66}, "the behaviour changed"
PY
