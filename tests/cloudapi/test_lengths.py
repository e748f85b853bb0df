"""Figure 6's bins of lengths."""

from lengths import token_bin


def test_token_bins_double_up_to_the_longest():
    bins = {0: "[0, 0]", 1: "[1, 1]", 3: "[2, 3]", 16: "[16, 31]", 2047: "[1024, 2047]"}
    assert {count: token_bin(count) for count in bins} == bins
    assert token_bin(99_999) == "[1024, 2047]"
