#!/usr/bin/env bash
# rank-bm25 0.2.2: in a small corpus, BM25Okapi can rank the documents with the query's word below those without it.
#
# Expected: if a query has one word, a document that contains this word scores higher than one that does not.
# Seen: a word in more than half of the documents gets epsilon times the *average* idf, which is meant as a small positive floor. But if most words are that
# frequent, the average itself is negative. Three documents with "get" score -0.183, and the one without it scores 0. In a corpus of two documents, a word
# in one of them has idf 0, so both documents score 0.
# Why it matters: in the documentation of one service or of one small package, most documents share most words. There, the retriever prefers wrong
# documents.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet rank-bm25==0.2.2 numpy==2.4.6 2>/dev/null
"$place/venv/bin/python" - <<'PY'
from importlib.metadata import version

from rank_bm25 import BM25Okapi

four = [["get", "item"], ["get", "item"], ["get", "item"], ["put", "item"]]
seen = [[round(float(score), 3) for score in BM25Okapi(corpus).get_scores(["get"])] for corpus in (four, four[2:])]
print("rank-bm25", version("rank-bm25"), "scores of the query 'get'")
print("get item, get item, get item, put item:", seen[0])
print("get item, put item:", seen[1])
assert seen == [[-0.183, -0.183, -0.183, 0.0], [0.0, 0.0]], "the behaviour changed"
PY
