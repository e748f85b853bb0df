"""The paper's rankers over a corpus of snippets, by name, and how well they find what answers a question (paper,
Sections 3 and 4.4).

"bm25-code", "bm25-description" and "bm25-both"; "code", the neural bag of words; "description", the sentence encoder;
"ensemble-<weight>", both with that weight on the code.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.retrieval.bag_of_words import NeuralBagOfWords
from lookuplab.retrieval.bm25 import Bm25Text
from lookuplab.retrieval.descriptions import DescriptionModel
from lookuplab.retrieval.ensemble import WEIGHTS, Ensemble
from lookuplab.retrieval.metrics import ndcg_at, recall_at, reciprocal_rank, success_at
from lookuplab.retrieval.ranker import Ranker
from lookuplab.retrieval.word_vectors import WordVectors
from lookuplab.retrieval.words import code_words, query_words
from lookuplab.scoring.rates import average, estimate
from lookuplab.scoring.rows import row
from lookuplab.stackoverflow.corpus import Query, Snippet, pages
from lookuplab.stackoverflow.ds1000 import Problem

NAMES = (
    "bm25-code", "bm25-description", "bm25-both", "code", "description", *(f"ensemble-{one:g}" for one in WEIGHTS),
)  # fmt: skip
KEPT = paths.RUNS / "rankers"  # word vectors that were learned from a corpus
DEPTH = 20
MEASURES = {  # the paper's "recall@3" is success_at_3: whether any relevant snippet is among the first three
    "mrr_at_20": (reciprocal_rank, 20),
    "success_at_1": (success_at, 1),
    "success_at_3": (success_at, 3),
    "recall_at_3": (recall_at, 3),
    "recall_at_10": (recall_at, 10),
    "ndcg_at_10": (ndcg_at, 10),
}


def rankers(
    snippets: Sequence[Snippet], words: str | Path, encoder: str | Path, names: Sequence[str] = NAMES
) -> dict[str, Ranker]:
    """Name -> ranker over ``snippets``; what several of them need is made once.

    words: the folder of saved word vectors, or "" to learn them from these snippets, once. encoder: a
    sentence-transformers model by folder or name. Raises UserError for an unknown name and for folders that are not
    there.
    """
    code, descriptions = ({one.id: getattr(one, part) for one in snippets} for part in ("code", "description"))
    made: dict[str, Ranker] = {}

    def ranker(name: str) -> Ranker:
        if name not in made:
            made[name] = _made(name)
        return made[name]

    def _made(name: str) -> Ranker:
        kind, _, part = name.partition("-")
        if name == "code":
            if not words:
                return NeuralBagOfWords.kept(descriptions, code, KEPT)
            return NeuralBagOfWords.index(code, WordVectors.load(_place(words)))
        if name == "description":
            return DescriptionModel.index(descriptions, _place(encoder), progress=False)
        if kind == "bm25" and part in ("code", "description", "both"):
            texts = {one: [] if part == "code" else query_words(text) for one, text in descriptions.items()}
            return Bm25Text({one: [*texts[one], *(code_words(code[one]) if part != "description" else [])] for one in code})
        try:
            if kind == "ensemble" and float(part) > 0:
                return Ensemble(ranker("code"), ranker("description"), float(part))
        except ValueError:
            pass
        raise UserError(f"no ranker {name!r}; there are {', '.join(NAMES)}, and ensemble-<weight>")

    return {name: ranker(name) for name in names}


def _place(name: str | Path) -> str | Path:
    """A folder as the repository's root sees it; other names as they are."""
    return found if (found := paths.located(name)).exists() else name


def measured(rankers: Mapping[str, Ranker], queries: Sequence[Query]) -> pd.DataFrame:
    """One value a query: columns ranker, query and the MEASURES, each from 0 to 1."""
    texts, relevant = {one.id: one.text for one in queries}, {one.id: one.relevant for one in queries}
    parts = []
    for name, ranker in rankers.items():
        found = ranker.rank(texts, DEPTH)
        values = {measure: compute(found, relevant, k).astype(float) for measure, (compute, k) in MEASURES.items()}
        parts.append(pd.DataFrame({"ranker": name, "query": list(texts), **values}))
    return pd.concat(parts, ignore_index=True)


def quality_rows(values: pd.DataFrame, model: str, clusters: Mapping[str, str] | None = None) -> pd.DataFrame:
    """The mean of each measure and ranker with its 95% interval over queries, as an artifact's rows.

    ``values`` come from ``measured``; ``model`` names the corpus in the artifact's column of that name. ``clusters``:
    query -> what it shares with others (the origin of a perturbed problem); without it queries are independent.
    """
    groups = values["query"].map(clusters) if clusters else values["query"]
    return pd.DataFrame(
        row(model, name, measure, estimate(part[measure], groups[part.index]))
        for name, part in values.groupby("ranker", sort=False)
        for measure in MEASURES
    )


def difference_rows(values: pd.DataFrame, model: str, ranker: str, others: Sequence[str]) -> pd.DataFrame:
    """``ranker`` less each of ``others``, query by query: the mean difference of each measure with its 95% interval."""
    table = values.set_index(["ranker", "query"])[list(MEASURES)]
    return pd.DataFrame(
        row(model, f"{ranker}/{other}", f"{measure}_difference", average(less[measure], less.index))
        for other in others
        for less in [table.loc[ranker] - table.loc[other]]
        for measure in MEASURES
    )


def questions(
    problems: Sequence[Problem], gold_file: Path | str, snippets: Sequence[Snippet]
) -> tuple[list[Snippet], list[Query]]:
    """The documents to search and the problems' questions, without those that have no document.

    The paper had no such ground truth and judged 60 queries by eye (Section 4.4). ``gold_file``: ``corpus.pages``; ""
    for ``snippets`` and the objects that the problems name, whose snippets are OBJECT#NUMBER (none in DS-1000).
    """
    if gold_file:
        documents, relevant = pages(gold_file)
    else:
        documents, known = list(snippets), defaultdict(list)
        for snippet in snippets:
            known[snippet.id.rpartition("#")[0]].append(snippet.id)
        relevant = {one.id: tuple(known[one.object]) for one in problems if one.object in known}
    return documents, [Query(one.id, one.question, relevant[one.id]) for one in problems if one.id in relevant]
