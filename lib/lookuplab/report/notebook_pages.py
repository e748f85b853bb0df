"""A notebook's page: the executed copy of the last run, without outputs where there is none."""

import html
import re
from collections.abc import Sequence
from pathlib import Path

import nbformat

from lookuplab import paths
from lookuplab.report.last_run import LastRun
from lookuplab.runner.notebooks import Notebook

_WIDGET = "application/vnd.jupyter.widget-view+json"  # alive in JupyterLab only
_FOR_TEACHERS = re.compile(r"^( *)### BEGIN (SOLUTION|HIDDEN TESTS)\n.*?^ *### END \2(\n|$)", re.DOTALL | re.MULTILINE)


def write(notebook: Notebook, runs: Sequence[LastRun], page: Path) -> None:
    """Copy the notebook to ``page`` with a note where its outputs come from and words for its pictures.

    A lesson is shown as students get it, without solutions and hidden tests.
    """
    executed = paths.RUNS / runs[0].profile / f"{notebook.id}.ipynb"
    document = nbformat.read(executed if executed.is_file() else notebook.path, as_version=4)
    document.metadata.pop("widgets", None)
    heading = notebook.name
    for cell in document.cells:
        cell.source = _for_students(cell)
        if cell.cell_type == "markdown":
            heading = _heading(cell.source) or heading
        elif cell.cell_type == "code":
            words = f"The picture of the section {heading}"
            cell.outputs = [output for output in map(_without_widget, cell.outputs) if output is not None]
            cell.metadata["mystnb"] = {"image": {"alt": words}}
            for output in cell.outputs:
                if "text/html" in output.get("data", {}):
                    output.data["text/html"] = _described(output.data["text/html"], words)
    document.cells.insert(1, nbformat.v4.new_markdown_cell(_note(notebook, runs, executed.is_file())))
    page.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(document, page)


def _note(notebook: Notebook, runs: Sequence[LastRun], executed: bool) -> str:
    profile = runs[0].profile
    if executed:
        said = f"The executed copy of the last run under the profile {profile}."
    else:
        said = f"Not run here: no outputs. `lookuplab run {notebook.id} --profile {profile}` makes them."
    made = [entry for entry in runs[0].entries if entry.notebook and entry.notebook.id == notebook.id]
    links = ", ".join(f"[{entry.name}](../../artifacts/{entry.id}.md)" for entry in made)
    return f":::{{note}}\n{said}" + (f" Its artifacts, with numbers and verdicts: {links}." if made else "") + "\n:::"


def _for_students(cell: nbformat.NotebookNode) -> str:
    """The source without what nbgrader takes out."""
    invitation = "# YOUR CODE HERE" if cell.cell_type == "code" else "*Your answer*"
    return _FOR_TEACHERS.sub(lambda part: f"{part[1]}{invitation}{part[3]}" if part[2] == "SOLUTION" else "",
                             cell.source)


def _heading(source: str) -> str:
    """The last heading in a Markdown cell, without marks that a plain text has no use for."""
    found = re.findall(r"^#+ +(.+)$", source, re.MULTILINE)
    return re.sub(r"[`*]", "", found[-1]).strip() if found else ""


def _described(text: str, words: str) -> str:
    """HTML in which every picture without an alternative text has this one."""
    return re.sub(r"<img(?![^>]*\balt=)", f'<img alt="{html.escape(words)}"', text)


def _without_widget(output: nbformat.NotebookNode) -> nbformat.NotebookNode | None:
    """None for an output that only a running kernel can show."""
    if _WIDGET not in output.get("data", {}):
        return output
    del output.data[_WIDGET]
    return output if set(output.data) - {"text/plain"} else None
