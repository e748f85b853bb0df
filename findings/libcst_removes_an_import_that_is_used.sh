#!/usr/bin/env bash
# libcst 1.9.0: RemoveUnusedImportsCommand removes `from string import digits` from a program whose only use is `digits += "abc"`. The program then fails.
#
# Expected: `digits += "abc"` reads `digits`, so the import stays, as it does for `digits = digits + "abc"`.
# Seen: LibCST's scopes record an assignment and no access for the target of `+=`, `|=` and so on. So the import counts as unused and is removed. Running
# the program gives a NameError.
# Why it matters: the command tidies up code that was generated or transformed. Answers of models that were right fail afterwards. A data flow that is
# computed from these scopes lacks an edge.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet libcst==1.9.0 2>/dev/null
"$place/venv/bin/python" - <<'PY'
from importlib.metadata import version

import libcst
from libcst.codemod import CodemodContext
from libcst.codemod.commands.remove_unused_imports import RemoveUnusedImportsCommand


def tidied(text):
    return RemoveUnusedImportsCommand(CodemodContext()).transform_module(libcst.parse_module(text)).code


def error(text):
    try:
        exec(text, {})
    except NameError as found:
        return str(found)


print("libcst", version("libcst"))
IMPORT = "from string import digits\n"
seen = []
for use in ["digits = digits + 'abc'\n", "digits += 'abc'\n"]:
    assert error(IMPORT + use) is None
    after = tidied(IMPORT + use)
    seen.append((after == IMPORT + use, error(after)))
    print(f"the import is used in {use.strip()}: it {'stays' if seen[-1][0] else 'is removed'}; the error of the program is then {seen[-1][1]}")
assert seen == [(True, None), (False, "name 'digits' is not defined")], "the behaviour changed"
PY
