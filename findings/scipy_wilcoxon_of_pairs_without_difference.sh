#!/usr/bin/env bash
# scipy 1.17.1: Wilcoxon's test of five wins and no loss is significant as soon as there are pairs without a difference.
#
# Expected: by default (zero_method="wilcox"), pairs without a difference are discarded. So they change neither the statistic nor p. Five differences can
# have 32 patterns of signs, so the smallest possible two-sided p is 2/32 = 0.0625.
# Seen: five wins alone have p = 0.0625. With eight equal pairs beside them, p is the same. With nine or more, p = 0.0253, at the same statistic. The
# choice between the exact and the approximate p counts the discarded pairs, while the approximation itself is made from the five that are left. There is
# no warning. With `method="exact"`, p is always 0.0625.
# Why it matters: two models agree on most tasks of a benchmark. The few tasks in which they differ are then tested with a normal approximation for five
# numbers, and a difference that cannot be significant is reported as significant.
# What to do: remove the zeros first, `wilcoxon(d[d != 0])`, or choose the method yourself.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet scipy==1.17.1 numpy==2.4.6 2>/dev/null
"$place/venv/bin/python" -W error - <<'PY'
import numpy as np
import scipy
from scipy.stats import wilcoxon

print("scipy", scipy.__version__)
seen = []
for equal in (0, 8, 9, 45, 500):
    differences = np.array([1] * 5 + [0] * equal)
    test, exact, without = wilcoxon(differences), wilcoxon(differences, method="exact"), wilcoxon(differences[differences != 0])
    print(f"5 wins, {equal} equal pairs: p = {test.pvalue:.4f}, statistic {test.statistic}; method='exact': {exact.pvalue}; zeros removed first: {without.pvalue}")
    seen.append((round(float(test.pvalue), 4), float(test.statistic), float(exact.pvalue), float(without.pvalue)))
assert seen == [(p, 0.0, 0.0625, 0.0625) for p in (0.0625, 0.0625, 0.0253, 0.0253, 0.0253)], "the behaviour changed"
PY
