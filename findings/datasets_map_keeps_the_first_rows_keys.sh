#!/usr/bin/env bash
# datasets 5.2.0: `map` drops a result without a message if the function did not return it for the first row.
#
# Expected: a key that a function returns for some rows becomes a column with nulls in the other rows, as for keys inside a nested dictionary.
# Otherwise there is an error.
# Seen: the function returns "passed" for every row, and "error" for the one that raises. The result has no column "error". If the row that raises comes
# first, the same function fails with KeyError: 'error'. Dataset.from_generator drops the key, too. from_list does so as well, and its docstring says so.
# Inside a nested dictionary, the key is kept.
# Why it matters: a judge adds a message, a traceback or a reason only to answers that fail. The first answer usually passes, so all messages are lost. A
# filter on "error" that comes later finds nothing to exclude.
# What to do: return all keys for all rows, with None where there is no value.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet datasets==5.2.0 2>/dev/null
cd "$place"
HF_HOME="$place/home" HF_HUB_OFFLINE=1 "$place/venv/bin/python" - 2>"$place/err" <<'PY' || { tail -3 "$place/err" >&2; exit 1; }
import datasets

datasets.disable_progress_bars()


def judge(row):
    try:
        return {"passed": eval(row["answer"]) == 2}
    except ZeroDivisionError as error:
        return {"passed": False, "error": str(error)}


def nested(row):
    return {"verdict": judge(row)}


def names(rows, function):
    try:
        mapped = datasets.Dataset.from_dict({"answer": rows}).map(function)
    except KeyError as error:
        return f"KeyError {error}"
    return sorted(mapped.column_names + list(mapped[-1].get("verdict", {})))


good, bad = "1 + 1", "1 / 0"
generated = datasets.Dataset.from_generator(lambda: ({"answer": row, **judge({"answer": row})} for row in (good, bad)))
seen = [names([good, bad], judge), names([bad, good], judge), names([good, bad], nested), sorted(generated.column_names)]
print("datasets", datasets.__version__)
for what, result in zip(("second row fails", "first row fails", "second row fails, nested", "from_generator"), seen):
    print(f"{what}: {result}")
wanted = [["answer", "passed"], "KeyError 'error'", ["answer", "error", "passed", "verdict"], ["answer", "passed"]]
assert seen == wanted, "the behaviour changed"
PY
