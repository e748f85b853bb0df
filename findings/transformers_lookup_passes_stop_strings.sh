#!/usr/bin/env bash
# transformers 5.24.0: with prompt_lookup_num_tokens=10, `generate` goes on after a stop string: it writes 64 tokens instead of 8.
#
# Expected: prompt lookup only saves time. The greedy answer is the same, and ends after the stop string.
# Seen: each step accepts several tokens at once. The stopping criteria are asked once per step, and look only whether the text ends with a stop string. If
# the step accepts one more token, they never see it. The same goes for a StoppingCriteria of one's own.
# Why it matters: code models have to be stopped by texts such as "\ndef" or a blank line, because they go on with the next function. Prompt lookup is
# meant for code, which repeats its prompt. The answer then contains functions that nobody asked for, and generating them takes longer than prompt lookup
# saves.
# What to do: cut the answer at the first stop string.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6 transformers==5.24.0 2>/dev/null
"$place/venv/bin/python" -W ignore - <<'PY'
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, StoppingCriteria

transformers.logging.set_verbosity_error()
FUNCTION = ["def", " f", "(x):", "\n    return", " x", " + ", "1", "\n\n"]
TOKENS = FUNCTION + list("abcdef")  # StopStringCriteria tokenizes "abcdef"
tokens = Tokenizer(models.WordLevel({text: number for number, text in enumerate(TOKENS)}, unk_token="1"))
tokens.pre_tokenizer, tokens.decoder = pre_tokenizers.Split("", "isolated"), decoders.Fuse()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokens)

size = len(TOKENS)
model = LlamaForCausalLM(
    LlamaConfig(vocab_size=size, hidden_size=size, intermediate_size=size, num_hidden_layers=1, num_attention_heads=1, bos_token_id=None, eos_token_id=None)
).eval()
with torch.no_grad():  # after each token of FUNCTION, the model writes the next one; after the last, the first
    model.model.embed_tokens.weight.copy_(torch.eye(size))
    model.lm_head.weight.zero_()[: len(FUNCTION), : len(FUNCTION)] = torch.eye(len(FUNCTION)).roll(1, 0)
    model.model.layers[0].self_attn.o_proj.weight.zero_()
    model.model.layers[0].mlp.down_proj.weight.zero_()


class BlankLine(StoppingCriteria):
    def __call__(self, input_ids, scores, **_):
        return input_ids[:, -1] == FUNCTION.index("\n\n")


prompt = torch.tensor([list(range(len(FUNCTION))) * 2])
stops = {"stop string": {"stop_strings": ["\n\n"], "tokenizer": tokenizer}, "criterion": {"stopping_criteria": [BlankLine()]}}
print("transformers", transformers.__version__)
seen = []
for name, stop in stops.items():
    for lookup in (None, 10):
        options = stop | ({"prompt_lookup_num_tokens": lookup} if lookup else {})
        [answer] = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=64, **options)
        answer = answer[prompt.shape[1] :]
        seen.append(len(answer))
        print(f"{name}, prompt_lookup_num_tokens={lookup}: {len(answer)} tokens, {tokenizer.decode(answer[:12])!r}")
assert seen == [8, 64, 8, 64], "the behaviour changed"
PY
