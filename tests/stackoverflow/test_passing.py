"""Rows of pass@k by hand: groups, average pass rate beside pass@1, drops against each problem's own origin."""

import pytest
import written_problems as written

from lookuplab.errors import UserError
from lookuplab.stackoverflow.ds1000 import load
from lookuplab.stackoverflow.grader import Verdict
from lookuplab.stackoverflow.passing import drops, rows

PASSED = {"1": (1, 1), "2": (1, 0), "3": (0, 0), "4": (1, 0, 0, 0), "5": (0, 0)}


def made(number, origin, perturbation, library="Numpy"):
    about = {"problem_id": number, "library_problem_id": number, "library": library, "test_case_cnt": 1,
             "perturbation_type": perturbation, "perturbation_origin_id": origin}
    return written.record(metadata=about)


@pytest.fixture
def problems(problems_file):
    """1 and its perturbations 2 and 3; 4, an origin of another library; 5, whose origin is not there; 6, not asked."""
    return load(problems_file(made(1, 1, "Origin"), made(2, 1, "Surface"), made(3, 1, "Semantic"),
                              made(4, 4, "Origin", "Pandas"), made(5, 4, "Surface", "Scipy"), made(6, 1, "Surface")))


def verdicts(passed=PASSED):
    return [Verdict(one, sample, bool(passes), "") for one, values in passed.items()
            for sample, passes in enumerate(values)]


def test_each_group_has_its_pass_at_k_and_its_average_pass_rate(problems):
    found = {(row["condition"], row["metric"]): row for row in rows(problems, verdicts(), (1, 2), "m", "k=0/")}
    values = {key: round(row["value"], 4) for key, row in found.items()}
    assert values["k=0/all", "pass_at_1_percent"] == 35  # (1 + 1/2 + 0 + 1/4 + 0) / 5
    assert values["k=0/all", "pass_at_2_percent"] == 50  # (1 + 1 + 0 + 1/2 + 0) / 5
    assert values["k=0/all", "average_pass_rate_percent"] == round(100 * 4 / 12, 4)
    assert values["k=0/Numpy", "pass_at_1_percent"] == 50 and values["k=0/Pandas", "pass_at_1_percent"] == 25
    assert values["k=0/Surface", "pass_at_2_percent"] == 50 and values["k=0/Origin", "pass_at_2_percent"] == 75
    assert {key: found["k=0/all", key]["n"] for key in ("pass_at_1_percent", "average_pass_rate_percent")} == {
        "pass_at_1_percent": 5, "average_pass_rate_percent": 12}
    assert not any("Sklearn" in condition for condition, _ in found)
    assert {row["model"] for row in found.values()} == {"m"}
    assert all(0 <= row["ci_low"] <= row["value"] <= row["ci_high"] <= 100 for row in found.values())


def test_more_samples_than_a_problem_has_are_an_error(problems):
    with pytest.raises(UserError, match="pass@3"):
        rows(problems, verdicts(), (3,))


def test_a_drop_is_against_the_problem_it_was_made_from(problems):
    found = {row["condition"]: (row["value"], row["n"]) for row in drops(problems, verdicts())}
    assert found == {"Surface": (50, 1), "Semantic": (100, 1)}
    assert drops(problems, verdicts({"2": (1,), "4": (1,)})) == []
