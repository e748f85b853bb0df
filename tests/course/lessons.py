"""Runs lessons as in a class, without a network. At the end of each lesson, tries answers to its
exercises.
"""

import json
import os
import re
import zipfile
from collections import defaultdict
from dataclasses import replace

import nbformat
from beside import table
from doors import python

from lookuplab import paths
from lookuplab.run.notebooks import load_profile, plan, read
from lookuplab.run.runner import run_jobs

FOLDER = paths.NOTEBOOKS / "course"
LESSONS = sorted(file.stem for file in FOLDER.glob("*.ipynb"))
# {lesson: {exercise: {case: answers}}}; ``cases`` explains the cases
ANSWERS = table(__file__, "answers.yaml")
FEWER = {"every": 16, "functions_in_all": 4, "per_class": 8}

BEGIN = """\
import socket
_connect = socket.socket.connect
def _refuse(self, address):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise OSError(f"a lesson has no network, and asked for {address}")
    return _connect(self, address)
socket.socket.connect = _refuse"""
# before lesson 0, which needs nothing that imports torch
WITHOUT_TORCH = """
import sys
sys.modules |= dict.fromkeys(("torch", "transformers", "peft", "sentence_transformers"))"""

TRY = """\
import contextlib as _contextlib, io as _io, json as _json, re as _re
def _fate(answer, check):
    with _contextlib.redirect_stdout(_io.StringIO()):
        try:
            exec(answer, globals())
            exec(check, globals())
        except Exception as error:
            return type(error).__name__
    return "passes"
@_contextlib.contextmanager
def _all_is_given(*given, without=()):
    yield
from lookuplab_notebooks.course import grading as _grading
_found, _by_hand = [], _grading.by_hand
for _answers, _solution, _check in _json.loads({cases!r}):
    for _case, _answer, _its_check in _answers:
        if _case == "wrong":  # it fails already with what students see of the check
            _its_check = _re.sub("### BEGIN HIDDEN.*?### END HIDDEN TESTS", "", _its_check, flags=_re.S)
        _grading.by_hand = _all_is_given if _case == "wrapper, not blocked" else _by_hand
        _found.append([_case, _fate(_answer, _its_check)])
        _grading.by_hand = _by_hand
        exec(_solution, globals())  # others rest on it
    _found.append(["solution again", _fate(_solution, _check)])
from lookuplab_notebooks.course.check import _passed
_passed.clear()  # nothing but what follows is printed
print(_json.dumps(_found))"""


def cells(file):
    """Return {grade id: cell} of a notebook."""
    found = nbformat.read(file, as_version=4).cells
    return {cell.metadata.nbgrader.grade_id: cell for cell in found if "nbgrader" in cell.metadata}


def shown(file):
    """Return the text of a notebook's cells, without white space."""
    text = "".join(cell.source for cell in nbformat.read(file, as_version=4).cells)
    return "".join(text.split())


def hidden(file):
    """Return the solutions and hidden tests of a lesson, without white space."""
    return re.findall(r"###BEGIN(?:SOLUTION|HIDDENTESTS)(.+?)###END", shown(file))


def bundle(folder):
    """Make the student bundle in ``folder`` as a teacher does (``make course``), and return the
    unpacked bundle.
    """
    python("bundle.py", cwd=FOLDER, LOOKUPLAB_COURSE=folder)
    with zipfile.ZipFile(folder / "lookuplab-course.zip") as packed:
        packed.extractall(folder)
    unpacked = folder / "lookuplab-course"
    # use this machine's downloads, because the installation would fetch them again
    (unpacked / "data/downloads").symlink_to(paths.DOWNLOADS)
    return unpacked


