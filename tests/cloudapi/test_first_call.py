"""Tests the first call after ``client.``: where it ends, and when there is none."""

import ast
from itertools import pairwise

import pytest
from beside import table
from hypothesis import given
from hypothesis import strategies as st

from lookuplab.cloudapi import first_call
from lookuplab.cloudapi.first_call import FirstCall, call_extent, code_span, strip_backticks

CALLS = table(__file__, "calls.yaml")
UNFINISHED = ["", "f.g", "f \\\n", "f(", "f(a='", 'f(a=")"', 'f(a=""")"")', "f(#)", "f(a=''"]


def test_the_call_ends_at_its_own_parenthesis():
    for call, rest in CALLS["complete"]:
        assert call_extent(call + rest).end == len(call), call


def test_impossible_and_unfinished_calls_are_told_apart():
    for text in CALLS["impossible"]:
        assert call_extent(text).impossible and call_extent(text).end is None, text
    for text in UNFINISHED:
        assert not call_extent(text).over, text


def test_the_name_is_given_without_leading_blanks():
    text = ' meta.send_tones (tones=["a"])\n'
    found = call_extent(text)
    assert text[found.start : found.paren] == "meta.send_tones "


@given(st.text(alphabet="f.rb(){}[]'\"\\\n\r# :Nx", max_size=60), st.sets(st.integers(1, 62)))
def test_feeding_in_any_pieces_equals_feeding_whole(tail, cuts):
    text = "f(" + tail
    found = [call_extent(text[: at + 1]) for at in range(len(text))]
    assert {one for one in found if one.over} <= {call_extent(text)}, "more text changes nothing"
    ends = sorted({cut for cut in cuts if cut < len(text)} | {len(text)})
    rule = FirstCall()
    for start, end in pairwise([0, *ends]):
        assert rule.feed(text[start:end]) == found[end - 1].over
        assert rule.found == found[end - 1]


LONG = ["f.", "f(", "f(a,", "f('a", 'f("""a"', "f('''\\", "f(#", "f ", "f(''''"]


@pytest.mark.parametrize("begins", LONG)
def test_no_character_is_looked_at_more_than_a_few_times(begins, monkeypatch):
    looked = 0

    class Counting:
        def __init__(self, pattern):
            self.match_from = pattern.match

        def match(self, text, at):
            nonlocal looked
            looked += len(text) - at
            return self.match_from(text, at)

    counting = {place: Counting(one) for place, one in first_call._NEXT.items()}
    monkeypatch.setattr(first_call, "_NEXT", counting)
    rule = FirstCall()
    text = begins + begins[-1] * 3000
    for char in text:
        rule.feed(char)
    assert looked < 4 * len(text)


QUOTED = [(p + q, q) for p in ("", "f", "r", "Fr", "b", "u") for q in ('"', "'", '"""')]


def test_code_before_unfinished_reasoning_stays_where_it_is():
    assert code_span("f(a=1)<think>f(a=1)") == (0, 6)


@given(st.text(alphabet="ab(){}[]'\"\\\n# :!=", max_size=25), st.sampled_from(QUOTED))
def test_python_agrees_where_the_call_ends(content, quotes):
    """If Python can parse the call, our parser must find the same end as Python's."""
    text = f"f(x={quotes[0]}{content}{quotes[1]})"
    try:
        (statement,) = ast.parse(text).body
    except (SyntaxError, ValueError):
        return
    call = getattr(statement, "value", None)
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
        assert text[: call_extent(text).end] == ast.get_source_segment(text, call)


@pytest.mark.parametrize(("answer", "code"), CALLS["between_backticks"])
def test_the_code_between_backticks_after_any_reasoning(answer, code):
    assert strip_backticks(answer) == code
