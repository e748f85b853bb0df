"""The weighted ensemble of query-code and query-description (paper, Sections 3 and 4.3).

The paper gives weights of .3, .4 and .5 and not which of the two they weight; Heyman and Van Cutsem's notebook puts
such a weight on query-code and 1 on query-description.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lookuplab.errors import UserError
from lookuplab.retrieval.bag_of_words import NeuralBagOfWords
from lookuplab.retrieval.descriptions import DescriptionModel
from lookuplab.retrieval.ranker import DIGITS, Ranker, load_arrays, save_arrays

WEIGHTS = (0.3, 0.4, 0.5)


class Ensemble(Ranker):
    """weight x cosine with the code + cosine with the description. Raises UserError for parts of different snippets."""

    def __init__(self, code: NeuralBagOfWords, description: DescriptionModel, weight: float = 0.4):
        if code.ids != description.ids:
            raise UserError("the two rankers of an ensemble must rank the same snippets")
        self.ids, self.code, self.description, self.weight = code.ids, code, description, weight

    def scores_of(self, queries: Sequence[str]) -> np.ndarray:
        return np.round(self.weight * self.code.scores_of(queries) + self.description.scores_of(queries), DIGITS)

    def save(self, folder: Path) -> None:
        """Write both rankers and the weight to a folder."""
        save_arrays(folder, {"weight": self.weight})
        self.code.save(folder / "code")
        self.description.save(folder / "description")

    @classmethod
    def load(cls, folder: Path, device: str | None = None) -> "Ensemble":
        """What ``save`` wrote. Raises UserError where it is not whole."""
        about, = load_arrays(folder)
        return cls(NeuralBagOfWords.load(folder / "code"), DescriptionModel.load(folder / "description", device),
                   about["weight"])
