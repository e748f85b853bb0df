"""Rates and intervals against numbers worked out by hand."""

import math

import numpy as np
import pytest

from lookuplab.scoring.rates import (
    Rate,
    average,
    bootstrap,
    difference,
    holm,
    mcnemar,
    paired_difference,
    perplexity,
    rate,
    ratios,
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


def test_weights_count_whole_clusters():
    [weights] = resampled_weights(["b", "a", "b"], repetitions=50)
    assert weights.shape == (50, 3)
    assert (weights[:, 0] == weights[:, 2]).all() and (weights[:, 0] + weights[:, 1] == 2).all()


def test_two_clusters_give_the_three_possible_means():
    # clusters (1, 1) and (0, 0): a resample has mean 0 (1/4), 1/2 (1/2) or 1 (1/4), so the 95% interval is all of it
    assert average([1, 1, 0, 0], ["a", "a", "b", "b"]) == Rate(0.5, 0.0, 1.0, 4)


def test_clusters_weigh_by_their_values():
    # (1) alone and (0, 0, 0): means 0, 1/4, 1 with chances 1/4, 1/2, 1/4; the middle 40% is 1/4 only
    assert ends(average([1, 0, 0, 0], [1, 2, 2, 2], level=0.4)) == (0.25, 0.25)


def test_bootstrap_is_seeded_and_ignores_the_order():
    generator = np.random.default_rng(1)
    values, clusters = generator.integers(0, 2, 60), generator.integers(0, 20, 60)
    shuffled = generator.permutation(60)
    first = average(values, clusters, repetitions=500, seed=3)
    assert first == average(values[shuffled], clusters[shuffled], repetitions=500, seed=3)
    assert first != average(values, clusters, repetitions=500, seed=4)


def test_bootstrap_of_singletons_agrees_with_the_normal_interval():
    assert ends(rate([1] * 300 + [0] * 300, range(600))) == pytest.approx((0.46, 0.54), abs=0.005)


def test_repetitions_beyond_one_chunk_are_all_drawn():
    drawn = []
    bootstrap(
        lambda weights: drawn.append(len(weights)) or weights[:, 0], [0, 1], repetitions=2_500
    )
    assert drawn == [1, 1000, 1000, 500]  # the sample itself first


def test_a_ratio_is_of_sums():
    # clusters (1 of 2) and (3 of 3): a twice 1/2, both 4/5, b twice 1
    (found,) = ratios(np.array([[1], [3]]), np.array([[2], [3]]), ["a", "b"])
    assert (found.value, *ends(found)) == (0.8, 0.5, 1.0)


def test_a_rate_without_clusters_is_wilson():
    assert rate([True] * 8 + [False] * 2) == Rate(0.8, *wilson(8, 10), 10)


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


def test_a_rate_of_no_tasks_is_unknown():
    result = rate([], [])
    assert np.isnan(result.value) and (*ends(result), result.n) == (0.0, 1.0, 0)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_a_rate_refuses_what_is_no_share(value):
    with pytest.raises(ValueError, match="0 to 1"):
        rate([value], ["a"])


def test_clusters_must_match_the_values():
    with pytest.raises(ValueError):
        average([1, 0], ["a"])


def test_an_average_may_be_any_number():
    assert average([10, 30, 50], ["a", "a", "b"], repetitions=500) == Rate(30, 20, 50, 3)
    assert average([7, 7], ["a", "b"]) == Rate(7, 7, 7, 2)


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
    assert (result.value, *ends(result), result.n) == (
        pytest.approx(2**1.25),
        pytest.approx(2),
        pytest.approx(4),
        4,
    )


def test_continuations_of_one_cluster_move_together():
    # a, a | b with bits 0, 2 | 2: resampling a and b gives means 1 (a twice), 4/3 or 2 bits, never 0
    assert ends(perplexity([[0.0], [QUARTER], [QUARTER]], ["a", "a", "b"])) == pytest.approx((2, 4))


def test_one_cluster_says_nothing_about_the_spread():
    assert ends(perplexity([[HALF], [QUARTER]], ["same", "same"])) == (1, math.inf)
