#!/usr/bin/env bash
# nbclient 0.11.0, ipykernel 7.4.0: if a script fails that a cell runs with `%run`, the notebook goes on, and `jupyter execute` reports success.
#
# Expected: an error stops the notebook at the cell, and the exit code is not 0. This is so for an error in a cell, and for `%run` of a file that does not
# exist.
# Seen: `%run prepare.py`, in which an exception is raised, shows the traceback as the cell's output. The next cells run, `jupyter execute` exits with 0,
# and nbclient raises nothing. Names that the script assigned before its error are defined, so later cells compute with half of the data. papermill runs
# all cells, too, and only then raises PapermillExecutionError.
# Why it matters: notebooks often begin with `%run common.py` or `%run prepare.py`. A broken preparation then leads to figures and to a green job.
# What to do: use `import` or `runpy.run_path`, or look for outputs of the type "error" in the executed notebook.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet nbclient==0.11.0 ipykernel==7.4.0 ipython==9.18.1 papermill==2.7.0 2>/dev/null
cd "$place"
export IPYTHONDIR="$place/ipython" JUPYTER_CONFIG_DIR="$place/config" PATH="$place/venv/bin:$PATH"
python - 2>"$place/err" <<'PY' || { tail -3 "$place/err" >&2; exit 1; }
import subprocess
from importlib.metadata import version
from pathlib import Path

import nbformat
import papermill
from nbformat.v4 import new_code_cell, new_notebook

Path("prepare.py").write_text("rows = [1, 2]\nrows.append(int('three'))\nrows.append(4)\n")
CELLS = {"%run": "%run prepare.py", "import": "from prepare import rows", "no such file": "%run missing.py"}


def outcome(path):
    cells = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    kinds = [output.output_type for output in cells[0].outputs]
    return kinds, "".join(output.text for output in cells[1].outputs)


print({name: version(name) for name in ("nbclient", "ipykernel", "ipython", "papermill")})
seen = {}
for name, cell in CELLS.items():
    notebook = new_notebook(cells=[new_code_cell(cell), new_code_cell("print(sum(rows))")])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, "in.ipynb")
    code = subprocess.run(["jupyter", "execute", "in.ipynb", "--output", "done.ipynb"], capture_output=True).returncode
    try:
        papermill.execute_notebook("in.ipynb", "out.ipynb", progress_bar=False)
        raised = False
    except papermill.PapermillExecutionError:
        raised = True
    seen[name] = (code, outcome("done.ipynb") if code == 0 else None, raised, outcome("out.ipynb")[1])
    print(f"{name}: jupyter execute exits with {code}, outputs {seen[name][1]}; papermill raises: {raised}, second cell: {seen[name][3]!r}")
assert seen["%run"] == (0, (["error"], "3\n"), True, "3\n"), "the behaviour changed"
assert all(seen[name] == (1, None, True, "") for name in ("import", "no such file")), "the behaviour changed"
PY
