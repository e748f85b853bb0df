#!/usr/bin/env bash
# radon 6.0.1: a function of 100 branches has the best maintainability index, 100, and `return a == b` has 88.6.
#
# Expected: the index falls with the lines of code, with the number of branches and with Halstead's volume. Radon documents this formula.
# Seen: Halstead's metrics count only arithmetic, comparisons, `and`, `or` and `not`. Calls, assignments, attributes, subscripts and `if` count nothing. So
# a program of 100 branches with calls and attributes has volume 0, difficulty 0 and effort 0. For a volume of 0, the formula is not used at all: the index
# is 100. If the last line is `return name == 1`, the index of the same program is 27.6.
# Why it matters: studies of generated code report this index and Halstead's volume as quality. Code that mostly calls a library (cloud SDKs, scripts,
# tests) has the best values by construction. The mean index of two models depends on how many of their answers have no operator at all.
# What to do: report how many programs have volume 0, and leave them out.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet radon==6.0.1 2>/dev/null
"$place/venv/bin/python" - <<'PY'
import radon
from radon.complexity import cc_visit
from radon.metrics import h_visit, mi_visit

calls = "def f(client, name):\n" + "".join(
    f"    if client.has(name, {i}):\n        found{i} = client.get(name, [{i}])\n        client.state[{i}] = found{i}.value\n" for i in range(100)
)
texts = {
    "100 branches": calls,
    "100 branches and one ==": calls + "    return name == 1\n",
    "return a == b": "def f(a, b):\n    return a == b\n",
}
print("radon", radon.__version__)
seen = {}
for name, text in texts.items():
    halstead = h_visit(text).total
    seen[name] = (round(mi_visit(text, True), 1), cc_visit(text)[0].complexity, round(halstead.volume, 1), round(halstead.effort, 1))
    print(f"{name}: index {seen[name][0]}, complexity {seen[name][1]}, Halstead's volume {seen[name][2]}, effort {seen[name][3]}")
assert seen == {
    "100 branches": (100.0, 101, 0, 0), "100 branches and one ==": (27.6, 101, 4.8, 2.4), "return a == b": (88.6, 1, 4.8, 2.4),
}, "the behaviour changed"
PY
