#!/usr/bin/env bash
# pylint 4.1.4, run at a repository's root, reports a wrong member of a module in a regular package, but not in a namespace package.
#
# Expected: the working directory is the repository's root. From there, Python imports `acme.core.tools` with or without `__init__.py`. So pylint should
# read the module in both cases, and report a member that it lacks.
# Seen: without `__init__.py`, E1101 is not reported, and pylint exits with 0. Only the import error, which is off here, says that the module was not found.
# With `--source-roots=.`, E1101 is reported again.
# Why it matters: "share of functions without no-member errors" is a metric of code models. In such repositories, any invented name passes.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet pylint==4.1.4 astroid==4.3.4 2>/dev/null
for kind in regular namespace; do
  mkdir -p "$place/$kind/acme/core" "$place/$kind/acme/app"
  echo "right = 1" >"$place/$kind/acme/core/tools.py"
  printf 'from acme.core import tools\n\nprint(tools.wrong)\n' >"$place/$kind/acme/app/main.py"
done
touch "$place"/regular/acme{,/core,/app}/__init__.py
found() {  # kind, options: the ids of pylint's messages
  (cd "$place/$1" && "$place/venv/bin/pylint" --disable=all --msg-template='{msg_id}' "${@:2}" acme/app/main.py || true) | { grep -oE '^[EF][0-9]+' || true; } | tr '\n' ' '
}
regular=$(found regular --enable=E1101)
silent=$(found namespace --enable=E1101)
unread=$(found namespace --enable=E1101,E0401)
rooted=$(found namespace --enable=E1101 --source-roots=.)
echo "regular package: ${regular:-none}| namespace package: ${silent:-none} | with import errors: $unread| with --source-roots=.: $rooted"
[ "$regular" = "E1101 " ] && [ -z "$silent" ] && [ "$unread" = "E0401 " ] && [ "$rooted" = "E1101 " ] ||
  { echo "the behaviour changed" >&2; exit 1; }
