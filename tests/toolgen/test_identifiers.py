"""Next-identifier and identifier-sequence match, on whole and on broken texts."""

from hypothesis import given
from hypothesis import strategies as st

from lookuplab.toolgen.metrics.identifiers import identifiers, next_match, prefix_match, sequence_match


def test_identifiers_are_names_in_order_and_no_keywords_strings_or_comments():
    assert identifiers("if a.b(c, 'd'):  # e\n    return f'{g}' + h") == ["a", "b", "c", "g", "h"]


def test_a_text_that_ends_in_the_middle_keeps_its_identifiers():
    assert identifiers("for x in self.items(\n    y[z") == ["x", "self", "items", "y", "z"]


def test_the_next_identifier_matches_or_not():
    assert next_match("add(x)", "add(y)") is True
    assert next_match("remove(x)", "add(x)") is False
    assert next_match("", "add(x)") is False and next_match("add", "1") is None


def test_a_sequence_matches_up_to_its_first_difference():
    assert sequence_match("a(b).c + e", "a(b).d + e") == 0.5
    assert sequence_match("a", "a") == 1 and sequence_match("", "a") == 0 and sequence_match("a", "1") is None


def test_a_prefix_is_of_tokens():
    assert prefix_match("a(b)", "a(c)") == 0.5  # a ( of a ( c )
    assert prefix_match("a", "") is None


@given(st.text(max_size=80))
def test_any_text_agrees_with_itself(text):
    assert sequence_match(text, text) in (1, None) and prefix_match(text, text) in (1, None)
