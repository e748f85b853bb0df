#!/usr/bin/env bash
# statsmodels 0.15.0: McNemar's chi-squared test of a model against itself gives p = 0, as if the two certainly differed.
#
# Expected: two runs that agree on every task have no discordant pair, which is no evidence of a difference. The result is p = 1, NaN or an error.
# Seen: `mcnemar(table, exact=False)` divides (|0 - 0| - 1) squared by 0, and returns the statistic inf and p = 0.0. For the same table, correction=False
# gives NaN, and exact=True gives 1.0.
# Why it matters: a benchmark compares hundreds of pairs of runs in a loop. Repeated runs, caches and greedy decoding often make two runs equal. Such a pair
# seems to have the most significant difference of all, even after Holm's or Benjamini-Hochberg's correction.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet statsmodels==0.15.0 scipy==1.17.1 numpy==2.4.6 pandas==3.1.1 2>/dev/null
"$place/venv/bin/python" -W ignore - <<'PY'
import math

import statsmodels
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

table = [[60, 0], [0, 40]]  # both right on 60 tasks, both wrong on 40
corrected, plain, exact = mcnemar(table, exact=False), mcnemar(table, exact=False, correction=False), mcnemar(table, exact=True)
holm = multipletests([corrected.pvalue, 0.04, 0.2, 0.5], method="holm")[0].tolist()
print("statsmodels", statsmodels.__version__, "on the table", table)
print(f"chi-squared with correction (the default): p = {corrected.pvalue}, without: p = {plain.pvalue}, exact: p = {exact.pvalue}")
print("kept as significant by Holm, beside p of 0.04, 0.2 and 0.5:", holm)
assert corrected.pvalue == 0 and corrected.statistic == math.inf and math.isnan(plain.pvalue) and exact.pvalue == 1, "the behaviour changed"
assert holm == [True, False, False, False], "the behaviour changed"
PY
