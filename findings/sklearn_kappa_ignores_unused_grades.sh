#!/usr/bin/env bash
# scikit-learn 1.9.1: one more answer that both raters grade with 3 lowers their weighted kappa from 0.917 to 0.835.
#
# Expected: with linear or quadratic weights, Cohen's kappa measures how far apart two grades are. Grades 2 and 4 are two steps apart.
# Seen: `cohen_kappa_score` counts places in the sorted list of the grades that occur. If nobody gave a 3, then 2 and 4 are neighbours, and a
# disagreement between them has a quarter of its quadratic weight. Grades in words are sorted by the alphabet, without a warning: "bad", "fair", "good",
# "poor". The same ratings have a kappa of 0.84 as numbers and 0.286 as words. The documentation gives `labels` as a means to select a subset.
# Why it matters: a model that judges answers on a scale from 1 to 5 often leaves a grade out, and its agreement with people is reported as this kappa.
# Two judges of the same answers are then measured with two different scales.
# What to do: pass all grades of the scale in their order, as in `labels=[1, 2, 3, 4, 5]`.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet scikit-learn==1.9.1 2>/dev/null
"$place/venv/bin/python" -W error - <<'PY'
import sklearn
from sklearn.metrics import cohen_kappa_score

print("scikit-learn", sklearn.__version__)


def kappa(judge, person, labels=None):
    """Return Cohen's kappa of two lists of grades with quadratic weights."""
    return round(cohen_kappa_score(judge, person, labels=labels, weights="quadratic"), 3)


scale = [1, 2, 3, 4, 5]
judge = [1, 1, 1, 2, 2, 2, 4, 4, 5, 5]
person = [1, 1, 1, 2, 4, 2, 4, 2, 5, 5]
print("ten answers, nobody gave a 3")
ten = kappa(judge, person), kappa(judge, person, labels=scale)
print(f"  kappa {ten[0]}, with labels=[1, 2, 3, 4, 5] {ten[1]}")
print("one more answer, both gave a 3")
eleven = kappa([*judge, 3], [*person, 3]), kappa([*judge, 3], [*person, 3], labels=scale)
print(f"  kappa {eleven[0]}, with labels=[1, 2, 3, 4, 5] {eleven[1]}")
assert (ten, eleven) == ((0.917, 0.834), (0.835, 0.835)), "the behaviour changed"

words = ["bad", "poor", "fair", "good"]
judge = [0, 0, 0, 1, 1, 2, 2, 3, 3, 3]
person = [0, 0, 1, 1, 2, 2, 1, 3, 3, 2]
judge_in_words = [words[grade] for grade in judge]
person_in_words = [words[grade] for grade in person]
seen = (
    kappa(judge, person),
    kappa(judge_in_words, person_in_words),
    kappa(judge_in_words, person_in_words, labels=words),
)
print("other grades: as numbers {}, as words {}, as words in their order {}".format(*seen))
assert seen == (0.84, 0.286, 0.84), "the behaviour changed"
PY
