"""Tests that a notebook gives the same numbers whatever executes it, and from any folder. A quick
notebook is executed in each of the ways. `make reproduce` executes all notebooks in the kit's own
way, and compares their numbers.
"""

import os
import shlex
import sys
from pathlib import Path

import pytest
from doors import python

from lookuplab import paths
from lookuplab.run.notebooks import find

# a notebook, the folder in which the command is typed, and the command
CASES = """
cloudapibench/table4_failure_modes elsewhere papermill {file} {out} --no-progress-bar -k python3
published/instruments root jupyter execute {file} --output={out} --kernel_name=python3
published/instruments elsewhere nbconvert --execute --to notebook {file} --output {out}
"""


@pytest.mark.parametrize("case", CASES.strip().splitlines())
def test_a_notebook_gives_the_committed_numbers(case, tmp_path):
    id, place, command = case.split(maxsplit=2)
    # the notebook runs in another checkout, so that it writes nothing to this one
    checkout = paths.make_folder(tmp_path / "kit")
    for name in ("data", "notebooks", "CITATION.cff"):
        (checkout / name).symlink_to(paths.ROOT / name)
    notebook = find(id)
    out = tmp_path / "out.ipynb"
    command = command.format(file=shlex.quote(str(notebook.path)), out=shlex.quote(str(out)))
    folder = {"root": paths.ROOT, "elsewhere": tmp_path}[place]
    variables = {"LOOKUPLAB_HOME": checkout, "OMP_NUM_THREADS": "1"}
    variables["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    python("-m", *shlex.split(command), cwd=folder, **variables)
    for artifact in notebook.artifacts:
        name = f"{notebook.home}/{artifact}.csv"
        written = checkout / "runs/figures" / name
        assert f"written: {written}" in out.read_text("utf-8")
        assert written.read_bytes() == (paths.FIGURES / name).read_bytes()