def autograded(lesson, unpacked):
    """Let ``nbgrader autograde`` grade the lessons of two students, and yield (score, maximum) of
    the exercises in code for each student.

    The first student hands in the solutions. The second student hands in the lesson without any
    answer. Both use the bundle's copy of the kit.
    """
    folder = unpacked.parent
    file = f"{lesson}.ipynb"
    students = {"solved": cells(FOLDER / file), "idle": cells(unpacked / "notebooks/course" / file)}
    for student, answers in students.items():
        notebook = nbformat.read(unpacked / "notebooks/course" / file, as_version=4)
        for cell in notebook.cells:
            mark = cell.metadata.get("nbgrader", {})
            if mark.get("solution"):
                cell.source = answers[mark["grade_id"]].source
        nbformat.write(
            notebook, paths.make_folder(folder / "submitted" / student / "course") / file
        )
    source = os.pathsep.join(str(unpacked / name) for name in ("lib", "data"))
    places = {"LOOKUPLAB_COURSE": folder, "LOOKUPLAB_HOME": unpacked, "PYTHONPATH": source}
    command = f"-m nbgrader autograde course --create --notebook={lesson}"
    python(*command.split(), cwd=FOLDER, **places)
    from nbgrader.api import Gradebook  # slow to import

    with Gradebook(f"sqlite:///{folder}/gradebook.db") as book:
        for student in students:
            graded = book.find_submission_notebook(lesson, "course", student)
            yield graded.code_score, graded.max_code_score


def run(lesson, released, folder):
    """Run a lesson on a part of its tasks, and then try every answer to its exercises. Return
    {case: outcomes of its answers}. The outcome of an answer is "passes" or the name of the error
    that the answer or its check raises.
    """
    notebook = nbformat.read(FOLDER / f"{lesson}.ipynb", as_version=4)
    tried = nbformat.v4.new_code_cell(TRY.format(cases=json.dumps(cases(lesson, released))))
    begin = nbformat.v4.new_code_cell(BEGIN + WITHOUT_TORCH * (lesson == "lesson0_tokens"))
    notebook.cells = [begin, *notebook.cells, tried]
    source, output = folder / f"{lesson}_tried.ipynb", folder / f"{lesson}_out.ipynb"
    nbformat.write(notebook, source)
    planned = read(source)
    fewer = {name: FEWER[name] for name in planned.parameters if name in FEWER}
    job = plan(planned, load_profile("mini"), fewer)
    # the lesson may use only the models and data that students have
    own = {"LOOKUPLAB_HOME": str(released.parents[1])}
    job = replace(job, output=output, figures=folder / "figures", environment=own)
    [(_, ended)] = run_jobs([job])
    assert ended.failure is None
    fates = defaultdict(set)
    outputs = nbformat.read(output, as_version=4).cells[-1].outputs
    printed = [one.text for one in outputs if one.get("name") == "stdout"]  # progress is on stderr
    for case, fate in json.loads(printed[-1]):
        fates[case].add(fate)
    return fates


def cases(lesson, released):
    """Return [answers, solution, check] for each exercise of a lesson. Each of the answers is
    [case, answer, check].

    The case "unsolved" is the cell of the student version, with the check that students see. The
    other cases come from ANSWERS:

    - "right" answers pass;
    - "wrong" answers fail even the tests that students see;
    - "wrong, hidden" answers fail only the hidden tests;
    - "wrapper" answers call a library function in place of an own solution;
    - "wrapper, not blocked" are the same answers, without the rule that refuses them.
    """
    solved, student = cells(FOLDER / f"{lesson}.ipynb"), cells(released / f"{lesson}.ipynb")
    found = []
    for name, given in ANSWERS[lesson].items():
        check = solved.pop(f"{name}_check").source
        tried = given | {"wrapper, not blocked": given.get("wrapper", [])}
        answers = [["unsolved", student[name].source, student[f"{name}_check"].source]]
        answers += [[case, answer, check] for case, texts in tried.items() for answer in texts]
        found.append([answers, solved[name].source, check])
    assert not [name for name in solved if name.endswith("_check")], "an exercise without answers"
    return found
