#!/usr/bin/env bash
# inspect_ai 0.3.285: the scorer `exact` counts -5 as a correct answer if 5 is the target, and counts [] as wrong if [] is the target.
#
# Expected: `exact` "normalizes the text of the answer and target(s) and performs an exact matching comparison". At least equal texts match, and
# numbers of opposite signs do not.
# Seen: each text is cut at spaces and hyphens, then punctuation and the words a, an and the are removed. So `x - y` matches `x + y`, `[1, -2]` matches
# `(1, 2)`, and `return a` matches `return`. A text of which nothing is left matches nothing: [], '' and the choice A are wrong answers to themselves,
# while B is right. `match(location="exact")`, which "requires the output be exactly equal to the target", accepts [] and A, but also takes -5 for 5,
# (1, 2) for [1, 2] and {} for [].
# Why it matters: who predicts the output of a program, or fills in an expression, gets points for wrong signs, types and operators. If answers
# are letters of choices, all tasks whose answer is A are lost.
# What to do: write a scorer that compares `ast.literal_eval` of both texts, or `answer.strip() == target.text`.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet inspect-ai==0.3.285 2>/dev/null
cd "$place"
"$place/venv/bin/python" -W ignore - 2>"$place/err" <<'PY' || { tail -3 "$place/err" >&2; exit 1; }
import asyncio
from importlib.metadata import version

from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Target, exact, match
from inspect_ai.solver import TaskState

CASES = [  # answer, target, exact, match(location="exact")
    ("-5", "5", "C", "C"),
    ("x - y", "x + y", "C", "I"),
    ("[1, -2]", "(1, 2)", "C", "I"),
    ("(1, 2)", "[1, 2]", "C", "C"),
    ("{1: 2}", "{1, 2}", "C", "I"),
    ("a < b", "a > b", "C", "I"),
    ("return a", "return", "C", "I"),
    ("[]", "[]", "I", "C"),
    ("{}", "[]", "I", "C"),
    ("''", "''", "I", "C"),
    ("A", "A", "I", "C"),
    ("B", "B", "C", "C"),
]


def judge(scorer, answer, target):
    output = ModelOutput.from_content("mockllm/model", answer)
    state = TaskState(model="mockllm/model", sample_id=1, epoch=1, input="question", messages=[], output=output)
    return asyncio.run(scorer(state, Target(target))).value


print("inspect_ai", version("inspect-ai"), "(C is correct, I is incorrect)")
for answer, target, *wanted in CASES:
    seen = [judge(exact(), answer, target), judge(match(location="exact"), answer, target)]
    print(f"answer {answer!r}, target {target!r}: exact {seen[0]}, match(location='exact') {seen[1]}")
    assert seen == wanted, "the behaviour changed"
PY
