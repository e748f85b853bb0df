#!/usr/bin/env bash
# pydriller 2.12: a commit that only adds, removes or edits decorators changes no method.
#
# Expected: `changed_methods` names the function if `@cache` is removed from it, or if a method gets `@staticmethod`.
# Seen: the list is empty. For pydriller, a Python function begins at its `def`, so its source lacks the decorators, too. A changed default
# value, docstring or body is reported.
# Why it matters: data sets of fixed bugs and of code reviews take commits that change one method. Fixes such as a missing `@property`, a wrong
# `@pytest.mark.parametrize` or a route's new address are left out, and the functions that are kept have lost their decorators: they are other programs.
# What to do: take functions from Python's `ast`, where `decorator_list` has the first lines, and compare these with the lines of the diff.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet pydriller==2.12 lizard==1.24.3 2>/dev/null
"$place/venv/bin/python" - "$place" <<'PY'
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from pydriller import Repository

CODE = '''\
from functools import cache


@cache
def area(side):
    """Return the area."""
    return side * side


class Shape:
    def unit():
        return 1
'''
CHANGES = {
    "@cache is removed": ("@cache\n", "", []),
    "a method gets @staticmethod": ("    def unit", "    @staticmethod\n    def unit", []),
    "the docstring changes": ("Return the area.", "Return the area of a square.", ["area"]),
    "the body changes": ("return 1", "return 1.0", ["unit"]),
}
folder = Path(sys.argv[1], "repository")
folder.mkdir()


def git(*arguments):
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=n@example.org", *arguments], cwd=folder, check=True)


def commit(code, message):
    (folder / "shapes.py").write_text(code)
    git("add", ".")
    git("commit", "--quiet", "--message", message)


git("init", "--quiet")
commit(CODE, "first")
for message, (old, new, _) in CHANGES.items():
    CODE = CODE.replace(old, new)
    commit(CODE, message)
print("pydriller", version("pydriller"))
for one in Repository(str(folder)).traverse_commits():
    if one.msg in CHANGES:
        [file] = one.modified_files
        found = [method.name for method in file.changed_methods]
        print(f"{one.msg}: changed methods {found}, lines added {file.added_lines}, removed {file.deleted_lines}")
        assert found == CHANGES[one.msg][2] and file.added_lines + file.deleted_lines, "the behaviour changed"
PY
