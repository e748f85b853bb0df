"""Lessons run as in a class, without network; and answers tried where they have run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
from right_answers import RIGHT
from wrong_answers import WRONG

from lookuplab import paths
from lookuplab.notebooks import load_profile, plan, read
from lookuplab.runner import run_jobs

FOLDER = paths.NOTEBOOKS / "course"
LESSONS = sorted(file.stem for file in FOLDER.glob("*.ipynb"))

BEGIN = """\
import socket
_connect = socket.socket.connect
def _refuse(self, address):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise OSError(f"a lesson has no network, and asked for {address}")
    return _connect(self, address)
socket.socket.connect = _refuse"""

TRY = """\
import contextlib as _contextlib, io as _io, json as _json
def _fate(answer, check):
    with _contextlib.redirect_stdout(_io.StringIO()):
        try:
            exec(answer, globals())
            exec(check, globals())
        except Exception as error:
            return type(error).__name__
    return "passes"
_found = []
for _name, _answers, _solution, _check in _json.loads({cases!r}):
    for _case, _answer, _its_check in _answers:
        _found.append([_name, _case, _fate(_answer, _its_check)])
        exec(_solution, globals())  # others rest on it
    _found.append([_name, "solution again", _fate(_solution, _check)])
print(_json.dumps(_found))"""


def cells(file: Path) -> dict[str, nbformat.NotebookNode]:
    """Grade id -> cell."""
    found = nbformat.read(file, as_version=4).cells
    return {cell.metadata.nbgrader.grade_id: cell for cell in found if "nbgrader" in cell.metadata}


def exercises(lesson: str) -> list[str]:
    """The grade ids of the exercises in code."""
    return [
        name.removesuffix("_check")
        for name in cells(FOLDER / f"{lesson}.ipynb")
        if name.endswith("_check")
    ]


def student_versions(folder: Path) -> None:
    """What a teacher does: ``nbgrader generate_assignment course``, into ``folder``/release/course."""
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", "course"]
    variables = {**os.environ, "LOOKUPLAB_COURSE": str(folder)}
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, env=variables)
    assert done.returncode == 0, done.stderr


def run(lesson: str, released: Path, folder: Path) -> list[list[str]]:
    """The lesson as it stands, then every answer behind it: [exercise, case, "passes" or the error's name]."""
    notebook = nbformat.read(FOLDER / f"{lesson}.ipynb", as_version=4)
    tried = nbformat.v4.new_code_cell(TRY.format(cases=json.dumps(cases(lesson, released))))
    notebook.cells = [nbformat.v4.new_code_cell(BEGIN), *notebook.cells, tried]
    source, output = folder / f"{lesson}_tried.ipynb", folder / f"{lesson}_out.ipynb"
    nbformat.write(notebook, source)
    job = plan(read(source), load_profile("mini"), output=output, figures=folder / "figures")
    assert run_jobs([job]) == [None]
    return json.loads(nbformat.read(output, as_version=4).cells[-1].outputs[-1].text)


def cases(lesson: str, released: Path) -> list[list]:
    """An exercise's name; [case, answer, check] for nothing written (with what students see of the check), the wrong
    answers and the other right one; solution and check.
    """
    solved, student = cells(FOLDER / f"{lesson}.ipynb"), cells(released / f"{lesson}.ipynb")
    found = []
    for name in exercises(lesson):
        check = solved[f"{name}_check"].source
        answers = [["unsolved", student[name].source, student[f"{name}_check"].source]]
        answers += [["wrong", answer, check] for answer in WRONG[lesson][name]]
        answers += [["right", RIGHT[lesson][name], check]]
        found.append([name, answers, solved[name].source, check])
    return found
