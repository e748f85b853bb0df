#!/usr/bin/env bash
# editdistance 0.8.1, rapidfuzz 3.14.6: the edit distance of [-1] and [-2] is 0; in rapidfuzz this happens with -1.0 and -2.0, and with tuples.
#
# Expected: two elements are equal if Python's == says so. The distance of two lists is 0 only if they are equal.
# Seen: both packages compare hashes, not elements, and CPython's hash(-1) is -2, also inside a tuple. editdistance takes every -1 for a -2. rapidfuzz
# treats the integer -1 apart, but neither the float nor a tuple that contains one. nltk.edit_distance, which uses ==, gives 1 each time.
# Why it matters: such lists hold token ids with negative padding, changes of indentation, edits as (position, change), or the numbers that two programs
# printed. Two different outputs then count as an exact match, without a warning.
# What to do: compare texts, or map the elements to numbers from 0 up first.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet editdistance==0.8.1 rapidfuzz==3.14.6 nltk==3.10.4 2>/dev/null
"$place/venv/bin/python" - <<'PY'
from importlib.metadata import version

import editdistance
from nltk import edit_distance
from rapidfuzz.distance import Levenshtein

print(*(f"{name} {version(name)}" for name in ("editdistance", "rapidfuzz", "nltk")))
PAIRS = {
    "integers": ([3, -1, 3], [3, -2, 3]),
    "floats": ([-1.0, 0.5], [-2.0, 0.5]),
    "tuples": ([(4, -1)], [(4, -2)]),
    "texts": (["-1"], ["-2"]),
}
seen = {}
for name, (one, other) in PAIRS.items():
    seen[name] = editdistance.eval(one, other), Levenshtein.distance(one, other), edit_distance(one, other)
    print(f"{name} {one} {other}: editdistance {seen[name][0]}, rapidfuzz {seen[name][1]}, nltk {seen[name][2]}")
assert seen == {"integers": (0, 1, 1), "floats": (0, 0, 1), "tuples": (0, 0, 1), "texts": (1, 1, 1)}, "the behaviour changed"
PY
