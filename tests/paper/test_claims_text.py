"""What ``lookuplab claims`` prints: narrow enough, grouped, and honest about the paper's own numbers."""

import pytest

from lookuplab.claims import FAILS, HOLDS, UNDECIDED, Claim, Comparison, Judgement
from lookuplab.claims.printed import text

CLAIM = Claim("a-claim", "cloudapibench", "Table 1", "A statement " * 20, "table1", {"kind": "at_least", "metric": "m"})


def comparison(model, verdict, value=60.0):
    return Comparison(model, "low >= 50", value, value - 5, value + 5, "267", 44.5, verdict)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("details", [False, True])
def test_no_line_is_longer_than_the_terminal(width, details):
    judgement = Judgement(CLAIM, HOLDS, (comparison("a-model-with-a-long-name", HOLDS),) * 3, note="")
    missing = Judgement(CLAIM, UNDECIDED, note="no file here: make it with lookuplab run " + "word " * 30)
    assert max(map(len, text([judgement, missing], details, width).splitlines())) <= width


def test_the_comparison_that_decides_is_shown():
    printed = text([Judgement(CLAIM, FAILS, (comparison("good", HOLDS), comparison("bad", FAILS, 30.0)))], width=120)
    assert "bad low >= 50: 30 [25, 35], n 267, paper 44.50; fails in 1 of 2 comparisons" in printed
    assert "good" not in printed


def test_details_show_every_comparison():
    printed = text([Judgement(CLAIM, FAILS, (comparison("good", HOLDS), comparison("bad", FAILS)))], True, 120)
    assert "- good low >= 50: 60 [55, 65], n 267, paper 44.50: holds" in printed and "- bad" in printed


def test_numbers_of_the_paper_that_contradict_it_are_counted():
    reported = (comparison("x", HOLDS, 1.0), comparison("y", FAILS, 2.0))
    printed = text([Judgement(CLAIM, HOLDS, (), reported)], width=100)
    assert "paper: 1 to 2 in 2 comparisons, 1 of them against the claim" in printed


def test_a_missing_artifact_is_told_once_for_all_its_claims():
    missing = Judgement(CLAIM, UNDECIDED, note="not run yet")
    printed = text([missing, missing], width=100)
    assert printed.count("not run yet") == 1 and printed.startswith("table1: 0 hold, 0 fail, 2 not decided")
    assert printed.endswith("2 claims: 0 hold, 0 fail, 2 not decided")
