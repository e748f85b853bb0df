"""HTML and reStructuredText become plain text, and plain text becomes sentences."""

from hypothesis import given
from hypothesis import strategies as st

from lookuplab.cloudapi.prose import html_text, rst_text, sentences


def test_html_loses_its_markup_and_keeps_one_paragraph_a_line():
    html = "<p>Gets  a <a href='https://x'>list</a> .</p> <ul><li><p>One &amp; <b>two</b></p></li> <li>Three</li></ul>"
    assert html_text(html) == "Gets a list.\nOne & two\nThree"


def test_sentences_end_at_full_stops_before_capitals_and_at_line_ends():
    assert sentences("Puts a thing. Fails if there is none!\nA heading\nLast one") == [
        "Puts a thing.",
        "Fails if there is none!",
        "A heading",
        "Last one",
    ]


def test_abbreviations_and_version_numbers_end_no_sentence():
    for text in (
        "Use US East (N. Virginia) here.",
        "Takes e.g. A or B.",
        "Since version 1.2.",
        "Calls api.Thing now.",
    ):
        assert sentences(text) == [text]


@given(st.text(alphabet="aB1 .!?()\"'\n", max_size=60))
def test_splitting_loses_no_character_but_white_space(text):
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


def test_rst_reads_as_its_rendered_page():
    rst = "See :class:`~azure.core.Thing` and `the guide <https://x>`__.\n\n\n\n**Request Syntax**\n::\n\n  *a* ``'s'``"
    assert rst_text(rst) == "See Thing and the guide.\n\nRequest Syntax\n\n  a 's'"


def test_rst_keeps_stars_that_are_no_emphasis():
    for text in ("f(*client_args, **client_kwargs)", "2 * 3 * 4"):
        assert rst_text(text) == text
    assert rst_text("the pattern ``arn:*:iam::*:role``") == "the pattern arn:*:iam::*:role"
