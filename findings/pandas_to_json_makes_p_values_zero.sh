#!/usr/bin/env bash
# pandas 3.1.1: to_json writes p values between 1e-15 and 5e-11 as 0.0, but smaller ones unchanged.
#
# Expected: a float in a JSON file is read back as the same number, as with Python's json, or at most with fewer digits.
# Seen: 1e-12 becomes 0.0, but 1e-17 stays 1e-17. The default double_precision=10 counts digits after the point, while numbers below 1e-15 are written in
# another way. Of four p values in rising order, the file has the smallest unchanged, then two zeros, then the largest. With double_precision=15, the most
# that pandas allows, these four are right, but 0.1 + 0.2 loses its last digits.
# Why it matters: results and log-probabilities are often stored as JSON Lines. If p values are ranked, put into a logarithm or corrected for many
# comparisons, the result is different after the file was written and read.
# What to do: use CSV or Parquet, which keep all digits.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet pandas==3.1.1 2>/dev/null
"$place/venv/bin/python" - <<'PY'
import io
import json

import pandas

p = [1e-17, 1e-14, 1e-12, 1e-9]
frame = pandas.DataFrame({"p": p})
seen = {digits: [json.loads(line)["p"] for line in frame.to_json(orient="records", lines=True, double_precision=digits).split()] for digits in (10, 15)}
print("pandas", pandas.__version__, "writes", p, "as", seen[10])
assert json.loads(json.dumps(p)) == p
assert [*pandas.read_csv(io.StringIO(frame.to_csv())).p] == p
assert frame.to_json(orient="records", lines=True) == frame.to_json(orient="records", lines=True, double_precision=10), "the behaviour changed"
assert seen == {10: [1e-17, 0.0, 0.0, 1e-9], 15: p}, "the behaviour changed"
assert json.loads(pandas.Series([0.1 + 0.2]).to_json(double_precision=15)) != {"0": 0.1 + 0.2}, "the behaviour changed"
PY
