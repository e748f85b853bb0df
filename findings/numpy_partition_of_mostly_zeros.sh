#!/usr/bin/env bash
# numpy 2.4.6: to find the best 20 of 17,000 scores that are mostly zero, partition(scores, -20) takes 20 times as long as partition(-scores, 19).
#
# Expected: both calls find the same numbers in the same time (0.1 to 0.3 ms), because selection takes linear time for all values and at both ends.
# Seen (AMD EPYC with AVX-512): partition(scores, -20) takes 2.3 ms, and partition(-scores, 19) takes 0.1 ms. With random numbers, partition(scores, -20)
# takes 0.2 ms. Even a full sort of the scores is faster than their slow partition. The results are equal.
# Why it matters: BM25 gives 0 to every document without a word of the query, so mostly zeros are the usual input of a ranker that picks the best k. The
# usual way to pick them is `np.partition` or `np.argpartition` with a negative k.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet numpy==2.4.6 2>/dev/null
"$place/venv/bin/python" - <<'PY'
from statistics import median
from time import process_time

import numpy as np

rng = np.random.default_rng(0)
scores = np.zeros(17_000)
scores[rng.choice(len(scores), 900, replace=False)] = 10 * rng.random(900)


def milliseconds(call):
    call()
    taken = []
    for _ in range(21):
        begun = process_time()
        for _ in range(10):
            call()
        taken.append(100 * (process_time() - begun))
    return median(taken)


largest = milliseconds(lambda: np.partition(scores, -20))
smallest = milliseconds(lambda: np.partition(-scores, 19))
full = milliseconds(lambda: np.sort(scores))
print(f"numpy {np.__version__}: largest {largest:.2f} ms, smallest of the negated {smallest:.2f} ms, full sort {full:.2f} ms")
assert (np.sort(np.partition(scores, -20)[-20:]) == np.sort(-np.partition(-scores, 19)[:20])).all()
assert largest > 5 * smallest, "the behaviour changed"
PY
