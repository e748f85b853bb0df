#!/usr/bin/env bash
# bm25s 0.3.16: which of two equal documents comes first depends on the backend, and with numba also on k.
#
# Expected: documents with equal scores come in the order of the corpus, or at least in the same order for every backend and every k. The first of ten
# results is the result for k = 1.
# Seen: twelve documents, of which the last six are equal. With the backend numpy, the six come in reverse order. With numba, the best document is number 6
# for k = 1, number 7 for k = 3 and number 10 for k = 8. The scores are the same.
# Why it matters: documentation and snippets often contain equal texts under several names. Precision at 1, MRR and the document in the prompt then depend
# on k and on a backend that promises only speed. With `backend="auto"`, they depend on whether numba is installed.
# What to do: retrieve all ties and sort them by score and number.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet bm25s==0.3.16 numba==0.68.1 2>/dev/null
"$place/venv/bin/python" - <<'PY'
from importlib.metadata import version

import bm25s

print("bm25s", version("bm25s"), "numba", version("numba"))
texts = ["list buckets"] * 6 + ["put object"] * 6
seen = {}
for backend in ("numpy", "numba"):
    retriever = bm25s.BM25(backend=backend)
    retriever.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
    query = bm25s.tokenize("put object", show_progress=False)
    for k in (1, 3, 8):
        numbers, scores = retriever.retrieve(query, k=k, show_progress=False)
        print(f"{backend}, k = {k}: {numbers[0].tolist()}, scores {scores[0].round(3).tolist()}")
        assert all(6 <= number for number in numbers[0][:6]), "the behaviour changed"
        seen[backend, k] = int(numbers[0][0])
assert {seen["numpy", k] for k in (1, 3, 8)} == {11}, "the behaviour changed"
assert [seen["numba", k] for k in (1, 3, 8)] == [6, 7, 10], "the behaviour changed"
PY
