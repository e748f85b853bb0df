"""Perplexity of continuations whose probabilities are powers of two."""

import math

import pytest

from lookuplab.scoring.perplexity import perplexity

HALF, QUARTER = math.log(0.5), math.log(0.25)


def test_perplexity_is_over_tokens_not_over_continuations():
    # bits 1, 1, 1, 2 -> mean 1.25, not the 1.5 of the two continuations' means
    result = perplexity([[HALF, HALF, HALF], [QUARTER]])
    assert result.value == pytest.approx(2**1.25) and result.n == 4


def test_interval_comes_from_resampling_continuations():
    result = perplexity([[HALF, HALF, HALF], [QUARTER]])
    assert (result.low, result.high) == pytest.approx((2, 4))


def test_continuations_of_one_cluster_move_together():
    # a, a | b with bits 0, 2 | 2: resampling a and b gives means 1 (a twice), 4/3 or 2 bits, never 0
    result = perplexity([[0.0], [QUARTER], [QUARTER]], clusters=["a", "a", "b"])
    assert (result.low, result.high) == pytest.approx((2, 4))


def test_one_cluster_says_nothing_about_the_spread():
    result = perplexity([[HALF], [QUARTER]], clusters=["same", "same"])
    assert (result.low, result.high) == (1, math.inf)


def test_certain_tokens_have_perplexity_one():
    assert perplexity([[0.0, 0.0]]).value == 1.0


def test_no_tokens_are_refused():
    with pytest.raises(ValueError, match="at least one token"):
        perplexity([[]])
