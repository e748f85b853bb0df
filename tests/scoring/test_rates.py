"""Tests rates, intervals and pass@k against numbers computed by hand. ``mini/interval_coverage``
simulates how often the intervals contain the truth.
"""

import math
from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
from doors import refused
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t
from statsmodels.stats.proportion import proportion_confint

from lookuplab.scoring.rates import (
    average,
    difference,
    mcnemar,
    of_change,
    of_score_change,
    over_seeds,
    paired_difference,
    pass_at_k,
    rate,
    wilson,
)


def ends(found):
    return found.low, found.high


def test_two_clusters_by_hand():
    # The clusters have the means 20 and 50, with weights 2 and 1. Without one of them, the mean is
    # 50 or 20, so the variance is (1/2) * (15² + 15²) = 225. Kish's number of clusters is 9 / 5. At
    # least one degree of freedom is used: t = 12.706.
    found = average([10, 30, 50], ["a", "a", "b"])
    assert (found.value, found.n, found.clusters) == (30, 3, 2)
    assert ends(found) == pytest.approx((30 - 12.7062 * 15, 30 + 12.7062 * 15), rel=1e-5)


def test_a_share_is_clopper_and_pearsons_of_the_effective_number_of_tasks():
    # 8 of 10 independent tasks are right. The variance .16 / 9 is that of 9 tasks. The size is 9,
    # times (1.95996 / 2.26647)² for Student's t with 80 / 9 degrees of freedom, which follow from
    # the kurtosis (1 - 3 * .16) / .16 = 3.25.
    size = 9 * (1.959964 / 2.266475) ** 2
    wanted = proportion_confint(0.8 * size, size, method="beta")
    assert ends(rate([1] * 8 + [0] * 2, range(10))) == pytest.approx(wanted, abs=1e-6)
    # if two tasks always have the same result, each counts half
    pairs = rate(np.repeat([1] * 8 + [0] * 2, 2), np.repeat(range(10), 2))
    assert ends(pairs) == pytest.approx(wanted, abs=1e-6) and pairs.clusters == 10


@pytest.mark.parametrize("values", [[1] * 6, [0] * 6, [1, 0, 1, 0, 1, 0]])
def test_where_nothing_varies_nothing_is_certain(values):
    clusters = list("aabbcc")
    share = rate(values, clusters)
    assert share.high - share.low > 0.5 and share.low <= share.value <= share.high
    same = paired_difference(values, values, clusters)
    assert same.low < same.value == 0 < same.high
    assert np.isnan(ends(average(values, clusters))).all()


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(0, 4)), min_size=1))
def test_no_number_is_outside_its_interval_and_no_share_beyond_0_and_1(tasks):
    first, second, clusters = zip(*tasks, strict=True)
    share = rate(first, clusters)
    change = paired_difference(first, second, clusters)
    assert 0 <= share.low <= share.value <= share.high <= 1
    assert -1 <= change.low <= change.value <= change.high <= 1


def test_a_mean_of_nothing_is_unknown():
    for empty in (rate([], []), rate([])):
        assert math.isnan(empty.value) and ends(empty) == (0, 1)


def test_pass_at_k_is_the_share_of_the_sets_of_k_samples_that_hold_a_pass():
    for passes, k in product(range(7), range(1, 7)):
        sets = [*map(any, combinations([n < passes for n in range(6)], k))]
        assert pass_at_k(6, passes, k) == pytest.approx(sum(sets) / len(sets), abs=1e-15)
    with refused("there are n = 5 samples"):
        pass_at_k(5, 3, 6)


def test_difference_is_newcombes_for_wilson_intervals():
    # Newcombe (1998), example (a), method 10: 56/70 - 48/80 is .2 with 0.0524 to 0.3339
    result = difference(rate([1] * 56 + [0] * 14), rate([1] * 48 + [0] * 32))
    assert (result.value, *ends(result)) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
    assert result.n == 150
    assert wilson(0, 10)[0] == 0 and wilson(10, 10)[1] <= 1 and wilson(0, 0) == (0, 1)


@pytest.mark.parametrize("passed", [-1, 3])
def test_counts_that_cannot_be_are_refused(passed):
    for impossible in partial(wilson, passed, 2), partial(pass_at_k, 2, passed, 1):
        with refused(f"{passed} "):
            impossible()


@pytest.mark.parametrize(("kind", "unseen"), [(of_change, 0.01), (of_score_change, 0)])
def test_a_change_of_shares_is_students_with_one_more_cluster_that_changed(kind, unseen):
    # Of 8 independent pairs, 2 gained: the mean is 1/4, and its variance is (6 * 1/16 + 2 * 9/16) /
    # 8 / 7, with 7 degrees of freedom. For shares, 1 / (8 + 2)² is added to the variance, because
    # there are 8 clusters of one value each.
    found = paired_difference([0] * 8, [1, 1, 0, 0, 0, 0, 0, 0], kind=kind)
    reach = 2.364624 * (1.5 / 56 + unseen) ** 0.5
    assert ends(found) == pytest.approx((0.25 - reach, 0.25 + reach), abs=1e-6)


def test_mcnemar_counts_only_changes():
    # 1 lost, 4 gained, 3 unchanged: p = 2 * (C(5,0) + C(5,1)) / 2^5 = 12/32
    first, second = [1, 0, 0, 0, 0, 1, 1, 0], [0, 1, 1, 1, 1, 1, 1, 0]
    assert mcnemar(first, second) == (1, 4, pytest.approx(0.375))
    assert mcnemar([1, 0], [1, 0]) == (0, 0, 1.0)
    with refused("1 of 2 values are NaN"):
        mcnemar(np.array([1, math.nan]), [1, 0])


def test_an_interval_over_two_models_adds_the_variance_of_tasks_and_of_both_models_seeds():
    # The tasks' differences are 0, 1, 1, 2: the variance of their mean is 2/3 / 4 = 1/6, with three
    # degrees of freedom. The first model's two seeds differ by 1: 1/2 / 2 = 1/4, with one degree.
    # The other model's three seeds are at 0, 1, 2: 1 / 3 = 1/3, with two degrees.
    seeds = np.array([-0.5, 0.5]), np.array([-1.0, 0, 1])
    values = np.array([[0], [1], [1], [2]]) + seeds[0]
    rate = over_seeds(values, np.arange(4), minus=np.zeros((4, 1)) + seeds[1])
    variance = 1 / 6 + 1 / 4 + 1 / 3
    freedom = variance**2 / ((1 / 6) ** 2 / 3 + (1 / 4) ** 2 / 1 + (1 / 3) ** 2 / 2)
    assert rate.value == 1 and freedom == pytest.approx(4.41818, abs=1e-5)
    reach = t.isf(0.025, freedom) * variance**0.5
    assert (rate.low, rate.high) == pytest.approx((1 - reach, 1 + reach))


def test_a_model_with_one_seed_adds_nothing_to_the_interval():
    values = np.array([[0.0], [1], [1], [2]])
    assert over_seeds(values, np.arange(4), minus=0 * values) == average(values[:, 0], np.arange(4))
