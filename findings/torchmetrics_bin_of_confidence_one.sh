#!/usr/bin/env bash
# torchmetrics 1.9.0: with ten bins, the calibration error has eleven. A confidence of exactly 1.0 gets a bin of its own.
#
# Expected: ten bins of width 0.1 cover 0 to 1, and the last one includes 1.0. This is so in netcal 1.4.0.
# Seen: 500 answers with confidence 1.0 of which 400 are right, and 500 with 0.95 that are all right, have the error 0.125 in torchmetrics and 0.075 in
# netcal. In one bin the two deviations partly cancel out; in torchmetrics they are in two bins. With n_bins=1, the error is 0.125 as well, although the
# error with one bin is |mean confidence - share of right answers|, 0.075. With 0.9999 in place of 1.0, both packages give 0.075.
# Why it matters: the probabilities of tokens are often exactly 1.0 in single precision, and verbal confidences are often "100%". The expected calibration
# errors of two papers then differ although both have ten bins.
# What to do: clip confidences at 0.999999, and state how the error was computed.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet torch==2.13.0 torchmetrics==1.9.0 netcal==1.4.0 2>/dev/null
"$place/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from netcal.metrics import ECE
from torchmetrics.classification import BinaryCalibrationError

right = np.array([1] * 400 + [0] * 100 + [1] * 500)
print("torchmetrics", version("torchmetrics"), "netcal", version("netcal"))
seen = []
for top in (1.0, 0.9999):
    confidence = np.array([top] * 500 + [0.95] * 500)
    for bins in (10, 1):
        first = float(BinaryCalibrationError(n_bins=bins)(torch.tensor(confidence), torch.tensor(right)))
        second = float(ECE(bins).measure(confidence, right))
        print(f"confidences {top} and 0.95, {bins} bins: torchmetrics {first:.4f}, netcal {second:.4f}")
        seen.append((round(first, 3), round(second, 3)))
assert seen == [(0.125, 0.075)] * 2 + [(0.075, 0.075)] * 2, "the behaviour changed"
PY
