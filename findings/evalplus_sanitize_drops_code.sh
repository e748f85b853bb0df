#!/usr/bin/env bash
# evalplus 0.3.1: `sanitize` breaks correct programs. It keeps plain assignments, imports, classes and functions, and drops everything else.
#
# Expected: sanitize keeps the entry point and everything that it needs, so a correct answer stays correct.
# Seen: eleven of twelve correct programs fail afterwards. For example, a table that a loop fills stays empty. `try: import` and `A, B = 1, 2` are dropped,
# and so is an entry point with @lru_cache. If a function or a name is defined twice, the first definition is kept.
# Why it matters: evalplus.codegen sanitises each answer before it stores it. A model that fills a table or caches its recursion is marked wrong for an
# edit of the harness.
# What to do: score the raw answer beside the sanitised one, or say which of the two was scored.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet --no-deps evalplus==0.3.1 tree-sitter==0.25.2 tree-sitter-python==0.25.0 2>/dev/null
"$place/venv/bin/pip" install --quiet numpy==2.4.6 tqdm==4.70.1 appdirs==1.4.4 wget==3.2 tempdir==0.7.1 fire==0.7.1 multipledispatch==1.0.0 psutil==7.2.2 datasets==5.2.0 2>/dev/null
"$place/venv/bin/python" - <<'PY'
from evalplus.sanitize import sanitize

programs = {  # each defines f with f(1) == 1
    "plain (control)": "LIMIT = 1\ndef g(x):\n    return min(x, LIMIT)\ndef f(x):\n    return g(x)\n",
    "loop fills a table": "T = []\nfor i in range(3):\n    T.append(i)\ndef f(x):\n    return T[x]\n",
    "item assignment": "T = {}\nT[1] = 1\ndef f(x):\n    return T[x]\n",
    "augmented assignment": "N = 0\nN += 1\ndef f(x):\n    return N\n",
    "tuple assignment": "A, B = 0, 1\ndef f(x):\n    return A + B\n",
    "try: import": "try:\n    import math\nexcept ImportError:\n    math = None\ndef f(x):\n    return math.floor(x)\n",
    "if at the top": "import sys\nif sys.maxsize > 2**32:\n    N = 1\nelse:\n    N = 1\ndef f(x):\n    return N\n",
    "with at the top": "import decimal\nwith decimal.localcontext():\n    N = 1\ndef f(x):\n    return N\n",
    "attribute of a class": "class A:\n    pass\nA.n = 1\ndef f(x):\n    return A.n\n",
    "decorated entry point": "import functools\n@functools.lru_cache\ndef f(x):\n    return x\n",
    "function written twice": "def f(x):\n    return 0\ndef f(x):\n    return x\n",
    "name written twice": "N = 0\nN = 1\ndef f(x):\n    return N\n",
}


def right(program):
    names = {}
    try:
        exec(program, names)
        return names["f"](1) == 1
    except (NameError, KeyError, IndexError, AttributeError):
        return False


assert all(right(program) for program in programs.values())
broken = [name for name, program in programs.items() if not right(sanitize(program, "f"))]
print(f"evalplus 0.3.1: {len(broken)} of {len(programs)} correct programs fail after sanitize:", "; ".join(broken))
assert broken == list(programs)[1:], "the behaviour changed"
PY
