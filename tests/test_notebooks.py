"""Every committed notebook keeps the house rules; what `make reproduce` leaves out runs in the
smoke profile.
"""

import re
from dataclasses import replace

import nbformat
import pytest
import yaml

from lookuplab import paths
from lookuplab.run.notebooks import all_notebooks, load_profile, plan, profile_names
from lookuplab.run.runner import run_jobs

ALL = all_notebooks()
each = pytest.mark.parametrize("notebook", ALL, ids=[notebook.id for notebook in ALL])
# Those that `make reproduce` does not run. The lessons of the course have no smaller form:
# tests/course runs them.
RUN = [notebook for notebook in ALL if notebook.on_demand and notebook.paper != "course"]


@each
def test_a_notebook_is_short_has_no_outputs_and_a_reason_for_each_parameter(notebook):
    cells = nbformat.read(notebook.path, as_version=4).cells
    cells = [cell for cell in cells if cell.cell_type == "code"]
    tagged = [cell for cell in cells if "parameters" in cell.metadata.get("tags", ())]
    assert len(cells) <= 20 and len(tagged) == 1
    for cell in cells:
        assert not cell.outputs and cell.execution_count is None, f"clear the outputs: {cell}"
        assert len(cell.source.splitlines()) <= 15 or cell in tagged, f"too long a cell: {cell}"
    assert notebook.parameters.get("profile") == "mini", "the default is the mini profile"
    for line in tagged[0].source.splitlines():
        assert "#" in line, f"no reason at the end of: {line}"


@pytest.mark.parametrize("profile", profile_names())
def test_every_profile_fits_every_notebook(profile):
    for notebook in ALL:
        plan(notebook, load_profile(profile))


@pytest.mark.parametrize("notebook", RUN, ids=[notebook.id for notebook in RUN])
def test_a_notebook_runs_in_the_smoke_profile(notebook, shared, tmp_path, monkeypatch):
    # what one notebook has asked, the next one finds
    monkeypatch.setenv("LOOKUPLAB_STORE", str(shared / "completions.sqlite"))
    job = plan(notebook, load_profile("smoke"))
    places = {"output": tmp_path / f"{notebook.name}.ipynb", "figures": tmp_path / "figures"}
    assert run_jobs([replace(job, **places)]) == [None]


@pytest.mark.parametrize("name", ["table1_base_models", "table4_failure_modes"])
def test_a_class_without_tasks_costs_no_notebook(name, tmp_path, monkeypatch):
    monkeypatch.setenv("LOOKUPLAB_STORE", str(tmp_path / "store.sqlite"))
    lines = (paths.MINI / "cloudapi" / "tasks.jsonl").read_text("utf-8").splitlines(True)
    medium = [line for line in lines if '"frequency": "medium"' in line]
    (tmp_path / "tasks.jsonl").write_text("".join(medium[:4]), "utf-8")
    [notebook] = [one for one in ALL if one.name == name]
    given = {"tasks_file": str(tmp_path / "tasks.jsonl")}
    job = plan(notebook, replace(load_profile("smoke"), given=given))
    places = {"output": tmp_path / "made.ipynb", "figures": tmp_path / "figures"}
    assert run_jobs([replace(job, **places)]) == [None]


def test_the_order_names_notebooks_that_exist():
    order = yaml.safe_load((paths.NOTEBOOKS / "order.yaml").read_text())
    assert set(order) <= {"first", "any", "alone", "manual"}
    assert {name for names in order.values() for name in names} <= {notebook.id for notebook in ALL}


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOKUPLAB_STORE", str(tmp_path / "store.sqlite"))
    text, names = (paths.ROOT / "README.md").read_text(encoding="utf-8"), {}
    [block] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(block, names)
    assert names["answer"].text.endswith(")") and names["answer"].finish_reason == "stop"
