"""Comments: the right sentence, the imperative, no leaked name."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookuplab.cloudapi.comments import Intent, distinct_comments, imperative, intent, leaks_name, normalised, reword

DESCRIPTION = "Adds the specified user to the specified group."


@pytest.mark.parametrize(("word", "verb"), [("Gets", "get"), ("Detaches", "detach"), ("Copies", "copy"), ("list", "list"), ("Table", None)])
def test_verbs_are_put_in_the_imperative(word, verb):
    assert imperative(word) == verb


@pytest.mark.parametrize(("description", "meaning"), [
    (DESCRIPTION, Intent("add", "the specified user to the specified group")),
    ("This is AWS WAF Classic documentation. For more information, see the guide. Returns the web ACL.", Intent("return", "the web ACL")),
    ("This operation lists all keys in a vault, based on a filter.", Intent("list", "all keys in a vault")),
    ("Use this operation to delete a large (very large) object.", Intent("delete", "a large object")),
    ("The container.", None),
])
def test_the_intent_is_the_first_sentence_that_says_what_the_api_does(description, meaning):
    assert intent(description) == meaning


@pytest.mark.parametrize("comment", ["put object", "PutObject here", "putObject", "PUT-OBJECT", "call put_object"])
def test_a_name_leaks_in_every_case_style(comment):
    assert leaks_name(comment, "put_object")


def test_comments_differ_and_hide_the_name():
    comments = distinct_comments(DESCRIPTION, "add_user", 6, "seed")
    assert len({normalised(c) for c in comments}) == 6
    assert not any(leaks_name(c, "add_user") for c in comments)


def test_comments_are_the_same_every_time():
    assert distinct_comments(DESCRIPTION, "add_user_to_group", 3, "s") == distinct_comments(DESCRIPTION, "add_user_to_group", 3, "s")


def test_comments_do_not_repeat_the_description():
    assert "create a new queue" not in {c.lower() for c in distinct_comments("Create a new queue.", "create_queue", 6, "s")}


def test_a_description_without_a_verb_gives_no_comment():
    assert distinct_comments("The queue.", "create_queue", 3, "s") == []


@given(st.text(max_size=200))
def test_any_description_gives_clean_single_line_comments(description):
    for comment in distinct_comments(description, "some_name", 2, "s"):
        assert "\n" not in comment and "  " not in comment


def test_keeping_everything_gives_the_plain_form():
    assert reword(Intent("get", "a list of users"), random.Random(0), keep=1.0) == "get a list of users"
