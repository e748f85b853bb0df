"""Finds the snippets that are right answers to a problem's question (paper, Section 4.4). Each mini
problem is about one object, for example ``numpy.clip``, so its right snippets are those about this
object.
"""

from collections import defaultdict
from collections.abc import Sequence

from lookuplab.stackoverflow.asking import Matches, gives_away, object_of, without_answers
from lookuplab.stackoverflow.corpus import Query, Snippet
from lookuplab.stackoverflow.ds1000 import Problem


def gold(snippets: Sequence[Snippet], problems: Sequence[Problem], k: int) -> Matches:
    """Return at most ``k`` snippets about each problem's object: an upper bound for retrieval.

    A problem that names no object gets none. DS-1000's problems name no object.
    """
    own = defaultdict(list)
    for snippet in snippets:
        own[object_of(snippet)].append(snippet)
    matches = {problem.id: own[problem.object] if problem.object else [] for problem in problems}
    return without_answers(matches, problems, k)


def questions(problems: Sequence[Problem], snippets: Sequence[Snippet]) -> list[Query]:
    """Return a query for each problem whose object has snippets: the problem's question. The
    object's snippets count as relevant. DS-1000's problems name no object, so they give no query.

    A snippet that contains a problem's answer is hidden from this problem's query, as in prompts.
    The paper had no such ground truth and judged 60 queries by eye (Section 4.4).
    """
    own = gold(snippets, problems, len(snippets))
    asked = []
    for problem in problems:
        if found := tuple(snippet.id for snippet in own[problem.id]):
            hidden = tuple(one.id for one in snippets if gives_away(one, problem))
            asked.append(Query(problem.id, problem.question, found, hidden))
    return asked
