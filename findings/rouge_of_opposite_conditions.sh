#!/usr/bin/env bash
# rouge-score 0.1.2: two lines of code that differ in every operator have ROUGE-L 1.0.
#
# Expected: ROUGE-L compares tokens. A program with other operators has other tokens, so it scores less than 1.
# Seen: the tokenizer keeps only runs of a-z and 0-9, after it made all letters small. Operators, brackets, quotes, the minus sign and underscores vanish,
# and so does every letter outside ASCII. `return a >= b + 1` and `return a < b - 1` score 1.0, as do `x[i] = -y` and `x(i) == y`. A line of nothing but
# operators scores 0 even against itself.
# Why it matters: papers report ROUGE-L of generated code. Turned conditions and signs are typical mistakes of models, and they cost nothing.
# What to do: pass your own `tokenizer=` (an object with `tokenize`), made for code.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet rouge-score==0.1.2 2>/dev/null
"$place/venv/bin/python" - <<'PY'
from importlib.metadata import version

from rouge_score import rouge_scorer

PAIRS = [
    ("return a >= b + 1", "return a < b - 1", 1.0),
    ("x[i] = -y", "x(i) == y", 1.0),
    ("if not_found: raise KeyError", "if not found: raise keyerror", 1.0),
    ("grün = 1", "gr_n = 1", 1.0),
    ("(-) * (+)", "(-) * (+)", 0.0),
]
scorer = rouge_scorer.RougeScorer(["rougeL"])
print("rouge-score", version("rouge-score"))
for first, second, wanted in PAIRS:
    score = scorer.score(first, second)["rougeL"].fmeasure
    print(f"{first!r} and {second!r}: {score}")
    assert score == wanted, "the behaviour changed"
PY
