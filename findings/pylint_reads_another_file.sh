#!/usr/bin/env bash
# pylint 4.1.4: whether an unknown name is reported depends on which other files are checked in the same run, and on -j.
#
# Expected: an answer's no-member error depends on this answer and on what it imports. Another answer, which it does not import, does not matter.
# Seen: the answer a.py uses tools.wrong, which tools.py lacks, so pylint reports E1101. If b.py, which sets `tools.wrong = 1`, is checked in the same run,
# there is no error in a.py, in either order of the files: astroid writes b.py's assignment into the syntax tree of tools.py, which all files share. With
# -j 2, the error is reported again.
# Why it matters: benchmarks count no-member errors over folders with one answer per file. An answer that patches a module hides the same mistake in all
# other answers. So a model's score depends on its other answers and on the number of cores.
# What to do: check each answer in its own process.
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
