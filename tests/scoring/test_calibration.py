"""Calibration on four answers that can be worked out by hand."""

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from lookuplab.scoring.calibration import (
    aurc_interval,
    auroc_difference,
    auroc_interval,
    ece_interval,
    reliability_rows,
)
from lookuplab.scoring.rates import wilson

CORRECT = [False, True, False, True]
CONFIDENCE = [0.1, 0.4, 0.6, 0.9]
APART = list("abcd")


def answers(n, seed=0):
    """Confidences with ties, right that often, in clusters of about two."""
    generator = np.random.default_rng(seed)
    confidence = generator.integers(0, 20, n) / 20
    return generator.random(n) < confidence, confidence, generator.integers(0, n // 2, n)


def test_auroc_counts_ordered_pairs_and_ties_half():
    assert (
        auroc_interval(CORRECT, CONFIDENCE, APART).value == 0.75
    )  # three of the four (correct, wrong) pairs
    assert auroc_interval([True, False], [0.5, 0.5], ["a", "b"]).value == 0.5
    correct, confidence, clusters = answers(200)
    found = auroc_interval(correct, confidence, clusters, repetitions=500)
    assert found.value == pytest.approx(roc_auc_score(correct, confidence)) and found.n == 200
    assert found.low < found.value < found.high


def test_two_clusters_give_the_aurocs_of_their_mixtures():
    # a orders its pair (1), b inverts it (0); both together: 1/2; the 95% interval is all of it
    found = auroc_interval([True, False, True, False], [0.9, 0.1, 0.1, 0.9], ["a", "a", "b", "b"])
    assert (found.low, found.value, found.high) == (0, 0.5, 1)


def test_the_interval_of_an_unknown_auroc_is_everything():
    found = auroc_interval([True, True], [0.1, 0.9], ["a", "b"])
    assert math.isnan(found.value) and (found.low, found.high) == (0, 1)
    assert math.isnan(
        auroc_difference([False] * 3, [0.1, 0.2, 0.3], [0.3, 0.2, 0.1], list("abc")).value
    )


def test_resamples_with_one_outcome_are_left_out():
    # drawing a twice leaves no wrong answer, b twice no right one: what remains is the sample itself
    found = auroc_interval([True, False], [0.9, 0.1], ["a", "b"], repetitions=200)
    assert (found.low, found.value, found.high) == (1, 1, 1)


def test_a_difference_of_aurocs_is_that_of_the_two():
    generator = np.random.default_rng(1)
    correct, first, second = (
        generator.random(60) < 0.5,
        generator.random(60).round(1),
        generator.random(60),
    )
    number = auroc_difference(correct, first, second, np.arange(60) // 3, repetitions=500)
    assert number.value == pytest.approx(
        roc_auc_score(correct, first) - roc_auc_score(correct, second)
    )
    assert number.low < number.value < number.high


def test_ece_weighs_bins_by_their_size():
    # |.5 - .25| / 2 + |.5 - .75| / 2
    assert ece_interval(CORRECT, CONFIDENCE, APART, bins=2).value == pytest.approx(0.25)
    assert ece_interval(CORRECT, CONFIDENCE, APART, bins=4).value == pytest.approx(
        (0.1 + 0.6 + 0.6 + 0.1) / 4
    )
    assert ece_interval([True, False, True, True], [0.5, 0.5, 1.0, 1.0], APART, bins=2).value == 0


def test_the_interval_of_ece_surrounds_it_whatever_the_order_of_the_answers():
    correct, confidence, clusters = answers(100)
    order = np.random.default_rng(2).permutation(100)
    found = ece_interval(correct, confidence, clusters)
    assert found.low < found.value < found.high
    assert found == ece_interval(correct[order], confidence[order], clusters[order])


def test_aurc_is_the_mean_risk_over_the_coverage():
    # the most confident enter first: risks 0, 1/2, 1/3, 1/2 at coverages 1/4 to 1; equal confidences enter together
    assert aurc_interval(CORRECT[::-1], CONFIDENCE[::-1], APART).value == pytest.approx(
        (0 + 1 / 2 + 1 / 3 + 1 / 2) / 4
    )
    assert aurc_interval(
        [True, False, True, False], [0.9, 0.5, 0.5, 0.5], APART
    ).value == pytest.approx(0.5 * 0.75)


def test_the_interval_of_aurc_is_of_the_mixtures_of_clusters():
    # a is right at .9, b wrong at .5: a twice 0, both (0 + 1/2) / 2, b twice 1
    found = aurc_interval([True, False], [0.9, 0.5], ["a", "b"], repetitions=500)
    assert (found.low, found.value, found.high) == (0, 0.25, 1) and found.n == 2


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


def test_equal_confidences_share_a_bin_in_any_order():
    rows = reliability_rows("m", [True, False, True, True], [0.5, 0.5, 0.5, 0.9], APART, bins=2)
    assert [row["n"] for row in rows] == [3, 3, 1, 1]
    again = reliability_rows(
        "m", [True, True, False, True], [0.9, 0.5, 0.5, 0.5], APART[::-1], bins=2
    )
    assert [row["value"] for row in rows] == [row["value"] for row in again]


def test_a_bin_that_is_all_right_is_not_certain():
    rows = reliability_rows("m", [True, True], [0.9, 0.9], ["a", "b"])
    assert (rows[1]["ci_low"], rows[1]["ci_high"]) == tuple(100 * end for end in wilson(2, 2))
