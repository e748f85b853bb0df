"""Tests that every committed notebook follows the rules for notebooks. Notebooks that `make
reproduce` leaves out must run in the smoke profile.
"""

import ast
import re

import nbformat
import pytest
import stand_in
import yaml
from doors import refused

from lookuplab import paths
from lookuplab.run.notebooks import all_notebooks, find, load_profile, plan, profile_names
from lookuplab.stackoverflow import corpus

ALL = all_notebooks()
each = pytest.mark.parametrize("notebook", ALL, ids=[notebook.id for notebook in ALL])
# The notebooks that `make reproduce` does not run. The lessons are left out, because the smoke
# profile cannot make them smaller; tests/course runs them.
RUN = [
    notebook
    for notebook in ALL
    if notebook.on_demand and notebook.paper not in ("course", "published")
]
RUN.remove(find("own/agent"))  # it needs a server, which tests/own/test_agent.py provides


def code_of(notebook):
    """Return a notebook's code cells, and the positions of the cells that are tagged
    as parameters.
    """
    cells = nbformat.read(notebook.path, as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    return code, [n for n, cell in enumerate(code) if "parameters" in cell.metadata.get("tags", ())]


@each
def test_a_notebook_has_no_outputs_no_long_lines_and_a_reason_for_each_parameter(notebook):
    code, [tagged] = code_of(notebook)
    for cell in code:
        assert not cell.outputs and cell.execution_count is None, f"clear the outputs: {cell}"
        assert [line for line in cell.source.splitlines() if len(line) > 120] == []
    homes = ["mini", *(["published"] if notebook.paper == "published" else [])]
    assert notebook.parameters.get("profile") in homes, "the default is the mini profile"
    source = code[tagged].source
    lines = source.splitlines()
    for statement in ast.parse(source).body:
        line = lines[statement.end_lineno - 1]
        assert "#" in line, f"no reason at the end of: {line}"


@each
def test_parameters_are_checked_before_the_work_begins(notebook):
    """The artifact checks the parameters. In lessons, the module ``course.check`` checks them."""
    code, [tagged] = code_of(notebook)
    checks = "course.check import" if notebook.paper == "course" else " = Artifact("
    at = tagged - 1 if notebook.paper == "course" else tagged + 1
    assert checks in code[at].source


@pytest.mark.parametrize("profile", profile_names())
def test_every_profile_fits_every_notebook(profile):
    chosen = load_profile(profile)
    covered = [notebook for notebook in ALL if chosen.covers(notebook)]
    assert covered
    for notebook in covered:
        plan(notebook, chosen)


def test_a_notebook_of_another_profile_is_refused_with_the_name_of_its_own():
    for name, profile in (("published/ds1000", "mini"), ("table1_base_models", "published")):
        with refused(f"give --profile {find(name).home}"):
            plan(find(name), load_profile(profile))


@pytest.mark.parametrize("notebook", RUN, ids=[notebook.id for notebook in RUN])
def test_a_notebook_runs_in_the_smoke_profile(notebook, shared, executed, monkeypatch):
    """The test uses a tenth of the mini corpus, because reading all snippets takes long."""
    read = corpus.load_snippets
    monkeypatch.setattr(corpus, "load_snippets", lambda at: read(at)[:: 10 if at == "mini" else 1])
    executed(notebook.id, store=shared)  # the notebooks share the stored answers


def test_a_folder_named_where_a_module_belongs_keeps_its_files(tmp_path, executed):
    paths.write_text(file := tmp_path / "mine" / "one.py", "")
    with refused("does not import"):
        executed("own/snippets", package=str(file.parent))
    assert file.exists()


@pytest.mark.parametrize("name", ["table1_base_models", "table4_failure_modes"])
def test_a_class_without_tasks_costs_no_notebook(name, tmp_path, executed):
    lines = (paths.MINI / "cloudapi" / "tasks.jsonl").read_text("utf-8").splitlines(True)
    medium = [line for line in lines if '"frequency": "medium"' in line]
    (tmp_path / "tasks.jsonl").write_text("".join(medium[:4]), "utf-8")
    executed(name, tasks_file=str(tmp_path / "tasks.jsonl"))


def test_the_paper_profile_runs_on_snippets_in_the_form_of_so_ds(tmp_path, shared, executed):
    pytest.importorskip("gensim", reason="gensim has no wheel for this Python")
    stand_in.write(tmp_path, 40)
    snippets, queries = (str(*tmp_path.glob(f"*/so-ds*{end}.jsonl.gz")) for end in ("b20", "test"))
    own = find("retrieval_quality").parameters
    given = {name: own[name] for name in ("encoder", "problems_file")}
    given |= {"corpus": snippets, "queries_of": queries, "chosen": "bm25-both", "limit": 2}
    executed("retrieval_quality", "paper", shared, **given)


def test_the_order_names_notebooks_that_exist():
    order = yaml.safe_load((paths.NOTEBOOKS / "order.yaml").read_text())
    assert set(order) <= {"first", "any", "alone", "manual"}
    assert {name for names in order.values() for name in names} <= {notebook.id for notebook in ALL}


@pytest.mark.usefixtures("own_store")
def test_the_python_of_the_readme_runs():
    text = (paths.ROOT / "README.md").read_text(encoding="utf-8")
    names = {}
    [block] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(block, names)
    assert names["answer"].text.endswith(")") and names["answer"].finish_reason == "stop"
