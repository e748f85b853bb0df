"""Paired comparisons against numbers worked out by hand."""

import pytest

from lookuplab.scoring.paired import McNemar, holm, mcnemar, paired_difference


def test_mcnemar_counts_only_changes():
    # 1 lost, 4 gained, 3 unchanged: p = 2 * (C(5,0) + C(5,1)) / 2^5 = 12/32
    first = [1, 0, 0, 0, 0, 1, 1, 0]
    second = [0, 1, 1, 1, 1, 1, 1, 0]
    assert mcnemar(first, second) == McNemar(1, 4, pytest.approx(0.375))


def test_mcnemar_without_changes_has_no_evidence():
    assert mcnemar([1, 0], [1, 0]) == McNemar(0, 0, 1.0)


def test_mcnemar_refuses_different_ids():
    with pytest.raises(ValueError, match="same ids"):
        mcnemar([1, 0], [1])


def test_paired_difference_is_second_minus_first():
    result = paired_difference([0, 0, 1, 0], [1, 1, 1, 0])
    assert result.value == 0.5 and result.n == 4
    assert (result.low, result.high) == (0.0, 1.0)


def test_pairing_removes_what_both_share():
    # the same tasks are hard under both conditions and each gains exactly .1: no uncertainty about the difference
    first = [0.0, 0.5, 0.9]
    result = paired_difference(first, [value + 0.1 for value in first])
    assert (result.low, result.value, result.high) == pytest.approx((0.1, 0.1, 0.1))


def test_paired_difference_takes_expectations():
    # clusters a (+.5, 0) and b (-.25): a resample is a twice (.25), both (.25 / 3) or b twice (-.25)
    result = paired_difference([0, 1, 0.5], [0.5, 1, 0.25], clusters=["a", "a", "b"])
    assert (result.low, result.value, result.high) == pytest.approx((-0.25, 0.25 / 3, 0.25))


def test_holm_adjusts_step_by_step():
    # sorted .01 .03 .04 -> 3 * .01, max(that, 2 * .03), max(that, 1 * .04)
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])


def test_holm_of_nothing_is_nothing():
    assert len(holm([])) == 0
