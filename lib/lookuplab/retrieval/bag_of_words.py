"""Query against code by a neural bag of words (paper, Section 3; NCS in Heyman and Van Cutsem 2020, Section 4.1).

A query is the mean of its words' vectors; code is the mean of its words' vectors weighted by TF-IDF. The vectors are
fastText's, trained on both, so that words of questions lie near the names that answer them.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from lookuplab.errors import UserError
from lookuplab.retrieval.ranker import Ranker, cosines, load_arrays, save_arrays, unit
from lookuplab.retrieval.word_vectors import FastText, WordVectors
from lookuplab.retrieval.words import code_words, query_words


def training_lines(description: Sequence[str], code: Sequence[str]) -> list[list[str]]:
    """A snippet's three lines: its description in the middle of its code, before it and after it (nokia/codesearch)."""
    description, code, middle = list(description), list(code), len(code) // 2
    return [code[:middle] + description + code[middle:], description + code, code + description]


class NeuralBagOfWords(Ranker):
    """Cosine of a query and code; ``code_vectors`` (n, d) float32 have length 1, or 0 where code has no known word."""

    def __init__(self, ids: Sequence[str], code_vectors: np.ndarray, word_vectors: WordVectors):
        self.ids, self.code_vectors, self.word_vectors = list(ids), code_vectors, word_vectors

    @classmethod
    def train(cls, descriptions: Mapping[str, str], codes: Mapping[str, str], settings: FastText = FastText(),
              progress: bool = True) -> "NeuralBagOfWords":
        """Learn word vectors from snippets (id -> description, id -> code) and index them.

        Raises UserError where a snippet has only one of the two, or none has a word.
        """
        if descriptions.keys() != codes.keys():
            raise UserError("every snippet needs a description and code to train the bag of words on")
        words = {name: code_words(codes[name]) for name in sorted(codes)}
        lines = [line for name, found in words.items()
                 for line in training_lines(query_words(descriptions[name]), found)]
        return cls._of_words(words, WordVectors.train(lines, settings, progress))

    @classmethod
    def kept(cls, descriptions: Mapping[str, str], codes: Mapping[str, str], folder: Path,
             settings: FastText = FastText(), progress: bool = True) -> "NeuralBagOfWords":
        """``train``, once: what these snippets and settings give is saved below ``folder`` and loaded from there."""
        key = json.dumps([sorted(descriptions.items()), sorted(codes.items()), asdict(settings)])
        place = folder / hashlib.sha256(key.encode()).hexdigest()[:16]
        if not place.exists():
            trained = cls.train(descriptions, codes, settings, progress)
            folder.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=folder) as unfinished:  # what stands in its place is whole
                trained.save(Path(unfinished) / "whole")
                (Path(unfinished) / "whole").replace(place)
        return cls.load(place)

    @classmethod
    def index(cls, codes: Mapping[str, str], word_vectors: WordVectors) -> "NeuralBagOfWords":
        """Rank other code (id -> code) by word vectors that are there."""
        return cls._of_words({name: code_words(codes[name]) for name in sorted(codes)}, word_vectors)

    @classmethod
    def _of_words(cls, words: Mapping[str, Sequence[str]], word_vectors: WordVectors) -> "NeuralBagOfWords":
        from sklearn.feature_extraction.text import TfidfVectorizer

        if not any(words.values()):
            raise UserError(f"nothing to search: {len(words)} snippets without a single word of code")
        # counts times ln((1 + N) / (1 + df)) + 1; the length of the row is of no concern to a cosine
        weights = TfidfVectorizer(analyzer=lambda found: found, norm=None)
        counted = weights.fit_transform(words.values())
        return cls(list(words), unit(counted @ word_vectors.of(weights.get_feature_names_out())), word_vectors)

    def query_vectors(self, queries: Sequence[str]) -> np.ndarray:
        """(q, d) unit vectors; zero for a query without a known word."""
        sums = np.zeros((len(queries), self.code_vectors.shape[1]), dtype=np.float32)  # in the direction of the means
        for at, query in enumerate(queries):
            sums[at] = self.word_vectors.of(query_words(query)).sum(axis=0)
        return unit(sums)

    def scores_of(self, queries: Sequence[str]) -> np.ndarray:
        return cosines(self.query_vectors(queries), self.code_vectors)

    def save(self, folder: Path) -> None:
        """Write the index and the word vectors to a folder."""
        save_arrays(folder, {"ids": self.ids}, code_vectors=self.code_vectors)
        self.word_vectors.save(folder / "words")

    @classmethod
    def load(cls, folder: Path) -> "NeuralBagOfWords":
        """What ``save`` wrote. Raises UserError where it is not whole."""
        about, code_vectors = load_arrays(folder, "code_vectors")
        return cls(about["ids"], code_vectors, WordVectors.load(folder / "words"))
