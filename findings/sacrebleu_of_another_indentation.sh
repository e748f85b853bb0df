#!/usr/bin/env bash
# sacrebleu 2.6.0: a Python program with a wrong indentation has the perfect chrF, BLEU and TER.
#
# Expected: chrF compares characters, and BLEU tokens. In Python the indentation decides what a loop contains, so a `return` that moved into the loop costs
# some points, at least in chrF.
# Seen: chrF 100, BLEU 100, TER 0. chrF removes all blanks and line ends first, unless it gets whitespace=True. So "a in b" equals "ainb", and the whole
# program on one line scores 100. BLEU also replaces "&lt;" by "<", so an answer with HTML in it equals the one without.
# Why it matters: studies of metrics recommend chrF for generated code. For Python, it cannot see a `return` or a `break` at the wrong depth, and a program
# that does not parse counts as a copy of the reference.
# What to do: use whitespace=True, and add a metric that parses the code.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet sacrebleu==2.6.0 2>/dev/null
"$place/venv/bin/python" - <<'PY'
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF, TER

reference = "def total(numbers):\n    result = 0\n    for number in numbers:\n        result += number\n    return result"
answers = {
    "return in the loop": reference.replace("    return", "        return"),
    "one line": " ".join(reference.split()),
    "no blanks": "".join(reference.split()),
}
metrics = {"chrF": CHRF(), "BLEU": BLEU(effective_order=True), "TER": TER(), "chrF with whitespace": CHRF(whitespace=True)}
print("sacrebleu", sacrebleu.__version__)
seen = {}
for name, answer in answers.items():
    seen[name] = [round(metric.sentence_score(answer, [reference]).score, 1) for metric in metrics.values()]
    print(f"{name}: {dict(zip(metrics, seen[name]))}")
escaped = metrics["BLEU"].sentence_score("if a &lt; b: return a", ["if a < b: return a"]).score
print(f"BLEU of '&lt;' for '<': {escaped:.1f}")
assert seen["return in the loop"][:3] == seen["one line"][:3] == [100, 100, 0], "the behaviour changed"
assert seen["no blanks"][0] == 100 and round(escaped, 1) == 100, "the behaviour changed"
assert all(scores[3] < 100 for scores in seen.values()), "the behaviour changed"
PY
