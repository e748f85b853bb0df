#!/usr/bin/env bash
# torcheval 0.0.7: a model that gives all 100 candidates the same score has reciprocal rank 1.0 and hit rate 1.0. If all scores are NaN, too.
#
# Expected: such a model has about the values of chance, here 0.05 and 0.01, or a warning says that the ranking is undecided.
# Seen: the rank of the right candidate is the number of candidates with a higher score. Equal scores never count against it, and no comparison with NaN is
# true. In multiclass_accuracy of the same package, the constant model has 0, because argmax takes the first candidate.
# Why it matters: retrieval often scores many candidates alike: BM25 gives 0 to all without a word of the query, a cross-encoder in half precision
# saturates, a broken model computes NaN. The fewer candidates a model can tell apart, the better its MRR.
# What to do: take the mean over all orders of equal scores, and check for NaN.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6 torcheval==0.0.7 2>/dev/null
"$place/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import torch
from torcheval.metrics.functional import hit_rate, multiclass_accuracy, reciprocal_rank

right = torch.tensor([1, 30, 60, 99])
cases = {
    "random scores": torch.rand(4, 100, generator=torch.Generator().manual_seed(0)),
    "all scores 0": torch.zeros(4, 100),
    "all scores NaN": torch.full((4, 100), torch.nan),
}
print("torcheval", version("torcheval"))
seen = []
for name, scores in cases.items():
    mrr, hits = reciprocal_rank(scores, right).mean().item(), hit_rate(scores, right, k=1).mean().item()
    seen.append((round(mrr, 2), hits, multiclass_accuracy(scores, right).item()))
    print(f"{name}: reciprocal rank {mrr:.2f}, hit rate at 1 {hits}, accuracy {seen[-1][2]}")
assert seen[1:] == [(1.0, 1.0, 0.0), (1.0, 1.0, 0.0)], "the behaviour changed"
PY
