#!/usr/bin/env bash
# whatthepatch 1.0.7: if a patch changes two files and has no line between them, the second file's changes belong to the first file.
#
# Expected: the lines "--- a/two.py" and "+++ b/two.py" begin the next file, because the hunk before them is complete by the numbers in its "@@" line.
# unidiff 1.0.1 reads them so.
# Seen: whatthepatch yields one diff. It gives all changes to one.py. The header of the second file becomes a removed line "-- a/two.py" and an added line
# "++ b/two.py" of one.py, unless the first hunk ends with an unchanged line; then the header vanishes. With a line "diff --git" between the files, all is
# right.
# Why it matters: Python's difflib writes patches in this form, and models often do. Whoever counts the changed files or lines, or compares the edited
# places with the right ones, gets wrong numbers.
# What to do: use unidiff, or put a line "diff --git a/NAME b/NAME" in front of each header.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet whatthepatch==1.0.7 unidiff==1.0.1 2>/dev/null
"$place/venv/bin/python" - <<'PY'
from difflib import unified_diff
from importlib.metadata import version

from unidiff import PatchSet
from whatthepatch import parse_patch


def patch(name, before, after):
    return "".join(unified_diff(before, after, f"a/{name}", f"b/{name}"))


def by_whatthepatch(text):
    return [(diff.header.new_path, [change.line for change in diff.changes if None in (change.old, change.new)]) for diff in parse_patch(text)]


def by_unidiff(text):
    return [(file.path, [line.value.rstrip() for hunk in file for line in hunk if not line.is_context]) for file in PatchSet(text)]


one, two = patch("one.py", ["x = 1\n"], ["x = 2\n"]), patch("two.py", ["y = 1\n"], ["y = 2\n"])
context = patch("one.py", ["x = 1\n", "end\n"], ["x = 2\n", "end\n"])
git = [f"diff --git a/{name} b/{name}\n" for name in ("one.py", "two.py")]
cases = {
    "two files": one + two,
    "two files, the first hunk ends with an unchanged line": context + two,
    "two files, a line of git before each": git[0] + one + git[1] + two,
}
print("whatthepatch", version("whatthepatch"), "unidiff", version("unidiff"))
changes = [("one.py", ["x = 1", "x = 2"]), ("two.py", ["y = 1", "y = 2"])]
seen = []
for name, text in cases.items():
    seen.append(by_whatthepatch(text))
    print(f"{name}: whatthepatch {seen[-1]}, unidiff {by_unidiff(text)}")
    assert by_unidiff(text) == changes
assert seen == [
    [("one.py", ["x = 1", "x = 2", "-- a/two.py", "++ b/two.py", "y = 1", "y = 2"])],
    [("one.py", ["x = 1", "x = 2", "y = 1", "y = 2"])],
    [("b/one.py", changes[0][1]), ("b/two.py", changes[1][1])],
], "the behaviour changed"
PY
