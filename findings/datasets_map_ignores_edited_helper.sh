#!/usr/bin/env bash
# datasets 5.2.0: after a function in an imported module is edited, `map` and `filter` still return the old results.
#
# Expected: the cache key is a hash of the function, so an edited scorer runs again.
# Seen: a function in an imported module is hashed by its name only. After `x + 1` was changed to `x + 100` in scoring.py, a new process still gets x + 1.
# This is so for scoring.row itself, for a function of the script that calls it, for a lambda, and for an object with __call__. Only code in the script
# itself is hashed by its content.
# Why it matters: judges, prompts and filters belong in a library that notebooks import. Whoever corrects a judge and runs the notebook again gets the old
# verdicts, without a message.
# What to do: pass new_fingerprint or load_from_cache_file=False.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet datasets==5.2.0 2>/dev/null
echo '{"x": 1}' >"$place/rows.jsonl"
cat >"$place/run.py" <<'PY'
import sys

import datasets
import scoring

datasets.disable_progress_bars()
rows = datasets.load_dataset("json", data_files=sys.argv[1], split="train", cache_dir=sys.argv[2])


def own(row):
    return {"y": scoring.score(row["x"])}


answers = [rows.map(one)["y"][0] for one in (scoring.row, own, lambda row: {"y": scoring.score(row["x"])}, scoring.Scorer())]
print(*answers, rows.filter(scoring.keep).num_rows, "now", scoring.score(1))
PY
run() { # number: scoring.py as it is today, in a new process
  cat >"$place/scoring.py" <<PY
def score(x):
    return x + $1


def row(row):
    return {"y": score(row["x"])}


def keep(row):
    return score(row["x"]) < 50


class Scorer:
    def __call__(self, row):
        return {"y": score(row["x"])}
PY
  HF_HUB_OFFLINE=1 PYTHONDONTWRITEBYTECODE=1 "$place/venv/bin/python" "$place/run.py" "$place/rows.jsonl" "$2" 2>/dev/null
}
first=$(run 1 "$place/cache") second=$(run 100 "$place/cache") fresh=$(run 100 "$place/other")
echo "datasets 5.2.0: first [$first], after the edit [$second], the same with an empty cache [$fresh]"
[ "$first" = "2 2 2 2 1 now 2" ] && [ "$second" = "2 2 2 2 1 now 101" ] && [ "$fresh" = "101 101 101 101 0 now 101" ] ||
  { echo "the behaviour changed" >&2; exit 1; }
