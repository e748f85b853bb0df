#!/usr/bin/env bash
# papermill 2.7.0: with `-p commit 12e3456`, a short git hash, the notebook gets the number infinity.
#
# Expected: -p reads integers, floats, True, False and None, so "5" becomes 5. A hash stays a string. A value that is too large for a float stays a string,
# too.
# Seen: papermill passes the text to Python's float(). Hashes with digits around a single "e" become infinity or 0.0. An id loses its leading zeros, and
# "1_2" becomes 12. There is no warning, but the injected cell says float('inf').
# Why it matters: sweeps pass commits, shard names ("1_2") and zero-padded task ids. Of the short hashes of seven digits, one in 54 has such an "e", and one
# in 27 has only decimal digits. The notebook then loads or records another commit.
# What to do: use -r (raw), or a YAML file with quotes.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet papermill==2.7.0 nbformat==5.11.1 2>/dev/null
cat >"$place/in.ipynb" <<'IPYNB'
{"cells": [{"cell_type": "code", "execution_count": null, "id": "a", "metadata": {"tags": ["parameters"]}, "outputs": [],
  "source": "commit = ''"}],
 "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}, "nbformat": 4, "nbformat_minor": 5}
IPYNB
seen=""
for text in 12e3456 0e12345 1234567 00123 1_2 a1b2c3d; do
  "$place/venv/bin/papermill" --prepare-only --no-progress-bar -p commit "$text" "$place/in.ipynb" "$place/out.ipynb" 2>/dev/null
  seen+="$text: $("$place/venv/bin/python" -c '
import json, sys
print(json.load(open(sys.argv[1]))["cells"][1]["source"][-1].split(" = ")[1].strip())' "$place/out.ipynb"), "
done
echo "papermill 2.7.0 injects $seen"
[ "$seen" = "12e3456: float('inf'), 0e12345: 0.0, 1234567: 1234567, 00123: 123, 1_2: 12, a1b2c3d: \"a1b2c3d\", " ] ||
  { echo "the behaviour changed" >&2; exit 1; }
