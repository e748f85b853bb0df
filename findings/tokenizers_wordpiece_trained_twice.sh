#!/usr/bin/env bash
# tokenizers 0.23.3: training WordPiece twice on the same texts gives the tokens other ids, and partly other tokens. Unigram's scores differ slightly.
#
# Expected: training has no seed because it draws nothing at random. The same texts and options give the same tokenizer.json, at least with one thread.
# This is so for BPE and WordLevel.
# Seen: six processes train each kind. WordPiece has a different numbering in each process, also with RAYON_NUM_THREADS=1, and three to five
# different sets of tokens. Unigram has the same numbering, but its scores differ in their last digits, so no two files are equal.
# Why it matters: whoever trains the tokenizer again from the recipe and loads the published model gets noise, because the model's embeddings belong to
# other tokens. There is no error: the size of the vocabulary fits. Caches with the file's checksum as key find nothing.
# What to do: publish tokenizer.json, and never train it again.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet tokenizers==0.23.3 2>/dev/null
cat >"$place/train.py" <<'PY'
import hashlib
import json
import random

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

draw = random.Random(0)
words = ["".join(draw.choices("abcdefghij_", k=draw.randint(2, 9))) for _ in range(1000)]
texts = [" ".join(draw.choices(words, weights=[1 / (rank + 1) for rank in range(1000)], k=8)) for _ in range(1000)]
special = {"vocab_size": 400, "special_tokens": ["[UNK]"], "show_progress": False}
kinds = {
    "BPE": (models.BPE(), trainers.BpeTrainer(**special)),
    "WordLevel": (models.WordLevel(unk_token="[UNK]"), trainers.WordLevelTrainer(**special)),
    "WordPiece": (models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(**special)),
    "Unigram": (models.Unigram(), trainers.UnigramTrainer(unk_token="[UNK]", **special)),
}
seen = {}
for name, (model, trainer) in kinds.items():
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(texts, trainer)
    ids = tokenizer.get_vocab()
    seen[name] = [hashlib.sha256(repr(what).encode()).hexdigest() for what in (sorted(ids), sorted(ids.items()), tokenizer.to_str())]
print(json.dumps(seen))
PY
for threads in 1 1 1 2 2 2; do
  RAYON_NUM_THREADS=$threads "$place/venv/bin/python" "$place/train.py"
done >"$place/seen"
"$place/venv/bin/python" - "$place/seen" <<'PY'
import json
import sys

runs = [json.loads(line) for line in open(sys.argv[1])]
counts = {name: [len({run[name][part] for run in runs}) for part in range(3)] for name in runs[0]}
for name, (tokens, ids, files) in counts.items():
    print(f"{name}, trained six times: {tokens} sets of tokens, {ids} numberings, {files} files")
alone = len({run["WordPiece"][1] for run in runs[:3]})
assert counts["BPE"] == counts["WordLevel"] == [1, 1, 1], "the behaviour changed"
assert counts["WordPiece"][1] > 1 and alone > 1, "the behaviour changed"
assert counts["Unigram"][2] > 1, "the behaviour changed"
PY
