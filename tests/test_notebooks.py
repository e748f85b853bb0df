"""Every committed notebook keeps the house rules and runs, every cell of it, in the smoke profile."""

import nbformat
import pytest
import yaml

from lookuplab import paths
from lookuplab.runner import notebooks, profiles
from lookuplab.runner.execute import run_jobs
from lookuplab.runner.plan import plan

ALL = notebooks.all_notebooks()
each = pytest.mark.parametrize("notebook", ALL, ids=[notebook.id for notebook in ALL])
# The lessons of the course have no smaller form: tests/course runs them as they stand.
RUN = [notebook for notebook in ALL if notebook.paper != "course"]


@each
def test_a_notebook_is_committed_without_outputs(notebook):
    for cell in nbformat.read(notebook.path, as_version=4).cells:
        if cell.cell_type == "code":
            assert not cell.outputs and cell.execution_count is None, f"clear the outputs of:\n{cell.source}"


@each
def test_a_notebook_has_at_most_20_code_cells_of_at_most_15_lines(notebook):
    cells = [cell for cell in nbformat.read(notebook.path, as_version=4).cells if cell.cell_type == "code"]
    assert len(cells) <= 20
    for cell in cells:
        assert len(cell.source.splitlines()) <= 15, f"too long a cell:\n{cell.source}"


@each
def test_a_notebook_declares_its_parameters_each_with_its_reason(notebook):
    tagged = [cell for cell in nbformat.read(notebook.path, as_version=4).cells
              if "parameters" in cell.metadata.get("tags", ())]
    assert len(tagged) == 1
    assert notebook.parameters.get("profile") == "mini", "the embedded default is the mini profile"
    for line in tagged[0].source.splitlines():
        assert "#" in line, f"no reason at the end of: {line}"


@each
@pytest.mark.parametrize("profile", profiles.names())
def test_every_profile_fits_every_notebook(notebook, profile, monkeypatch):
    monkeypatch.setattr("lookuplab.runner.resources.check", lambda *_: None)  # models are not all here
    plan(notebook, profiles.load(profile))


@pytest.mark.parametrize("notebook", RUN, ids=[notebook.id for notebook in RUN])
def test_a_notebook_runs_in_the_smoke_profile(notebook, tmp_path, kernels):
    store = {"LOOKUPLAB_STORE": str(tmp_path / "completions.sqlite")}
    job = plan(notebook, profiles.load("smoke"), output=tmp_path / f"{notebook.name}.ipynb", environment=store,
               figures=tmp_path / "figures")
    (result,) = run_jobs([job], parallel=2, kernels=kernels)
    assert result.failure is None, f"cell {result.failure.cell}:\n{result.failure.source}\n{result.failure.traceback}"


def test_the_order_names_notebooks_that_exist():
    order = yaml.safe_load((paths.NOTEBOOKS / "order.yaml").read_text()) or {}
    named = {name for names in order.values() for name in names or ()}
    assert named <= {notebook.id for notebook in ALL}
