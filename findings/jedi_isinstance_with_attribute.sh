#!/usr/bin/env bash
# jedi 0.20.1: `if isinstance(x, str):` tells Jedi what x is, until a first letter is written after "x.".
#
# Expected: Jedi reads isinstance checks, as "x." shows. Inside the branch x is a str, so "x." offers str's names and
# "x.up" those of them that begin so; `x.upper` leads to str.upper.
# Seen: "x." offers 84 names, "x.up" offers none, and neither infer nor goto knows x.upper. `y = x` and then "y.up" offers upper. The
# name alone is narrowed, and the name in front of an attribute is not. With an annotation instead of the check all work.
# Why it matters: decoding with a code completer (ToolGen) asks Jedi inside a name or after it, and judges existing code by infer. Right calls in
# checked branches count as unknown, by a metric that the same cursor one letter earlier would pass.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet jedi==0.20.1 parso==0.8.7 2>/dev/null
"$place/venv/bin/python" - <<'PY'
import jedi

check = "def f(x):\n    if isinstance(x, str):\n        "
texts = {"x.": check + "x.", "x.up": check + "x.up", "y = x; y.up": check + "y = x\n        y.up", "annotated x.up": "def f(x: str):\n    x.up"}
offers = {name: [one.name for one in jedi.Script(text).complete()] for name, text in texts.items()}
inferred = {name: [one.full_name for one in jedi.Script(check + name).infer(3, 8 + len(name) - 1)] for name in ("x", "x.upper")}
print("jedi", jedi.__version__, "offers", {name: len(names) for name, names in offers.items()}, "and infers", inferred)
assert "upper" in offers["x."] and not offers["x.up"], "the behaviour changed"
assert offers["y = x; y.up"] == offers["annotated x.up"] == ["upper"], "the behaviour changed"
assert inferred == {"x": ["builtins.str"], "x.upper": []}, "the behaviour changed"
PY
