"""Tests verdicts on published answers: the causes of failures, the committed verdicts, and the
numbers that are computed from these verdicts.
"""

import pandas as pd
import pytest
import written_problems as written

from lookuplab.stackoverflow import scores
from lookuplab.stackoverflow.grader import Grader
from lookuplab_notebooks.published import verdicts


def test_each_failure_has_its_cause_and_the_repaired_way_saves_what_lost_its_indentation(problems):
    plain, with_string, inside = problems
    cases = [
        (plain, written.REFERENCE, True, "", True),
        (plain, "result = (", False, "does not compile", False),
        (plain, "result = max(numbers)", False, "wrong value", False),
        (plain, "raise KeyError(1)", False, "exception KeyError", False),
        (with_string, "for n in [1]: pass\n" + written.REFERENCE, False, "text check", False),
        (inside, "return max(numbers) - min(numbers)", False, "does not compile", True),
    ]
    answers = [{"id": int(problem.id), "code": code} for problem, code, *_ in cases]
    found = verdicts.verdicts_on(problems, answers, Grader(store=False, workers=1))
    rows = found[["passed", "cause", "repaired"]].itertuples(index=False, name=None)
    assert [*rows] == [tuple(case[2:]) for case in cases]


@pytest.mark.parametrize(
    ("passed", "printed", "apart"),
    [
        # The authors print 50%, so 2 of 4 answers passed for them. Here 1 passed, and the other may
        # be one of the two without a verdict.
        ([True, False, None, None], 50, 0),
        ([True, True, True, None], 50, 1),
        ([True, False, False, None], 75, -1),
    ],
)
def test_print_is_apart_by_what_answers_that_are_not_judged_cannot_explain(passed, printed, apart):
    column = pd.Series(passed, dtype=object)
    assert scores.compared_with_printed(column, printed)["apart"] == apart


def test_every_pass_rate_is_within_one_problem_of_the_printed_one():
    rows = verdicts.library_rows(verdicts.committed())
    apart = rows[(rows.metric == "apart_problems") & (rows.condition != "all")].value
    assert len(apart) == 5 * 7 and apart.abs().max() <= 1


def test_a_drop_is_paired_and_its_p_value_corrected_over_the_picture():
    rows = verdicts.perturbation_rows(verdicts.committed(["codex002"]))
    found = rows.set_index(["condition", "metric"]).value
    drop = found["Difficult-Rewrite", "pass_at_1_drop_points"]
    pairs = rows[rows.metric == "holm_p"].set_index("condition").n["Difficult-Rewrite"]
    lost, won = (found["Difficult-Rewrite", f"{name}_problems"] for name in ("lost", "won"))
    assert drop == pytest.approx(100 * (lost - won) / pairs)
    assert found["Surface", "holm_p"] >= found["Difficult-Rewrite", "holm_p"]
