#!/usr/bin/env bash
# json_repair 0.64.6: of several JSON objects in a text that have the same keys, only the last one is returned.
#
# Expected: several JSON values in one text become a list, as json_repair does if their keys differ. 100 lines of JSON Lines become 100 records.
# Seen: an object replaces the object before it if both have the same keys and types of values, as records do. 100 valid lines become one dictionary, the
# last record. If every other record has another key, all 100 are returned. There is no error, no warning and, as every line is valid, nothing to repair.
# Why it matters: json_repair reads what models answer. If a model lists its calls or test cases with one object per line, only the last one counts. There
# is no sign that there were more.
# What to do: try json.loads on each line first, or ask for a JSON list.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet json-repair==0.64.6 2>/dev/null
"$place/venv/bin/python" - <<'PY'
import json
from importlib.metadata import version

import json_repair

same = [{"name": f"test_{number}", "code": f"assert f({number}) == {number}"} for number in range(100)]
different = [record | {"last": True} if number % 2 else record for number, record in enumerate(same)]
print("json_repair", version("json_repair"))
seen = []
for name, records in {"same keys": same, "keys that differ": different}.items():
    text = "\n".join(json.dumps(record) for record in records)
    assert [json.loads(line) for line in text.splitlines()] == records
    seen.append(json_repair.loads(text))
    print(f"100 lines of JSON, {name}: {type(seen[-1]).__name__} of {len(seen[-1])}, such as {str(seen[-1])[:60]}")
two = json_repair.loads('{"call": "open"} {"call": "close"}')
print("two objects in one line:", two)
assert seen == [same[-1], different] and two == {"call": "close"}, "the behaviour changed"
PY
