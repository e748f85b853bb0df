#!/usr/bin/env bash
# jedi 0.20.1: after `if isinstance(x, str):`, Jedi knows the type of x at "x.", but no longer after the first letter of the attribute.
#
# Expected: Jedi uses isinstance checks. In this branch x is a str, so "x." offers the names of str, and "x.up" offers those names that begin with "up".
# `x.upper` leads to str.upper.
# Seen: "x." offers 84 names, and "x.up" offers none. Neither infer nor goto knows x.upper. After `y = x`, "y.up" offers upper. So Jedi narrows the type of
# the name alone, but not that of the name in front of an attribute. With an annotation instead of the check, everything works.
# Why it matters: a decoder with a code completer (ToolGen) asks Jedi inside a name or after it, and existing code is judged with infer. There, right calls
# in such branches count as unknown names. One letter earlier, Jedi offers the same names.
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
