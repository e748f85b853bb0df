"""pass@k, gains and drops on hand-made verdicts; near misses: where a failure lies, and how far it is from right."""

import pandas as pd
import pytest
import written_problems as written

from lookuplab.errors import UserError
from lookuplab.stackoverflow import scores
from lookuplab.stackoverflow.ds1000 import load
from lookuplab.stackoverflow.grader import Answer, Grader, Verdict, grade
from lookuplab.stackoverflow.scores import COLUMNS, argument_apart, token_distance

PASSED = {"1": (1, 1), "2": (0, 1), "3": (0, 0), "4": (1, 0, 0, 0), "5": (0, 0)}


def made(number, origin, kind, library="Numpy"):
    about = {"library": library, "perturbation_type": kind}
    return written.record(
        number, metadata=written.record(number, origin=origin)["metadata"] | about
    )


@pytest.fixture
def problems(problems_file):
    """Problem 1 with its perturbations 2 and 3; 4, an origin of another library; 5, whose origin is not there; 6, not
    asked."""
    kinds = (
        made(1, 1, "Origin"),
        made(2, 1, "Surface"),
        made(3, 1, "Semantic"),
        made(4, 4, "Origin", "Pandas"),
    )
    return load(problems_file(*kinds, made(5, 4, "Surface", "Scipy"), made(6, 1, "Surface")))


def verdicts(passed=PASSED):
    return [
        Verdict(one, sample, bool(passes), "")
        for one, values in passed.items()
        for sample, passes in enumerate(values)
    ]


def test_each_group_has_its_pass_at_k_and_its_average_pass_rate(problems):
    rows = scores.rows(problems, verdicts(), (1, 2), "m", "k=0/")
    found = {(row["condition"], row["metric"]): row for row in rows}
    values = {key: round(row["value"], 4) for key, row in found.items()}
    assert values["k=0/all", "pass_at_1_percent"] == 35  # (1 + 1/2 + 0 + 1/4 + 0) / 5
    assert values["k=0/all", "pass_at_2_percent"] == 50  # (1 + 1 + 0 + 1/2 + 0) / 5
    assert values["k=0/all", "average_pass_rate_percent"] == round(100 * 4 / 12, 4)
    assert (
        values["k=0/Numpy", "pass_at_1_percent"] == 50
        and values["k=0/Pandas", "pass_at_1_percent"] == 25
    )
    assert (
        values["k=0/Surface", "pass_at_2_percent"] == 50
        and values["k=0/Origin", "pass_at_2_percent"] == 75
    )
    assert found["k=0/all", "pass_at_1_percent"]["n"] == 5
    assert found["k=0/all", "average_pass_rate_percent"]["n"] == 12
    assert all(0 <= row["ci_low"] <= row["value"] <= row["ci_high"] <= 100 for row in rows)


def test_more_samples_than_a_problem_has_are_an_error(problems):
    with pytest.raises(UserError, match="pass@3"):
        scores.rows(problems, verdicts(), (3,), "m")


def test_a_drop_is_against_the_problem_it_was_made_from(problems):
    found = {
        row["condition"]: (row["value"], row["n"])
        for row in scores.drops(problems, verdicts(), 1, "m")
    }
    assert found == {"Surface": (50, 1), "Semantic": (100, 1)}
    assert scores.drops(problems, verdicts({"2": (1,), "4": (1,)}), 1, "m") == []


def test_a_gain_is_the_mean_difference_of_pass_at_k_in_points(problems):
    before, after = (
        verdicts({"1": (0, 0), "2": (1, 0), "3": (1, 1)}),
        verdicts({"1": (1, 0), "2": (1, 1), "3": (1, 1)}),
    )
    first, second = scores.gain_rows(problems, before, after, [1, 2], "m", "examples_1")
    assert first["value"] == second["value"] == pytest.approx(100 / 3)
    assert (first["metric"], first["n"]) == ("pass_at_1_gain_points", 3)


