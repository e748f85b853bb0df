#!/usr/bin/env bash
# nltk 3.10.4: with the smoothing methods 5 and 7, BLEU exceeds 1: the reference itself scores 1.117.
#
# Expected: BLEU is at most 1, and 1 only for a text that agrees with the reference. Smoothing raises the scores of short texts without a common 4-gram.
# Seen: a statement of 20 tokens, compared with itself, has 1.117; without its last token 1.059; with one of its 20 tokens replaced 1.061. With weights for
# single tokens only, it has 1.333. Methods 0 to 4 and 6 give 1 for the copy and less for the others. By the docstring, method 5 averages matched counts,
# and begins with one match more than there is. The code adds this 1 to a precision instead, which is at most 1.
# Why it matters: NLTK's smoothed BLEU is a usual score for generated code. With methods 5 and 7, a wrong answer beats a perfect score, and scores cut at 1
# call it perfect. If a study does not say which method it used, its BLEU cannot be compared with another study's.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet nltk==3.10.4 2>/dev/null
"$place/venv/bin/python" - <<'PY'
import nltk
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

reference = "for name , value in sorted ( table . items ( ) ) : print ( name , value )".split()
answers = {"copy": reference, "one token less": reference[:-1], "one token wrong": [*reference[:-1], "]"]}
print("nltk", nltk.__version__, "tokens", len(reference))
seen = {}
for name, answer in answers.items():
    seen[name] = [round(sentence_bleu([reference], answer, smoothing_function=getattr(SmoothingFunction(), f"method{i}")), 3) for i in range(8)]
    print(f"{name}: methods 0 to 7 give {seen[name]}")
single = round(sentence_bleu([reference], reference, weights=(1,), smoothing_function=SmoothingFunction().method5), 3)
print("copy, single tokens, method 5:", single)
assert len(reference) == 20 and single == 1.333, "the behaviour changed"
for i in range(8):
    copy, less, wrong = (scores[i] for scores in seen.values())
    if i in (5, 7):
        assert (copy, less, wrong) == (1.117, 1.059, 1.061), "the behaviour changed"
    else:
        assert copy == 1 and less < 0.95 and wrong < 0.95, "the behaviour changed"
PY
