"""Finds rankers that cannot distinguish the snippets of a user's corpus."""

from collections.abc import Mapping, Sequence

from lookuplab.retrieval.rankers import Ranker


def undecided(rankers: Mapping[str, Ranker], questions: Sequence[str]) -> dict[str, set[str]]:
    """Return {ranker: questions for which it gives all documents the same score}, so that only ids
    order them. Print a line for each such ranker.

    This happens to BM25 if every word of a question is in half of the documents or in none (as in
    rank-bm25), and to the others if they know no word of it.
    """
    tied = {}
    for name, ranker in rankers.items():
        scores = ranker.scores_of(questions)
        same = (scores == scores[:, :1]).all(axis=1) & (len(ranker.ids) > 1)
        tied[name] = {
            question for question, is_tied in zip(questions, same, strict=True) if is_tied
        }
        if tied[name]:
            print(
                f"{name} gave every snippet the score {scores[same][0, 0]:g} for {same.sum()} of "
                f"{len(questions)} questions: their order means nothing; use description or an "
                "ensemble, or more snippets"
            )
    return tied