def test_the_first_k_ranks_decide_and_no_later_one():
    given = verdicts({"a": [0, 1, 0], "b": [0, 0, 1], "c": [0, 0, 0]})
    assert scores.first_passes(given, 1) == {"a": False, "b": False, "c": False}
    assert scores.first_passes(given[::-1], 2) == {"a": True, "b": False, "c": False}


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        ("x = 1", "x=1  # the same", 0),
        ("x = (1\n", "x = (1)\n", 1),
        ("result = a[0]", "result = a[1]", 1),
        ("result = np.argsort(a)[-N:]", "result = np.argsort(a)[::-1][:N]", 6),
        ("if x:\n        y = 1\n", "if x:\n    y = 1\n", 0),
        ("", "x = 1", 3),
    ],
)
def test_the_distance_counts_tokens_and_no_comments(first, second, distance):
    assert token_distance(first, second) == token_distance(second, first) == distance


@pytest.mark.parametrize(
    ("solution", "apart"),
    [
        ("result = round(max(numbers, key=abs))", True),
        ("result = round(max(numbers), 2)", True),
        ("result = round(max(numbers, key=abs), 1)", True),
        ("result = round(max(numbers, key=len), 2)", True),
        ("result = round(max(numbers), 1)", False),
        ("result = round(sum(numbers) - 1, 2)", False),
        ("result = round(max(numbers, key=abs), 2)", False),
        ("result = round(", False),
    ],
)
def test_one_argument_of_one_call(problems_file, solution, apart):
    reference = "result = round(max(numbers, key=abs), 2)  # to cents"
    (problem,) = load(problems_file(written.record(reference=reference)))
    assert argument_apart(problem, solution) is apart


def test_each_failed_answer_has_a_row_that_says_where_it_failed(problems_file):
    problems = load(problems_file())
    answers = [
        Answer("1", 0, written.REFERENCE),
        Answer("1", 1, "result = max(numbers) - min(numbers"),
        Answer("1", 2, "result = max(numbers)"),
        Answer("1", 3, "result = max(numbers) - 1"),
        Answer("2", 0, "for n in [1]: pass\n" + written.REFERENCE),
        Answer("3", 0, "return 1"),
    ]
    grader = Grader(store=False, workers=1, progress=False)
    found = scores.near_misses(problems, answers, grade(problems, answers, grader), grader, "m")
    assert [tuple(row) for row in found] == [COLUMNS] * 5
    assert [
        (row["problem_id"], row["sample"], row["failure"], row["cases_passed"], row["cases"])
        for row in found
    ] == [
        ("1", 1, "compile error", 0, 2),
        ("1", 2, "test_execution", 1, 2),
        ("1", 3, "test_execution", 1, 2),
        ("2", 0, "test_string", 2, 2),
        ("3", 0, "compile error", 0, 2),
    ]
    assert [(row["one_token"], row["near_miss"]) for row in found[:2]] == [
        (True, True),
        (False, False),
    ]
    assert found[0]["edit_distance"] == 1 and found[1]["edit_distance"] == len(" - min(numbers)")
    assert all(row["error"] for row in found)


def test_shares_are_of_the_failed_answers_of_each_model(problems_file):
    problems = load(problems_file())
    values = {"m": ("test_execution", 1, 4, True), "other": ("compile error", 0, 8, False)}
    frame = pd.DataFrame(
        {"model": "a", "problem_id": problem.id, "failure": failure, "cases_passed": cases, "edit_distance": edits,
         "one_token": near, "one_argument": False, "near_miss": near}
        for problem, (failure, cases, edits, near) in zip(problems, [values["m"], values["other"], values["other"]], strict=True)
    )  # fmt: skip
    rows = {
        row["metric"]: (row["value"], row["n"]) for row in scores.near_miss_rows(frame, problems)
    }
    assert rows["near_miss_percent"] == rows["some_cases_percent"] == (pytest.approx(100 / 3), 3)
    assert rows["compile_error_percent"] == (pytest.approx(200 / 3), 3)
    assert rows["edit_distance"] == (pytest.approx(20 / 3), 3)
