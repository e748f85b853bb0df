"""The first call after ``client.``: where it ends, and when there can be none."""

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookuplab.cloudapi.first_call import FirstCall, call_extent, strip_backticks

COMPLETE = [  # the call, then what follows it
    ('put_object(Bucket="b")', "\nprint(x)"),
    ('get_paginator("x")', '.paginate(Bucket="b")'),
    ("meta.events.register(1)", "(2)"),
    ('f(x="a) # (not a comment)")', "; g()"),
    ("f(  # see docs (required :)\n    a=1,  # ')'\n)", ".result()"),
    ("f \\\r\n\t(a=1,\r\n# c\r\nb=2)", "\r\n"),
    ("f (a=1)", ""),
    ('f(a="""x)\n"" y" \\""" (""", b=1)', ")"),
    ("f(a='''it''s)''', b='')", ")"),
    (r"""f(a=r'a\(b' "c)" 'd\'(e', b=rb"\")")""", ")"),
    (r"""f(a="\\", b=')')""", ")"),
    ("f(a='x\\\r\n)', b=1)", ")"),
    ("""f(a=f"{p}-{fmt('x', n=(1))}-{{lit)}}")""", ")"),
    ('f(a=F"", b=Rb"")', "]"),
    ("f(a=名前, b=“q”)", ")"),
    ("f(x=[f(y) for y in (1, 2)] if z else {1: (2,)})", "]"),
    ("Größe.über()", ""),
]
IMPOSSIBLE = [
    "\n f(x)",
    "f\n(x)",
    "f.\ng(x)",
    "f\\ \n(x)",
    'f["x"](y)',
    "f = g(x)",
    "f if g(x) else 1",
    "# f(x)",
    ".f(x)",
    "3f(x)",
    "(x)",
    "f(a=[1)",
    "f(a='x\n')",
    "```python\nf(x)",
]
UNFINISHED = ["", "f.g", "f \\\n", "f(", "f(a='", 'f(a=")"', 'f(a=""")"")', "f(#)", "f(a=''"]


def test_the_call_ends_at_its_own_parenthesis():
    for call, rest in COMPLETE:
        assert call_extent(call + rest).end == len(call), call


def test_impossible_and_unfinished_calls_are_told_apart():
    for text in IMPOSSIBLE:
        assert call_extent(text).impossible and call_extent(text).end is None, text
    for text in UNFINISHED:
        assert not call_extent(text).over, text


def test_name_and_span_are_given_without_leading_blanks():
    text = ' meta.send_tones (tones=["a"])\n'
    scanner = call_extent(text)
    assert text[scanner.start : scanner.end] == 'meta.send_tones (tones=["a"])'
    assert text[scanner.start : scanner.paren] == "meta.send_tones "


@given(st.text(alphabet="f.rb(){}[]'\"\\\n\r# :Nx", max_size=60))
def test_feeding_in_pieces_equals_feeding_whole(tail):
    text, rule = "f(" + tail, FirstCall()
    found = [call_extent(text[: at + 1]) for at in range(len(text))]
    assert [rule.feed(char) for char in text] == [one.over for one in found]
    assert {one for one in found if one.over} <= {call_extent(text)}, "more text changes nothing"


QUOTED = [(p + q, q) for p in ("", "f", "r", "Fr", "b", "u") for q in ('"', "'", '"""')]


@settings(max_examples=300)
@given(st.text(alphabet="ab(){}[]'\"\\\n# :!=", max_size=25), st.sampled_from(QUOTED))
def test_python_agrees_where_the_call_ends(content, quotes):
    """Python's own parser is the judge of every text that it accepts."""
    text = f"f(x={quotes[0]}{content}{quotes[1]})"
    try:
        (statement,) = ast.parse(text).body
    except (SyntaxError, ValueError):
        return
    call = getattr(statement, "value", None)
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
        assert text[: call_extent(text).end] == ast.get_source_segment(text, call)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("```\nf(a=1)\n```\nThis calls f.", "f(a=1)"),
        ("Here you are:\n```py\nf(\n    a=1,\n)\n```", "f(\n    a=1,\n)"),
        ("```python\nf(a=1", "f(a=1"),
        ("```f(a=1)```", "f(a=1)"),
        (" `f(a=1)` is the call", "f(a=1)"),
        ("`f(a=1)\n", "f(a=1)"),
        ("Call `f(a=1)`:\n```\nf(a=1)\n```", "f(a=1)"),
        ("```python\n    f(a=1)\n    ```", "    f(a=1)"),
        ("f(a='`')", "f(a='`')"),
        ("f(a=1)\n", "f(a=1)\n"),
        ("<think>\n```\ng()\n```\n</think>\n\n```\nf(a=1)\n```", "f(a=1)"),
        ("<think>maybe `g()`</think>\nIt is `f(a=1)`.", "f(a=1)"),
        ("<think>g()</think>f(a=1)", "f(a=1)"),
        ("<think>\n`g()` or", ""),
        ("<thinking>`g()`</thinking>`f(a=1)`", "f(a=1)"),
        ("◁think▷`g()`◁/think▷`f(a=1)`", "f(a=1)"),
        ("[THINK]`g()`[/THINK]f(a=x[think])", "f(a=x[think])"),
        ("<|channel|>analysis<|message|>`g()`<|channel|>final<|message|>`f(a=1)`", "f(a=1)"),
        ("<seed:think>`g()`", ""),
        ("First\n```\ng()\n```\nbut better:\n```\nf(a=1)\n```", "f(a=1)"),
        ("You want `f(a=1)` here", "f(a=1)"),
    ],
)
def test_the_code_between_backticks_after_any_reasoning(answer, code):
    assert strip_backticks(answer) == code
