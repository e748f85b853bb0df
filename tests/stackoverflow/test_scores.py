"""pass@k, gains and drops on hand-made verdicts; near misses: where a failure lies, and how far it is from right."""

import pandas as pd
import pytest
import written_problems as written
from rapidfuzz.distance import Levenshtein

from lookuplab.errors import UserError
from lookuplab.stackoverflow import scores
from lookuplab.stackoverflow.ds1000 import load
from lookuplab.stackoverflow.grader import Answer, Grader, grade

PASSED = {"1": (1, 1), "2": (0, 1), "3": (0, 0), "4": (1, 0, 0, 0), "5": (0, 0)}


def made(number, origin, kind, library="Numpy"):
    about = written.record(number, origin=origin)["metadata"]
    about |= {"library": library, "perturbation_type": kind}
    return written.record(number, metadata=about)


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


def answers(passed=PASSED):
    return [
        Answer(one, sample, "", bool(passes))
        for one, values in passed.items()
        for sample, passes in enumerate(values)
    ]


def test_each_group_has_its_pass_at_k_and_its_average_pass_rate(problems):
    rows = scores.rows(scores.solved(problems, answers(), (1, 2)), "m", "k=0/")
    values = {
        (row["condition"][4:], row["metric"]): (round(row["value"], 4), row["n"]) for row in rows
    }
    assert values["all", "pass_at_1_percent"] == (35, 5)  # (1 + 1/2 + 0 + 1/4 + 0) / 5
    assert values["all", "pass_at_2_percent"] == (50, 5)  # (1 + 1 + 0 + 1/2 + 0) / 5
    assert values["all", "average_pass_rate_percent"] == (round(100 * 4 / 12, 4), 12)
    assert values["Numpy", "pass_at_1_percent"] == (50, 3)
    assert values["Pandas", "pass_at_1_percent"] == (25, 1)
    assert values["Surface", "pass_at_2_percent"] == (50, 2)
    assert values["Origin", "pass_at_2_percent"] == (75, 2)
    assert all(0 <= row["ci_low"] <= row["value"] <= row["ci_high"] <= 100 for row in rows)
    with pytest.raises(UserError, match="pass@3"):
        scores.solved(problems, answers(), [3])


def test_intervals_are_of_origins_not_of_problems(problems):
    # 1, 2 and 3 share an origin; all fail or pass together, so nothing is known but of one origin
    table = scores.solved(problems[:3], answers({"1": [1], "2": [1], "3": [0]}), [1])
    (row, *_) = scores.rows(table, "m")
    assert row["ci_high"] - row["ci_low"] > 70


def test_a_drop_is_against_the_problem_it_was_made_from(problems):
    drops = scores.drops(scores.solved(problems, answers(), [1]), 1, "m")
    found = {row["condition"]: (row["value"], row["n"]) for row in drops}
    assert found == {"Surface": (50, 1), "Semantic": (100, 1)}
    alone = scores.solved(problems, answers({"2": (1,), "4": (1,)}), [1])
    assert scores.drops(alone, 1, "m") == []


def test_a_gain_is_the_mean_difference_of_pass_at_k_in_points(problems):
    before, after = (
        scores.solved(problems, answers(dict(zip("123", passed, strict=True))), [1, 2])
        for passed in (((0, 0), (1, 0), (1, 1)), ((1, 0), (1, 1), (1, 1)))
    )
    first, second = scores.gain_rows(before, after, "m", "examples_1")
    assert first["value"] == second["value"] == pytest.approx(100 / 3)
    assert (first["metric"], first["n"]) == ("pass_at_1_gain_points", 3)


def test_the_first_k_ranks_decide_and_no_later_one():
    given = answers({"a": [0, 1, 0], "b": [0, 0, 1], "c": [0, 0, 0]})
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
    assert Levenshtein.distance(scores._tokens(first), scores._tokens(second)) == distance


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
    assert scores.argument_apart(problem, solution) is apart


def test_each_failed_answer_has_a_row_that_says_where_it_failed(problems_file):
    problems = load(problems_file())
    given = [
        Answer("1", 0, written.REFERENCE),
        Answer("1", 1, "result = max(numbers) - min(numbers"),
        Answer("1", 2, "result = max(numbers)"),
        Answer("2", 0, "for n in [1]: pass\n" + written.REFERENCE),
        Answer("3", 0, "return 1"),
    ]
    grader = Grader(store=False, workers=1)
    found = pd.DataFrame(scores.near_misses(problems, grade(problems, given, grader), grader, "m"))
    columns = ["problem_id", "sample", "failure", "cases_passed", "cases"]
    assert [tuple(row) for row in found[columns].to_numpy()] == [
        ("1", 1, "compile error", 0, 2),
        ("1", 2, "test_execution", 1, 2),
        ("2", 0, "test_string", 2, 2),
        ("3", 0, "compile error", 0, 2),
    ]
    assert [*found.one_token[:2]] == [*found.near_miss[:2]] == [True, False]
    assert [*found.edit_distance[:2]] == [1, len(" - min(numbers)")]
    assert found.error.all()
    shares = {
        row["metric"]: (round(row["value"], 3), row["n"])
        for row in scores.near_miss_rows(found, problems)
    }
    assert shares["near_miss_percent"] == (25, 4) and shares["some_cases_percent"] == (50, 4)
    assert shares["compile_error_percent"] == (50, 4)
    assert shares["edit_distance"] == (round(found.edit_distance.mean(), 3), 4)
