"""The course in a classroom: solutions pass, wrong answers fail, and no network is needed."""

import nbformat
import pytest
from lessons import FOLDER, LESSONS, autograded, cells
from nbgrader.nbgraderformat import MetadataValidator

each = pytest.mark.parametrize("lesson", LESSONS)


@each
def test_solutions_and_other_right_answers_pass_and_wrong_ones_fail(lesson, fates):
    assert fates(lesson, "right") == fates(lesson, "solution again") == {"passes"}
    assert "passes" not in fates(lesson, "wrong")
    assert fates(lesson, "unsolved") <= {"NotImplementedError", "AssertionError"}


@each
def test_wrappers_are_right_and_earn_nothing(lesson, fates):
    assert fates(lesson, "wrapper") <= {"AssertionError"}
    assert fates(lesson, "wrapper, not blocked") <= {"passes"}


def test_nbgrader_gives_full_marks_for_solutions_and_none_for_nothing_and_for_wrappers(bundle):
    scores = autograded("lesson4_claims", bundle)  # a quick one, with wrappers of some exercises
    full = scores["solved"][1]
    assert full >= 8 and scores == {"solved": (full, full), "wrapped": (0, full)}


@each
def test_the_student_version_has_every_exercise_marked_up_as_nbgrader_wants_it(lesson, released):
    assert list(cells(released / f"{lesson}.ipynb")) == list(cells(FOLDER / f"{lesson}.ipynb"))
    MetadataValidator().validate_nb(nbformat.read(FOLDER / f"{lesson}.ipynb", as_version=4))
