"""Query against description by sentence embeddings (Heyman and Van Cutsem 2020, Section 4.2).

Theirs is the Universal Sentence Encoder, fine-tuned on titles of duplicate questions; here any model that
sentence-transformers reads, by its name on the hub or its folder.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.retrieval.ranker import Ranker, cosines, load_arrays, save_arrays, unit


@lru_cache(maxsize=2)
def encoder(name: str, device: str | None = None):
    """A sentence-transformers model by name or folder, in float32. Raises UserError where it does not load."""
    from sentence_transformers import SentenceTransformer

    try:
        place = paths.located(name)
        return SentenceTransformer(str(place) if place.exists() else name, device=device).float()
    except Exception as error:  # missing, not reachable, of another kind: the library has one exception for each
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(
            f"no sentence encoder {name!r}: {reason}; give a folder or a name on the Hugging Face hub") from error


class DescriptionModel(Ranker):
    """Cosine of a query and a description; ``vectors`` (n, d) float32 have length 1, or 0 for an empty description.

    ``model`` is the encoder's name or folder: it is not copied, and loaded with the first query.
    """

    def __init__(self, ids: Sequence[str], vectors: np.ndarray, model: str, device: str | None = None):
        self.ids, self.vectors, self.model, self.device = list(ids), vectors, model, device

    @classmethod
    def index(cls, descriptions: Mapping[str, str], model: str | Path, device: str | None = None, batch_size: int = 256,
              progress: bool = True) -> "DescriptionModel":
        """Encode descriptions (id -> text). Raises UserError for a model that does not load and for no description."""
        if not descriptions:
            raise UserError("nothing to search: no description")
        ids = sorted(descriptions)
        made = cls(ids, np.zeros((0, 0)), str(model), device)
        made.vectors = made._encoded([descriptions[name] for name in ids], batch_size, progress)
        return made

    def _encoded(self, texts: Sequence[str], batch_size: int = 256, progress: bool = False) -> np.ndarray:
        if not texts:
            return np.zeros((0, self.vectors.shape[1]), dtype=np.float32)
        found = encoder(self.model, self.device).encode(list(texts), batch_size=batch_size, show_progress_bar=progress,
                                                        convert_to_numpy=True)
        return unit(np.nan_to_num(np.asarray(found, dtype=np.float32)))  # the mean of no token is NaN

    def scores_of(self, queries: Sequence[str]) -> np.ndarray:
        return cosines(self._encoded(queries), self.vectors)

    def save(self, folder: Path) -> None:
        """Write the vectors and the encoder's name to a folder; a place in the checkout as seen from its root."""
        place = Path(self.model)
        name = place.relative_to(paths.ROOT).as_posix() if place.is_relative_to(paths.ROOT) else self.model
        save_arrays(folder, {"ids": self.ids, "model": name}, vectors=self.vectors)

    @classmethod
    def load(cls, folder: Path, device: str | None = None) -> "DescriptionModel":
        """What ``save`` wrote. Raises UserError where it is not whole."""
        about, vectors = load_arrays(folder, "vectors")
        return cls(about["ids"], vectors, about["model"], device)
