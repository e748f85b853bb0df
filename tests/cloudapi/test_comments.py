"""Comments: the right sentence, the imperative, no leaked name."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookuplab.cloudapi.comments import (
    Intent,
    distinct_comments,
    intent,
    leaks_name,
    normalised,
    reword,
)
from lookuplab.cloudapi.specs import ApiSpec

DESCRIPTION = "Adds the specified user to the specified group."


def comments(description: str, name: str, count: int) -> list[str]:
    spec = ApiSpec("aws", "iam", "iam", name, (), description=description)
    return distinct_comments(spec, count)


@pytest.mark.parametrize(
    ("word", "verb"),
    [
        ("Gets", "get"),
        ("Detaches", "detach"),
        ("Copies", "copy"),
        ("list", "list"),
        ("Table", None),
    ],
)
def test_verbs_are_put_in_the_imperative(word, verb):
    assert intent(f"{word} the thing.") == (verb and Intent(verb, "the thing"))


@pytest.mark.parametrize(
    ("description", "meaning"),
    [
        (DESCRIPTION, Intent("add", "the specified user to the specified group")),
        (
            "This is AWS WAF Classic documentation. For more information, see the guide. Returns "
            "the web ACL.",
            Intent("return", "the web ACL"),
        ),
        (
            "This operation lists all keys in a vault, based on a filter.",
            Intent("list", "all keys in a vault"),
        ),
        (
            "Use this operation to delete a large (very large) object.",
            Intent("delete", "a large object"),
        ),
        ("The container.", None),
    ],
)
def test_the_intent_is_the_first_sentence_that_says_what_the_api_does(description, meaning):
    assert intent(description) == meaning


@pytest.mark.parametrize(
    "comment", ["put object", "PutObject here", "PUT-OBJECT", "call put_object"]
)
def test_a_name_leaks_in_every_case_style(comment):
    assert leaks_name(comment, "put_object")


def test_comments_differ_and_hide_the_name():
    found = comments(DESCRIPTION, "add_user", 6)
    assert len({normalised(comment) for comment in found}) == 6
    assert not any(leaks_name(comment, "add_user") for comment in found)
    assert found == comments(DESCRIPTION, "add_user", 6)


def test_comments_do_not_repeat_the_description():
    found = comments("Create a new queue.", "create_queue", 6)
    assert "create a new queue" not in {comment.lower() for comment in found}


def test_packages_may_begin_with_more_verbs():
    fields = ("shop", "shop", "compute_price", ())
    description = "Compute what the basket costs."
    assert distinct_comments(ApiSpec("python", *fields, description=description), 3)
    assert not distinct_comments(ApiSpec("aws", *fields, description=description), 3)


@given(st.text(max_size=200))
def test_any_description_gives_clean_single_line_comments(description):
    for comment in comments(description, "some_name", 2):
        assert "\n" not in comment and "  " not in comment


def test_keeping_everything_gives_the_plain_form():
    meaning = Intent("get", "a list of users")
    assert reword(meaning, random.Random(0), keep=1.0) == "get a list of users"
