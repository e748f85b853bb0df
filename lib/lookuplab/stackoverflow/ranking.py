"""The paper's rankers over a corpus of snippets, by name (paper, Sections 3 and 4.4).

"bm25-code", "bm25-description" and "bm25-both"; "code", the neural bag of words; "description", the sentence encoder;
"ensemble-<weight>", both with that weight on the code.
"""

from collections.abc import Sequence
from pathlib import Path

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.retrieval.bag_of_words import NeuralBagOfWords
from lookuplab.retrieval.bm25 import Bm25Text
from lookuplab.retrieval.descriptions import DescriptionModel
from lookuplab.retrieval.ensemble import WEIGHTS, Ensemble
from lookuplab.retrieval.ranker import Ranker
from lookuplab.retrieval.word_vectors import WordVectors
from lookuplab.retrieval.words import code_words, query_words
from lookuplab.stackoverflow.corpus import Snippet

NAMES = ("bm25-code", "bm25-description", "bm25-both", "code", "description",
         *(f"ensemble-{weight:g}" for weight in WEIGHTS))

KEPT = paths.RUNS / "rankers"  # word vectors that were learned from a corpus


def rankers(snippets: Sequence[Snippet], words: str | Path, encoder: str | Path, names: Sequence[str] = NAMES
            ) -> dict[str, Ranker]:
    """Name -> ranker over ``snippets``; what several of them need is made once.

    words: the folder of saved word vectors, or "" to learn them from these snippets, once. encoder: a sentence-transformers
    model by folder or name. Raises UserError for an unknown name and for folders that are not there.
    """
    for name in names:
        if name not in NAMES and not _weight(name):
            raise UserError(f"no ranker {name!r}; there are {', '.join(NAMES)}, and ensemble-<weight>")
    made: dict[str, Ranker] = {}
    if any(name == "code" or _weight(name) for name in names):
        made["code"] = _code(snippets, words)
    if any(name == "description" or _weight(name) for name in names):
        descriptions = {one.id: one.description for one in snippets}
        made["description"] = DescriptionModel.index(descriptions, _place(encoder), progress=False)
    for name in names:
        if weight := _weight(name):
            made[name] = Ensemble(made["code"], made["description"], weight)
        elif name.startswith("bm25-"):
            made[name] = Bm25Text({one.id: _words(one, name.removeprefix("bm25-")) for one in snippets})
    return {name: made[name] for name in names}


def _weight(name: str) -> float | None:
    """Of an ensemble's name; None for the others."""
    kind, _, number = name.partition("-")
    try:
        return float(number) if kind == "ensemble" and float(number) > 0 else None
    except ValueError:
        return None


def _code(snippets: Sequence[Snippet], words: str | Path) -> NeuralBagOfWords:
    code = {one.id: one.code for one in snippets}
    if not words:
        return NeuralBagOfWords.kept({one.id: one.description for one in snippets}, code, KEPT)
    return NeuralBagOfWords.index(code, WordVectors.load(_place(words)))


def _words(snippet: Snippet, part: str) -> list[str]:
    description, code = query_words(snippet.description), code_words(snippet.code)
    return {"code": code, "description": description, "both": [*description, *code]}[part]


def _place(name: str | Path) -> str | Path:
    """A folder as the repository's root sees it; other names as they are."""
    return found if (found := paths.located(name)).exists() else name
