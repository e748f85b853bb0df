"""Comments, and the text they are made of: the right sentence, the imperative, no leaked name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookuplab.cloudapi.specs import ApiSpec
from recipes.cloudapi.comments import Intent, distinct_comments, intent, leaks_name, normalised
from recipes.prose import html_text, rst_text, sentences

DESCRIPTION = "Adds the specified user to the specified group."


def comments(description: str, name: str, count: int, provider: str = "aws") -> list[str]:
    spec = ApiSpec(provider, "iam", "iam", name, (), description=description)
    return distinct_comments(spec, count)


@pytest.mark.parametrize(
    ("description", "verb", "rest"),
    [
        (DESCRIPTION, "add", "the specified user to the specified group"),
        (
            "This is WAF. For more information, see it. Returns the web ACL.",
            "return",
            "the web ACL",
        ),
        ("This operation lists all keys in a vault, based on it.", "list", "all keys in a vault"),
        ("Use this operation to delete a large (very large) one.", "delete", "a large one"),
        ("Detaches the thing.", "detach", "the thing"),
        ("Copies the thing.", "copy", "the thing"),
    ],
)
def test_the_intent_is_the_first_sentence_that_says_what_the_api_does(description, verb, rest):
    assert intent(description) == Intent(verb, rest)
    assert intent("The container. Table the thing.") is None


def test_a_name_leaks_in_every_case_style():
    for comment in ("put object", "PutObject here", "PUT-OBJECT", "call put_object"):
        assert leaks_name(comment, "put_object")


def test_comments_differ_and_repeat_neither_name_nor_description():
    found = comments(DESCRIPTION, "add_user", 6)
    assert len({normalised(comment) for comment in found}) == 6
    assert not any(leaks_name(comment, "add_user") for comment in found)
    assert found == comments(DESCRIPTION, "add_user", 6)
    assert "Create a new queue" not in comments("Create a new queue.", "make_queue", 6)


def test_comments_say_neither_less_nor_more():
    said = "Creates a new rule for the specified group. compaction is a type of it."
    spec = ApiSpec("aws", "iam", "iam", "make", (), description=said)
    found = {*distinct_comments(spec, 40)}
    verbs, things = ("Create", "Make", "Set up", "Add", "Provision"), ("a new", "a brand-new")
    groups = ("given", "chosen", "selected")
    every = {f"{v} {a} rule for the {g} group" for v in verbs for a in things for g in groups}
    assert found <= every and len(found) > 10


def test_packages_may_begin_with_more_verbs():
    description = "Compute what the basket costs."
    assert comments(description, "price", 3, "python") and not comments(description, "price", 3)


@pytest.mark.parametrize(
    ("docstring", "clause"),
    [
        ("Returns True if G is empty, False otherwise.", "check-whether G is empty"),
        ("Return True if graph is directed.", "check-whether the graph is directed"),
        ("Check that the estimator raises an error.", "check-that the estimator raises an error"),
        ("Returns number of edges in G.", "return the number of edges in G"),
        ("Loads all files and stores them in a cache.", "load all files and store them in a cache"),
        ("Compute information about X.", "compute information about X"),
        ("Check that estimator raises.", None),
        ("Determine scorer from user options.", None),
        ("Parse canonical form quantity like 200Mi to a number.", None),
        ("Test if it works.", "check-whether it works"),
        ("Returns $2^n$ nodes of G.", None),
    ],
)
def test_a_docstring_gives_an_english_sentence_or_nothing(docstring, clause):
    found = intent(docstring, in_library=True)
    assert (found and f"{found.verb} {found.rest}") == clause


@given(st.text(max_size=200))
def test_any_description_gives_clean_single_line_comments(description):
    for comment in comments(description, "some_name", 2):
        assert "\n" not in comment and "  " not in comment


def test_html_loses_its_markup_and_keeps_one_paragraph_a_line():
    html = (
        "<p>Gets  a <a href='https://x'>list</a> .</p> "
        "<ul><li><p>One &amp; <b>two</b></p></li> <li>Three</li></ul>"
    )
    assert html_text(html) == "Gets a list.\nOne & two\nThree"


def test_sentences_end_at_full_stops_before_capitals_and_at_line_ends():
    text = "Puts a thing.|Fails if there is none!|A heading|Last one"
    assert sentences(text.replace("|", " ", 1).replace("|", "\n")) == text.split("|")
    for one in ("Use US East (N. Virginia).", "Takes e.g. A.", "Since 1.2.", "Calls api.Thing."):
        assert sentences(one) == [one]


@given(st.text(alphabet="aB1 .!?()\"'\n", max_size=60))
def test_splitting_loses_no_character_but_white_space(text):
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


def test_rst_reads_as_its_rendered_page():
    rst = (
        "See :class:`~azure.core.Thing` and `the guide <https://x>`__.\n\n\n\n"
        "**Request Syntax**\n::\n\n  *a* ``'s'``"
    )
    assert rst_text(rst) == "See Thing and the guide.\n\nRequest Syntax\n\n  a 's'"
    for stars in ("f(*client_args, **client_kwargs)", "2 * 3 * 4"):
        assert rst_text(stars) == stars
    assert rst_text("the pattern ``arn:*:iam::*:role``") == "the pattern arn:*:iam::*:role"
