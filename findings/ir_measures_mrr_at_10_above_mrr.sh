#!/usr/bin/env bash
# ir_measures 0.4.3: in one call, the reciprocal rank among the first ten documents (RR@10) can be twice the reciprocal rank among all (RR).
#
# Expected: RR@10 counts 0 if the right document is not among the first ten, and else equals RR. So RR@10 is never above RR. All measures of one call see
# the same ranking.
# Seen: two documents have the same score. If the right one is "a", RR is 0.5 and RR@10 is 1.0. If it is "b", RR is 1.0 and RR@10 is 0.5. ir_measures
# passes each measure to the first package that offers it. trec_eval computes RR and breaks ties by the document's name, descending. RR@10 comes from
# MS MARCO's script, for which the order of the run decides. P@1 and nDCG@10 come from trec_eval.
# Why it matters: equal scores are usual (BM25 of equal pages, rounded scores, counts). A table with MRR@10, P@1 and nDCG@10 then describes two rankings,
# and MRR depends on whether a cutoff was written.
# What to do: break ties before the evaluation, for example by passing minus the rank as score.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet ir_measures==0.4.3 pytrec-eval-terrier==0.5.11 2>/dev/null
"$place/venv/bin/python" - <<'PY'
from importlib.metadata import version

import ir_measures
from ir_measures import RR, P, Qrel, ScoredDoc, nDCG

print("ir_measures", version("ir_measures"))
seen = []
for right, wrong in ("ab", "ba"):
    judged = [Qrel("q", right, 1), Qrel("q", wrong, 0)]
    run = [ScoredDoc("q", right, 1.0), ScoredDoc("q", wrong, 1.0)]
    values = ir_measures.calc_aggregate([RR, RR @ 10, P @ 1, nDCG @ 10], judged, run)
    print(f"right document {right!r}:", {str(measure): round(value, 3) for measure, value in values.items()})
    seen.append((values[RR], values[RR @ 10], values[P @ 1]))
assert seen == [(0.5, 1.0, 0.0), (1.0, 0.5, 1.0)], "the behaviour changed"
PY
