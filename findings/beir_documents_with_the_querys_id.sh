#!/usr/bin/env bash
# beir 2.2.0: if a query and its right document have the same id, every measure is 0.
#
# Expected: ids of queries and ids of documents are separate names, as in TREC's files. A retriever that ranks the right document first has nDCG 1.
# Seen: `evaluate` first deletes each result whose id equals the query's id, also from the caller's dictionary. It says so in a log message of level INFO,
# which Python does not show unless logging is set up. With the ids "q0" and "d0", the same ranking has nDCG 1.
# Why it matters: the deletion is made for tasks whose queries are documents themselves. In code search, docstring 17 belongs to function 17, and both are
# named "17". If only some ids collide by chance (both sets are numbered from 0), the numbers are not 0, but too low or too high: a wrong document that has
# the query's number vanishes, too.
# What to do: pass ignore_identical_ids=False, or put a letter before the ids.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet pytrec-eval-terrier==0.5.11 numpy==2.4.6 tqdm==4.67.1 2>/dev/null
"$place/venv/bin/pip" install --quiet --no-deps beir==2.2.0 2>/dev/null # what it needs to embed texts is not needed here
"$place/venv/bin/python" - <<'PY'
from importlib.metadata import version

from beir.retrieval.evaluation import EvaluateRetrieval

print("beir", version("beir"))
seen = []
for query, document, options in (("q", "d", {}), ("", "", {}), ("", "", {"ignore_identical_ids": False})):
    right = {f"{query}{number}": {f"{document}{number}": 1} for number in range(10)}
    found = {f"{query}{number}": {f"{document}{number}": 0.9, f"{document}{(number + 1) % 10}": 0.1} for number in range(10)}
    ndcg, _, recall, _ = EvaluateRetrieval.evaluate(right, found, [10], **options)
    seen.append((ndcg["NDCG@10"], recall["Recall@10"], sum(map(len, found.values()))))
    print(f"query {next(iter(right))!r}, document {next(iter(right[query + '0']))!r}, {options}: {ndcg}, {recall}, {seen[-1][2]} of 20 results are left")
assert seen == [(1.0, 1.0, 20), (0.0, 0.0, 10), (1.0, 1.0, 20)], "the behaviour changed"
PY
