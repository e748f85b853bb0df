#!/usr/bin/env bash
# pandas 3.1.1 with tabulate 0.10.0, and pytablewriter 1.2.1: in a Markdown table, the releases 1.1 and 1.10 of a package have the same name.
#
# Expected: a column of texts is printed as it is, as by `to_string` and `to_csv`.
# Seen: `DataFrame.to_markdown` prints the text "1.10" as 1.1 and "2.0" as 2, if all texts of the column look like decimal numbers. If one text does not,
# such as "2.0rc1", the column is printed as it is. pytablewriter, too, prints "1.10" as 1.1, and the task "007" as 7. There is no warning.
# Why it matters: model cards and papers' tables are made this way. Two releases, or two tasks, get one name, and what a row shows depends on the
# other rows.
# What to do: `to_markdown(disable_numparse=True)`; in pytablewriter, give the columns the type `String`.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet pandas==3.1.1 tabulate==0.10.0 pytablewriter==1.2.1 2>/dev/null
"$place/venv/bin/python" -W error - <<'PY'
from importlib.metadata import version

import pandas as pd
from pytablewriter import MarkdownTableWriter
from pytablewriter.typehint import String

TEXTS = {"release": ["1.1", "1.10", "2.0"], "task": ["007", "7", "10"]}


def cells(markdown):
    """Return the cells of a Markdown table, by column."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in markdown.strip().split("\n")]
    return {name: [row[at] for row in rows[2:]] for at, name in enumerate(rows[0])}


frame = pd.DataFrame(TEXTS)
print("pandas", pd.__version__, "tabulate", version("tabulate"), "pytablewriter", version("pytablewriter"))
assert cells(frame.to_markdown(index=False, disable_numparse=True)) == TEXTS
shown = cells(frame.to_markdown(index=False))
print("to_markdown:  ", shown)
assert shown["release"] == ["1.1", "1.1", "2"], "the behaviour changed"
other = cells(frame.replace("2.0", "2.0rc1").to_markdown(index=False))
print("with 2.0rc1:  ", other["release"])
assert other["release"] == ["1.1", "1.10", "2.0rc1"], "the behaviour changed"
writer = MarkdownTableWriter(headers=[*TEXTS], value_matrix=frame.values.tolist())
written = cells(writer.dumps())
print("pytablewriter:", written)
assert written["release"] == ["1.1", "1.1", "2.0"] and written["task"] == ["7", "7", "10"], "the behaviour changed"
writer = MarkdownTableWriter(headers=[*TEXTS], value_matrix=frame.values.tolist(), type_hints=[String] * 2)
assert cells(writer.dumps()) == TEXTS
PY
