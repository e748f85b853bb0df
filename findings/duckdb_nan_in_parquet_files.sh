#!/usr/bin/env bash
# duckdb 2.0.1: in a Parquet file that pyarrow wrote, `where isnan(score)` finds no NaN. The count of `score > 0.5` depends on the size of the row groups.
#
# Expected: a query has one result, however the file is divided. For DuckDB, NaN is greater than any number. So of these eight scores, of which two are
# NaN, five are above 0.5 and the maximum is NaN. This is the result for a table in memory and for a file that DuckDB wrote.
# Seen: pyarrow leaves NaN out of the minimum and maximum of each row group, as the format demands. DuckDB takes them for the bounds of all values. It
# skips row groups whose maximum is 0.3, and answers isnan() and max() from these numbers without a look at the values. `order by score desc` finds the
# NaN.
# Why it matters: scores, losses and log-probabilities are kept in such files. NaN is a sign that something failed. A check that counts NaN says 0.
# What to do: write NULL instead of NaN, or write the file with write_statistics=False.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet duckdb==2.0.1 pyarrow==26.0.1 2>/dev/null
"$place/venv/bin/python" - "$place" <<'PY'
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

NAN = float("nan")
folder = sys.argv[1]
scores = pa.table({"score": [0.1, 0.2, NAN, 0.3, 0.9, 0.8, NAN, 0.7]})
QUERIES = ["count(*) from {} where isnan(score)", "count(*) from {} where score > 0.5", "max(score) from {}", "score from {} order by score desc limit 1"]


def results(source):
    return [str(duckdb.sql("select " + query.format(source)).fetchall()[0][0]) for query in QUERIES]


print("duckdb", duckdb.__version__, "pyarrow", pa.__version__)
print("queries:", "; ".join(QUERIES))
seen = {"in memory": results("scores")}
duckdb.sql(f"copy scores to '{folder}/own.parquet'")
seen["DuckDB's file"] = results(f"'{folder}/own.parquet'")
for size, options in [(8, {}), (4, {}), (1, {}), (4, {"write_statistics": False})]:
    pq.write_table(scores, f"{folder}/scores.parquet", row_group_size=size, **options)
    seen[f"pyarrow's file, row groups of {size} {options or ''}"] = results(f"'{folder}/scores.parquet'")
for name, row in seen.items():
    print(f"{name}: {', '.join(row)}")
right = ["2", "5", "nan", "nan"]
assert list(seen.values()) == [right, right, ["0", "5", "0.9", "nan"], ["0", "4", "0.9", "nan"], right, right], "the behaviour changed"
PY
