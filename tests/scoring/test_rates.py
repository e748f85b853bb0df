"""Rates and intervals against numbers worked out by hand."""

import numpy as np
import pytest

from lookuplab.scoring.rates import (
    Rate,
    average,
    cluster_bootstrap,
    difference,
    estimate,
    estimates,
    rate,
    resampled_weights,
    wilson,
)


def test_wilson_matches_the_formula():
    # 8 of 10, z = 1.959964: centre (.8 + z²/20) / (1 + z²/10) = .716733, half width .226671
    assert wilson(8, 10) == pytest.approx((0.490162, 0.943318), abs=1e-5)


def test_wilson_of_nothing_is_everything():
    assert wilson(0, 0) == (0.0, 1.0)


def test_wilson_at_the_edges_stays_inside():
    assert wilson(0, 10)[0] == 0.0 and wilson(10, 10)[1] == pytest.approx(1.0)
    assert wilson(10, 10)[1] <= 1.0


def test_wilson_refuses_more_successes_than_trials():
    with pytest.raises(ValueError, match="11 successes of 10"):
        wilson(11, 10)


def test_two_clusters_give_the_three_possible_means():
    # clusters (1, 1) and (0, 0): a resample has mean 0 (1/4), 1/2 (1/2) or 1 (1/4), so the 95% interval is all of it
    assert cluster_bootstrap([1, 1, 0, 0], ["a", "a", "b", "b"]) == (0.0, 1.0)


def test_clusters_weigh_by_their_values():
    # (1) alone and (0, 0, 0): means 0, 1/4, 1 with chances 1/4, 1/2, 1/4; the middle 40% is 1/4 only
    assert cluster_bootstrap([1, 0, 0, 0], [1, 2, 2, 2], level=0.4) == (0.25, 0.25)


def test_bootstrap_is_seeded_and_ignores_the_order():
    generator = np.random.default_rng(1)
    values, clusters = generator.integers(0, 2, 60), generator.integers(0, 20, 60)
    shuffled = generator.permutation(60)
    first = cluster_bootstrap(values, clusters, repetitions=500, seed=3)
    assert first == cluster_bootstrap(values[shuffled], clusters[shuffled], repetitions=500, seed=3)
    assert first != cluster_bootstrap(values, clusters, repetitions=500, seed=4)


def test_bootstrap_of_singletons_agrees_with_the_normal_interval():
    values = [1] * 300 + [0] * 300
    low, high = cluster_bootstrap(values, range(600))
    assert (low, high) == pytest.approx((0.46, 0.54), abs=0.005)


def test_repetitions_beyond_one_chunk_are_all_drawn():
    totals = []
    cluster_bootstrap([0, 1], [0, 1], lambda sums, counts: totals.append(len(sums)) or sums / counts, repetitions=2_500)
    assert totals == [1000, 1000, 500]


def test_a_rate_without_clusters_is_wilson():
    assert rate([True] * 8 + [False] * 2) == Rate(0.8, *wilson(8, 10), 10)


def test_clustering_widens_the_interval():
    values = [1, 1, 1, 0, 0, 0] * 20
    clusters = np.repeat(range(40), 3)
    together, apart = rate(values, clusters), rate(values)
    assert together.value == apart.value == 0.5
    assert together.high - together.low > 1.4 * (apart.high - apart.low)


def test_all_equal_clusters_are_not_certain():
    # 6 valid tasks about 2 APIs are 2 independent observations
    result = rate([1] * 6, ["a", "a", "a", "b", "b", "b"])
    assert (result.value, result.n) == (1.0, 6)
    assert (result.low, result.high) == wilson(2, 2)


def test_equal_rates_inside_every_cluster_are_not_certain():
    result = rate([1, 0, 1, 0], ["a", "a", "b", "b"])
    assert (result.low, result.high) == wilson(1, 2)


def test_percent_scales_value_and_interval():
    assert Rate(0.5, 0.25, 0.75, 8).percent() == Rate(50, 25, 75, 8)


