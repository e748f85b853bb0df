#!/usr/bin/env bash
# transformers 5.24.0: three state-space models forget the beginning of a prompt that is fed in two pieces with their own cache.
#
# Expected: feed tokens 1 to 12 with use_cache, then tokens 13 to 20 with the returned cache. The logits equal those of a single pass, as in Llama.
# Seen: Mamba, Falcon-Mamba and Jamba give different logits, without a warning, because a piece of more than one token starts from an empty state. Mamba 2
# and GraniteMoeHybrid, from the same code base, are right up to the last digits. If tokens are fed one by one, all models are right.
# Why it matters: many methods feed a prompt in pieces: a prefix of documentation that prompts share, chunked prefill, speculative decoding, and scoring an
# answer after its prompt. With these models, the numbers are those of a model that has not read the prompt.
# What to do: compare the logits with those of a single pass before you trust them.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6 transformers==5.24.0 2>/dev/null
HF_HUB_OFFLINE=1 "$place/venv/bin/python" -W ignore - <<'PY' 2>"$place/err" || { tail -1 "$place/err" >&2; exit 1; }
import torch
from transformers import AutoConfig, AutoModelForCausalLM

common = dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, pad_token_id=0)
attention = dict(common, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64)
granite = dict(mamba_n_heads=8, mamba_d_head=8, mamba_d_state=8, mamba_n_groups=1, num_local_experts=0, shared_intermediate_size=32)
models = {  # random weights: the equality must hold for any
    "llama": attention,
    "mamba2": dict(common, state_size=8, num_heads=8, head_dim=8, n_groups=1, expand=2, chunk_size=8),
    "granitemoehybrid": dict(attention, layer_types=["mamba", "attention"], mamba_chunk_size=8, **granite),
    "mamba": dict(common, state_size=8),
    "falcon_mamba": dict(common, state_size=8),
    "jamba": dict(attention, mamba_d_state=8, mamba_dt_rank=4, use_mamba_kernels=False, attn_layer_period=2, attn_layer_offset=1, num_experts=2),
}
far = {}
for name, settings in models.items():
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(name, **settings)).float().eval()
    for weight in model.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=0.3)
    ids = torch.randint(3, 64, (1, 20))
    key = "cache_params" if "mamba" in name else "past_key_values"

    def fed(pieces):
        cache, logits = None, []
        for piece in ids.split(pieces, 1):
            with torch.no_grad():
                out = model(piece, use_cache=True, **({key: cache} if cache is not None else {}))
            cache, logits = getattr(out, key), [*logits, out.logits]
        return torch.cat(logits, 1)

    whole = fed([20])
    far[name] = [(fed(pieces) - whole).abs().max().item() for pieces in ([12, 8], [12] + [1] * 8)]
    print(f"{name}: two pieces differ by {far[name][0]:.1e}, token by token by {far[name][1]:.1e}", flush=True)
wrong = [name for name, (pieces, tokens) in far.items() if pieces > 0.1]
assert wrong == ["mamba", "falcon_mamba", "jamba"], f"the behaviour changed: {wrong}"
assert all(tokens < 1e-3 for _, tokens in far.values()), "the behaviour changed: token by token"
PY
