"""BM25 by postings against rank-bm25 itself, and the order of its answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from lookuplab.errors import UserError
from lookuplab.retrieval.bm25 import Bm25

WORDS = st.lists(st.sampled_from("get put list object bucket s3 ec2".split()), max_size=8)
CORPORA = st.dictionaries(st.text(max_size=3), WORDS, min_size=1, max_size=12).filter(lambda docs: any(docs.values()))
ANIMALS = {"b": ["cat"], "c": ["dog"], "a": ["cat"], "d": ["bird", "dog", "fish", "fish"], "e": ["fish"]}


@given(CORPORA, WORDS, st.floats(0.1, 3), st.floats(0, 0.99), st.floats(0, 1))
def test_scores_are_those_of_rank_bm25_to_the_last_bit(documents, query, k1, b, epsilon):
    ours = Bm25(documents, k1=k1, b=b, epsilon=epsilon)
    theirs = BM25Okapi([documents[name] for name in sorted(documents)], k1=k1, b=b, epsilon=epsilon)
    assert ours.scores(query).tobytes() == theirs.get_scores(query).tobytes()


@given(CORPORA, WORDS, st.integers(1, 15))
def test_the_top_k_is_the_beginning_of_the_whole_order(documents, query, k):
    ranker = Bm25(documents)
    assert ranker.rank(query, k) == ranker.rank(query)[:k]


@given(CORPORA, WORDS, st.randoms(use_true_random=False))
def test_the_order_of_insertion_changes_nothing(documents, query, random):
    shuffled = list(documents.items())
    random.shuffle(shuffled)
    assert Bm25(dict(shuffled)).rank(query) == Bm25(documents).rank(query)


def test_ties_are_broken_by_id():
    assert Bm25(ANIMALS).rank(["cat"]) == ["a", "b", "c", "d", "e"]


def test_a_shorter_document_and_a_repeated_word_rank_higher():
    ranker = Bm25(ANIMALS)
    assert ranker.rank(["dog"], 2) == ["c", "d"]
    assert ranker.rank(["dog", "fish"], 2)[0] == "d"
    assert ranker.scores(["dog", "dog"]).tolist() == (2 * ranker.scores(["dog"])).tolist()


def test_scores_by_hand():
    # two of four documents of 1 word hold "x", average length 1, so tf (k1 + 1) / (tf + k1) = 1 and idf = log(3.5/1.5)
    ranker = Bm25({"a": ["x"], "b": ["y"], "c": ["z"], "d": ["z"]})
    assert ranker.scores(["x"]) == pytest.approx([np.log(3.5 / 1.5), 0, 0, 0])


@pytest.mark.parametrize("query", [[], ["unknown"]])
def test_a_query_that_matches_nothing_gets_the_first_ids(query):
    assert Bm25(ANIMALS).rank(query, 2) == ["a", "b"]


def test_more_than_all_documents_are_all_of_them():
    assert len(Bm25(ANIMALS).rank(["cat"], 99)) == 5


@pytest.mark.parametrize("documents", [{}, {"a": [], "b": []}])
def test_nothing_to_search_is_one_clear_line(documents):
    with pytest.raises(UserError, match="nothing to search"):
        Bm25(documents)


@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one_is_one_clear_line(k):
    with pytest.raises(UserError, match=f"k is {k}"):
        Bm25(ANIMALS).rank(["cat"], k)
