"""Tests that a notebook gives the same numbers whatever executes it, and from any folder. One quick
notebook of each paper is executed in one of the ways. `make reproduce` executes all notebooks in
the kit's own way.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lookuplab import paths
from lookuplab.run.notebooks import find

WAYS = {
    "papermill": "papermill {file} {out} --no-progress-bar -k python3",
    "execute": "jupyter execute {file} --output={out} --kernel_name=python3",
    "nbconvert": "nbconvert --execute --to notebook {file} --output {out}",
    "kit": "lookuplab run {id}",
}
CASES = """
published/instruments kit folder
cloudapibench/table4_failure_modes papermill elsewhere
toolgen/explorer execute root
stackoverflow/retrieval_only nbconvert elsewhere
"""


@pytest.mark.parametrize("case", CASES.strip().splitlines())
def test_a_notebook_gives_the_committed_numbers(case, tmp_path):
    id, way, place = case.split()
    # The notebook runs in another checkout, so that it writes nothing to this one. Only the trained
    # rankers are shared, as in other tests.
    checkout = tmp_path / "kit"
    paths.make_folder(checkout / "runs")
    paths.make_folder(paths.RUNS / "rankers")
    for name in ("data", "notebooks", "CITATION.cff", "runs/rankers"):
        (checkout / name).symlink_to(paths.ROOT / name)
    notebook = find(id)
    file, out = notebook.path, tmp_path / "out.ipynb"
    places = {"file": shlex.quote(str(file)), "out": shlex.quote(str(out))}
    command = WAYS[way].format(**places, id=id)
    folder = {"root": paths.ROOT, "folder": file.parent, "elsewhere": tmp_path}[place]
    variables = {"LOOKUPLAB_HOME": str(checkout), "OMP_NUM_THREADS": "1"}
    variables["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    arguments = [sys.executable, "-m", *shlex.split(command)]
    environment = os.environ | variables
    done = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    ran = {"kit": checkout / "runs" / notebook.home / f"{id}.ipynb"}.get(way, out)
    said = ran.read_text("utf-8")
    # the kit's command prints paths relative to the checkout
    begins, below = ("", "figures") if way == "kit" else (f"{checkout}/", "runs/figures")
    for artifact in notebook.artifacts:
        place = f"{below}/{notebook.home}/{artifact}.csv"
        assert f"written: {begins}{place}" in said
        committed = paths.FIGURES / notebook.home / f"{artifact}.csv"
        assert (checkout / place).read_bytes() == committed.read_bytes()
