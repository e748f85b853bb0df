#!/usr/bin/env bash
# pylint 4.1.4: whether a call of an unknown name is reported depends on which other files are checked in the same run, and on -j.
#
# Expected: an answer's no-member error is a property of the answer and of what it imports; a second answer, which it does not import, has no say.
# Seen: answer a.py uses tools.wrong, which tools.py lacks: E1101. Checked together with b.py, which says `tools.wrong = 1`, a.py is clean, in
# either order: astroid writes b.py's assignment into the tree of tools.py that all files share. With -j 2 the error is back.
# Why it matters: benchmarks count no-member errors over folders with one answer per file. One answer that patches a module hides the same
# mistake in all others, so a model's score moves with its neighbours and with the number of cores. Give each answer a process.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet pylint==4.1.4 astroid==4.3.4 2>/dev/null
mkdir "$place/answers"
cd "$place/answers"
echo "right = 1" >tools.py
printf 'import tools\n\nprint(tools.wrong)\n' >a.py
printf 'import tools\n\ntools.wrong = 1\n' >b.py
errors() {  # options and files: how many no-member errors
  { "$place/venv/bin/pylint" --disable=all --enable=E1101 --msg-template='{msg_id}' --score=no "$@" || true; } | grep -c '^E1101' || true
}
alone=$(errors a.py) together=$(errors a.py b.py) turned=$(errors b.py a.py) jobs=$(errors -j 2 a.py b.py)
echo "pylint 4.1.4: errors in a.py: $alone alone, $together beside b.py, $turned after b.py, $jobs beside b.py with -j 2"
[ "$alone $together $turned $jobs" = "1 0 0 1" ] || { echo "the behaviour changed" >&2; exit 1; }
