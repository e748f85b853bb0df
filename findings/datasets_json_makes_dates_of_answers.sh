#!/usr/bin/env bash
# datasets 5.2.0: when a JSON Lines file is loaded, answers that look like dates are no longer texts.
#
# Expected: JSON has no dates, so a string stays a string. This is so with json.loads, and with pandas' lines=True for such a column.
# Seen: if every value of a column looks like an ISO 8601 date, load_dataset("json") makes the column a timestamp. "2024-05-01" becomes
# datetime(2024, 5, 1, 0, 0). If the file has any other answer, all answers stay texts. So the column's type depends on the models' answers.
# Why it matters: with timestamps, a loaded answer never equals the reference, so exact match is false for every row. The files of two models can have two
# types.
# What to do: pass features= to load_dataset.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet datasets==5.2.0 pyarrow==26.0.1 2>/dev/null
export HF_HOME="$place/home" HF_HUB_OFFLINE=1
"$place/venv/bin/python" - "$place" <<'PY'
import json
import sys
from pathlib import Path

import datasets

datasets.disable_progress_bars()
seen = {}
for name, answers in {"dates": ["2024-05-01", "2024-05-02"], "mixed": ["2024-05-01", "unknown"]}.items():
    file = Path(sys.argv[1], f"{name}.jsonl")
    file.write_text("".join(json.dumps({"answer": answer}) + "\n" for answer in answers))
    rows = datasets.load_dataset("json", data_files=str(file), split="train")
    seen[name] = rows.features["answer"].dtype, rows[0]["answer"] == "2024-05-01"
print("datasets", datasets.__version__, "(type of the column, is the first answer still '2024-05-01'?)", seen)
assert seen == {"dates": ("timestamp[s]", False), "mixed": ("string", True)}, "the behaviour changed"
PY
