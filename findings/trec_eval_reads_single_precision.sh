#!/usr/bin/env bash
# pytrec-eval-terrier 0.5.11 and ranx 0.3.21 give one run another MAP, because trec_eval keeps scores in single precision.
#
# Expected: Python's scores are doubles. A document with a higher score stands higher in both tools, so MAP, MRR and nDCG agree.
# Seen: scores that differ by less than about 6e-8 of their size become ties, and ties are broken by the document's name, descending. The right
# document at 0.9 above a wrong one at 0.9 - 1e-9 has MRR 0.5 or 1.0 by what the two are called. ranx gives 1.0 in both cases.
# Why it matters: near copies of a documentation page score almost alike, log probabilities of long texts are large, and a timestamp or a
# rank subtracted from a big number is a common score. There a retriever is judged by alphabet. Pass ranks instead of scores.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet pytrec-eval-terrier==0.5.11 ranx==0.3.21 2>/dev/null
"$place/venv/bin/python" -W ignore - <<'PY'
import pytrec_eval
import ranx

seen = []
for right, wrong, scores in (("a", "b", (0.9, 0.9 - 1e-9)), ("b", "a", (0.9, 0.9 - 1e-9)), ("a", "b", (16777217.0, 16777216.0)), ("a", "b", (0.9, 0.9 - 1e-6))):
    judged, run = {"q": {right: 1, wrong: 0}}, {"q": dict(zip((right, wrong), scores))}
    trec = pytrec_eval.RelevanceEvaluator(judged, {"recip_rank"}).evaluate(run)["q"]["recip_rank"]
    other = float(ranx.evaluate(ranx.Qrels(judged), ranx.Run(run), "mrr"))
    print(f"right {right} at {scores[0]}, wrong {wrong} at {scores[1]}: trec_eval {trec}, ranx {other}")
    seen.append((trec, other))
assert seen == [(0.5, 1.0), (1.0, 1.0), (0.5, 1.0), (1.0, 1.0)], "the behaviour changed"
PY
