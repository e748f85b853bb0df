#!/usr/bin/env bash
# papermill 2.7.0: `-p commit 12e3456`, a short git hash, reaches the notebook as the number infinity.
#
# Expected: -p reads integers, floats, True, False and None, so "5" becomes 5. A hash of hexadecimal digits is a string, and a value too
# large for a float is not turned into one.
# Seen: the text goes to Python's float() as it is. Hashes of digits around one "e" become infinity or 0.0, leading zeros of an id
# are lost, and "1_000" is 1000. No warning; the injected cell says float('inf').
# Why it matters: commits, shard names ("1_2") and zero-padded task ids are what sweeps pass. Of short hashes of seven digits, one in 54 has
# such an "e", and one in 27 has digits only. The notebook of such a run loads or records another commit. Use -r (raw) or a quoted YAML file.
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
