"""Tests the student bundle: it has everything that students need and nothing that gives answers
away, and a container has the same.
"""

import subprocess
import sys

import pytest
from lessons import FOLDER, LESSONS, cells, hidden, shown

from lookuplab import paths
from lookuplab.scoring import rates
from lookuplab_notebooks.course import bundle as maker
from lookuplab_notebooks.course.grading import by_hand


def test_the_bundle_has_neither_solutions_nor_hidden_tests_nor_the_tests_of_the_kit(bundle):
    parts = [part for lesson in LESSONS for part in hidden(FOLDER / f"{lesson}.ipynb")]
    assert len(parts) > 60
    for file in bundle.rglob("*"):
        assert file.name != "tests", file
        if file.suffix == ".ipynb":
            text = shown(file)
            assert not [part for part in ("BEGINSOL", "HIDDENTESTS", *parts) if part in text], file
    course = {one.stem for one in (bundle / "notebooks/course").iterdir()}
    assert course == {*LESSONS, "check", "drawings", ".jupyter"}
    for file in FOLDER.glob("*.ipynb"):
        assert [*cells(bundle / "notebooks/course" / file.name)] == [*cells(file)]
    assert (bundle / "README.md").read_text() == (FOLDER / "STUDENTS.md").read_text()
    assert (bundle.parent / "lookuplab-course.zip").stat().st_size < 30e6


@pytest.fixture
def repository(tmp_path, monkeypatch, commit):
    """Make a repository with one commit, from which a bundle can be made."""
    monkeypatch.setattr(maker, "ROOT", tmp_path)
    for name in ("data/a.txt", "Makefile", "notebooks/course/lesson.ipynb", "tests/t.py"):
        paths.write_lines(tmp_path / name, ())
    commit(tmp_path)
    return tmp_path


def test_only_committed_files_go_to_students(repository):
    for name in ("figures/paper/my-llama/table.csv", "data/own tasks.jsonl", "data/staged"):
        paths.write_lines(repository / name, ["secret"])
    subprocess.run(["git", "add", "data/staged"], cwd=repository, check=True)
    assert maker.kit() == [repository / "Makefile", repository / "data/a.txt"]


def test_code_of_the_kit_runs_by_hand_only_where_it_is_given():
    def retries(k, n, kit=rates.wilson):
        try:
            return kit(k, n)
        except AssertionError:
            return kit(k, n)

    with by_hand(rates.wilson):
        # wilson is allowed, and so are the functions that it calls
        assert 0 < retries(3, 4)[0] < 0.75
    with pytest.raises(AssertionError, match=r"calls lookuplab\.scoring\.rates\.wilson"), by_hand():
        retries(3, 4)
    assert sys.getprofile() is None
    with pytest.raises(AssertionError, match=r"sys\.setprofile"), by_hand():
        sys.setprofile(None)


def test_a_renamed_submission_is_graded_and_said(tmp_path):
    names = "bob/course/lesson0_tokens", "bob/course/lesson0_tokens-Copy1", "bob/course/mine"
    for name in ("ada/course/lesson0_tokens (1)", *names):
        paths.write_lines(tmp_path / f"{name}.ipynb", ())
    said = maker.name_submissions(tmp_path, ["lesson0_tokens", "lesson1_hallucination"])
    assert sorted(said) == [
        "ada/course/lesson0_tokens (1).ipynb is now lesson0_tokens.ipynb",
        "bob/course/lesson0_tokens-Copy1.ipynb is not graded: lesson0_tokens.ipynb is there, too",
        "bob/course/mine.ipynb is not graded: it is named after no lesson",
    ]
    assert (tmp_path / "ada/course/lesson0_tokens.ipynb").exists()
