#!/usr/bin/env bash
# pyarrow 26.0.1, pandas 3.1.1: a folder of parquet files loses every column that its first file lacks.
#
# Expected: the union of the columns, with nulls, or an error.
# Seen: read_table and pandas.read_parquet take the schema of the file whose name sorts first. A column that only later files have is left
# out without a word. With the same two files under exchanged names it is there, and null for the other file.
# Why it matters: a folder of shards is a usual cache of answers. A newer run adds a field (a verdict, a confidence) and its shards sort last.
# Give the schema, or pyarrow.unify_schemas of all files.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet pyarrow==26.0.1 pandas==3.1.1 numpy==2.4.6 2>/dev/null
"$place/venv/bin/python" - "$place" <<'PY'
import sys
from pathlib import Path

import pandas
import pyarrow
from pyarrow import parquet

seen = []
for old, new in (("0", "1"), ("1", "0")):
    folder = Path(sys.argv[1], f"old-{old}")
    folder.mkdir()
    parquet.write_table(pyarrow.table({"answer": ["a"]}), folder / f"{old}.parquet")
    parquet.write_table(pyarrow.table({"answer": ["b"], "right": [True]}), folder / f"{new}.parquet")
    columns = [*parquet.read_table(folder).column_names], [*pandas.read_parquet(folder).columns]
    print(f"old file {old}.parquet, new file with `right` {new}.parquet: pyarrow {columns[0]}, pandas {columns[1]}")
    seen.append(columns)
assert seen == [(["answer"],) * 2, (["answer", "right"],) * 2], "the behaviour changed"
PY
