"""Rates, intervals and pass@k against numbers worked out by hand."""

import math
from itertools import combinations

import numpy as np
import pytest

from lookuplab.errors import UserError
from lookuplab.scoring.rates import (
    Rate,
    average,
    averages,
    bootstrap,
    difference,
    holm,
    mcnemar,
    paired_difference,
    pass_at_k,
    perplexity,
    rate,
    resampled_weights,
    wilson,
)

HALF, QUARTER = math.log(0.5), math.log(0.25)


def ends(found):
    return found.low, found.high


def test_wilson_matches_the_formula():
    # 8 of 10, z = 1.959964: centre (.8 + z²/20) / (1 + z²/10) = .716733, half width .226671
    assert wilson(8, 10) == pytest.approx((0.490162, 0.943318), abs=1e-5)
    assert wilson(0, 0) == (0.0, 1.0) and wilson(0, 10)[0] == 0.0 and wilson(10, 10)[1] <= 1.0


def test_weights_count_whole_clusters_and_all_repetitions_are_drawn():
    drawn = [*resampled_weights(["b", "a", "b"], repetitions=2_500)]
    assert [one.shape for one in drawn] == [(1000, 3), (1000, 3), (500, 3)]
    weights = np.concatenate(drawn)
    assert (weights[:, 0] == weights[:, 2]).all() and (weights[:, 0] + weights[:, 1] == 2).all()


def test_two_clusters_give_the_three_possible_means():
    # clusters (1, 1) and (0, 0): a resample has mean 0 (1/4), 1/2 (1/2) or 1 (1/4), so the 95% interval is all of it
    assert average([1, 1, 0, 0], ["a", "a", "b", "b"]) == Rate(0.5, 0.0, 1.0, 4)
    assert average([10, 30, 50], ["a", "a", "b"]) == Rate(30, 20, 50, 3)
    assert average([7, 7], ["a", "b"]) == Rate(7, 7, 7, 2)


def test_clusters_weigh_by_their_values():
    # clusters (1) and (0, 0, 0), a twice 1, both 1/4, b twice 0; on average (1 + 2 / 4 + 0) / 4
    weights = np.concatenate([*resampled_weights([1, 2, 2, 2])])
    means = weights[:, 0] / weights.sum(axis=1)
    assert set(means) == {0, 0.25, 1} and means.mean() == pytest.approx(0.375, abs=0.02)


def test_bootstrap_is_seeded_and_ignores_the_order():
    generator = np.random.default_rng(1)
    values, clusters = generator.integers(0, 2, 60), generator.integers(0, 20, 60)
    order = generator.permutation(60)

    def found(values, clusters, seed):
        return bootstrap(lambda weights: weights @ values, clusters, repetitions=500, seed=seed)

    assert found(values, clusters, 3) == found(values[order], clusters[order], 3)
    assert found(values, clusters, 3) != found(values, clusters, 4)


def test_bootstrap_of_singletons_agrees_with_the_normal_interval():
    assert ends(rate([1] * 300 + [0] * 300, range(600))) == pytest.approx((0.46, 0.54), abs=0.005)


def test_a_ratio_is_of_sums():
    # clusters (1 of 2) and (3 of 3): a twice 1/2, both 4/5, b twice 1
    assert averages([[1], [3]], ["a", "b"], [[2], [3]]) == [Rate(0.8, 0.5, 1.0, 5)]


@pytest.mark.parametrize(
    ("values", "clusters", "independent"),
    [
        ([1] * 6, "aaabbb", (2, 2)),  # 6 valid tasks about 2 APIs are 2 observations
        ([1, 0, 1, 0], "aabb", (1, 2)),
        ([0.5, 0.5, 0, 1, 0, 1], "aabbbb", (1, 2)),
        ([0.1, 0.2, 0.3, 0.2], "aaab", (0.4, 2)),  # equal but for rounding
    ],
)
def test_equal_clusters_are_not_certain(values, clusters, independent):
    assert ends(rate(values, list(clusters))) == pytest.approx(wilson(*independent))


def test_a_rate_without_clusters_is_wilsons_and_of_no_tasks_unknown():
    assert rate([True] * 8 + [False] * 2) == Rate(0.8, *wilson(8, 10), 10)
    assert math.isnan(rate([], []).value) and ends(rate([], [])) == (0, 1)


def test_clusters_must_match_the_values():
    with pytest.raises(ValueError):
        average([1, 0], ["a"])


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [(5, 1, 1, 0.2), (5, 2, 2, 0.7), (5, 2, 5, 1), (5, 0, 5, 0), (5, 5, 3, 1)],
)
def test_pass_at_k_by_hand(n, c, k, expected):
    assert pass_at_k(n, c, k) == pytest.approx(expected, abs=1e-15)


def test_pass_at_k_is_the_share_of_the_sets_of_k_samples_that_hold_a_pass():
    cases = [(n, c, k) for n in range(1, 7) for c in range(n + 1) for k in range(1, n + 1)]
    for n, c, k in cases:
        sets = [*map(any, combinations([True] * c + [False] * (n - c), k))]
        assert pass_at_k(n, c, k) == pytest.approx(sum(sets) / len(sets), abs=1e-15)


@pytest.mark.parametrize("k", [0, 6])
def test_more_samples_than_there_are_is_an_error(k):
    with pytest.raises(UserError, match="there are n = 5 samples"):
        pass_at_k(5, 3, k)


def test_difference_is_newcombes_for_wilson_intervals():
    # Newcombe (1998), example (a), method 10: 56/70 - 48/80 is .2 with 0.0524 to 0.3339
    result = difference(rate([1] * 56 + [0] * 14), rate([1] * 48 + [0] * 32))
    assert (result.value, *ends(result)) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
    assert result.n == 150


def test_paired_difference_draws_clusters():
    # clusters a (+.5, 0) and b (-.25): a resample is a twice (.25), both (.25 / 3) or b twice (-.25)
    result = paired_difference([0, 1, 0.5], [0.5, 1, 0.25], clusters=["a", "a", "b"])
    assert (result.low, result.value, result.high) == pytest.approx((-0.25, 0.25 / 3, 0.25))


def test_mcnemar_counts_only_changes():
    # 1 lost, 4 gained, 3 unchanged: p = 2 * (C(5,0) + C(5,1)) / 2^5 = 12/32
    first, second = [1, 0, 0, 0, 0, 1, 1, 0], [0, 1, 1, 1, 1, 1, 1, 0]
    assert mcnemar(first, second) == (1, 4, pytest.approx(0.375))
    assert mcnemar([1, 0], [1, 0]) == (0, 0, 1.0)


def test_holm_adjusts_step_by_step():
    # sorted .01 .03 .04 -> 3 * .01, max(that, 2 * .03), max(that, 1 * .04)
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert len(holm([])) == 0


def test_perplexity_is_over_tokens_not_over_continuations():
    # bits 1, 1, 1, 2 -> mean 1.25, not the 1.5 of the two continuations' means; resamples have 1, 1.25 or 2
    result = perplexity([[HALF, HALF, HALF], [QUARTER]], ["a", "b"])
    assert (result.value, *ends(result)) == pytest.approx((2**1.25, 2, 4)) and result.n == 4
    # a, a | b with bits 0, 2 | 2: resampling a and b gives means 1 (a twice), 4/3 or 2 bits, never 0
    assert ends(perplexity([[0.0], [QUARTER], [QUARTER]], ["a", "a", "b"])) == pytest.approx((2, 4))
    # one cluster says nothing about the spread
    assert ends(perplexity([[HALF], [QUARTER]], ["same", "same"])) == (1, math.inf)
