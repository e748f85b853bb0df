"""pass@k against hand-computed cases, counting of all subsets, and the interval's clusters."""

from itertools import combinations

import pytest

from lookuplab.errors import UserError
from lookuplab.scoring.pass_at_k import pass_at_k, passes


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [
        (5, 1, 1, 0.2),
        (5, 2, 2, 0.7),
        (5, 2, 5, 1),
        (5, 0, 5, 0),
        (5, 0, 1, 0),
        (5, 5, 3, 1),
        (5, 3, 3, 1),
        (1, 1, 1, 1),
    ],
)
def test_hand_computed_cases(n, c, k, expected):
    assert pass_at_k(n, c, k) == pytest.approx(expected, abs=1e-15)


def test_it_is_the_share_of_the_sets_of_k_samples_that_hold_a_pass():
    for n in range(1, 7):
        for c in range(n + 1):
            for k in range(1, n + 1):
                sets = list(combinations([True] * c + [False] * (n - c), k))
                assert pass_at_k(n, c, k) == pytest.approx(
                    sum(map(any, sets)) / len(sets), abs=1e-15
                )


@pytest.mark.parametrize("k", [0, 6])
def test_more_samples_than_there_are_is_an_error(k):
    with pytest.raises(UserError, match="there are n = 5 samples"):
        pass_at_k(5, 3, k)


def test_the_mean_is_over_problems_whatever_their_order_and_the_interval_over_clusters():
    verdicts = {
        "a": [True, False],
        "b": [True, True],
        "c": [False] * 4,
        "d": [False, False, False, True],
    }
    alone = dict.fromkeys(verdicts, "") | {one: one for one in verdicts}
    found = passes(verdicts, alone, 1)
    assert (found.value, found.n) == (pytest.approx((0.5 + 1 + 0 + 0.25) / 4), 4)
    assert passes(dict(reversed(verdicts.items())), alone, 1) == found
    together = passes(verdicts, {"a": "x", "b": "x", "c": "y", "d": "y"}, 1)
    assert together.value == found.value and (together.low, together.high) != (
        found.low,
        found.high,
    )
    assert passes(verdicts, alone, 2).value == pytest.approx((1 + 1 + 0 + 0.5) / 4)
