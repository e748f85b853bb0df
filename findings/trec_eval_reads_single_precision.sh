#!/usr/bin/env bash
# pytrec-eval-terrier 0.5.11 and ranx 0.3.21 compute different measures for the same run, because trec_eval reads scores in single precision.
#
# Expected: scores are doubles, as in Python. A document with a higher score ranks higher in both tools, so MAP, MRR and nDCG agree.
# Seen: in trec_eval, scores whose relative difference is below about 6e-8 are ties, and ties are ordered by the document's name, descending. If the right
# document scores 0.9 and a wrong one 0.9 - 1e-9, MRR is 0.5 or 1.0, depending on their names. In ranx, it is 1.0 in both cases.
# Why it matters: nearly equal pages of documentation have nearly equal scores, log-probabilities of long texts are large numbers, and a score may be a
# timestamp or a big number minus a rank. The ranking is then partly alphabetical.
# What to do: pass ranks instead of scores.
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
