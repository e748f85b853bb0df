"""Makes the paper's rankers over a corpus of snippets, by name (paper, Section 3).

The names are "bm25-code", "bm25-description" and "bm25-both"; "code" (the neural bag of words);
"description" (the sentence encoder); and "ensemble-<weight>", which combines "code" and
"description" and multiplies the scores of "code" by the weight.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from math import inf
from pathlib import Path

import numpy as np
from huggingface_hub import snapshot_download

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.retrieval import rankers as kinds
from lookuplab.retrieval.rankers import Ranker, Wordless, code_words, query_words
from lookuplab.stackoverflow import corpus as corpora
from lookuplab.stackoverflow.corpus import Snippet
from lookuplab.work import say

RANKERS = (
    *("bm25-code", "bm25-description", "bm25-both", "code", "description"),
    *(f"ensemble-{weight:g}" for weight in kinds.WEIGHTS),
)
VECTORS = paths.RUNS / "rankers"  # the folder for word vectors that are learned from a corpus


def rankers(
    snippets: Sequence[Snippet],
    words: str | Path,
    encoder: str | Path,
    names: Sequence[str] = RANKERS,
) -> dict[str, Ranker]:
    """Return {name: ranker} over ``snippets``. A ranker that is also a part of ensembles is made
    only once.

    ``words`` is the folder of saved word vectors, or "" to learn word vectors from these snippets;
    the learned vectors are saved in VECTORS. ``encoder`` is the folder or name of a
    sentence-transformers model. A ranker that knows no word of any snippet is left out, and a
    warning says so. Raises UserError for an unknown name, for missing folders, and if no ranker is
    left.
    """

    @cache
    def ranker(name: str) -> Ranker:
        kind, _, part = name.partition("-")
        if name == "code":
            return kinds.by_code(
                {snippet.id: snippet.code for snippet in snippets}, _vectors(snippets, words)
            )
        if name == "description":
            return kinds.by_description(
                {snippet.id: snippet.description for snippet in snippets}, encoder
            )
        if name in RANKERS and kind == "bm25":
            return kinds.Bm25({snippet.id: _terms(snippet, part) for snippet in snippets})
        if kind == "ensemble" and re.fullmatch(r"[0-9]*\.?[0-9]+", part) and 0 < float(part) < inf:
            return kinds.Ensemble(ranker("code"), ranker("description"), float(part))
        raise UserError(
            f"no ranker {name!r}; there are {', '.join(RANKERS)}, and ensemble-<weight>, "
            "with a weight above 0"
        )

    found = {}
    message = "no ranker is named: name at least one"
    for name in names:
        try:
            found[name] = ranker(name)
        except Wordless as error:
            message = f"{name} is left out: {error}"
            say(f"warning: {message}")
    if not found:
        raise UserError(message)
    return found


def _terms(snippet: Snippet, part: str) -> list[str]:
    """Return the terms for BM25 from one ``part`` of a snippet: its "description", its "code", or
    "both".
    """
    words = query_words(snippet.description) if part != "code" else []
    return words + (code_words(snippet.code) if part != "description" else [])


def _vectors(snippets: Sequence[Snippet], place: str | Path) -> Mapping[str, np.ndarray]:
    """Return {word: vector} from the folder ``place``, a path relative to the repository's root. If
    ``place`` is "", learn the vectors from these snippets, or read them if they have been learned
    before.
    """
    if not place:
        lines = training_lines(snippets)
        place = VECTORS / paths.hashed(json.dumps(lines))[:16]
        if not (place / "about.json").exists():
            kinds.train_words(lines, place)
    return kinds.load_words(paths.located(place))


def sources(corpus: str | Path, words: str | Path, encoder: str | Path) -> list[Path]:
    """Return the files and folders on which a ranking depends, for its provenance.

    If the encoder comes from the hub, the list has the encoder's folder in the hub's cache.
    """
    folders = [paths.located(place) for place in (words, encoder) if place]
    if encoder and not folders[-1].exists():
        folders[-1] = Path(snapshot_download(str(encoder), local_files_only=True))
    return corpora.files(corpus) + folders


def training_lines(snippets: Sequence[Snippet]) -> list[list[str]]:
    """Return the texts from which word vectors are learned: three lists of words per snippet.

    As in nokia/codesearch, the first list has the description in the middle of the code, the second
    before the code, and the third after the code.
    """
    lines = []
    for snippet in sorted(snippets, key=lambda snippet: snippet.id):
        words, code = query_words(snippet.description), code_words(snippet.code)
        middle = len(code) // 2
        lines += [code[:middle] + words + code[middle:], words + code, code + words]
    return lines
