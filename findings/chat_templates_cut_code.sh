#!/usr/bin/env bash
# trl 1.16.0, transformers 5.24.0: many chat templates cut spaces and newlines off a message, and models of one family differ in this.
#
# Expected: a template wraps a message in tokens of its own and keeps the text, as Qwen 2.5, Qwen 3, Phi 3, GPT-OSS and DeepSeek-V3 do. The option
# continue_final_message gives a prompt that ends with the beginning of the answer.
# Seen: the templates of Llama 3, Gemma, Qwen 3.5, Qwen 3.6 and Qwen 3.8 cut both ends of each message. A prompt "def f():\n    " arrives as "def f():", an
# answer "    return x\n" as "return x". A final message "```python\n" loses its newline, and "def f():\n    " its indentation; nothing warns.
# Why it matters: completion in a chat prefills the answer with the code so far. After the cut the model has to write the newline and the indentation
# itself; what comes out is no continuation of the code that was asked for, and joined with it, it does not parse. Fine-tuning on answers that begin
# with an indentation teaches some models to leave it out. Newer and older models of one family then get different prompts from the same script.
# What to do: check that the rendered prompt contains the message, and append the lost part to the text before it is tokenized.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet transformers==5.24.0 tokenizers==0.23.3 jinja2==3.1.6 2>/dev/null
"$place/venv/bin/pip" install --quiet --no-deps trl==1.16.0 2>/dev/null # for the models' templates, which it contains
HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error "$place/venv/bin/python" -W ignore - 2>"$place/err" <<'PY' || { tail -3 "$place/err" >&2; exit 1; }
from importlib.metadata import files, version

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

KEEP = ["qwen2_5", "qwen3", "phi3", "gptoss", "deepseekv3"]
CUT = ["llama3", "llama3_1", "gemma", "gemma3", "qwen3_5_nothink", "qwen3_6", "qwen3_8"]
QUESTION, ANSWER, BEGINNINGS = "def f():\n    ", "    return x\n", ["```python\n", "def f():\n    "]
tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), bos_token="<s>", eos_token="</s>")
templates = {file.stem: file.locate().read_text() for file in files("trl") if file.suffix == ".jinja"}


def render(name, question, answer, **options):
    messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return tokenizer.apply_chat_template(messages, chat_template=templates[name], tokenize=False, **options)


kept = []
print("trl", version("trl"), "transformers", version("transformers"))
for name in KEEP + CUT:
    text = render(name, QUESTION, ANSWER)
    ends = [render(name, "Write f.", beginning, continue_final_message=True) for beginning in BEGINNINGS]
    seen = [QUESTION in text, ANSWER in text, *(end.endswith(beginning) for end, beginning in zip(ends, BEGINNINGS))]
    print(f"{name}: keeps the prompt {seen[0]}, the answer {seen[1]}, the beginning of an answer {seen[2:]}: ...{ends[0][-12:]!r}")
    assert len(set(seen)) == 1, f"the behaviour changed: {name}"
    assert QUESTION.strip() in text and ANSWER.strip() in text
    kept += [name] if seen[0] else []
assert kept == KEEP, f"the behaviour changed: {kept}"
PY
