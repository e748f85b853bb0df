"""Similarity of a generated function and its reference: hand-computed cases, and agreement with the named packages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookuplab.toolgen.metrics import similarity

PREDICTED, WANTED = "def f ( x ) : return x", "def f ( x ) : return y"


def test_bleu_4_of_one_changed_token_in_eight():
    # (7+1)/(8+1) * 7/8 * 6/7 * 5/6 = 5/9, and its fourth root
    assert similarity.bleu4([PREDICTED], [WANTED]) == pytest.approx((5 / 9) ** 0.25)
    assert round(similarity.bleu4([PREDICTED.split()], [WANTED.split()]), 5) == 0.86334


def test_bleu_4_is_of_the_corpus_and_not_the_mean_of_its_functions():
    both = similarity.bleu4([PREDICTED, "a"], [WANTED, "b"])
    assert both == pytest.approx((8 / 10 * 7 / 8 * 6 / 7 * 5 / 6) ** 0.25)


def test_bleu_4_uses_the_tokens_it_is_given():
    assert similarity.bleu4(["ab"], ["ab"], tokenize=list) == 1
    assert similarity.bleu4(["ab"], ["abcd"], tokenize=list) == pytest.approx(2.718281828 ** -1)  # brevity: 1 - 4/2


def test_bleu_4_of_an_empty_prediction_is_0_and_of_nothing_at_all_an_error():
    assert similarity.bleu4([""], ["return x"]) == 0
    with pytest.raises(ValueError):
        similarity.bleu4([], [])


def test_the_interval_of_bleu_4_contains_its_value_and_one_repository_gives_none():
    texts = ([PREDICTED, WANTED, "a b"], [WANTED, WANTED, "a c"])
    rate = similarity.bleu4_rate(*texts, ["r", "s", "s"])
    assert rate.low <= rate.value <= rate.high and rate.value == pytest.approx(similarity.bleu4(*texts))
    assert rate == similarity.bleu4_rate(*texts, ["r", "s", "s"])
    alone = similarity.bleu4_rate(*texts, ["r"] * 3)
    assert (alone.low, alone.high) == (0, 1)


def test_edit_similarity_of_one_changed_word():
    assert round(similarity.edit_similarity("return foo(a)", "return bar(a)")) == 77
    assert similarity.edit_similarity("return\n    foo(a)  ", "return foo(a)") == 100


def test_exact_match_does_not_see_white_space():
    assert similarity.exact_match("x = 1\n    y", " x = 1\ny") and not similarity.exact_match("x=1", "x = 1")


def test_bodies_are_scored_unless_the_package_is_asked_for():
    parts = ("def f(x):", '    """Say."""', "    return x")
    assert similarity.scored_text(*parts) == "    return x"
    assert similarity.scored_text(*parts, variant="package") == "\n".join(parts)
    with pytest.raises(ValueError):
        similarity.scored_text(*parts, variant="other")


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_has_a_similarity(prediction, reference):
    assert 0 <= similarity.bleu4([prediction], [reference]) <= 1
    assert 0 <= similarity.edit_similarity(prediction, reference) <= 100
