#!/usr/bin/env bash
# rouge 1.0.1: `self.x.y` and `y.x.self` have ROUGE-L 1.0. A token that is repeated 100 times has ROUGE-1 and ROUGE-L 1.0 with the token once.
#
# Expected: ROUGE-L counts the longest common subsequence, so order matters: of three reversed tokens one is left, F = 0.33. Repeated tokens lower the
# precision: one right token of 100 gives F = 0.02. rouge-score 0.1.2 computes both numbers.
# Seen: the package splits each text at full stops into sentences, and adds up what the sentences have in common. In code, each part of a dotted name is a
# sentence of its own, so the order of the parts does not count. N-grams are sets, so repetitions do not count.
# Why it matters: `pip install rouge` is often used to score comments and code. A model that repeats itself, a common failure of small models, loses
# nothing.
# What to do: use rouge-score.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet rouge==1.0.1 rouge-score==0.1.2 2>/dev/null
"$place/venv/bin/python" - <<'PY'
from importlib.metadata import version

from rouge import Rouge
from rouge_score.rouge_scorer import RougeScorer

pairs = {
    "the names self.x.y and y.x.self": ("self.x.y", "y.x.self"),
    "the same names with spaces": ("self x y", "y x self"),
    "pass 100 times and once": ("pass " * 100, "pass"),
}
print("rouge", version("rouge"), "rouge-score", version("rouge-score"))
seen = []
for name, (answer, reference) in pairs.items():
    [one] = Rouge().get_scores(answer, reference)
    other = RougeScorer(["rouge1", "rougeL"]).score(reference, answer)
    row = [one["rouge-1"]["f"], one["rouge-l"]["f"], other["rouge1"].fmeasure, other["rougeL"].fmeasure]
    seen.append([round(float(score), 2) for score in row])
    print(f"{name}: rouge has ROUGE-1 {seen[-1][0]} and ROUGE-L {seen[-1][1]}, rouge-score {seen[-1][2]} and {seen[-1][3]}")
assert seen == [[1.0, 1.0, 1.0, 0.33], [1.0, 0.33, 1.0, 0.33], [1.0, 1.0, 0.02, 0.02]], "the behaviour changed"
PY
