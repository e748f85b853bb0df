#!/usr/bin/env bash
# fuzzywuzzy 0.18.0: `fuzz.ratio` gives different numbers after python-Levenshtein 0.12.2 is installed.
#
# Expected: the second package makes the same ratio faster. This is what the warning without it says ("Using slow pure-python SequenceMatcher. Install
# python-Levenshtein to remove this warning").
# Seen: without python-Levenshtein, the ratio is difflib's, which counts matching blocks. With it, the ratio counts insertions and deletions. Of 1,000 pairs
# of short lines, 837 get a different ratio, and the mean rises from 38.4 to 46.2.
# Why it matters: edit similarity is often computed with fuzzywuzzy, so a benchmark's score depends on what else is installed.
# What to do: pin both packages, or use rapidfuzz, which has only one ratio.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cat >"$place/ratios.py" <<'PY'
import json
import random
import sys
import warnings

warnings.simplefilter("ignore")
from fuzzywuzzy import fuzz

words = "return self . name ( value ) if not None else [ x for x in items ] = len".split()
lines = [" ".join(random.Random(seed).choices(words, k=12)) for seed in range(1001)]
json.dump([fuzz.ratio(one, two) for one, two in zip(lines, lines[1:])], open(sys.argv[1], "w"))
PY
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet setuptools fuzzywuzzy==0.18.0 2>/dev/null
"$place/venv/bin/python" "$place/ratios.py" "$place/alone.json"
"$place/venv/bin/pip" install --quiet python-Levenshtein==0.12.2 2>/dev/null
"$place/venv/bin/python" "$place/ratios.py" "$place/beside.json"
python3 - "$place" <<'PY'
import json
import sys

alone, beside = (json.load(open(f"{sys.argv[1]}/{name}.json")) for name in ("alone", "beside"))
apart = sum(one != two for one, two in zip(alone, beside))
means = [sum(each) / len(each) for each in (alone, beside)]
print(f"{apart} of {len(alone)} ratios differ; mean {means[0]:.1f} without python-Levenshtein, {means[1]:.1f} with it")
assert apart == 837, "the behaviour changed"
PY
