"""Tests that the committed corpus has the snippets that are in NumPy's docstrings."""

from lookuplab.stackoverflow import corpus
from recipes.mini import snippets
from recipes.mini.docstrings import documented


def test_the_committed_corpus_comes_out_of_the_docstrings_of_numpy():
    committed = {one.id: one for one in corpus.load_snippets("mini")}
    codes = {snippets._key(one.code) for one in committed.values()}
    asked = {one.text for one in corpus.queries("mini", "test")}
    assert len(codes) == len(committed) > 5000, "no two have the same code"
    for item in documented("numpy"):
        found = [*snippets._snippets("numpy", item)]
        assert codes.issuperset(snippets._key(one.code) for one in found)
        assert all(committed.get(one.id, one) == one for one in found)
        if snippets.split_of(item) == "test" and found and (others := snippets.phrasings(item)):
            assert others[0] in asked
