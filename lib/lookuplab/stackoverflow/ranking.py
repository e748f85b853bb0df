"""The paper's rankers over a corpus of snippets, by name (paper, Sections 3 and 4.4).

"bm25-code", "bm25-description" and "bm25-both"; "code", the neural bag of words; "description", the sentence encoder;
"ensemble-<weight>", both with that weight on the code.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.retrieval import rankers as kinds
from lookuplab.retrieval.rankers import Ranker, code_words, query_words
from lookuplab.stackoverflow.corpus import Snippet

NAMES = (
    *("bm25-code", "bm25-description", "bm25-both", "code", "description"),
    *(f"ensemble-{weight:g}" for weight in kinds.WEIGHTS),
)
KEPT = paths.RUNS / "rankers"  # word vectors that were learned from a corpus


def rankers(
    snippets: Sequence[Snippet],
    words: str | Path,
    encoder: str | Path,
    names: Sequence[str] = NAMES,
) -> dict[str, Ranker]:
    """Name -> ranker over ``snippets``; what several of them need is made once.

    words: the folder of saved word vectors, or "" to learn them from these snippets, once. encoder:
    a sentence-transformers model by folder or name. Raises UserError for an unknown name and for
    folders that are not there.
    """
    descriptions = {one.id: one.description for one in snippets}
    codes = {one.id: one.code for one in snippets}

    @cache
    def made(name: str) -> Ranker:
        kind, _, part = name.partition("-")
        if name == "code":
            return kinds.by_code(codes, _vectors(snippets, words))
        if name == "description":
            return kinds.by_description(descriptions, encoder)
        if name in NAMES and kind == "bm25":
            described = {name: query_words(text) for name, text in descriptions.items()}
            coded = {name: code_words(text) for name, text in codes.items()}
            both = {name: described[name] + coded[name] for name in coded}
            return kinds.Bm25({"code": coded, "description": described, "both": both}[part])
        if kind == "ensemble" and re.fullmatch(r"\d*\.?\d+", part) and float(part):
            return kinds.Ensemble(made("code"), made("description"), float(part))
        raise UserError(f"no ranker {name!r}; there are {', '.join(NAMES)}, and ensemble-<weight>")

    return {name: made(name) for name in names}


def _vectors(snippets: Sequence[Snippet], place: str | Path) -> Mapping[str, np.ndarray]:
    """The word vectors of a folder, as the repository's root sees it; of these snippets without one."""
    if place:
        return kinds.load_words(paths.located(place))
    lines = training_lines(snippets)
    folder = KEPT / hashlib.sha256(json.dumps(lines).encode()).hexdigest()[:16]
    if not (folder / "about.json").exists():
        kinds.save_words(folder, kinds.train_words(lines))
    return kinds.load_words(folder)


def training_lines(snippets: Sequence[Snippet]) -> list[list[str]]:
    """What the word vectors of a corpus are learned from."""
    return [
        line
        for one in sorted(snippets, key=lambda one: one.id)
        for line in kinds.training_lines(query_words(one.description), code_words(one.code))
    ]
