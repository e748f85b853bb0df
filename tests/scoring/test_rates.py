"""Rates and intervals against numbers worked out by hand."""

import numpy as np
import pytest

from lookuplab.scoring.rates import Rate, cluster_bootstrap, difference, rate, wilson


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
