#!/usr/bin/env bash
# statsmodels 0.15.0: aggregate_raters counts a missing rating as one more category, so Fleiss' kappa of raters who always agree can be 0.47.
#
# Expected: aggregate_raters leaves out a missing rating (NaN), refuses it, or says in its documentation what it does with it.
# Seen: NaN becomes a category. Two raters who both skipped an item agree on it, and a rater who skipped it disagrees with the others.
# Three raters who agree on all of 20 items have kappa 1.0. If one of them skips half of the items, kappa is 0.47, though no two ratings differ.
# If the ratings are random and all skip the same half, kappa rises from 0.09 to 0.63. Krippendorff's alpha of the same ratings ignores what is missing.
# Why it matters: the agreement of human judges, or of models as judges, decides whether their verdicts are used. Judges skip items,
# and judges that are models give answers that cannot be read; pandas writes both as NaN.
# What to do: use Krippendorff's alpha, or drop the items with a missing rating first.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet statsmodels==0.15.0 krippendorff==0.9.0 2>/dev/null
"$place/venv/bin/python" - <<'PY'
from importlib.metadata import version

import krippendorff
import numpy as np
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa


def agreement(ratings):
    """Return Fleiss' kappa and Krippendorff's alpha of ratings with a row for each item."""
    counts, categories = aggregate_raters(ratings)
    alpha = krippendorff.alpha(ratings.T, level_of_measurement="nominal")
    return round(float(fleiss_kappa(counts)), 2), round(float(alpha), 2), categories.tolist()


print("statsmodels", version("statsmodels"))
agreed = np.repeat([[0.0], [1.0]], 10, axis=0) @ np.ones((1, 3))
print("kappa, alpha and categories of three raters who agree:", agreement(agreed))
assert agreement(agreed)[:2] == (1.0, 1.0)
skipped = agreed.copy()
skipped[::2, 0] = np.nan
kappa, alpha, categories = agreement(skipped)
print("one of them skips half of the items:", (kappa, alpha, categories))
assert alpha == 1.0 and kappa < 0.6 and np.isnan(categories[-1]), "the behaviour changed"
random = np.random.default_rng(0).integers(0, 2, (200, 3)).astype(float)
before = agreement(random)
random[:100] = np.nan
kappa, alpha, _ = agreement(random)
print("random ratings:", before[:2], "if all skip the same half:", (kappa, alpha))
assert abs(before[0]) < 0.1 and kappa > 0.5 and abs(alpha) < 0.15, "the behaviour changed"
PY
