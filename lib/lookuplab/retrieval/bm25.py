"""BM25 over word lists by postings: what rank-bm25 computes, without looking at the documents that lack a word."""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from rank_bm25 import BM25Okapi

from lookuplab.errors import UserError
from lookuplab.retrieval.ranker import Ranker, best, load_arrays, save_arrays
from lookuplab.retrieval.words import query_words


class _Postings(BM25Okapi):
    """BM25Okapi (its idf, lengths and formula) that keeps, word by word, which documents hold it and how often.

    rank-bm25 keeps a dictionary a document and asks each of them for each query word: 25 ms a query over 17,000 API
    names, and gigabytes for a million snippets.
    """

    def _initialize(self, corpus: Iterable[Sequence[str]]) -> dict[str, int]:
        """Called by BM25Okapi: sets lengths and postings, returns word -> number of documents, in its order."""
        self.postings: dict[str, tuple[array, array]] = {}
        for at, document in enumerate(corpus):
            self.doc_len.append(len(document))
            for word, count in Counter(document).items():
                documents, counts = self.postings.setdefault(word, (array("i"), array("i")))
                documents.append(at)
                counts.append(count)
        self.corpus_size = len(self.doc_len)
        self.avgdl = sum(self.doc_len) / self.corpus_size if self.corpus_size else 0
        if not self.postings:
            raise UserError(f"nothing to search: {self.corpus_size} documents without a single word")
        self.norm = self.k1 * (1 - self.b + self.b * np.array(self.doc_len) / self.avgdl)
        return {word: len(documents) for word, (documents, _) in self.postings.items()}

    def get_scores(self, query: Iterable[str]) -> np.ndarray:
        """BM25Okapi's numbers to the last bit: the same operations in the same order, less the additions of zero."""
        scores = np.zeros(self.corpus_size)
        for word in query:
            if word in self.postings:
                documents, counts = (np.frombuffer(column, dtype=np.int32) for column in self.postings[word])
                scores[documents] += self.idf[word] * (counts * (self.k1 + 1) / (counts + self.norm[documents]))
        return scores


class Bm25:
    """A ranker of ``documents`` (id -> words) by Okapi BM25 with rank-bm25's idf (negative ones become ``epsilon``
    times the average).

    Documents are kept in the order of their ids (``ids``), so neither scores nor ties depend on the order they came in.
    Raises UserError where there is no document, or none with a word.
    """

    def __init__(self, documents: Mapping[str, Sequence[str]], k1: float = 1.5, b: float = 0.75, epsilon: float = 0.25):
        self.ids = sorted(documents)
        self._okapi = _Postings((documents[name] for name in self.ids), k1=k1, b=b, epsilon=epsilon)
        self.postings = self._okapi.postings

    def scores(self, query_terms: Iterable[str]) -> np.ndarray:
        """One score a document, (n,) floats in the order of ``ids``; a word given twice counts twice."""
        return self._okapi.get_scores(query_terms)

    def rank(self, query_terms: Iterable[str], k: int | None = None) -> list[str]:
        """The ids of the best ``k`` documents (all of them by default), best first; equal scores in the order of ids.

        Always min(k, n) of them: a query that matches nothing gets the first ids. Raises UserError for k < 1.
        """
        return [self.ids[at] for at in best(self.scores(query_terms), k)]


class Bm25Text(Ranker):
    """BM25 for queries in natural language: over code, descriptions, or both (``documents``: id -> words).

    Code, description and query come as ``retrieval.words`` reads them; "both" is one list after the other.
    """

    def __init__(self, documents: Mapping[str, Sequence[str]]):
        self.words = {name: documents[name] for name in sorted(documents)}
        self._ranker = Bm25(self.words)
        self.ids = self._ranker.ids

    def scores_of(self, queries: Sequence[str]) -> np.ndarray:
        found = [self._ranker.scores(query_words(query)) for query in queries]
        return np.array(found).reshape(len(found), len(self.ids))

    def postings_bytes(self) -> int:
        """Memory of the postings: two 4-byte numbers for each document and different word in it."""
        return sum(column.itemsize * len(column) for two in self._ranker.postings.values() for column in two)

    def save(self, folder: Path) -> None:
        """Write the words to a folder; the postings are made anew, in a second for 10,000 snippets."""
        save_arrays(folder, {name: list(words) for name, words in self.words.items()})

    @classmethod
    def load(cls, folder: Path) -> "Bm25Text":
        """What ``save`` wrote. Raises UserError where it is not whole."""
        return cls(load_arrays(folder)[0])
