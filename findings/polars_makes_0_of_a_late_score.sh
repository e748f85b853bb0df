#!/usr/bin/env bash
# polars 2.1.0: in a table made from rows, a score of 0.75 becomes 0 if the first 100 rows have whole numbers.
#
# Expected: a column of floats, or an error. If the same values are given as a column, polars raises a TypeError. If the late value is a text, also the
# rows raise an error.
# Seen: pl.DataFrame(list of dictionaries) and pl.from_dicts take each column's type from the first 100 rows. Then they cut the decimals off every later
# float without a warning, although strict=True is the default. If the first 100 are booleans, 0.75 and 2 become False.
# Why it matters: results come as a list of dictionaries, one per answer, with 1 for passed, 0 for failed and a fraction for partly passed. With 50 whole
# numbers first, the mean is right; with 100, it is not. Costs and times that are 0 at first are lost, too.
# What to do: pass infer_schema_length=None, or write 0.0 and 1.0.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet polars==2.1.0 2>/dev/null
"$place/venv/bin/python" - <<'PY'
import polars as pl

print("polars", pl.__version__)


def table(first, late, rows, **options):
    return pl.DataFrame([{"score": first if number < rows else late} for number in range(2 * rows)], **options)["score"]


every_row = {"infer_schema_length": None}
seen = []
for first, late, rows, options in [(1, 0.75, 50, {}), (1, 0.75, 100, {}), (1, 0.75, 100, every_row), (True, 0.75, 100, {}), (True, 2, 100, {})]:
    column = table(first, late, rows, **options)
    seen.append((str(column.dtype), column[-1], column.mean()))
    print(f"{rows} rows with {first}, then {rows} with {late} {options or ''}: {column.dtype}, the last is {column[-1]}, the mean {column.mean()}")
right, cut, false = ("Float64", 0.75, 0.875), ("Int64", 0, 0.5), ("Boolean", False, 0.5)
assert seen == [right, cut, right, false, false], "the behaviour changed"
for name, make in {"a column": lambda: pl.DataFrame({"score": [1] * 100 + [0.75]}), "rows, then a text": lambda: table(1, "error", 100)}.items():
    try:
        make()
    except (TypeError, pl.exceptions.ComputeError) as error:
        print(f"{name}: {type(error).__name__}")
    else:
        raise SystemExit("the behaviour changed")
PY
