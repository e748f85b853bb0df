"""What a query costs: time alone and in a batch, and memory, at corpora of any size (paper, Section 4.4).

The paper reports .084 s a query on an A10G, and no clear change between 5,000 and 10,000 snippets.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lookuplab.retrieval.bag_of_words import NeuralBagOfWords
from lookuplab.retrieval.bm25 import Bm25Text
from lookuplab.retrieval.descriptions import DescriptionModel
from lookuplab.retrieval.ensemble import Ensemble
from lookuplab.retrieval.ranker import Ranker, unit

SIZES = (5_000, 10_000, 100_000, 1_000_000)
K = 3  # snippets asked for
BATCH = 64
NOISE = 0.05  # of a drawn vector's length, so that no two are equal


@dataclass(frozen=True)
class Latency:
    """Milliseconds a query (median over queries alone, mean in a batch) and bytes of the index."""

    snippets: int
    single_ms: float
    batch_ms: float
    bytes: int


def latency(ranker: Ranker, queries: Sequence[str], repeats: int = 3) -> Latency:
    """Time of finding the best K snippets, from the text of the query on; the first query of all is not counted.

    queries: at least BATCH of them. A time is the best of ``repeats``, to leave out what else the machine does.
    """
    ranker.top(queries[0], K)
    alone = [min(_seconds(lambda: ranker.top(query, K)) for _ in range(repeats)) for query in queries[:BATCH]]
    batch = {str(at): query for at, query in enumerate(queries[:BATCH])}
    together = min(_seconds(lambda: ranker.rank(batch, K)) for _ in range(repeats))
    return Latency(len(ranker.ids), 1e3 * float(np.median(alone)), 1e3 * together / len(batch), _bytes(ranker))


def resized(ranker: Ranker, size: int, seed: int = 0) -> Ranker:
    """A ranker of ``size`` snippets that are drawn from ``ranker``'s with replacement: of use for time alone.

    Vectors get a little noise; word lists are repeated as they are. Raises TypeError for a ranker of another kind.
    """
    if isinstance(ranker, Ensemble):
        return Ensemble(resized(ranker.code, size, seed), resized(ranker.description, size, seed), ranker.weight)
    generator = np.random.default_rng(seed)
    drawn = generator.integers(len(ranker.ids), size=size)
    ids = [f"{at:08}" for at in range(size)]
    if isinstance(ranker, Bm25Text):
        return Bm25Text({name: ranker.words[ranker.ids[at]] for name, at in zip(ids, drawn)})
    if isinstance(ranker, NeuralBagOfWords):
        return NeuralBagOfWords(ids, _noisy(ranker.code_vectors, drawn, generator), ranker.word_vectors)
    if isinstance(ranker, DescriptionModel):
        return DescriptionModel(ids, _noisy(ranker.vectors, drawn, generator), ranker.model, ranker.device)
    raise TypeError(f"no larger {type(ranker).__name__} can be drawn")


def _noisy(vectors: np.ndarray, drawn: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    scale = np.float32(NOISE / np.sqrt(vectors.shape[1]))
    return unit(vectors[drawn] + scale * generator.standard_normal((len(drawn), vectors.shape[1]), dtype=np.float32))


def _seconds(call) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def _bytes(ranker: Ranker) -> int:
    """Of the vectors or postings, without ids, word vectors and encoder."""
    if isinstance(ranker, Ensemble):
        return _bytes(ranker.code) + _bytes(ranker.description)
    if isinstance(ranker, Bm25Text):
        return ranker.postings_bytes()
    return (ranker.code_vectors if isinstance(ranker, NeuralBagOfWords) else ranker.vectors).nbytes
