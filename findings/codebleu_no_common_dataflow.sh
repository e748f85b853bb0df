#!/usr/bin/env bash
# codebleu 0.7.0: an answer that shares no data flow with the reference can score higher than one that shares some. An empty answer scores 0.25.
#
# Expected: CodeBLEU is the weighted sum of its four parts. An empty answer has 0 in all parts, so it scores 0. An answer that is better than another in
# every part has the higher score.
# Seen: the sum uses `dataflow_match_score or 1`, so a match of exactly 0 counts as 1. The returned dictionary still says 0, so its four parts do not add
# up to its score. "return a" is better than "return 3" in all four parts, and scores half as much.
# Why it matters: papers report CodeBLEU for code generation and for the effect of retrieval on it. A model that returns nothing gets a quarter of the
# points, and the answer with the worst data flow can overtake a better one.
# What to do: compute the mean of the four parts yourself.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet codebleu==0.7.0 tree-sitter==0.22.3 tree-sitter-python==0.21.0 2>/dev/null
"$place/venv/bin/python" - <<'PY'
from codebleu import calc_codebleu

reference = "def f(a, b):\n    c = a + b\n    d = c\n    return d"
answers = {"the reference": reference, "nothing": "", "return 3": "def f(a, b):\n    return 3", "return a": "def f(a, b):\n    return a"}
rows = {}
for name, answer in answers.items():
    parts = calc_codebleu([reference], [answer], "python")
    rows[name] = (parts.pop("codebleu"), list(parts.values()))
    print(f"{name}: score {rows[name][0]:.3f}; n-grams, weighted n-grams, syntax, data flow:", *(f"{part:.3f}" for part in parts.values()))
three, a = rows["return 3"], rows["return a"]
assert rows["nothing"] == (0.25, [0, 0, 0, 0]), "the behaviour changed"
assert all(low < high for low, high in zip(three[1], a[1])) and three[0] > a[0], "the behaviour changed"
PY
