"""Risk, coverage and thresholds on answers that can be worked out by hand."""

import numpy as np
import pytest

from lookuplab.scoring.selective import (
    aurc,
    aurc_interval,
    aurc_references,
    best_threshold,
    cross_fitted,
    folds,
    risk_coverage,
    split,
)

CORRECT = [True, False, True, False]
CONFIDENCE = [0.9, 0.6, 0.4, 0.1]
APIS = [f"api-{number}" for number in range(40) for _ in range(3)]
CLASSES = [("high", "medium", "low", "low")[number % 4] for number in range(40) for _ in range(3)]


def test_the_most_confident_enter_first():
    table = risk_coverage(CORRECT, CONFIDENCE)
    assert table.columns.tolist() == ["coverage", "risk", "threshold"]
    assert table.coverage.tolist() == [0.25, 0.5, 0.75, 1]
    assert table.risk.tolist() == pytest.approx([0, 1 / 2, 1 / 3, 2 / 4])
    assert table.threshold.tolist() == CONFIDENCE


def test_equal_confidences_enter_together():
    table = risk_coverage(CORRECT, [0.9, 0.5, 0.5, 0.5])
    assert table.coverage.tolist() == [0.25, 1] and table.risk.tolist() == [0, 0.5]


def test_no_answers_have_no_curve():
    with pytest.raises(ValueError, match="no answers"):
        risk_coverage([], [])


def test_aurc_is_the_mean_risk_over_the_coverage():
    assert aurc(CORRECT, CONFIDENCE) == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)
    assert aurc(CORRECT, [0.9, 0.5, 0.5, 0.5]) == pytest.approx(0 * 0.25 + 0.5 * 0.75)


def test_references_bound_the_curve():
    # two of four wrong, last: risks 0, 0, 1/3, 2/4
    references = aurc_references(CORRECT)
    assert references == {"ideal": pytest.approx((1 / 3 + 1 / 2) / 4), "random": 0.5}
    assert aurc([True, True, False, False], CONFIDENCE) == references["ideal"]


def test_a_constant_confidence_is_the_random_reference():
    assert aurc(CORRECT, [0.5] * 4) == aurc_references(CORRECT)["random"]


def test_the_interval_of_aurc_is_of_the_mixtures_of_clusters():
    # a is right at .9, b wrong at .5: a twice 0, both (0 + 1/2) / 2, b twice 1
    found = aurc_interval([True, False], [0.9, 0.5], ["a", "b"], repetitions=500)
    assert (found.low, found.value, found.high) == (0, 0.25, 1) and found.n == 2


def test_the_interval_of_aurc_is_about_its_value():
    generator = np.random.default_rng(0)
    confidence = generator.integers(0, 20, 200) / 20
    correct = generator.random(200) < confidence
    found = aurc_interval(correct, confidence, np.arange(200) // 2, repetitions=500)
    assert found.value == pytest.approx(aurc(correct, confidence)) and found.low < found.value < found.high


@pytest.mark.parametrize("deal", [folds, split])
def test_no_api_is_on_both_sides(deal):
    side = deal(APIS, CLASSES)
    assert all(len(set(side[3 * number : 3 * number + 3])) == 1 for number in range(40))
    assert len(set(side)) == 2


@pytest.mark.parametrize("deal", [folds, split])
def test_a_side_depends_on_the_api_and_the_seed_not_on_the_order(deal):
    order = np.random.default_rng(0).permutation(120)
    shuffled = deal([APIS[place] for place in order], [CLASSES[place] for place in order])
    assert (shuffled == deal(APIS, CLASSES)[order]).all()
    assert (deal(APIS, CLASSES, seed=1) != deal(APIS, CLASSES)).any()


def test_every_class_is_shared_out():
    # 10 high, 10 medium and 20 low APIs with three tasks each
    chosen, classes = split(APIS, CLASSES, share=0.3), np.array(CLASSES)
    assert {name: int(chosen[classes == name].sum()) for name in set(CLASSES)} == {"high": 9, "medium": 9, "low": 18}
    dealt = folds(APIS, CLASSES, count=5)
    assert all((np.bincount(dealt[classes == name]) == 3 * count).all() for name, count in (("high", 2), ("low", 4)))


def test_a_larger_share_keeps_the_smaller():
    assert not (split(APIS, CLASSES, 0.3) & ~split(APIS, CLASSES, 0.6)).any()


@pytest.mark.parametrize("deal", [folds, split])
def test_an_api_in_two_classes_is_refused(deal):
    with pytest.raises(ValueError, match="two strata"):
        deal(["a", "a", "b"], ["high", "low", "low"])


def test_sides_that_would_be_empty_are_refused():
    with pytest.raises(ValueError, match="2 clusters cannot make 3 folds"):
        folds(["a", "b", "b"], count=3)
    with pytest.raises(ValueError, match="leaves one side empty"):
        split(["a", "b"], share=1)


def test_the_best_threshold_has_the_best_mean():
    assert best_threshold([[0, 1, 0], [0, 1, 1]], [0.2, 0.5, 0.8]) == 0.5


def test_among_equal_thresholds_the_smallest_looks_up_least():
    # .1 + .2 is .3 but for rounding
    assert best_threshold([[0.1, 0.3], [0.2, 0.0]], [0.8, 0.5]) == 0.5
    assert best_threshold([[0.3, 0.1], [0.0, 0.2]], [0.5, 0.8]) == 0.5


def test_a_column_is_needed_for_every_threshold():
    with pytest.raises(ValueError, match="column per threshold"):
        best_threshold([[0, 1]], [0.5])


def test_a_fold_is_judged_with_the_others_threshold():
    # fold 0 prefers .2, fold 1 prefers .8: each gets what the other prefers
    values = [[1, 0], [1, 0.5], [0, 1]]
    found = cross_fitted(values, [0, 0, 1], [0.2, 0.8])
    assert found.chosen == {0: 0.8, 1: 0.2}
    assert found.thresholds.tolist() == [0.8, 0.8, 0.2] and found.values.tolist() == [0, 0.5, 0]


def test_one_fold_has_no_others():
    with pytest.raises(ValueError, match="at least two folds"):
        cross_fitted([[0, 1]], [0], [0.2, 0.8])
