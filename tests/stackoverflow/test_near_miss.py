"""Near misses: where a failure lies, how many cases passed, and how far the code is from the reference."""

import sys
from pathlib import Path

import pandas as pd
import pytest
import written_problems as written

from lookuplab.stackoverflow.ds1000 import load
from lookuplab.stackoverflow.grader import Answer, Grader, grade
from lookuplab.stackoverflow.near_miss import COLUMNS, argument_apart, rows, summary_rows, token_distance


@pytest.mark.parametrize(("first", "second", "distance"), [
    ("x = 1", "x=1  # the same", 0),
    ("x = (1\n", "x = (1)\n", 1),
    ("result = a[0]", "result = a[1]", 1),
    ("result = np.argsort(a)[-N:]", "result = np.argsort(a)[::-1][:N]", 6),
    ("x = 'open", "x = 'open'", 2),
    ("if x:\n        y = 1\n", "if x:\n    y = 1\n", 0),
    ("", "x = 1", 3),
])
def test_the_distance_counts_tokens_and_no_comments(first, second, distance):
    assert token_distance(first, second) == token_distance(second, first) == distance


@pytest.mark.parametrize(("solution", "apart"), [
    ("result = round(max(numbers, key=abs))", True),
    ("result = round(max(numbers), 2)", True),
    ("result = round(max(numbers, key=abs), 2, 1)", True),
    ("result = round(max(numbers, key=abs), 1)", True),
    ("result = round(max(numbers, key=len), 2)", True),
    ("result = round(max(numbers), 2, 1)", False),
    ("result = round(max(numbers), 1)", False),
    ("result = round(min(numbers, key=abs), 2)", False),
    ("result = round(sum(numbers) - 1, 2)", False),
    ("result = round(max(numbers, key=abs), 2)", False),
    ("result = round(", False),
])
def test_one_argument_of_one_call(problems_file, solution, apart):
    reference = "result = round(max(numbers, key=abs), 2)  # to cents"
    problem, = load(problems_file(written.record(reference=reference)))
    assert argument_apart(problem, solution) is apart


def test_each_failed_answer_has_a_row_that_says_where_it_failed(problems_file):
    problems = load(problems_file())
    answers = [Answer("1", 0, written.REFERENCE), Answer("1", 1, "result = max(numbers) - min(numbers"),
               Answer("1", 2, "result = max(numbers)"), Answer("1", 3, "result = max(numbers) - 1"),
               Answer("2", 0, "for n in [1]: pass\n" + written.REFERENCE), Answer("3", 0, "return 1")]
    grader = Grader(Path(sys.executable), store=False, workers=1, progress=False)
    found = rows(problems, answers, grade(problems, answers, grader), grader)
    assert [tuple(row) for row in found] == [COLUMNS] * 5
    assert [(row["problem_id"], row["sample"], row["failure"], row["cases_passed"], row["cases"]) for row in found] == [
        ("1", 1, "compile error", 0, 2), ("1", 2, "test_execution", 1, 2), ("1", 3, "test_execution", 1, 2),
        ("2", 0, "test_string", 2, 2), ("3", 0, "compile error", 0, 2)]
    assert [(row["one_token"], row["near_miss"]) for row in found[:2]] == [(True, True), (False, False)]
    assert found[0]["edit_distance"] == 1 and found[1]["edit_distance"] == len(" - min(numbers)")
    assert all(row["error"] for row in found)


def test_shares_are_of_the_failed_answers_of_each_model(problems_file):
    problems = load(problems_file())
    failed = {"failure": "test_execution", "cases_passed": 1, "one_token": True, "one_argument": False, "near_miss": True,
              "edit_distance": 4}
    other = failed | {"failure": "compile error", "cases_passed": 0, "one_token": False, "near_miss": False, "edit_distance": 8}
    frame = pd.DataFrame([{"model": model, "problem_id": problem.id} | row for model in ("a", "b")
                          for problem, row in zip(problems, (failed, other, other))])
    rows = {(row["model"], row["metric"]): (row["value"], row["n"]) for row in summary_rows(frame, problems)}
    assert rows["a", "near_miss_percent"] == rows["b", "some_cases_percent"] == (pytest.approx(100 / 3), 3)
    assert rows["a", "compile_error_percent"] == (pytest.approx(200 / 3), 3)
    assert rows["a", "edit_distance"] == (pytest.approx(20 / 3), 3)
