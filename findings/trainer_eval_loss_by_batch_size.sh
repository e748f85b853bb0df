#!/usr/bin/env bash
# transformers 5.24.0: the loss that Trainer.evaluate returns, and so the perplexity, depends on per_device_eval_batch_size.
#
# Expected: eval_loss is the mean over all tokens, as in training, where gradient accumulation divides by the number of tokens since 4.46. The size of the
# batches changes only the last digits.
# Seen: 64 texts of 2 to 39 tokens, of which the short ones get another loss than the long ones. With batches of 1, eval_loss is 7.30 and the
# perplexity 1480; with one batch of 64, 7.06 and 1158. Only the single batch gives the mean over all tokens. Trainer takes the mean over each batch's
# tokens, and weights it by the number of texts, so a token in a short text counts more.
# Why it matters: the perplexity of a fine-tuned model is reported, and checkpoints are chosen by eval_loss. Both change with the memory of the card.
# What to do: add up losses and tokens yourself.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet transformers==5.24.0 torch==2.13.0 accelerate==1.15.0 2>/dev/null
cd "$place"
HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error "$place/venv/bin/python" - 2>"$place/err" <<'PY' || { tail -3 "$place/err" >&2; exit 1; }
import math

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

torch.manual_seed(0)
torch.set_num_threads(1)
sizes = {"vocab_size": 50, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2}
model = LlamaForCausalLM(LlamaConfig(initializer_range=0.5, **sizes)).eval()
# The short texts repeat one token, the long ones are random.
texts = [torch.full((2 + n,), 7) if n < 8 else torch.randint(0, 50, (n,)) for n in (index % 40 for index in range(64))]


def batch(rows):
    ids = torch.nn.utils.rnn.pad_sequence([row["ids"] for row in rows], batch_first=True)
    seen = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row["ids"]) for row in rows], batch_first=True)
    return {"input_ids": ids, "attention_mask": seen, "labels": ids.masked_fill(seen == 0, -100)}


def evaluate(size):
    options = TrainingArguments("out", per_device_eval_batch_size=size, report_to=[], use_cpu=True, disable_tqdm=True, remove_unused_columns=False)
    rows = [{"ids": text} for text in texts]
    return Trainer(model, options, data_collator=batch, eval_dataset=rows).evaluate()["eval_loss"]


with torch.no_grad():
    losses = [(len(text) - 1) * model(text[None], labels=text[None]).loss.item() for text in texts]
mean = sum(losses) / sum(len(text) - 1 for text in texts)
seen = {size: evaluate(size) for size in (1, 8, 64)}
print("transformers", transformers.__version__, f"mean over all tokens {mean:.3f}")
for size, loss in seen.items():
    print(f"batches of {size}: eval_loss {loss:.3f}, perplexity {math.exp(loss):.0f}")
assert abs(seen[64] - mean) < 1e-3, "the behaviour changed"
assert abs(seen[1] - mean) > 0.05 and abs(seen[8] - seen[1]) > 0.01, "the behaviour changed"
PY
