"""fastText word vectors of code and its descriptions: trained, saved, reloaded bit for bit.

Joulin and others' library under one trainer, gensim's; with one worker its result depends on the seed alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from lookuplab.errors import UserError
from lookuplab.retrieval.ranker import load_arrays, save_arrays


@dataclass(frozen=True)
class FastText:
    """Settings of the training: nokia/codesearch's for NCS, otherwise fastText's own defaults for a skip-gram."""

    dimensions: int = 100
    window: int = 20
    epochs: int = 30
    min_count: int = 1
    negatives: int = 5
    rate: float = 0.05
    sample: float = 1e-4
    min_subword: int = 3
    max_subword: int = 6
    buckets: int = 2_000_000  # 0.8 GB while it trains; only those of the trained words are kept
    seed: int = 1


class WordVectors:
    """A vector a word. A word that was not trained on is the mean of its known subwords, as in fastText, or zero.

    words: (v) in the order of ``vectors`` (v, d) float32; buckets: (b) sorted hashes of subwords, in the order of
    ``subwords`` (b, d) float32. Subwords that no trained word has are noise in fastText and left out here.
    """

    def __init__(self, words: Sequence[str], vectors: np.ndarray, buckets: np.ndarray, subwords: np.ndarray,
                 settings: FastText):
        self.words, self.vectors = list(words), vectors
        self.buckets, self.subwords, self.settings = buckets, subwords, settings
        self._place = {word: at for at, word in enumerate(self.words)}

    @classmethod
    def train(cls, lines: Sequence[Sequence[str]], settings: FastText = FastText(),
              progress: bool = True) -> "WordVectors":
        """Train on lines of words, on one core. Raises UserError where there is no word."""
        from gensim.models import FastText as Trainer

        if not any(lines):
            raise UserError("nothing to train word vectors on: no line has a word")
        model = Trainer(vector_size=settings.dimensions, window=settings.window, min_count=settings.min_count, sg=1,
                        negative=settings.negatives, alpha=settings.rate, sample=settings.sample, workers=1,
                        min_n=settings.min_subword, max_n=settings.max_subword, bucket=settings.buckets,
                        seed=settings.seed)
        model.build_vocab(lines)
        model.train(lines, total_examples=len(lines), epochs=settings.epochs,
                    callbacks=[_bar(settings.epochs)] if progress else ())
        trained = model.wv
        used = np.unique(np.concatenate(list(trained.buckets_word))).astype(np.int64)
        return cls(trained.index_to_key, trained.vectors.copy(), used, trained.vectors_ngrams[used], settings)

    def of(self, words: Iterable[str]) -> np.ndarray:
        """(n, d) vectors of words."""
        rows = [self.vectors[self._place[word]] if word in self._place else self._composed(word) for word in words]
        return np.array(rows, dtype=np.float32).reshape(len(rows), self.settings.dimensions)

    def _composed(self, word: str) -> np.ndarray:
        from gensim.models.fasttext import ft_ngram_hashes

        if not len(self.buckets):
            return np.zeros(self.settings.dimensions, dtype=np.float32)
        settings = self.settings
        hashes = np.array(ft_ngram_hashes(word, settings.min_subword, settings.max_subword, settings.buckets))
        places = np.searchsorted(self.buckets, hashes).clip(max=len(self.buckets) - 1) if len(hashes) else []
        known = [at for at, bucket in zip(places, hashes) if self.buckets[at] == bucket]
        return self.subwords[known].mean(axis=0) if known else np.zeros(settings.dimensions, dtype=np.float32)

    def without_subwords(self) -> "WordVectors":
        """The trained words alone, in half precision on disk: small enough to be shipped."""
        empty = np.zeros((0, self.settings.dimensions), dtype=np.float32)
        rounded = self.vectors.astype(np.float16).astype(np.float32)
        return WordVectors(self.words, rounded, np.zeros(0, dtype=np.int64), empty, self.settings)

    def save(self, folder: Path) -> None:
        """Write to a folder; in float16 where that loses nothing."""
        half = self.vectors.astype(np.float16)
        exact = np.array_equal(half.astype(np.float32), self.vectors)
        save_arrays(folder, {"words": self.words, "settings": asdict(self.settings)},
                    vectors=half if exact else self.vectors, buckets=self.buckets, subwords=self.subwords)

    @classmethod
    def load(cls, folder: Path) -> "WordVectors":
        """What ``save`` wrote. Raises UserError where it is not whole."""
        about, vectors, buckets, subwords = load_arrays(folder, "vectors", "buckets", "subwords")
        return cls(about["words"], vectors.astype(np.float32), buckets, subwords, FastText(**about["settings"]))


def _bar(epochs: int):
    """A progress bar over the epochs."""
    from gensim.models.callbacks import CallbackAny2Vec
    from tqdm import tqdm

    class Bar(CallbackAny2Vec):
        def __init__(self):
            self.bar = tqdm(total=epochs, desc="word vectors", unit=" epochs")

        def on_epoch_end(self, model):
            self.bar.update()

        def on_train_end(self, model):
            self.bar.close()

    return Bar()
