"""Calibration on four answers that can be worked out by hand."""

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from lookuplab.scoring.calibration import (
    aurc_interval,
    auroc_interval,
    ece_interval,
    reliability_rows,
)
from lookuplab.scoring.rates import wilson

CORRECT = [False, True, False, True]
CONFIDENCE = [0.1, 0.4, 0.6, 0.9]
APART = list("abcd")


def ends(found):
    return found.low, found.value, found.high


@pytest.fixture
def many():
    """200 answers with ties in their confidences, right that often, in clusters of about two."""
    generator = np.random.default_rng(0)
    confidence = generator.integers(0, 20, 200) / 20
    return generator.random(200) < confidence, confidence, generator.integers(0, 100, 200)


def test_auroc_counts_ordered_pairs_and_ties_half(many):
    # three of the four (right, wrong) pairs
    assert auroc_interval(CORRECT, CONFIDENCE, APART).value == 0.75
    assert auroc_interval([True, False], [0.5, 0.5], ["a", "b"]).value == 0.5
    found = auroc_interval(*many)
    assert found.value == pytest.approx(roc_auc_score(*many[:2])) and found.n == 200
    assert found.low < found.value < found.high
    assert math.isnan(auroc_interval([True, True], [0.1, 0.9], ["a", "b"]).value)


def test_two_clusters_give_the_aurocs_of_their_mixtures():
    # a orders its pair (1), b inverts it (0); both together: 1/2; the 95% interval is all of it
    found = auroc_interval([True, False, True, False], [0.9, 0.1, 0.1, 0.9], list("aabb"))
    assert ends(found) == (0, 0.5, 1)
    # drawing a twice leaves no wrong answer, b twice no right one: what remains is the sample itself
    assert ends(auroc_interval([True, False], [0.9, 0.1], ["a", "b"])) == (1, 1, 1)


def test_a_difference_of_aurocs_is_that_of_the_two(many):
    correct, first, clusters = many
    second = np.random.default_rng(1).random(200)
    number = auroc_interval(correct, first, clusters, less=second)
    apart = roc_auc_score(correct, first) - roc_auc_score(correct, second)
    assert number.value == pytest.approx(apart) and number.low < apart < number.high


def test_ece_weighs_bins_by_their_size():
    # |.5 - .25| / 2 + |.5 - .75| / 2
    assert ece_interval(CORRECT, CONFIDENCE, APART, 2).value == pytest.approx(0.25)
    assert ece_interval(CORRECT, CONFIDENCE, APART, 4).value == pytest.approx(1.4 / 4)
    assert ece_interval([True, False, True, True], [0.5, 0.5, 1, 1], APART, 2).value == 0


def test_the_interval_of_ece_surrounds_it_whatever_the_order_of_the_answers(many):
    found, order = ece_interval(*many), np.random.default_rng(2).permutation(200)
    assert found.low < found.value < found.high
    assert found == ece_interval(*(one[order] for one in many))


def test_aurc_is_the_mean_risk_over_the_coverage():
    # the most confident enter first: risks 0, 1/2, 1/3, 1/2 at coverages 1/4 to 1
    found = aurc_interval(CORRECT[::-1], CONFIDENCE[::-1], APART)
    assert found.value == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)
    # equal confidences enter together
    found = aurc_interval([True, False, True, False], [0.9, 0.5, 0.5, 0.5], APART)
    assert found.value == pytest.approx(0.5 * 0.75)
    # a is right at .9, b wrong at .5: a twice 0, both (0 + 1/2) / 2, b twice 1
    assert ends(aurc_interval([True, False], [0.9, 0.5], ["a", "b"])) == (0, 0.25, 1)


def test_reliability_rows_have_the_bins_mean_share_and_size():
    rows = reliability_rows("m", CORRECT, CONFIDENCE, APART, bins=2)
    assert [(row["condition"], row["metric"], row["n"]) for row in rows] == [
        (f"bin_{number}", metric, 2)
        for number in (1, 2)
        for metric in ("confidence", "correct_percent")
    ]
    assert [row["value"] for row in rows] == pytest.approx([0.25, 50, 0.75, 50])
    rows = reliability_rows("m", [True, True], [0.9, 0.9], ["a", "b"])
    assert rows[1]["ci_low"] == 100 * wilson(2, 2)[0], "a bin that is all right is not certain"


def test_equal_confidences_share_a_bin_in_any_order():
    rows = reliability_rows("m", [True, False, True, True], [0.5, 0.5, 0.5, 0.9], APART, bins=2)
    assert [row["n"] for row in rows] == [3, 3, 1, 1]
    again = reliability_rows("m", [True, True, False, True], [0.9, 0.5, 0.5, 0.5], APART, bins=2)
    assert [row["value"] for row in rows] == [row["value"] for row in again]
