"""The paper's rankers over a corpus of snippets, by name, and how well they find what answers a
question (paper, Sections 3 and 4.4).

The names are "bm25-code", "bm25-description" and "bm25-both"; "code", the neural bag of words;
"description", the sentence encoder; and "ensemble-<weight>", which combines these two with that
weight on the code.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from huggingface_hub import snapshot_download

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.retrieval import rankers as kinds
from lookuplab.retrieval.metrics import ndcg_at, recall_at, reciprocal_rank, success_at
from lookuplab.retrieval.rankers import Ranker, code_words, query_words
from lookuplab.scoring.rates import of_change, of_score_change, paired_difference, rate, row
from lookuplab.stackoverflow import corpus as corpora
from lookuplab.stackoverflow.corpus import Query, Snippet

RANKERS = (
    *("bm25-code", "bm25-description", "bm25-both", "code", "description"),
    *(f"ensemble-{weight:g}" for weight in kinds.WEIGHTS),
)
KEPT = paths.RUNS / "rankers"  # word vectors learned from a corpus
DEPTH = 20
# Each with its depth, and the interval of its change. The paper's "recall@3" is success_at_3:
# whether any relevant snippet is among the first three.
MEASURES = {
    "mrr_at_20": (reciprocal_rank, 20, of_score_change),
    "success_at_1": (success_at, 1, of_change),
    "success_at_3": (success_at, 3, of_change),
    "recall_at_3": (recall_at, 3, of_change),
    "recall_at_10": (recall_at, 10, of_change),
    "ndcg_at_10": (ndcg_at, 10, of_score_change),
}


def rankers(
    snippets: Sequence[Snippet],
    words: str | Path,
    encoder: str | Path,
    names: Sequence[str] = RANKERS,
) -> dict[str, Ranker]:
    """Name -> ranker over ``snippets``; parts that several rankers need are made once.

    words: the folder of saved word vectors, or "" to learn them from these snippets, once. encoder:
    a sentence-transformers model by folder or name. Raises UserError for an unknown name and for
    missing folders.
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
        if kind == "ensemble" and re.fullmatch(r"\d*\.?\d+", part) and float(part):
            return kinds.Ensemble(ranker("code"), ranker("description"), float(part))
        raise UserError(
            f"no ranker {name!r}; there are {', '.join(RANKERS)}, and ensemble-<weight>"
        )

    if not names:
        raise UserError("there is no ranker to make: name at least one")
    return {name: ranker(name) for name in names}


def _terms(snippet: Snippet, part: str) -> list[str]:
    """BM25's terms of a snippet's "description", "code" or "both"."""
    words = query_words(snippet.description) if part != "code" else []
    return words + (code_words(snippet.code) if part != "description" else [])


def _vectors(snippets: Sequence[Snippet], place: str | Path) -> Mapping[str, np.ndarray]:
    """The word vectors in a folder (relative to the repository's root); without one, those learned
    from these snippets.
    """
    if not place:
        lines = training_lines(snippets)
        place = KEPT / hashlib.sha256(json.dumps(lines).encode()).hexdigest()[:16]
        if not (place / "about.json").exists():
            kinds.save_words(place, kinds.train_words(lines))
    return kinds.load_words(paths.located(place))


def sources(corpus: str | Path, words: str | Path, encoder: str | Path) -> list[Path]:
    """The files and folders that such a ranking depends on, for its provenance.

    For an encoder from the hub, this is the copy in the cache.
    """
    folders = [paths.located(place) for place in (words, encoder) if place]
    if encoder and not folders[-1].exists():
        folders[-1] = Path(snapshot_download(str(encoder), local_files_only=True))
    return corpora.files(corpus) + folders


def training_lines(snippets: Sequence[Snippet]) -> list[list[str]]:
    """What the word vectors of a corpus are learned from: three lines of words per snippet.

    They have the description in the middle of the code, before it and after it (nokia/codesearch).
    """
    lines = []
    for snippet in sorted(snippets, key=lambda snippet: snippet.id):
        words, code = query_words(snippet.description), code_words(snippet.code)
        middle = len(code) // 2
        lines += [code[:middle] + words + code[middle:], words + code, code + words]
    return lines


def measured(rankers: Mapping[str, Ranker], queries: Sequence[Query]) -> pd.DataFrame:
    """One row per ranker and query: columns ranker, query and the MEASURES, each from 0 to 1."""
    texts, relevant = (
        {one.id: getattr(one, name) for one in queries} for name in ("text", "relevant")
    )
    depth, parts = DEPTH + max((len(query.hidden) for query in queries), default=0), []
    for name, ranker in rankers.items():
        found = ranker.rank(texts, depth)
        for query in queries:
            shown = [document for document in found[query.id] if document not in query.hidden]
            found[query.id] = shown[:DEPTH]
        values = {key: 1.0 * of(found, relevant, k) for key, (of, k, _) in MEASURES.items()}
        parts.append(pd.DataFrame({"ranker": name, "query": list(texts), **values}))
    return pd.concat(parts, ignore_index=True)


def quality_rows(
    values: pd.DataFrame,
    model: str,
    pairs: Iterable[tuple[str, str]] = (),
    clusters: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """The mean of each measure and ranker with its 95% interval over queries, as an artifact's
    rows.

    For pairs of rankers also the first minus the second, query by query: metric
    ``<measure>_change``, condition ``FIRST
    - SECOND``. ``values`` come from ``measured``; ``model`` names the corpus in the artifact's
      column of that name.
    ``clusters``: query -> its cluster (such as the origin of a perturbed problem); without it,
    queries are independent.
    """
    table = values.pivot(index="query", columns="ranker")
    groups, found = table.index.map(clusters or str), []
    for name, measure in product(values.ranker.unique(), MEASURES):
        found.append(row(model, name, measure, rate(table[measure, name], groups)))
    for (one, other), measure in product(dict.fromkeys(pairs) if len(values) else (), MEASURES):
        kind = MEASURES[measure][2]
        less = paired_difference(table[measure, other], table[measure, one], groups, kind)
        found.append(row(model, f"{one} - {other}", f"{measure}_change", less))
    return pd.DataFrame(found)
