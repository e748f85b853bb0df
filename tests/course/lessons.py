"""Lessons run as in a class: under papermill, without network, measured; and answers tried in their kernels."""

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nbformat
import numpy
import papermill
import psutil
from right_answers import RIGHT
from wrong_answers import WRONG

from lookuplab import paths

FOLDER = paths.NOTEBOOKS / "course"
LESSONS = sorted(file.stem for file in FOLDER.glob("*.ipynb"))

BEGIN = """\
import json as _json, psutil as _psutil, socket
_spent = []
def _processor(_=None):  # of the kernel and all that it starts
    own = _psutil.Process()
    _spent.append(sum(sum(one.cpu_times()[:4]) for one in [own, *own.children(recursive=True)]))
get_ipython().events.register("pre_run_cell", _processor)
_connect = socket.socket.connect
def _refuse(self, address):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise OSError(f"a lesson has no network, and asked for {address}")
    return _connect(self, address)
socket.socket.connect = _refuse"""

TRY = """\
import contextlib as _contextlib, io as _io
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
print(_json.dumps([_spent, _found]))"""


def cells(file: Path) -> dict[str, nbformat.NotebookNode]:
    """Grade id -> cell."""
    return {cell.metadata.nbgrader.grade_id: cell for cell in nbformat.read(file, as_version=4).cells
            if "nbgrader" in cell.metadata}


def exercises(file: Path) -> list[str]:
    """The grade ids of the exercises in code."""
    return [name.removesuffix("_check") for name in cells(file) if name.endswith("_check")]


def student_versions(folder: Path) -> None:
    """What a teacher does: ``nbgrader generate_assignment course``, into ``folder``/release/course."""
    done = nbgrader(folder, "generate_assignment", "course")
    assert done.returncode == 0, done.stderr


def nbgrader(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """The program in the folder of the course, whose files then lie in ``folder``."""
    return subprocess.run([sys.executable, "-m", "nbgrader", *arguments], cwd=FOLDER, capture_output=True, text=True,
                          env={**os.environ, "LOOKUPLAB_COURSE": str(folder)})


@dataclass(frozen=True)
class Graded:
    """A submission in which the exercises ``solved`` are, as nbgrader left it in its ``folder``."""

    folder: Path
    lesson: str
    solved: tuple[str, ...]
    student: str = "half"

    @property
    def notebook(self) -> Path:
        return self.folder / "autograded" / self.student / "course" / f"{self.lesson}.ipynb"

    def grade(self) -> None:
        """Write the submission from student version and solutions, and let ``nbgrader autograde`` run it."""
        solutions = cells(FOLDER / f"{self.lesson}.ipynb")
        notebook = nbformat.read(self.folder / "release" / "course" / f"{self.lesson}.ipynb", as_version=4)
        for cell in notebook.cells:
            if "nbgrader" in cell.metadata and cell.metadata.nbgrader.grade_id in self.solved:
                cell.source = solutions[cell.metadata.nbgrader.grade_id].source
        submitted = self.folder / "submitted" / self.student / "course"
        submitted.mkdir(parents=True)
        nbformat.write(notebook, submitted / f"{self.lesson}.ipynb")
        patience = ("--Execute.timeout=600", "--Execute.startup_timeout=300")  # machines that test are busy
        done = nbgrader(self.folder, "autograde", "course", "--create", f"--student={self.student}",
                        f"--notebook={self.lesson}", *patience)
        assert done.returncode == 0, done.stderr


def run(lesson: str, released: Path, folder: Path) -> dict:
    """The lesson as it stands, then every answer in its kernel: seconds a cell by the clock (``seconds``) and of
    processor time (``processor``), the ``peak`` of resident bytes, both of the kernel and all that it starts, and what
    became of each answer (``tried``): [exercise, case, "passes" or the error's name]."""
    notebook = nbformat.read(FOLDER / f"{lesson}.ipynb", as_version=4)
    own = len(notebook.cells)
    notebook.cells = [nbformat.v4.new_code_cell(BEGIN), *notebook.cells,
                      nbformat.v4.new_code_cell(TRY.format(cases=json.dumps(cases(lesson, released))))]
    source, output = folder / f"{lesson}_tried.ipynb", folder / f"{lesson}_out.ipynb"
    nbformat.write(notebook, source)
    with _peak() as peak:
        papermill.execute_notebook(source, output, cwd=folder, progress_bar=False, start_timeout=300)
    done = nbformat.read(output, as_version=4).cells
    ran = [cell for cell in done[1:own + 1] if cell.cell_type == "code"]
    spent, tried = json.loads(done[-1].outputs[-1].text)
    return {"seconds": [cell.metadata.papermill.duration for cell in ran], "processor": numpy.diff(spent).tolist(),
            "peak": max(peak), "tried": tried}


def cases(lesson: str, released: Path) -> list[list]:
    """An exercise's name; [case, answer, check] for nothing written (with what students see of the check), the wrong
    answers and the other right one; solution and check."""
    solved, student = cells(FOLDER / f"{lesson}.ipynb"), cells(released / f"{lesson}.ipynb")
    found = []
    for name in exercises(FOLDER / f"{lesson}.ipynb"):
        check = solved[f"{name}_check"].source
        answers = [["unsolved", student[name].source, student[f"{name}_check"].source]]
        answers += [[f"wrong {number}", answer, check] for number, answer in enumerate(WRONG[lesson][name], 1)]
        answers += [["right", RIGHT[lesson][name], check]]
        found.append([name, answers, solved[name].source, check])
    return found


@contextmanager
def _peak():
    """A list of the resident bytes of all processes below this one, every fifth of a second."""
    sizes, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            total = 0
            for process in psutil.Process().children(recursive=True):
                try:
                    total += process.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
            sizes.append(total)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield sizes
    finally:
        over.set()
        thread.join()
