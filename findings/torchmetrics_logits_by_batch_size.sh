#!/usr/bin/env bash
# torchmetrics 1.9.0: for the same logits, the AUROC is 0.92 with batches of 1,000 and 0.56 with batches of 1.
#
# Expected: a metric that is updated batch by batch has one value, however the examples are divided. AUROC depends on the order of the scores alone.
# Seen: if a value of a batch lies outside [0, 1], all values of this batch are taken for logits and go through the sigmoid. Otherwise they stay as they
# are. So logits of 0.3 and 0.8 alone stay 0.3 and 0.8, but together with a negative one they become 0.57 and 0.69. BinaryAUROC then sorts numbers of
# both kinds in one list, without a warning. The documentation speaks of one input only. Known upstream since 2023 (issue 2195), and open.
# Why it matters: a verifier or a reward model gives logits, and is often evaluated with one answer at a time, or with the few answers of one prompt.
# What to do: apply the sigmoid to the logits yourself.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet torch==2.13.0 torchmetrics==1.9.0 2>/dev/null
"$place/venv/bin/python" -W error::UserWarning - <<'PY'
import torch
import torchmetrics
from torchmetrics.classification import BinaryAccuracy, BinaryAUROC

print("torchmetrics", torchmetrics.__version__)
generator = torch.Generator().manual_seed(0)
passed = torch.arange(1000) % 2
logits = 0.3 * torch.randn(1000, generator=generator) + torch.where(passed == 1, 0.3, -0.3)


def values(scores):
    """Return the AUROC and the accuracy of `scores` for batches of 1, 2 and 1000."""
    seen = []
    for batch_size in (1, 2, 1000):
        metrics = [BinaryAUROC(), BinaryAccuracy()]
        for start in range(0, 1000, batch_size):
            for metric in metrics:
                metric.update(scores[start : start + batch_size], passed[start : start + batch_size])
        seen.append(tuple(round(metric.compute().item(), 2) for metric in metrics))
        print(f"  batches of {batch_size}: AUROC {seen[-1][0]}, accuracy {seen[-1][1]}")
    return seen


print("logits")
right = (0.92, 0.85)
assert values(logits) == [(0.56, 0.64), (0.89, 0.86), right], "the behaviour changed"
print("the sigmoid of the logits")
assert values(logits.sigmoid()) == [right, right, right], "the behaviour changed"
PY
