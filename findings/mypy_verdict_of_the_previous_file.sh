#!/usr/bin/env bash
# mypy 2.4.1: a file gets the verdict of the file that stood there before, if both have the same size and were written in the same second.
#
# Expected: mypy's cache (on by default) saves time and never changes a verdict. If a file's text changed, mypy checks it again.
# Seen: two answers of the same length are written one after the other, and each is copied (`cp -p`) to answer.py and checked. If the right answer comes
# first, mypy says that the wrong one is right; if the wrong one comes first, mypy reports its error for the right one. `--no-incremental` gives the right
# verdicts. mypy compares path, size and the time of the last change in whole seconds; only if one of them differs does it compare the text.
# Why it matters: a benchmark's loop writes one short answer after the other to the same path, and many differ in one word (`str` for `int`). Files
# unpacked from an archive often have the same time, too. The verdicts then depend on the order of the answers and on the speed of the machine.
# What to do: pass `--no-incremental`, or give each answer a path of its own.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet mypy==2.4.1 2>/dev/null
"$place/venv/bin/mypy" --version
cd "$place"
"$place/venv/bin/python" - <<'PY'
from pathlib import Path

ANSWERS = {"right": "count: int = 1\n", "wrong": "count: str = 1\n"}
for _ in range(5):  # until both are written in the same second
    for name, text in ANSWERS.items():
        Path(name).write_text(text)
    if len({int(Path(name).stat().st_mtime) for name in ANSWERS}) == 1:
        break
PY
check() { # check OPTION ANSWER...
  option=$1
  shift
  for answer in "$@"; do
    cp -p "$answer" answer.py
    printf '%s: %s\n' "$answer" "$("$place/venv/bin/mypy" $option answer.py | sed -n '$p')"
  done
  rm -rf .mypy_cache
}
{
  check "--incremental" right wrong
  check "--incremental" wrong right
  check "--no-incremental" right wrong
} | sed 's/ (checked 1 source file)//; s/ in 1 source file//' | tee seen
cat >wanted <<'WANTED'
right: Success: no issues found
wrong: Success: no issues found
wrong: Found 1 error in 1 file
right: Found 1 error in 1 file
right: Success: no issues found
wrong: Found 1 error in 1 file
WANTED
cmp --silent seen wanted || { echo "the behaviour changed" >&2; exit 1; }
