"""Measures how well the paper's rankers find the snippets that answer a question (Section 4.4)."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

import pandas as pd

from lookuplab.retrieval.metrics import ndcg_at, recall_at, reciprocal_rank, success_at
from lookuplab.retrieval.rankers import Ranker
from lookuplab.scoring.rates import of_change, of_score_change, paired_difference, rate, row
from lookuplab.stackoverflow.corpus import Query

DEPTH = 20
# measure -> (its function, its depth, the kind of interval for the difference of two rankers). The
# paper's "recall@3" is success_at_3: whether any relevant snippet is among the first three.
MEASURES = {
    "mrr_at_20": (reciprocal_rank, 20, of_score_change),
    "success_at_1": (success_at, 1, of_change),
    "success_at_3": (success_at, 3, of_change),
    "recall_at_3": (recall_at, 3, of_change),
    "recall_at_10": (recall_at, 10, of_change),
    "ndcg_at_10": (ndcg_at, 10, of_score_change),
}

UNDECIDED = "undecided"


def measured(rankers: Mapping[str, Ranker], queries: Sequence[Query]) -> pd.DataFrame:
    """Return one row per ranker and query. The columns are ranker, query, the MEASURES, each from 0
    to 1, and UNDECIDED, which is 1 if ties affect the measures. Print the number of
    queries with such ties for each ranker.
    """
    texts, relevant, hidden = (
        {one.id: getattr(one, name) for one in queries} for name in ("text", "relevant", "hidden")
    )
    parts = []
    for name, ranker in rankers.items():
        found = ranker.relevant_ranks(texts, relevant, DEPTH, hidden)
        found.tell(name)
        values = {key: of(found, k) for key, (of, k, _) in MEASURES.items()}
        values |= {UNDECIDED: 1.0 * found.undecided}
        parts.append(pd.DataFrame({"ranker": name, "query": list(texts), **values}))
    return pd.concat(parts, ignore_index=True)


def quality_rows(
    values: pd.DataFrame,
    model: str,
    pairs: Iterable[tuple[str, str]] = (),
    clusters: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Return an artifact's rows: each ranker's mean of each measure, with a 95% interval over
    queries, and the share of queries whose measures depend on ties (UNDECIDED).

    For each of the ``pairs`` of rankers, there are also rows of ``<measure>_change`` with the
    condition ``FIRST - SECOND``: the first ranker minus the second, paired by query. ``values``
    come from ``measured``. ``model`` is the corpus's name, for the artifact's column ``model``.
    ``clusters`` maps a query to its cluster (such as the origin of a perturbed problem). By
    default, queries are independent.
    """
    table = values.pivot(index="query", columns="ranker")
    groups = table.index.map(clusters or str)  # str: each query is its own cluster
    found = []
    for name, measure in product(values.ranker.unique(), [*MEASURES, UNDECIDED]):
        found.append(row(model, name, measure, rate(table[measure, name], groups)))
    for (one, other), measure in product(dict.fromkeys(pairs) if len(values) else (), MEASURES):
        kind = MEASURES[measure][2]
        less = paired_difference(table[measure, other], table[measure, one], groups, kind)
        found.append(row(model, f"{one} - {other}", f"{measure}_change", less))
    return pd.DataFrame(found)
