#!/usr/bin/env bash
# pyarrow 26.0.1, pandas 3.1.1: when a folder of Parquet files is read, every column that the first file lacks is lost.
#
# Expected: the result has all columns of all files, with nulls where a file lacks one. Otherwise there is an error.
# Seen: read_table and pandas.read_parquet use the schema of the file whose name sorts first. A column that only later files have is left out, without a
# message. If the two files swap names, the column is there, and null for the rows of the file that lacks it.
# Why it matters: answers are often stored as a folder of shards. When a newer run adds a field (a verdict, a confidence), its shards sort last.
# What to do: pass a schema, such as pyarrow.unify_schemas of all files' schemas.
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
