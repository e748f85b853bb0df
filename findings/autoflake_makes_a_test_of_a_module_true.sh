#!/usr/bin/env bash
# autoflake 2.4.0: removing an unused import from a test of whether a module exists makes the test always succeed.
#
# Expected: `try: import lzma; HAVE_LZMA = True`, `except ImportError: HAVE_LZMA = False` stays as it is, as with `ruff check --fix` (0.14.5). The import
# is the test.
# Seen: with its default settings, which only remove imports of the standard library because others may have side effects, autoflake puts `pass`
# in place of the import and keeps the rest of the `try`. Where lzma is missing, HAVE_LZMA is then True instead of False. There is no warning.
# Why it matters: if generated programs or training data are cleaned this way, the result is valid, but it takes the wrong branch on machines without the
# module, and on these only.
# What to do: remove unused imports with ruff.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet autoflake==2.4.0 ruff==0.14.5 2>/dev/null
PATH="$place/venv/bin:$PATH" "$place/venv/bin/python" - <<'PY'
import subprocess
import sys
from importlib.metadata import version

PROGRAM = """\
try:
    import lzma

    HAVE_LZMA = True
except ImportError:
    HAVE_LZMA = False
"""


def cleaned_by(*command):
    return subprocess.run(command, input=PROGRAM, capture_output=True, text=True).stdout


def flag_without_lzma(program):
    names = {}
    sys.modules["lzma"] = None  # makes the import raise ImportError
    exec(program, names)
    return names["HAVE_LZMA"]


print("autoflake", version("autoflake"), "ruff", version("ruff"))
by_ruff = cleaned_by("ruff", "check", "--isolated", "--fix", "--select", "F401", "-")
by_autoflake = cleaned_by("autoflake", "-")
print(f"after autoflake:\n{by_autoflake}")
for name, program in (("original", PROGRAM), ("ruff", by_ruff), ("autoflake", by_autoflake)):
    print(f"{name}: without lzma, HAVE_LZMA is {flag_without_lzma(program)}")
assert by_ruff == PROGRAM, "the behaviour changed"
assert flag_without_lzma(PROGRAM) is False, "the behaviour changed"
assert flag_without_lzma(by_autoflake) is True, "the behaviour changed"
PY
