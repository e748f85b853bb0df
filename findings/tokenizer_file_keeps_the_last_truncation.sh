#!/usr/bin/env bash
# transformers 5.24.0, tokenizers 0.23.3: a saved tokenizer cuts every text at the `max_length` of the last call before it was saved.
#
# Expected: truncation=True, max_length=8 are arguments of one call. The file that save_pretrained writes does not depend on earlier calls.
# Seen: after one such call with padding, tokenizer.json says "truncate at 8" and "pad". `tokenizers.Tokenizer.from_file` obeys and cuts a text of 30
# tokens to 8, without a warning. AutoTokenizer ignores both entries, so the author of the file does not notice.
# Why it matters: a fine-tuning truncates its training texts and then saves the tokenizer beside the model. Programs that read tokenizer.json
# themselves, without transformers, then cut each prompt at the length of the training texts, or count at most that many tokens.
# What to do: before saving, call `tokenizer.backend_tokenizer.no_truncation()` and `.no_padding()`.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet transformers==5.24.0 tokenizers==0.23.3 2>/dev/null
cd "$place"
HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error "$place/venv/bin/python" - 2>"$place/err" <<'PY' || { cat "$place/err" >&2; exit 1; }
import json
from importlib.metadata import version
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

words = Tokenizer(models.WordLevel({"<unk>": 0, "<pad>": 1, "word": 2}, unk_token="<unk>"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", pad_token="<pad>")
long, short = "word " * 30, "word"


def lengths(folder):
    tokenizer.save_pretrained(folder)
    saved = json.loads(Path(folder, "tokenizer.json").read_text())
    raw, auto = Tokenizer.from_file(f"{folder}/tokenizer.json"), AutoTokenizer.from_pretrained(folder)
    limit = saved["truncation"] and saved["truncation"]["max_length"]
    seen = limit, [len(one.ids) for one in raw.encode_batch([long, short])], [len(ids) for ids in auto([long, short])["input_ids"]]
    print(f"{folder}: truncation in the file {seen[0]}, tokens by tokenizers {seen[1]}, by AutoTokenizer {seen[2]}")
    return seen


print("transformers", version("transformers"), "tokenizers", version("tokenizers"))
before = lengths("before")
tokenizer([long, short], truncation=True, max_length=8, padding=True)
after = lengths("after")
assert before == (None, [30, 1], [30, 1]), "the behaviour changed"
assert after == (8, [8, 8], [30, 1]), "the behaviour changed"
PY
