"""Calibration on four answers that can be worked out by hand."""

import math

import numpy as np
import pytest

from lookuplab.scoring.calibration import (
    auroc,
    auroc_difference,
    auroc_interval,
    brier,
    ece,
    ece_interval,
    reliability,
    reliability_rows,
    weighted_auroc,
    weighted_ece,
)
from lookuplab.scoring.rates import wilson

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


def answers(n, seed=0):
    """Confidences with ties, right that often, in clusters of about two."""
    generator = np.random.default_rng(seed)
    confidence = generator.integers(0, 20, n) / 20
    return generator.random(n) < confidence, confidence, generator.integers(0, n // 2, n)


def test_intervals_surround_the_value_of_the_plain_functions():
    correct, confidence, clusters = answers(200)
    for interval, plain in ((auroc_interval, auroc), (ece_interval, ece)):
        found = interval(correct, confidence, clusters, repetitions=500)
        assert found.value == pytest.approx(plain(correct, confidence)) and found.n == 200
        assert found.low < found.value < found.high


def test_a_weighted_statistic_is_that_of_repeated_answers():
    correct, confidence, _ = answers(60)
    times = np.random.default_rng(1).integers(0, 4, 60)
    levels = np.unique(confidence)
    right, wrong = (
        np.array([[times[(confidence == level) & (correct == kind)].sum() for level in levels]]) for kind in (1, 0)
    )
    repeated = np.repeat(correct, times), np.repeat(confidence, times)
    assert weighted_auroc(right, wrong, levels)[0] == pytest.approx(auroc(*repeated))
    assert weighted_ece(right, wrong, levels)[0] == pytest.approx(ece(*repeated))


def test_answers_of_a_cluster_are_resampled_together():
    # two clusters, each right at .9 and wrong at .1: every resample separates perfectly, (1, 1) whichever is drawn
    correct, confidence = [True, False, True, False], [0.9, 0.1, 0.9, 0.1]
    found = auroc_interval(correct, confidence, ["a", "a", "b", "b"], repetitions=200)
    assert (found.low, found.value, found.high) == (1, 1, 1)


def test_two_clusters_give_the_aurocs_of_their_mixtures():
    # a orders its pair (1), b inverts it (0); both together: 1/2; the 95% interval is all of it
    found = auroc_interval([True, False, True, False], [0.9, 0.1, 0.1, 0.9], ["a", "a", "b", "b"], repetitions=500)
    assert (found.low, found.value, found.high) == (0, 0.5, 1)


def test_the_interval_of_an_unknown_auroc_is_everything():
    found = auroc_interval([True, True], [0.1, 0.9], ["a", "b"])
    assert math.isnan(found.value) and (found.low, found.high) == (0, 1)


def test_resamples_with_one_outcome_are_left_out():
    # drawing a twice leaves no wrong answer, b twice no right one: what remains is the sample itself
    found = auroc_interval([True, False], [0.9, 0.1], ["a", "b"], repetitions=200)
    assert (found.low, found.value, found.high) == (1, 1, 1)


def test_ten_thousand_resamples_do_not_depend_on_the_order_of_the_answers():
    correct, confidence, clusters = answers(100)
    order = np.random.default_rng(2).permutation(100)
    assert ece_interval(correct, confidence, clusters) == ece_interval(
        correct[order], confidence[order], clusters[order]
    )


def test_an_interval_needs_a_cluster_for_every_answer():
    with pytest.raises(ValueError, match="4, 4, 1"):
        ece_interval(CORRECT, CONFIDENCE, ["a"])


def test_reliability_rows_have_the_bins_mean_share_and_size():
    rows = reliability_rows("m", CORRECT, CONFIDENCE, [1, 2, 3, 4], bins=2)
    assert [(row["condition"], row["metric"], row["n"]) for row in rows] == [
        ("bin_1", "confidence", 2),
        ("bin_1", "correct_percent", 2),
        ("bin_2", "confidence", 2),
        ("bin_2", "correct_percent", 2),
    ]
    assert [row["value"] for row in rows] == pytest.approx([0.25, 50, 0.75, 50])
    assert (rows[1]["ci_low"], rows[1]["ci_high"]) == (0, 100)


def test_a_bin_that_is_all_right_is_not_certain():
    rows = reliability_rows("m", [True, True], [0.9, 0.9], ["a", "b"])
    assert (rows[1]["ci_low"], rows[1]["ci_high"]) == tuple(100 * end for end in wilson(2, 2))


def test_equal_scores_do_not_differ_in_any_resample():
    correct, score = np.arange(20) % 2 == 0, np.linspace(0, 1, 20)
    number = auroc_difference(correct, score, 2 * score, np.arange(20) // 2, repetitions=200)
    assert (number.value, number.low, number.high) == (0, 0, 0)


def test_a_difference_of_aurocs_is_that_of_the_two():
    generator = np.random.default_rng(1)
    correct, first, second = generator.random(60) < 0.5, generator.random(60).round(1), generator.random(60)
    number = auroc_difference(correct, first, second, np.arange(60) // 3, repetitions=500)
    assert number.value == pytest.approx(auroc(correct, first) - auroc(correct, second))
    assert number.low < number.value < number.high


def test_aurocs_without_right_answers_have_no_difference():
    assert np.isnan(auroc_difference([False] * 3, [0.1, 0.2, 0.3], [0.3, 0.2, 0.1], list("abc")).value)
