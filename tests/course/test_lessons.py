"""Tests the course as in a classroom: solutions pass, wrong answers fail, and no
network is needed.
"""

import pytest
from lessons import LESSONS, autograded, run

from lookuplab.run import runner


@pytest.mark.parametrize("lesson", LESSONS)
def test_right_answers_pass_wrong_ones_fail_and_wrappers_earn_nothing(
    lesson, bundle, shared, tmp_path, monkeypatch, fork_server
):
    monkeypatch.setattr(runner, "fork_server", fork_server)
    # the lessons share the stored answers
    monkeypatch.setenv("LOOKUPLAB_STORE", str(shared / "completions.sqlite"))
    fates = run(lesson, bundle / "notebooks/course", tmp_path)
    for case in ("right", "solution again", "wrapper, not blocked"):
        assert fates.get(case, {"passes"}) == {"passes"}, case
    assert "passes" not in fates["wrong"] | fates.get("wrong, hidden", set())
    assert fates["unsolved"] <= {"NotImplementedError", "AssertionError"}
    assert fates.get("wrapper", {"AssertionError"}) == {"AssertionError"}


def test_nbgrader_gives_full_marks_for_solutions_and_none_for_nothing(bundle):
    solved, idle = autograded("lesson4_claims", bundle)  # it is a quick lesson
    assert solved[0] == solved[1] == idle[1] >= 8 and idle[0] == 0
