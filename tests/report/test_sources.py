"""What the pages are made of, without building them."""

import dataclasses
import json
import re
import shutil
from pathlib import Path

import nbformat
import pytest
import yaml
from click.testing import CliRunner

import lookuplab
from lookuplab import paths, report
from lookuplab.cli import cli
from lookuplab.errors import UserError
from lookuplab import notebooks

WRITTEN = [paths.ROOT / "README.md", paths.ROOT / "CHANGELOG.md", *sorted((paths.ROOT / "docs").glob("*.md"))]


@pytest.fixture(scope="module")
def pair(tmp_path_factory, run) -> Path:
    """The sources of two runs beside each other; the first has one artifact."""
    folder = tmp_path_factory.mktemp("pair")
    only = run.find("cloudapibench/table1_base_models")
    (folder / "other" / only.paper).mkdir(parents=True)
    for file in only.folder.glob(f"{only.name}.*"):
        shutil.copy(file, folder / "other" / only.paper)
    other = dataclasses.replace(report.last_run("mini", folder / "other"), profile="other")
    report.write_pages([other, run], folder / "pages")
    return folder / "pages"


def test_two_profiles_stand_beside_each_other(pair):
    front = (pair / "index.md").read_text(encoding="utf-8")
    card = front.split('id="cloudapibench-table1_base_models"')[1].split("</article>")[0]
    assert re.findall(r'src="([^"]+)"', card) == [
        f"figures/{name}/cloudapibench/table1_base_models.svg" for name in ("other", "mini")]
    missing = front.split('id="toolgen-explorer"')[1].split("</article>")[0]
    assert "figures/mini/toolgen/explorer.svg" in missing and "Not run." in missing


def test_the_claims_of_two_profiles_stand_in_one_row(pair, run):
    text = (pair / "claims.md").read_text(encoding="utf-8")
    [row] = re.findall(r'<tr id="capi-622-tasks".*?\n</tr>', text, re.S)
    assert re.findall(r'class="judged"><span class="verdict (\w+)"', row) == ["undecided", "holds"]
    assert 'data-verdict="undecided holds differ"' in row
    assert re.findall(r"<summary>(.*)</summary>", row) == ["mini: 1 comparison"], "comparisons of another run"


def test_an_executed_copy_keeps_its_outputs_but_no_widget(tmp_path, monkeypatch, run):
    notebook = notebooks.find("table1_base_models")
    document = nbformat.read(notebook.path, as_version=4)
    cell = next(cell for cell in document.cells if cell.cell_type == "code")
    widget = {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}, "text/plain": "IntSlider(value=3)"}
    cell.outputs = [nbformat.v4.new_output("stream", text="what it printed"),
                    nbformat.v4.new_output("display_data", data=widget)]
    document.metadata["widgets"] = {"state": {}}
    executed = tmp_path / "mini" / f"{notebook.id}.ipynb"
    executed.parent.mkdir(parents=True)
    nbformat.write(document, executed)
    monkeypatch.setattr(paths, "RUNS", tmp_path)
    report.write_notebook(notebook, [run], tmp_path / "page.ipynb")
    text = (tmp_path / "page.ipynb").read_text(encoding="utf-8")
    assert "what it printed" in text and "IntSlider" not in text and "widget" not in json.loads(text)["metadata"]
    assert "The executed copy of the last run" in text and "artifacts/cloudapibench/table1_base_models.md" in text


def test_a_notebook_that_did_not_run_says_how_to_run_it(tmp_path, monkeypatch, run):
    monkeypatch.setattr(paths, "RUNS", tmp_path)
    report.write_notebook(notebooks.find("table1_base_models"), [run], tmp_path / "page.ipynb")
    note = nbformat.read(tmp_path / "page.ipynb", as_version=4).cells[1].source
    assert "lookuplab run cloudapibench/table1_base_models --profile mini" in note


def test_the_readmes_table_is_that_of_the_committed_figures(run):
    text = report.README.read_text(encoding="utf-8")
    assert report.readme(text, run) == text, "make readme"


@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: file.name)
def test_a_written_page_links_to_what_is_there(file):
    for place in re.findall(r"\]\(([^)#\s]+)", file.read_text(encoding="utf-8")):
        assert place.startswith("https://") or (file.parent / place).exists(), place


def test_every_paper_is_cited_and_the_version_is_the_kits():
    citation = yaml.safe_load((paths.ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == lookuplab.__version__
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert set(report.references()) == {folder.name for folder in paths.PAPER.iterdir() if folder.is_dir()}


def test_without_figures_it_says_which_command_makes_them(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "FIGURES", tmp_path)
    done = CliRunner().invoke(cli, ["report"])
    assert done.exit_code == 2
    assert done.stderr == "error: no figures of profile 'mini' yet; `lookuplab reproduce --profile mini` makes them\n"


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    done = CliRunner().invoke(cli, ["report", "-o", str(tmp_path)])
    assert done.exit_code == 2 and done.stderr.count("\n") == 1 and "other files" in done.stderr
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_report_may_be_replaced(tmp_path):
    (tmp_path / report.MARK).touch()
    (tmp_path / "index.html").touch()
    report.check_output(tmp_path)
    (tmp_path / report.MARK).unlink()
    with pytest.raises(UserError):
        report.check_output(tmp_path)