def test_a_rate_of_no_tasks_is_unknown():
    result = rate([])
    assert np.isnan(result.value) and (result.low, result.high, result.n) == (0.0, 1.0, 0)


def test_a_rate_refuses_other_numbers():
    with pytest.raises(ValueError, match="0 or 1"):
        rate([0.5])


def test_clusters_must_match_the_values():
    with pytest.raises(ValueError, match="as many clusters"):
        cluster_bootstrap([1, 0], ["a"])


def test_difference_is_newcombes_for_wilson_intervals():
    # Newcombe (1998), example (a), method 10: 56/70 - 48/80 is .2 with 0.0524 to 0.3339
    result = difference(rate([1] * 56 + [0] * 14), rate([1] * 48 + [0] * 32))
    assert (result.value, result.low, result.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
    assert result.n == 150


def test_difference_of_exact_numbers_is_exact():
    assert difference(Rate(5, 5, 5, 1), Rate(3, 3, 3, 1)) == Rate(2, 2, 2, 2)


def test_an_estimate_of_whole_values_is_the_rate():
    generator = np.random.default_rng(1)
    values, clusters = generator.integers(0, 2, 60), generator.integers(0, 20, 60)
    assert estimate(values, clusters) == rate(values, clusters)


def test_an_estimate_takes_expectations():
    # clusters (.5, .5) and (0, 1, 0, 1) are equal: two observations; (.5) and (0) are not: 0, .25 and .5 are possible
    assert estimate([0.5, 0.5, 0, 1, 0, 1], list("aabbbb")) == Rate(0.5, *wilson(1, 2), 6)
    assert estimate([0.5, 0], ["a", "b"]) == Rate(0.25, 0.0, 0.5, 2)


def test_equal_clusters_are_recognised_in_spite_of_rounding():
    result = estimate([0.1, 0.2, 0.3, 0.2], ["a", "a", "a", "b"])
    assert (result.low, result.high) == pytest.approx(wilson(0.4, 2))


def test_a_curve_is_its_points():
    generator = np.random.default_rng(2)
    values, clusters = generator.random((40, 3)), generator.integers(0, 15, 40)
    curve = estimates(values, clusters, repetitions=2_500)
    assert [(p.value, p.low, p.high) for p in curve] == [
        pytest.approx((p.value, p.low, p.high))
        for p in (estimate(column, clusters, repetitions=2_500) for column in values.T)
    ]


def test_the_points_of_a_curve_share_their_resamples():
    # the second setting is always .1 better, so are both ends of its interval
    values = np.random.default_rng(3).random((40, 1)) * 0.9
    first, second = estimates(np.hstack([values, values + 0.1]), np.arange(40) // 2, repetitions=500)
    assert (second.low - first.low, second.high - first.high) == pytest.approx((0.1, 0.1))


def test_an_estimate_is_the_bootstrap_of_the_mean():
    generator = np.random.default_rng(4)
    values, clusters = generator.random(40), generator.integers(0, 15, 40)
    result = estimate(values, clusters, repetitions=500, seed=7)
    assert (result.low, result.high) == pytest.approx(cluster_bootstrap(values, clusters, repetitions=500, seed=7))


def test_an_average_may_be_any_number():
    result = average([10, 30, 50], ["a", "a", "b"], repetitions=500)
    assert result.value == 30 and (result.low, result.high, result.n) == (20, 50, 3)
    assert average([7, 7], ["a", "b"]) == Rate(7, 7, 7, 2)


def test_an_estimate_of_no_tasks_is_unknown():
    result = estimate([], [])
    assert np.isnan(result.value) and (result.low, result.high, result.n) == (0.0, 1.0, 0)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_an_estimate_refuses_what_is_no_share(value):
    with pytest.raises(ValueError, match="0 to 1"):
        estimate([value], ["a"])


def test_weights_count_whole_clusters():
    [weights] = resampled_weights(["b", "a", "b"], repetitions=50)
    assert weights.shape == (50, 3)
    assert (weights[:, 0] == weights[:, 2]).all() and (weights[:, 0] + weights[:, 1] == 2).all()
