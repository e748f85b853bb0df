#!/usr/bin/env bash
# parso 0.8.7 (Jedi's parser): its grammars for Python 3.12, 3.13 and 3.14 reject match statements, except* and other valid syntax.
#
# Expected: `load_grammar(version="3.14")` accepts programs of this version, or raises NotImplementedError, as for version="2.7".
# Seen: the grammar loads, and rejects match statements, except*, parenthesised items of `with`, x[*a], *args: *Ts and `for x in *a, *b`. All of these are
# valid in Python 3.11. Some newer syntax is accepted, such as `def f[T](x: T)`.
# Why it matters: parso and Jedi are used to decide whether generated code parses, and which names are known at a cursor. Answers in a style of 2022 count
# as broken, or their names as unknown.
# What to do: also ask ast.parse.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet parso==0.8.7 2>/dev/null
"$place/venv/bin/python" - <<'PY'
import sys

import parso

old = {  # valid since Python 3.11 or before
    "match": "match x:\n    case [1, *_]:\n        pass\n",
    "except*": "try:\n    pass\nexcept* ValueError:\n    pass\n",
    "with (a as b, c as d)": "with (a as b, c as d):\n    pass\n",
    "x[*a]": "x[*a]\n",
    "*args: *Ts": "def f(*args: *Ts):\n    pass\n",
    "for x in *a, *b": "for x in *a, *b:\n    pass\n",
    "walrus (control)": "if (n := 1):\n    pass\n",
    "positional only (control)": "def f(a, /, b):\n    pass\n",
}
if sys.version_info >= (3, 11):
    for code in old.values():
        compile(code, "code", "exec")
for version in ("3.12", "3.13", "3.14"):
    grammar = parso.load_grammar(version=version)
    wrong = [name for name, code in old.items() if any(grammar.iter_errors(grammar.parse(code)))]
    newer = not any(grammar.iter_errors(grammar.parse("def f[T](x: T) -> T:\n    return x\n")))
    print(f"parso {parso.__version__}, grammar {version}: errors in {wrong}; takes def f[T](x: T): {newer}")
    assert wrong == list(old)[:-2] and newer, "the behaviour changed"
PY
