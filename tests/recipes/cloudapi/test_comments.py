"""Comments, and the text they are made of: the right sentence, the imperative, no leaked name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookuplab.cloudapi.specs import ApiSpec
from recipes.cloudapi.comments import intent, normalised, wordings
from recipes.prose import sentences

DESCRIPTION = "Adds the specified user to the specified group."


def comments(description: str, name: str, count: int, provider: str = "aws") -> list[str]:
    spec = ApiSpec(provider, "iam", "iam", name, (), description=description)
    return [*wordings(spec, count)]


def test_comments_differ_and_repeat_neither_name_nor_description():
    found = comments(DESCRIPTION, "add_user", 6)
    assert len({normalised(comment) for comment in found}) == 6
    assert found == comments(DESCRIPTION, "add_user", 6)
    assert "Create a new queue" not in comments("Create a new queue.", "make_queue", 6)


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


def test_sentences_end_at_full_stops_before_capitals_and_at_line_ends():
    text = "Puts a thing.|Fails if there is none!|A heading|Last one"
    assert sentences(text.replace("|", " ", 1).replace("|", "\n")) == text.split("|")
    for one in ("Use US East (N. Virginia).", "Takes e.g. A.", "Since 1.2.", "Calls api.Thing."):
        assert sentences(one) == [one]
