"""Tests how texts are split into words, BM25, and ranking by code, by descriptions and by an
ensemble. Values are computed by hand from given vectors; trained rankers are small.
"""

import numpy as np
import pytest
from doors import quick, refused
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from lookuplab.retrieval import rankers
from lookuplab.retrieval.rankers import Bm25, Cosine, by_code, code_words, query_words
from lookuplab.stackoverflow.corpus import CORPUS_FOLDER

CODES = {"s": "table.sort('x')", "m": "frame.mean(axis=0)", "j": "left.merge(right)", "e": "1"}


def vectors(**given):
    return {word: np.array(vector, dtype=np.float32) for word, vector in given.items()}


def scores(ranker, query):
    return ranker.scores_of([query])[0]


TEXTS = st.lists(st.sampled_from("get put list object bucket s3".split()), max_size=8)


@given(st.lists(TEXTS, max_size=9), TEXTS)
def test_bm25_is_rank_bm25_to_the_last_bit(texts, query):
    texts.append(["get"])
    documents = {str(at): words for at, words in enumerate(texts)}
    theirs = BM25Okapi(texts).get_scores(query)
    assert scores(Bm25(documents, list), query).tobytes() == theirs.tobytes()


def test_ties_are_broken_by_id_and_a_query_without_a_match_gets_the_first_ids():
    texts = {"b": "cat", "c": "dog", "a": "cat", "d": "bird dog fish fish"}
    animals = Bm25({id: text.split() for id, text in texts.items()}, str.split)
    found = animals.rank({"1": "cat", "2": "", "3": "fish"}, 2)
    assert found == {"1": ["a", "b"], "2": ["a", "b"], "3": ["d", "a"]}
    assert animals.rank({"3": "fish"}, 9) == {"3": ["d", "a", "b", "c"]}
    dogs = [f"{n:02}" for n in range(0, 30, 3)]
    many = Bm25({f"{n:02}": ["cat" if n % 3 else "dog"] for n in range(30)}, str.split)
    assert many.rank({"1": "dog"}, 12) == {"1": [*dogs, "01", "02"]}


def test_code_is_the_tf_idf_weighted_mean_of_its_words_and_a_query_the_mean():
    bag = by_code(
        {"1": "common.common.rare", "2": "common", "3": "unknown"},
        vectors(rare=[1, 0], common=[0, 1]),
    )
    # the words occur in one and in two of three snippets
    rare, common = np.log(4 / 2) + 1, np.log(4 / 3) + 1
    length = np.hypot(rare, 2 * common)
    assert bag.vectors[0] == pytest.approx([rare / length, 2 * common / length])
    both = [(rare + 4 * common) / length / 5**0.5, 2 / 5**0.5, 0]
    assert scores(bag, "rare common common") == pytest.approx(both, abs=1e-6)


MAKE = [
    lambda: Bm25({name: code_words(code) for name, code in CODES.items()}),
    lambda: by_code(CODES, vectors(sort=[1, 0], mean=[0, 1], merge=[1, 1])),
    lambda: rankers.by_description(CODES, CORPUS_FOLDER / "encoder"),
]


@pytest.mark.parametrize("make", MAKE)
def test_a_batch_scores_like_single_queries_and_no_known_word_scores_zero(make):
    ranker = make()
    assert ranker.ids == sorted(CODES)
    queries = ["sort rows", "", "mean of columns"]
    alone = np.array([scores(ranker, query) for query in queries])
    assert ranker.scores_of(queries) == pytest.approx(alone, abs=2e-6)
    assert not alone[1].any() and alone[0].any()


def test_a_cosine_is_rounded_so_that_equal_texts_tie():
    ranker = Cosine(["a", "b"], np.array([[1.0, 1], [1 + 1e-6, 1]]), lambda _: np.ones((1, 2)))
    assert ranker.rank({"q": ""}, 2) == {"q": ["a", "b"]}


def test_an_encoder_that_is_not_there_is_one_clear_line(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with refused("no sentence encoder"):
        rankers.by_description({"a": "b"}, "no/such/folder")


def test_word_vectors_depend_on_the_seed_alone(tmp_path):
    pytest.importorskip("gensim", reason="gensim has no wheel for this Python")
    lines = [["sort", "rows"], ["mean"]] * 5
    small = {"vector_size": 8, "epochs": 2, "bucket": 99}
    texts = []
    for seed in (1, 1, 2):
        rankers.train_words(lines, tmp_path, seed=seed, **small)
        texts.append(str(rankers.load_words(tmp_path)))
    assert texts[0] == texts[1] != texts[2]
    with refused("holds no word vectors"):
        rankers.load_words(tmp_path / "nowhere")


def test_identifiers_are_split_and_lose_their_last_digits():
    found = rankers.identifier_words("_") + rankers.identifier_words("getHTTPResponse_float64")
    assert found == ["get", "http", "response", "float"]


def test_a_question_loses_its_how_to_its_stop_words_and_its_numbers():
    words = query_words("How to sort a DataFrame by 2 columns with read_csv?")
    assert words == ["sort", "data", "frame", "columns", "read", "csv"]


def test_code_keeps_comments_identifiers_loops_and_binary_operators():
    code = "# sum the rows\nfor row in table:\n    if not row[0] == -1.5:\n"
    code += "        total = row.sum() + 2 * 'text'\n"
    words = "sum rows for row table row total row sum + *"
    assert code_words(code) == words.split()


def test_code_that_does_not_parse_or_is_deep_gives_its_words():
    assert "frame" in code_words("print frame\nx = = frame.mean(")
    with quick():
        assert code_words("x = " + "+".join(["a"] * 20_000)).count("a") == 20_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Größe_der GRÖSSE", "grösse der grösse"),
        ("如何读取 JSON", "如 何 读 取 json"),
        ("हिन्दी में", "हिन्दी में"),
        ("cafe\u0301, naïve!", "café naïve"),
        ("прочитать файл", "прочитать файл"),
    ],
)
def test_words_of_any_script_are_words(text, words):
    assert query_words(text) == words.split()
