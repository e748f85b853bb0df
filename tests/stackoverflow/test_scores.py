"""Tests pass@k, and how pass@k changes with examples and with perturbed problems. The verdicts are
made up. Also tests near misses: where an answer fails, and how far it is from the reference.
"""

import pandas as pd
import pytest
import written_problems as written
from doors import refused

from lookuplab.benchmark import judged
from lookuplab.benchmark import written as given
from lookuplab.stackoverflow import scores
from lookuplab.stackoverflow.asking import Ds1000Bench
from lookuplab.stackoverflow.ds1000 import load_problems
from lookuplab.stackoverflow.grader import Grader
from lookuplab_notebooks.stackoverflow import near_misses as nearness
from lookuplab_notebooks.stackoverflow.further_rows import greatest

PASSED = [(1, 1), (0, 1), (0, 0), (1, 0, 0, 0), (0, 0)]


@pytest.fixture
def families(written_file):
    """Return six problems. Problems 2, 3 and 6 are perturbations of problem 1, but no model answers
    problem 6. Problem 4 is an original of another library. Problem 5 is a perturbation whose
    original is missing.
    """
    records = [written.record(n) for n in (1, 2, 6)]
    records.append(written.record(3, perturbation_type="Semantic"))
    records += [written.record(n, origin=4, library=f) for n, f in ((4, "Pandas"), (5, "Scipy"))]
    return load_problems(written_file(*records))


def solved(families, passed, ks=(1, 2)):
    """Return the table of pass@k. ``passed[i]`` says which samples of problem i + 1 passed."""
    rows = [(str(number), one) for number, samples in enumerate(passed, 1) for one in samples]
    return scores.solved(families, pd.DataFrame(rows, None, ["id", "passed"], object), ks)


def values(rows):
    return {(row["condition"], row["metric"]): (round(row["value"], 4), row["n"]) for row in rows}


EXPECTED = """
all 1_percent 35 5  # (1 + 1/2 + 0 + 1/4 + 0) / 5
all 2_percent 50 5  # (1 + 1 + 0 + 1/2 + 0) / 5
Numpy 1_percent 50 3
Pandas 1_percent 25 1
Surface 2_percent 50 2
Origin 2_percent 75 2
Surface 1_drop_points 50 1  # against the problem that it was made from; that of 5 is not there
Semantic 1_drop_points 100 1
"""


def test_each_part_has_its_pass_at_k_and_perturbations_what_they_cost(families):
    parts = "all Numpy Pandas Sklearn Origin Surface Semantic".split()
    rows = scores.rows({("m", "k"): solved(families, PASSED)}, parts=parts)
    found = values(rows)
    for line in EXPECTED.strip().splitlines():
        part, metric, value, n = line.partition("#")[0].split()
        assert found[f"k/{part}", f"pass_at_{metric}"] == (float(value), int(n)), line
    assert len(found) == 2 * 6 + 2 * 2
    with refused("pass@3"):
        solved(families, PASSED, [3])


def test_a_problem_with_an_answer_that_is_not_judged_is_in_no_number(families):
    every, some = (solved(families, [*PASSED[:2], (0, one), *PASSED[3:]]) for one in (0, None))
    assert [*some.index] == ["1", "2", "4", "5"]
    assert values(scores.rows({("m", "k"): some}))["k/all", "pass_at_1_percent"] == (43.75, 4)
    for pair in ((some, every), (every, some)):
        assert [*scores.change(*pair).index] == [*some.index]


def test_intervals_are_of_origins_not_of_problems(families):
    (row, *_) = scores.rows({("m", "way"): solved(families, PASSED)})
    assert (row["n"], row["clusters"]) == (5, 3)  # 1, 2 and 3 share an origin


def test_changes_are_paired_by_problem_by_family_and_between_models(families):
    none = solved(families, [(0, 0), (1, 0), (1, 1)])
    of_m = {("m", "none"): none, ("m", "some"): solved(families, [(1, 0), (1, 1), (1, 1)])}
    of_n = {("n", "none"): none, ("n", "some"): none}
    found = values(scores.rows(of_m | of_n, [("none", "some")], ["all", "Surface"])[-6:])
    both = "some/{0} - none/{0}".format
    assert found[both("all"), "pass_at_1_change_difference_points"] == (-33.3333, 3)
    rows = values(scores.rows(of_m, [("none", "some")], ["all", "Surface", "Semantic"]))
    assert rows[both("all"), "pass_at_1_change_points"] == (33.3333, 3)  # (.5 + .5 + 0) / 3
    # Examples raise pass@1 of the original by .5. The surface perturbation gains .5, too, so its
    # drop stays the same. The semantic perturbation gains nothing, so its drop grows by .5.
    assert rows[both("Surface"), "pass_at_1_drop_points_change"] == (0, 1)
    assert rows[both("Semantic"), "pass_at_1_drop_points_change"] == (50, 1)


def test_up_to_is_the_greatest_change_and_its_lower_end_allows_for_the_choice():
    numbers = {"value": [4, 5], "ci_low": [2, -5], "ci_high": [6, 15]}
    table = pd.DataFrame(numbers).assign(metric="pass_at_5_change_points")
    rows = table.to_dict("records")
    found = greatest(rows)
    # Each of the two lower ends has a risk of 1.25% instead of 2.5%, so it is 2.2414 standard
    # errors below its value, not 1.96.
    assert found["ci_low"] == pytest.approx(4 - 2 * 2.2414 / 1.96, abs=1e-4)
    assert (found["value"], found["ci_high"]) == (5, 15)
    assert found["metric"] == "pass_at_5_maximum_change_points"
    assert greatest(rows[:1])["ci_low"] == 2


@pytest.mark.parametrize(
    ("solution", "apart"),
    [
        ("result = round(max(numbers, key=abs))", True),
        ("result = round(max(numbers), 2)", True),
        ("result = round(max(numbers, key=len), 2)", True),
        ("result = round(max(numbers), 1)", False),
        ("result = round(max(numbers, key=abs), 2)", False),
        ("result = round(", False),
        ("result = numbers" + ".copy()" * 900, False),  # too deeply nested for ``ast.dump``
    ],
)
def test_one_argument_of_one_call(written_file, solution, apart):
    reference = "result = round(max(numbers, key=abs), 2)  # to cents"
    (problem,) = load_problems(written_file(written.record(reference=reference)))
    assert nearness.argument_apart(problem, solution) is apart


def test_each_failed_answer_has_a_row_that_says_where_it_failed(problems):
    plain, with_string, inside = problems
    answers = {
        "# why\nresult = max(numbers) - min(numbers": plain,
        "result = max(numbers)": plain,
        "for n in [1]: pass\n" + written.REFERENCE: with_string,
        "return 1": inside,
        written.REFERENCE: plain,
    }
    bench = Ds1000Bench(problems, Grader(store=False, workers=1), indent=False)
    pairs = [(one, given(one.id, text)) for text, one in answers.items()]
    frame = judged(bench, pairs).assign(model="m")
    found = nearness.near_misses(problems, frame, bench.grader)
    assert [*found.completion] == [*answers][:-1]
    places = found[["compile_error", "test_execution", "test_string"]].to_numpy()
    assert (places == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]).all()
    assert [*found.one_token[:2]] == [*found.near_miss[:2]] == [True, False]
