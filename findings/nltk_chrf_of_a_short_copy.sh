#!/usr/bin/env bash
# nltk 3.10.4: a copy of the reference `i += 1` has chrF 0.67, and of `x=1` 0.5.
#
# Expected: a copy has chrF 1, as in sacrebleu 2.6.0, where character n-grams that are longer than the text do not count.
# Seen: chrF is the mean over n-grams of 1 to 6 characters, without spaces. A text of three characters has no n-grams of 4 to 6 characters. NLTK counts
# their F score as 0 and divides by 6. In corpus_chrf, such a line pulls the mean of all lines down.
# Why it matters: lines of code are often this short: `pass`, `else:`, `i += 1`, `x = y`. A model that completes lines gets a low score for right short
# lines.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet nltk==3.10.4 sacrebleu==2.6.0 2>/dev/null
"$place/venv/bin/python" - <<'PY'
from importlib.metadata import version

from nltk.translate.chrf_score import corpus_chrf, sentence_chrf
from sacrebleu import sentence_chrf as sacrebleu_chrf

print("nltk", version("nltk"), "sacrebleu", version("sacrebleu"))
lines = ["x=1", "i += 1", "pass", "else:", "return x"]
seen = [round(sentence_chrf(line, line), 2) for line in lines]
for line, score in zip(lines, seen):
    other = sacrebleu_chrf(line, [line]).score
    print(f"chrF of a copy of {line!r}: nltk {score}, sacrebleu {other:.0f} of 100")
    assert round(other) == 100
corpus = round(corpus_chrf(lines, lines), 2)
print("nltk's corpus_chrf of these five right lines:", corpus)
assert seen == [0.5, 0.67, 0.67, 0.83, 1.0] and corpus == 0.73, "the behaviour changed"
PY
