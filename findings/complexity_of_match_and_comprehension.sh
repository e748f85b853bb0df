#!/usr/bin/env bash
# radon 6.0.1, mccabe 0.7.0 and lizard 1.24.3 compute three different cyclomatic complexities for the same Python function.
#
# Expected: the complexity is McCabe's: the number of decisions plus one. Tools may disagree about an `else` or a `finally`, but not about plain branches.
# Seen: a `match` with three cases and a default has the complexity 4 in radon, 5 in lizard and 1 in mccabe (and so in flake8's C901). In the same order,
# a conditional expression has 2, 2 and 1, `if a and b or c` has 4, 4 and 2, and a comprehension with `if` has 3, 3 and 1. Only radon counts an assert.
# Why it matters: studies of generated code report its mean complexity, and filter benchmarks by complexity. A model that writes `match` and
# comprehensions looks simple in one tool and complex in another. Numbers of two studies are comparable only if both name the same tool.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet radon==6.0.1 mccabe==0.7.0 lizard==1.24.3 2>/dev/null
cat >"$place/code.py" <<'PY'
def matched(x):
    match x:
        case 1:
            return 1
        case 2:
            return 2
        case 3:
            return 3
        case _:
            return 4


def branches(x):
    if x == 1:
        return 1
    elif x == 2:
        return 2
    elif x == 3:
        return 3
    else:
        return 4


def conditional(x):
    return 1 if x else 2


def boolean(a, b, c):
    if a and b or c:
        return 1


def comprehension(x):
    return [i for i in x if i]


def asserted(x):
    assert x
PY
"$place/venv/bin/python" - "$place/code.py" <<'PY'
import ast
import sys

import lizard
from mccabe import PathGraphingAstVisitor
from radon.complexity import cc_visit

text = open(sys.argv[1]).read()
walker = PathGraphingAstVisitor()
walker.preorder(ast.parse(text), walker)
radon = {one.name: one.complexity for one in cc_visit(text)}
mccabe = {graph.entity: graph.complexity() for graph in walker.graphs.values()}
other = {one.name: one.cyclomatic_complexity for one in lizard.analyze_file(sys.argv[1]).function_list}
seen = {name: (radon[name], mccabe[name], other[name]) for name in radon}
print("radon, mccabe, lizard:", seen)
assert seen == {
    "matched": (4, 1, 5), "branches": (4, 4, 4), "conditional": (2, 1, 2), "boolean": (4, 2, 4), "comprehension": (3, 1, 3), "asserted": (2, 1, 1),
}, "the behaviour changed"
PY
