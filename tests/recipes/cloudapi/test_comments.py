"""Tests comments and the sentences from which they are made: the right sentence, the imperative,
and no leaked name.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookuplab.cloudapi.specs import ApiSpec
from recipes.cloudapi.comments import intent, wordings

CLAUSES = """\
Returns True if G is empty, False otherwise. -> check-whether G is empty
Return True if graph is directed. -> check-whether the graph is directed
Check that the estimator raises an error. -> check-that the estimator raises an error
Returns number of edges in G. -> return the number of edges in G
Loads all files and stores them in a cache. -> load all files and store them in a cache
Compute information about X. -> compute information about X
Check that estimator raises. ->
Determine scorer from user options. ->
Parse canonical form quantity like 200Mi to a number. ->
Test if it works. -> check-whether it works
Returns $2^n$ nodes of G. ->"""


@pytest.mark.parametrize("line", CLAUSES.splitlines())
def test_a_docstring_gives_an_english_sentence_or_nothing(line):
    docstring, clause = line.split(" ->")
    found = intent(docstring, in_library=True)
    assert (f" {found.verb} {found.rest}" if found else "") == clause


@given(st.text(max_size=200))
def test_any_description_gives_clean_single_line_comments(description):
    spec = ApiSpec("aws", "iam", "iam", "some_name", (), description=description)
    for comment in wordings(spec, 2):
        assert "\n" not in comment and "  " not in comment
