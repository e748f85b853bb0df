"""The course in a classroom: solutions pass, wrong answers fail; 4 GB, a minute a cell and no network are enough."""

import re

import nbformat
import pytest
import yaml
from lessons import FOLDER, LESSONS, cells, exercises
from nbgrader.api import Gradebook
from nbgrader.nbgraderformat import MetadataValidator
from right_answers import RIGHT
from wrong_answers import WRONG

each = pytest.mark.parametrize("lesson", LESSONS)


def test_there_are_four_lessons():
    assert len(LESSONS) == 4


@each
def test_the_solutions_of_a_lesson_pass_its_checks(lesson, ran, capsys):
    done = ran(lesson)  # papermill ends at the first check that fails
    with capsys.disabled():
        print(f"\n{lesson}: {sum(done['seconds']):.0f} s by the clock, {sum(done['processor']):.0f} s of a processor, "
              f"{done['peak'] / 1e9:.1f} GB")


@each
def test_no_cell_takes_a_minute(lesson, ran):
    """Of processor time: a busy machine makes no lesson slow."""
    done = ran(lesson)
    assert len(done["processor"]) == len(done["seconds"]) and sum(done["processor"]) > 3
    assert max(done["processor"]) < 60


@each
def test_a_lesson_fits_into_4_gb(lesson, ran):
    assert 0.2e9 < ran(lesson)["peak"] < 4e9


def fates(of: dict, case: str) -> dict[str, str]:
    """Exercise and case -> what became of it."""
    return {f"{name}, {which}": fate for name, which, fate in of["tried"] if which.startswith(case)}


@each
def test_a_wrong_answer_fails_its_check(lesson, ran):
    assert [name for name, fate in fates(ran(lesson), "wrong").items() if fate == "passes"] == []


@each
def test_another_right_answer_passes(lesson, ran):
    found = fates(ran(lesson), "right")
    assert set(found.values()) == {"passes"}, found


@each
def test_the_checks_that_students_see_fail_where_nothing_is_solved(lesson, ran):
    found = fates(ran(lesson), "unsolved")
    assert len(found) == len(exercises(FOLDER / f"{lesson}.ipynb"))
    assert set(found.values()) <= {"NotImplementedError", "AssertionError"}, found


@each
def test_a_solution_passes_whatever_was_tried_before(lesson, ran):
    found = fates(ran(lesson), "solution")
    assert set(found.values()) == {"passes"}, found


@each
def test_every_exercise_is_tried_with_wrong_answers_and_another_right_one(lesson):
    names = exercises(FOLDER / f"{lesson}.ipynb")
    assert len(names) >= 5
    assert sorted(WRONG[lesson]) == sorted(RIGHT[lesson]) == sorted(names)
    assert all(len(wrong) >= 2 for wrong in WRONG[lesson].values())


@each
def test_the_student_version_has_neither_solutions_nor_hidden_checks(lesson, released):
    source, student = cells(FOLDER / f"{lesson}.ipynb"), cells(released / f"{lesson}.ipynb")
    assert list(student) == list(source)
    text = "\n".join(cell.source for cell in nbformat.read(released / f"{lesson}.ipynb", as_version=4).cells)
    for cell in source.values():
        for hidden in re.findall(r"### BEGIN (?:SOLUTION|HIDDEN TESTS)\n(.*?)### END", cell.source, re.DOTALL):
            assert hidden.strip() and hidden not in text
    assert "BEGIN SOLUTION" not in text and "HIDDEN" not in text


@each
def test_a_lesson_is_marked_up_as_nbgrader_wants_it(lesson):
    notebook = nbformat.read(FOLDER / f"{lesson}.ipynb", as_version=4)
    MetadataValidator().validate_nb(notebook)
    graded = [cell.metadata.nbgrader for cell in notebook.cells if "nbgrader" in cell.metadata]
    assert {marks.schema_version for marks in graded} == {3}
    assert all(marks.locked for marks in graded if marks.grade and not marks.solution)


def test_nbgrader_gives_the_points_of_what_is_solved_and_no_others(graded):
    source = cells(FOLDER / f"{graded.lesson}.ipynb")
    with Gradebook(f"sqlite:///{graded.folder / 'gradebook.db'}", "lookuplab") as book:
        score = book.find_submission_notebook(graded.lesson, "course", graded.student).code_score
    assert score == sum(source[f"{name}_check"].metadata.nbgrader.points for name in graded.solved)


def test_what_is_not_solved_stops_nothing_but_its_own_check(graded):
    failed = {cell.metadata.nbgrader.grade_id if "nbgrader" in cell.metadata else cell.source
              for cell in nbformat.read(graded.notebook, as_version=4).cells if cell.cell_type == "code"
              if any(output.output_type == "error" for output in cell.outputs)}
    open_ones = set(exercises(FOLDER / f"{graded.lesson}.ipynb")) - set(graded.solved)
    assert {f"{name}_check" for name in open_ones} <= failed <= {f"{name}_check" for name in open_ones} | open_ones


@each
def test_the_instructors_plan_of_a_lesson_adds_up_to_90_minutes(lesson):
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    part = page.split(f"## Plan of `{lesson}`", 1)[1].split("\n## ", 1)[0]
    minutes = [int(number) for number in re.findall(r"^\| *(\d+) *\|", part, re.MULTILINE)]
    assert len(minutes) >= 5 and sum(minutes) == 90


@each
def test_a_lesson_is_run_by_name_only(lesson):
    assert f"course/{lesson}" in yaml.safe_load((FOLDER.parent / "order.yaml").read_text())["manual"]
