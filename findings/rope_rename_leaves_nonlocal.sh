#!/usr/bin/env bash
# rope 1.15.2: renaming a variable that an inner function declares as `nonlocal` can leave the old name there. The file is then no valid Python.
#
# Expected: the new name in all places, or an error. rope renames a `global` statement and the assignments after it, and also `nonlocal count` if
# `count += 1` follows it.
# Seen: if `count = count + 1` follows it, rope takes `count` for a local variable of the inner function. The statement and the assignment keep the old
# name. Compiling the file then fails: no binding for nonlocal 'count' found. Annotations in quotation marks keep the old name of a class. rope reports no
# error.
# Why it matters: rename is used to make variants of programs that should behave the same, to test whether a model is robust to other names. These variants
# do not run. Whoever counts programs that still pass blames the model.
# What to do: compile each variant, and run the original program's tests on it.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet rope==1.15.2 2>/dev/null
"$place/venv/bin/python" - "$place" <<'PY'
import sys
from importlib.metadata import version
from pathlib import Path

from rope.base.project import Project
from rope.refactor.rename import Rename

folder = Path(sys.argv[1], "project")
folder.mkdir()
project = Project(str(folder), ropefolder=None)


def renamed(text, old):
    (folder / "module.py").write_text(text)
    project.validate()
    project.do(Rename(project, project.get_file("module.py"), text.index(old)).get_changes("new"))
    return (folder / "module.py").read_text()


def is_python(text):
    try:
        return bool(compile(text, "module.py", "exec"))
    except SyntaxError as error:
        print("   ", error.msg)
        return False


FUNCTION = """
def outer():
    count = 0
    def inner():
        nonlocal count
        ASSIGNMENT
    inner()
    return count
"""
texts = {
    "a global": ("count = 0\ndef go():\n    global count\n    count += 1\n", "count"),
    "count += 1": (FUNCTION.replace("ASSIGNMENT", "count += 1"), "count"),
    "count = count + 1": (FUNCTION.replace("ASSIGNMENT", "count = count + 1"), "count"),
    "a class": ("class Node:\n    next: 'Node | None' = None\n\nNode()\n", "Node"),
}
print("rope", version("rope"))
seen = []
for name, (text, old) in texts.items():
    after = renamed(text, old)
    seen.append((after.count(old), is_python(after)))
    print(f"{name}: {seen[-1][0]} of {text.count(old)} places keep the old name; the file is {'' if seen[-1][1] else 'not '}valid Python")
assert seen == [(0, True), (0, True), (3, False), (1, True)], "the behaviour changed"
PY
