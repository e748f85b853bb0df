"""How well rankers find the snippets that answer a question, in a corpus of the user's own."""

from collections.abc import Mapping, Sequence
from typing import Any

from lookuplab.retrieval.metrics import reciprocal_rank, success_at
from lookuplab.retrieval.rankers import Ranker
from lookuplab.scoring.rates import rate, row
from lookuplab.stackoverflow.corpus import Query

MEASURES = {"mrr_at_20": (reciprocal_rank, 20), "success_at_3": (success_at, 3)}


def found_rows(
    rankers: Mapping[str, Ranker], queries: Sequence[Query], corpus: str
) -> list[dict[str, Any]]:
    """Return the mean of each measure and ranker over the queries, each query its own cluster, and
    the share of queries whose ranking depends on ties.
    """
    texts = {query.id: query.text for query in queries}
    relevant = {query.id: query.relevant for query in queries}
    rows = []
    for name, ranker in rankers.items():
        found = ranker.places(texts, relevant, 20)
        found.tell(name)
        values = {measure: of(found, depth) for measure, (of, depth) in MEASURES.items()}
        for measure, numbers in {**values, "undecided": found.undecided}.items():
            rows.append(row(corpus, name, measure, rate(numbers, [*texts])))
    return rows
