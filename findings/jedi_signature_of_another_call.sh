#!/usr/bin/env bash
# jedi 0.20.1: inside a call that spans lines, Jedi offers the parameters of the function that was called at this position before, for three seconds.
#
# Expected: `first(` on one line and the caret on the next: Jedi offers alpha=, the parameter of first. After the name was changed to other, with the
# bracket in the same place, Jedi offers beta=, the parameter of other.
# Seen: Jedi still offers alpha= and not beta=. After three seconds, it offers beta=. If the caret is on the line of the bracket, Jedi offers beta= at once. So
# Jedi keeps a signature by the file's path and by the position of the bracket; the text before the bracket counts only if it is on the caret's line.
# Why it matters: a decoder with a code completer (ToolGen) asks about many versions of one function within seconds. What one model wrote then changes what
# the tool offers to the next, and a slow machine gets other answers than a fast one. `jedi.settings.call_signatures_validity = 0` avoids it.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet jedi==0.20.1 parso==0.8.7 2>/dev/null
"$place/venv/bin/python" - <<'PY'
import time

import jedi

head = "def first(alpha): 0\ndef other(beta): 0\n"


def offers(call, line, column):
    names = [one.name for one in jedi.Script(head + call, path="module.py").complete(line, column)]
    return [name for name in names if name.endswith("=")]


def both(middle, line, column):
    return [offers(f"{name}({middle}", line, column) for name in ("first", "other")]


same_line = both("", 3, 6)
next_line = both("\n    ", 4, 4)
time.sleep(3.5)
later = offers("other(\n    ", 4, 4)
print("jedi", jedi.__version__, "on the bracket's line", same_line, "on the next line", next_line, "after three seconds", later)
assert same_line == [["alpha="], ["beta="]], "the behaviour changed"
assert next_line == [["alpha="], ["alpha="]], "the behaviour changed"
assert later == ["beta="], "the behaviour changed"
PY
