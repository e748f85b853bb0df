#!/usr/bin/env bash
# ranx 0.3.21: after min-max normalisation, the only hit of a retriever counts 0, as if it had not been found.
#
# Expected: the scores of each retriever are scaled to 0 to 1, and the best document of each retriever has 1. The sum of both ranks the documents.
# Seen: if a retriever has one result, or several with equal scores, each of them becomes 0, the same as a document that was not found. Here BM25 finds
# the right document alone, and the embeddings find ten wrong ones. The right document has score 0 and reciprocal rank 0.1. If BM25 also finds a useless
# document, the right one has score 1 and reciprocal rank 1.
# Why it matters: min-max is the default of `fuse`, and hybrid retrieval adds BM25 to embeddings because BM25 finds rare names. The rarer the name, the
# fewer documents BM25 returns. With exactly one, where BM25 is surest, its vote is dropped.
# What to do: use norm="rank" or method="rrf", or add a document with score 0 to each run.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet ranx==0.3.21 numpy==2.4.6 2>/dev/null
"$place/venv/bin/python" -W ignore - <<'PY'
import inspect
from importlib.metadata import version

from ranx import Qrels, Run, evaluate, fuse

words = {"right": 14.2}
meaning = {f"wrong{number}": 0.9 - number / 100 for number in range(10)}
cases = {"one hit": words, "two equal hits": words | {"also right": 14.2}, "one hit and a useless one": words | {"useless": 0.1}}
print("ranx", version("ranx"), "default norm of fuse:", inspect.signature(fuse).parameters["norm"].default)
seen = []
for name, found in cases.items():
    for norm in ("min-max", "rank"):
        fused = fuse([Run.from_dict({"query": dict(found)}), Run.from_dict({"query": dict(meaning)})], norm=norm, method="sum")
        mrr = float(evaluate(Qrels.from_dict({"query": {"right": 1}}), fused, "mrr"))
        score = dict(fused.to_dict()["query"])["right"]
        seen.append((round(float(score), 2), round(mrr, 2)))
        print(f"BM25 finds {name}, norm={norm!r}: the right document has score {score:.2f}, reciprocal rank {mrr:.2f}")
assert seen == [(0.0, 0.1), (1.0, 1.0), (0.0, 0.1), (1.0, 1.0), (1.0, 1.0), (1.0, 1.0)], "the behaviour changed"
PY
