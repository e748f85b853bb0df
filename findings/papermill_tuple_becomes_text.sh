#!/usr/bin/env bash
# papermill 2.7.0: a parameter (1, 10) reaches the notebook as the text "(1, 10)", while the notebook's metadata records the list [1, 10].
#
# Expected: papermill.execute_notebook(parameters=...) hands a tuple over as a tuple or a list, or raises an error.
# Seen: a tuple becomes a text without a warning, also inside a list. Keys of a dictionary become texts, so {1: "a"} arrives as {"1": "a"}. Lists and
# values are handed over as they are. The metadata, which says how a notebook was run, has the right list: it does not show what the notebook got.
# Why it matters: parameters of sweeps are often pairs, such as a context's size and k, or what itertools.product made. A loop over (1, 10) then visits
# seven characters, len() is 7, and names.get(1) is None.
# What to do: pass lists, and look at the injected cell, not at the metadata.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet papermill==2.7.0 ipykernel==7.4.0 2>/dev/null
cd "$place"
IPYTHONDIR="$place/ipython" "$place/venv/bin/python" -W ignore - 2>"$place/err" <<'PY' || { cat "$place/err" >&2; exit 1; }
import nbformat
import papermill

book = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "language": "python", "display_name": "Python"}})
book.cells = [
    nbformat.v4.new_code_cell("sizes = [1]\npairs = []\nnames = {}", metadata={"tags": ["parameters"]}),
    nbformat.v4.new_code_cell("[sizes, len(sizes), pairs, names]"),
]
nbformat.write(book, "in.ipynb")
seen = []
for sizes, pairs in ([1, 10], [[1, 2]]), ((1, 10), [(1, 2)]):
    values = {"sizes": sizes, "pairs": pairs, "names": {1: "a"}}
    papermill.execute_notebook("in.ipynb", "out.ipynb", parameters=values, progress_bar=False)
    ran = nbformat.read("out.ipynb", 4)
    seen.append((ran.cells[-1].outputs[0].data["text/plain"], dict(ran.metadata.papermill.parameters)))
    print(f"papermill {papermill.__version__}, passed {values}: the notebook got {seen[-1][0]}, the metadata say {seen[-1][1]}")
recorded = {"sizes": [1, 10], "pairs": [[1, 2]], "names": {"1": "a"}}
assert seen[0] == ("[[1, 10], 2, [[1, 2]], {'1': 'a'}]", recorded), "the behaviour changed"
assert seen[1] == ("['(1, 10)', 7, ['(1, 2)'], {'1': 'a'}]", recorded), "the behaviour changed"
PY
