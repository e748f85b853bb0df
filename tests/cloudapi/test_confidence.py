"""API invocation confidence, on tokens whose probabilities can be read off (Section 4.2, Figure 8)."""

import math

import pytest

from lookuplab.cloudapi.confidence import confidence, name_span, name_tokens
from lookuplab.errors import UserError
from lookuplab.models.types import Completion


def completion(*pairs):
    """A completion of (piece, probability) pairs."""
    pieces, probabilities = zip(*pairs, strict=True)
    return Completion("t", 0, "".join(pieces), pieces, tuple(range(len(pieces))), tuple(map(math.log, probabilities)),
                      "stop", 1)


FIGURE_8 = completion(("restart", 0.41), ("_", 0.83), ("partition", 0.21), ("(", 0.48), ("\n    ", 0.41), (")", 0.9))


def test_figure_8_has_a_confidence_of_021():
    assert confidence(FIGURE_8)["minimum"] == pytest.approx(0.21)


def test_every_aggregate_is_over_the_name_alone():
    found = confidence(FIGURE_8)
    assert found["mean"] == pytest.approx((0.41 + 0.83 + 0.21) / 3)
    assert found["product"] == pytest.approx(0.41 * 0.83 * 0.21)
    assert found["last"] == pytest.approx(0.21)


def test_a_token_that_is_only_the_parenthesis_does_not_count():
    assert confidence(completion(("list", 0.9), ("(", 0.1), (")", 0.1)))["minimum"] == pytest.approx(0.9)


def test_a_token_that_ends_the_name_and_opens_the_call_counts():
    assert confidence(completion(("lis", 0.9), ("t(", 0.2), (")", 0.1)))["minimum"] == pytest.approx(0.2)


def test_a_token_that_spells_nothing_does_not_count():
    assert confidence(completion(("", 0.01), ("list", 0.9), ("", 0.02), ("(", 0.5), (")", 1)))["minimum"] == pytest.approx(0.9)


def test_blanks_before_the_parenthesis_are_not_of_the_name():
    assert [piece for piece, _ in name_tokens(completion(("list", 0.9), (" ", 0.1), ("(", 0.1), (")", 1)))] == ["list"]


def test_a_dotted_name_counts_as_a_whole():
    assert name_span("meta.list_it(x)") == (0, len("meta.list_it"))


def test_a_name_without_a_call_has_a_confidence():
    assert confidence(completion(("lis", 0.7), ("t", 0.6), ("\n", 0.1)))["minimum"] == pytest.approx(0.6)


def test_a_call_that_never_ends_has_the_confidence_of_its_name():
    assert confidence(completion(("list", 0.7), ("(", 0.6), ("a", 0.1)))["minimum"] == pytest.approx(0.7)


def test_nothing_named_is_no_confidence():
    assert set(confidence(completion(("\n", 0.9), ("#", 0.9))).values()) == {0.0}


def test_in_a_chat_answer_the_name_is_looked_for_inside_of_the_backticks():
    answer = completion(("```\n", 0.1), ("list", 0.8), ("(", 0.3), (")", 0.3), ("\n```", 0.2))
    assert confidence(answer, "list()")["minimum"] == pytest.approx(0.8)


def test_in_a_chat_answer_that_names_the_call_before_the_code_the_code_counts():
    answer = completion(("Use `", 0.1), ("list", 0.2), ("()", 0.2), ("`:\n```\n", 0.1), ("list", 0.8), ("()", 0.3),
                        ("\n```", 0.2))
    assert name_tokens(answer, "list()") == [("list", pytest.approx(0.8))]


def test_half_a_character_inside_of_the_name_counts():
    cafe = completion(("caf", 0.9), ("", 0.3), ("é", 0.8), ("(", 0.1), (")", 1))
    assert confidence(cafe)["minimum"] == pytest.approx(0.3)


def test_an_endpoint_without_log_probabilities_is_one_clear_line():
    silent = Completion("t", 0, "list()", ("list()",), (0,), None, "stop", 1)
    with pytest.raises(UserError, match="no log-probabilities"):
        confidence(silent)
