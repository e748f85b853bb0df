#!/usr/bin/env bash
# ctranslate2 4.8.5, transformers 5.24.0: with the same repetition penalty, the same model gives other answers, because CTranslate2 does not count the prompt.
#
# Expected: greedy decoding with repetition_penalty=1.3 gives the same tokens in both. Without the penalty it does, and with beams as well.
# Seen: 33 of 40 answers differ. In transformers, a token that occurs in the prompt is penalized from the start; in CTranslate2 only tokens of the answer
# are. If transformers is told to skip the prompt (prompt_ignore_length), all 40 are equal. no_repeat_ngram_size also differs: transformers
# forbids n-grams of the prompt, CTranslate2 allows them.
# Why it matters: a penalty of 1.1 to 1.3 is usual for small models. In code, nearly every right answer repeats names of the prompt. A converted model,
# used for speed, is therefore punished less, and pass rates of the two are no measurement of the same thing.
# What to do: report the engine along with the penalty, or decode without one.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6 transformers==5.24.0 ctranslate2==4.8.5 2>/dev/null
cd "$place"
HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error "$place/venv/bin/python" -W ignore - <<'PY' 2>"$place/err" || { tail -3 "$place/err" >&2; exit 1; }
from importlib.metadata import version

import ctranslate2
import torch
from tokenizers import Tokenizer, models
from transformers import GPT2Config, GPT2LMHeadModel, LogitsProcessorList, PreTrainedTokenizerFast, RepetitionPenaltyLogitsProcessor

words = ["<unk>", "<s>", "</s>", *(f"w{number}" for number in range(47))]
tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
torch.manual_seed(0)
torch.set_num_threads(1)
sizes = {"vocab_size": 50, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128, "bos_token_id": 1, "eos_token_id": 2}
model = GPT2LMHeadModel(GPT2Config(initializer_range=0.3, **sizes)).eval()
model.save_pretrained("model")
PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>").save_pretrained("model")
ctranslate2.converters.TransformersConverter("model").convert("converted")
generator = ctranslate2.Generator("converted", device="cpu", compute_type="float32", intra_threads=1)
prompts = torch.randint(3, 50, (40, 8)).tolist()


def first(**options):
    seen = model.generate(torch.tensor(prompts), do_sample=False, max_new_tokens=20, pad_token_id=2, **options)[:, 8:].tolist()
    return [answer[: answer.index(2)] if 2 in answer else answer for answer in seen]


def second(**options):
    texts = [[words[token] for token in prompt] for prompt in prompts]
    return [answer.sequences_ids[0] for answer in generator.generate_batch(texts, max_length=20, include_prompt_in_result=False, **options)]


answers_only = LogitsProcessorList([RepetitionPenaltyLogitsProcessor(1.3, prompt_ignore_length=8)])
pairs = {
    "greedy": (first(), second()),
    "four beams": (first(num_beams=4), second(beam_size=4)),
    "repetition_penalty=1.3": (first(repetition_penalty=1.3), second(repetition_penalty=1.3)),
    "the same, transformers told to skip the prompt": (first(logits_processor=answers_only), second(repetition_penalty=1.3)),
    "no_repeat_ngram_size=2": (first(no_repeat_ngram_size=2), second(no_repeat_ngram_size=2)),
}
print("ctranslate2", version("ctranslate2"), "transformers", version("transformers"))
differ = [sum(one != other for one, other in zip(*pair)) for pair in pairs.values()]
for name, count in zip(pairs, differ):
    print(f"{name}: {count} of 40 answers differ")
assert differ[0] == differ[1] == differ[3] == 0, "the behaviour changed"
assert differ[2] >= 20 and differ[4] > 0, "the behaviour changed"
PY
