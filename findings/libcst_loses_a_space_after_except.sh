#!/usr/bin/env bash
# libcst 1.9.0: parsing a program and writing it again loses the space before the colon of `except A :`.
#
# Expected: LibCST is lossless. It keeps every blank and comment, so `parse_module(text).code == text` for each valid program.
# Seen: `except A :`, `except (A, B) :` and `except* A :` come back without the space. `except A as e :`, `except :`, `if x :`, `for`, `while`, `with`,
# `def`, `class`, `else`, `case` and `finally` keep it. Of the standard library of Python 3.11, webbrowser.py comes back one byte shorter.
# Why it matters: codemods and tools for mutants write files with LibCST, and offsets in the written text are used on the original. After such a line every
# offset is wrong by one, and a patch changes a line that nobody touched, which exact match and edit similarity count.
# What to do: check that the text comes back unchanged, and leave out or repair the file if not.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet libcst==1.9.0 2>/dev/null
"$place/venv/bin/python" - <<'PY'
from importlib.metadata import version

import libcst

LINES = ["except A", "except (A, B)", "except* A", "except A as e", "except", "finally"]
texts = {line: f"try:\n    pass\n{line} :\n    pass\n" for line in LINES}
texts |= {line: f"{line} :\n    pass\n" for line in ("if x", "while x", "for x in y", "with x", "def f()", "class A")}
print("libcst", version("libcst"))
lost = []
for line, text in texts.items():
    compile(text, line, "exec")
    code = libcst.parse_module(text).code
    print(f"{line!r} with a space before the colon: {'unchanged' if code == text else repr(code)}")
    if code != text:
        assert code == text.replace(f"{line} :", f"{line}:")
        lost.append(line)
assert lost == ["except A", "except (A, B)", "except* A"], "the behaviour changed"
PY
