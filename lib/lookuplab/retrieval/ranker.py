"""What all rankers of text queries can do, and the one order that they rank in."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from lookuplab.errors import UserError
from lookuplab.retrieval import check_k

DIGITS = 6  # of a cosine: below is the noise of float32, which would part equal texts that should tie
BATCH = 256  # queries scored at a time: bounds the memory to BATCH x documents numbers


class Ranker(ABC):
    """Scores documents for a query in natural language. ``ids`` name the documents, in the order of the scores."""

    ids: list[str]

    @abstractmethod
    def scores_of(self, queries: Sequence[str]) -> np.ndarray:
        """One score a query and document, (q, n) floats; higher is nearer."""

    def scores(self, query: str) -> np.ndarray:
        """One score a document, (n,) floats."""
        return self.scores_of([query])[0]

    def top(self, query: str, k: int) -> list[tuple[str, float]]:
        """The best min(k, n) documents with their scores, best first; equal scores in the order of ids."""
        scores = self.scores(query)
        return [(self.ids[at], float(scores[at])) for at in best(scores, k)]

    def rank(self, queries: Mapping[str, str], k: int) -> dict[str, list[str]]:
        """Query id -> the ids of its best min(k, n) documents, best first: what ``retrieval.metrics`` measure."""
        names, texts = list(queries), list(queries.values())
        ranked = {}
        for start in range(0, len(names), BATCH):
            for name, scores in zip(names[start:], self.scores_of(texts[start:start + BATCH])):
                ranked[name] = [self.ids[at] for at in best(scores, k)]
        return ranked


def best(scores: np.ndarray, k: int | None = None) -> np.ndarray:
    """Places of the highest ``k`` of ``scores`` (n,), highest first, equal ones in their order; all without ``k``.

    Raises UserError for k < 1.
    """
    candidates = np.arange(len(scores))
    if k is not None:
        check_k(k)
        if k < len(scores):  # sort only what can come into the top k: the k-th best score, its ties, and better
            candidates = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
    return candidates[np.argsort(-scores[candidates], kind="stable")][:k]


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows (n, d) of length 1, float32; a row of zeros stays one, so that its cosine is 0 and never NaN."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def cosines(queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """Cosines of unit vectors, (q, d) and (n, d) -> (q, n), rounded to DIGITS decimals."""
    return np.round(queries @ documents.T, DIGITS)


def save_arrays(folder: Path, about: Mapping, **arrays: np.ndarray) -> None:
    """Write a ranker's folder: ``about.json`` (ids, names, settings) and an .npy file an array."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    (folder / "about.json").write_text(json.dumps(about, ensure_ascii=False) + "\n", encoding="utf-8")


def load_arrays(folder: Path, *names: str) -> tuple[dict, *tuple[np.ndarray, ...]]:
    """What ``save_arrays`` wrote. Raises UserError where a file is missing or none of its kind."""
    try:
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        return about, *(np.load(folder / f"{name}.npy") for name in names)
    except (OSError, ValueError) as error:
        raise UserError(f"{folder} holds no whole ranker ({error}); save it again") from None
