"""Calibration on four answers that can be worked out by hand."""

import math

import pytest

from lookuplab.scoring.calibration import auroc, brier, ece, reliability

CORRECT = [False, True, False, True]
CONFIDENCE = [0.1, 0.4, 0.6, 0.9]


def test_auroc_counts_ordered_pairs():
    assert auroc(CORRECT, CONFIDENCE) == 0.75  # three of the four (correct, wrong) pairs are in order


def test_auroc_counts_ties_half():
    assert auroc([True, False], [0.5, 0.5]) == 0.5


def test_auroc_without_both_outcomes_is_unknown():
    assert math.isnan(auroc([True, True], [0.1, 0.9]))


def test_brier_is_the_mean_square():
    assert brier(CORRECT, CONFIDENCE) == pytest.approx((0.01 + 0.36 + 0.36 + 0.01) / 4)


def test_brier_works_when_all_are_correct():
    assert brier([True, True], [1.0, 0.5]) == pytest.approx(0.125)


def test_bins_hold_equal_mass():
    table = reliability(CORRECT, CONFIDENCE, bins=2)
    assert table.n.tolist() == [2, 2]
    assert table.confidence.tolist() == pytest.approx([0.25, 0.75])
    assert table.correct.tolist() == [0.5, 0.5]
    assert table.low.tolist() == [0.1, 0.6] and table.high.tolist() == [0.4, 0.9]


def test_equal_confidences_share_a_bin_in_any_order():
    table = reliability([True, False, True, True], [0.5, 0.5, 0.5, 0.9], bins=2)
    assert table.n.tolist() == [3, 1]
    assert table.equals(reliability([True, True, False, True], [0.9, 0.5, 0.5, 0.5], bins=2))


def test_one_repeated_confidence_is_one_bin():
    assert reliability([True, False], [0.3, 0.3], bins=10).n.tolist() == [2]


def test_ece_weighs_bins_by_their_size():
    assert ece(CORRECT, CONFIDENCE, bins=2) == pytest.approx(0.25)  # |.5 - .25| / 2 + |.5 - .75| / 2
    assert ece(CORRECT, CONFIDENCE, bins=4) == pytest.approx((0.1 + 0.6 + 0.6 + 0.1) / 4)


def test_ece_is_zero_for_honest_confidences():
    assert ece([True, False, True, True], [0.5, 0.5, 1.0, 1.0], bins=2) == 0


def test_borders_of_bins_are_exact():
    answers = [True] * 100
    assert list(reliability(answers, [n / 100 for n in range(100)], bins=100).n) == [1] * 100
