"""How well rankers find the snippets that answer known questions (paper, Section 4.4 "Retrieval system evaluation")."""

from collections.abc import Mapping, Sequence

import pandas as pd

from lookuplab.retrieval.metrics import ndcg_at, recall_at, reciprocal_rank, success_at
from lookuplab.retrieval.rankers import Ranker
from lookuplab.scoring.rates import average, estimate
from lookuplab.scoring.rows import row
from lookuplab.stackoverflow.corpus import Query

DEPTH = 20
MEASURES = {  # the paper's "recall@3" is success_at_3: whether any relevant snippet is among the first three
    "mrr_at_20": lambda found, wanted: reciprocal_rank(found, wanted, 20),
    "success_at_1": lambda found, wanted: success_at(found, wanted, 1),
    "success_at_3": lambda found, wanted: success_at(found, wanted, 3),
    "recall_at_3": lambda found, wanted: recall_at(found, wanted, 3),
    "recall_at_10": lambda found, wanted: recall_at(found, wanted, 10),
    "ndcg_at_10": lambda found, wanted: ndcg_at(found, wanted, 10),
}


def measured(rankers: Mapping[str, Ranker], queries: Sequence[Query]) -> pd.DataFrame:
    """One value a query: columns ranker, query and the MEASURES, each from 0 to 1."""
    texts, relevant = {one.id: one.text for one in queries}, {one.id: one.relevant for one in queries}
    parts = []
    for name, ranker in rankers.items():
        found = ranker.rank(texts, DEPTH)
        values = {measure: compute(found, relevant).astype(float) for measure, compute in MEASURES.items()}
        parts.append(pd.DataFrame({"ranker": name, "query": list(texts), **values}))
    return pd.concat(parts, ignore_index=True)


def quality_rows(values: pd.DataFrame, model: str, clusters: Mapping[str, str] | None = None) -> pd.DataFrame:
    """The mean of each measure and ranker with its 95% interval over queries, as an artifact's rows.

    ``values`` come from ``measured``; ``model`` names the corpus in the artifact's column of that name. ``clusters``:
    query -> what it shares with others (the origin of a perturbed problem); without it queries are independent.
    """
    groups = values["query"].map(clusters) if clusters else values["query"]
    return pd.DataFrame([row(model, name, measure, estimate(part[measure], groups[part.index]))
                         for name, part in values.groupby("ranker", sort=False) for measure in MEASURES])


def difference_rows(values: pd.DataFrame, model: str, ranker: str, others: Sequence[str]) -> pd.DataFrame:
    """``ranker`` less each of ``others``, query by query: the mean difference of each measure with its 95% interval."""
    table = values.set_index(["ranker", "query"])
    rows = []
    for other in others:
        less = table.loc[ranker][list(MEASURES)] - table.loc[other][list(MEASURES)]
        rows += [row(model, f"{ranker}/{other}", f"{measure}_difference", average(less[measure], less.index))
                 for measure in MEASURES]
    return pd.DataFrame(rows)
