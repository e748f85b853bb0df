#!/usr/bin/env bash
# statsmodels 0.15.0: if one of several tests has no p value, the others' significance changes, in a different way for each correction.
#
# Expected: NaN is ignored, or there is an error.
# Seen: Holm and Bonferroni count the NaN as a comparison. Of the p values 0.001, 0.02 and 0.9, 0.02 is then no longer significant (0.06 after the
# correction, instead of 0.04). Benjamini-Hochberg returns NaN for every corrected p value, and still rejects two hypotheses.
# Why it matters: in some libraries, McNemar's or Wilcoxon's test of two runs that agree on every task gives NaN. In a table of comparisons, such a pair
# changes the verdicts on the other pairs.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet statsmodels==0.15.0 scipy==1.17.1 numpy==2.4.6 pandas==3.1.1 2>/dev/null
"$place/venv/bin/python" - <<'PY'
import statsmodels
from statsmodels.stats.multitest import multipletests

NAN = float("nan")
print("statsmodels", statsmodels.__version__, "p values 0.001, 0.02, 0.9, without and with NaN: (rejected, corrected)")
seen = {}
for method in ("holm", "fdr_bh"):
    for values in ([0.001, 0.02, 0.9], [0.001, NAN, 0.02, 0.9]):
        rejected, corrected, *_ = multipletests(values, method=method)
        seen[method, len(values)] = str((rejected.tolist(), [round(float(one), 3) for one in corrected]))
        print(method, len(values), seen[method, len(values)])
assert seen["holm", 3] == "([True, True, False], [0.003, 0.04, 0.9])", "the behaviour changed"
assert seen["holm", 4] == "([True, False, False, False], [0.004, nan, 0.06, 1.0])", "the behaviour changed"
assert seen["fdr_bh", 4] == "([True, False, True, False], [nan, nan, nan, nan])", "the behaviour changed"
PY
