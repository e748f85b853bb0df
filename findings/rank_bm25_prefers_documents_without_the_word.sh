#!/usr/bin/env bash
# rank-bm25 0.2.2: in a small corpus BM25Okapi ranks the documents with the query's word below the one without it.
#
# Expected: a document that contains the only word of the query scores higher than one that does not.
# Seen: a word in more than half of the documents gets epsilon times the *average* idf, which is meant as a small positive floor. If most
# words are common, the average is negative itself: the three documents with "get" score -0.183, the one without it 0. With two documents,
# a word of one of them has idf 0, and both score 0.
# Why it matters: the documentation of one service or of one small package shares nearly all its words. There the retriever is wrong on purpose.
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
