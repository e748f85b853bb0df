#!/usr/bin/env bash
# pandas 3.1.1: to_json writes p values between 1e-15 and 5e-11 as 0.0, and smaller ones as they are.
#
# Expected: a float that is written as JSON is read back as the same number, as with Python's json; or at most with fewer digits.
# Seen: 1e-12 becomes 0.0, but 1e-17 stays 1e-17. The default double_precision=10 counts digits after the point, and numbers below 1e-15 take
# another path. So of four p values in rising order, the file has the smallest as it was, then two zeros, then the largest. With
# double_precision=15, the most that pandas allows, these are right, but 0.1 + 0.2 loses its last digits.
# Why it matters: results and log-probabilities travel as JSON Lines. Whoever ranks p values, takes their logarithm or corrects them for many
# comparisons gets another order than before the file. CSV and parquet keep every digit.
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
