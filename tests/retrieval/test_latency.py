"""Time and memory of a query, on rankers drawn larger than they are."""

import numpy as np
import pytest

from lookuplab.retrieval.bag_of_words import NeuralBagOfWords
from lookuplab.retrieval.bm25 import Bm25Text
from lookuplab.retrieval.latency import BATCH, latency, resized
from lookuplab.retrieval.word_vectors import FastText, WordVectors

WORDS = WordVectors(["sort", "mean"], np.eye(2, dtype=np.float32), np.zeros(0, np.int64), np.zeros((0, 2), np.float32),
                    FastText(dimensions=2))
RANKERS = [NeuralBagOfWords.index({"a": "sort()", "b": "mean()"}, WORDS),
           Bm25Text({"a": ["sort"], "b": ["mean", "mean"]})]


@pytest.mark.parametrize("ranker", RANKERS, ids=["bag", "bm25"])
def test_a_drawn_ranker_has_the_size_asked_for_and_finds_what_the_small_one_finds(ranker):
    large = resized(ranker, 500)
    assert len(large.ids) == 500 and large.scores("mean").shape == (500,)
    assert large.scores("mean").max() == pytest.approx(ranker.scores("mean").max(), rel=0.9)
    assert resized(ranker, 500).scores("mean").tolist() == large.scores("mean").tolist()


@pytest.mark.parametrize("ranker", RANKERS, ids=["bag", "bm25"])
def test_latency_counts_time_and_bytes(ranker):
    found = latency(resized(ranker, 300), ["sort", "mean"] * (BATCH // 2), repeats=1)
    assert found.snippets == 300 and found.single_ms > 0 and found.batch_ms > 0
    assert found.bytes == 300 * 2 * 4  # two float32, or two 4-byte numbers of the one word
