"""Tests calibration on four answers that can be computed by hand."""

import math

import numpy as np
import pytest
from doors import refused
from sklearn.metrics import roc_auc_score

from lookuplab.scoring.calibration import (
    aurc_interval,
    auroc_interval,
    ece_interval,
    reliability_rows,
)

CORRECT = [False, True, False, True]
CONFIDENCE = [0.1, 0.4, 0.6, 0.9]
APART = list("abcd")


@pytest.fixture
def many():
    """Return (correct, confidence, cluster) of 200 answers. Each is right with the probability of
    its confidence, many confidences are tied, and clusters have about two answers.
    """
    generator = np.random.default_rng(0)
    confidence = generator.integers(0, 20, 200) / 20
    return generator.random(200) < confidence, confidence, generator.integers(0, 100, 200)


def test_auroc_counts_ordered_pairs_and_ties_half_and_a_difference_is_that_of_two(many):
    correct, first, clusters = many
    second = np.random.default_rng(1).random(200)
    one = auroc_interval(*many)
    apart = auroc_interval(correct, first, clusters, less=second)
    assert one.value == pytest.approx(roc_auc_score(correct, first)) and one.n == 200
    assert apart.value == pytest.approx(one.value - roc_auc_score(correct, second))
    assert one.low < one.value < one.high and apart.low < apart.value < apart.high


@pytest.mark.parametrize(("right", "known"), [(19, False), (20, True), (180, True), (181, False)])
def test_fewer_than_20_of_the_rarer_answers_have_no_auroc_and_no_order_is_certain(right, known):
    found = auroc_interval(np.arange(200) >= 200 - right, range(200), range(200))
    assert (found.value == found.high == 1 and 0.9 < found.low < 1) == known
    assert math.isnan(found.value) != known


def test_ece_weighs_bins_by_their_size():
    # |.5 - .25| / 2 + |.5 - .75| / 2
    assert ece_interval(CORRECT, CONFIDENCE, APART, 2).value == pytest.approx(0.25)
    assert ece_interval([True, False, True, True], [0.5, 0.5, 1, 1], APART, 2).value == 0
    assert ece_interval([False] * 4, [1, 1, 1, 0.9], APART, 2).high == 1


@pytest.mark.parametrize("shift", [0, 0.3])
def test_the_interval_of_ece_holds_the_truth(shift):
    # Answers are right with the probability of the confidence minus the shift. Even if the model is
    # calibrated (shift 0), the error of every sample is above 0.
    generator = np.random.default_rng(0)
    held = []
    for _ in range(100):
        confidence = generator.uniform(0.3, 1, 200)
        found = ece_interval(generator.random(200) < confidence - shift, confidence, range(200))
        held.append(found.low <= shift <= found.high)
    assert np.mean(held) >= 0.95


def test_aurc_is_the_mean_risk_over_the_coverage():
    # the most confident answers come first: risks 0, 1/2, 1/3, 1/2 at coverages 1/4 to 1
    found = aurc_interval(CORRECT[::-1], CONFIDENCE[::-1], APART)
    assert found.value == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)
    assert found.low < found.value < found.high
    # answers with equal confidence are added in one step, here from coverage 1/4 to 1
    found = aurc_interval([True, False, True, False], [0.9, 0.5, 0.5, 0.5], APART)
    assert found.value == pytest.approx(0.5 * 0.75)
    assert math.isnan(aurc_interval([], [], []).value)


def test_bins_have_equal_mass_but_for_equal_confidences_in_any_order_and_none_is_certain():
    rows = reliability_rows("m", [True, True, False, True], [0.5, 0.9, 0.5, 0.5], APART, bins=2)
    found = [(row["condition"], row["n"], round(row["value"], 1)) for row in rows]
    numbers = [("bin_1", 3, 0.5), ("bin_1", 3, 66.7), ("bin_2", 1, 0.9), ("bin_2", 1, 100)]
    assert found == numbers and rows[3]["ci_low"] < 50


@pytest.mark.parametrize("measure", [auroc_interval, aurc_interval, ece_interval])
def test_an_answer_without_verdict_or_confidence_is_refused(measure):
    for given in ([math.nan, *[0, 1] * 50], range(101)), ([*[0, 1] * 50, 0], [*range(100), None]):
        with refused("1 of 101 values are NaN"):
            measure(*given, range(101))
