"""Finds the documents that answer the benchmark's questions (paper, Section 4.4). They are pages of
documentation from a file, or the snippets about the objects of mini problems.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.stackoverflow.asking import Matches, gives_away, object_of, without_answers
from lookuplab.stackoverflow.corpus import Query, Snippet
from lookuplab.stackoverflow.ds1000 import Problem


def pages(file: Path | str) -> tuple[list[Snippet], dict[str, tuple[str, ...]]]:
    """Return documents, and {problem id: ids of the documents that answer it}, from lines
    ``{problem_id, docs: [{title, text}]}``.

    CodeRAG-Bench annotated DS-1000 in this format with pages of documentation (Wang and others
    2024), which are documents without code. Problems without a page are left out. Raises UserError
    for a line in a different format.
    """
    documents: dict[str, Snippet] = {}
    relevant: dict[str, tuple[str, ...]] = {}
    for number, record in paths.json_lines(paths.located(file)):
        try:
            texts = {page["title"]: page["text"] for page in record["docs"]}
            if texts:
                relevant[str(record["problem_id"])] = tuple(texts)
        except (KeyError, TypeError):
            raise UserError(
                f"{file}: line {number} is not a problem with its pages; it needs `problem_id` and "
                "`docs`, each with `title` and `text`"
            ) from None
        documents |= {name: Snippet(name, text, "", str(file), "") for name, text in texts.items()}
    return list(documents.values()), relevant


def gold(snippets: Sequence[Snippet], problems: Sequence[Problem], k: int) -> Matches:
    """Return at most ``k`` snippets about each problem's object: an upper bound for retrieval.

    A problem that names no object gets none. DS-1000's problems name no object.
    """
    own = defaultdict(list)
    for snippet in snippets:
        own[object_of(snippet)].append(snippet)
    matches = {problem.id: own[problem.object] if problem.object else [] for problem in problems}
    return without_answers(matches, problems, k)


def questions(
    problems: Sequence[Problem], gold_file: Path | str, snippets: Sequence[Snippet]
) -> tuple[Sequence[Snippet], list[Query]]:
    """Return the documents to search, and the questions of those problems that have a relevant
    document.

    ``gold_file`` is a file for ``pages``. If it is "", the documents are ``snippets`` (ids
    OBJECT#NUMBER), and the snippets about a problem's object are relevant; DS-1000's problems name
    no object. Snippets that contain a problem's answer are hidden from it, as in prompts. The paper
    had no such ground truth and judged 60 queries by eye (Section 4.4).
    """
    if gold_file:
        documents, relevant = pages(gold_file)
    else:
        documents = [*snippets]
        own = gold(snippets, problems, len(snippets))
        relevant = {id: tuple(snippet.id for snippet in found) for id, found in own.items()}
    asked = []
    for problem in problems:
        if found := relevant.get(problem.id):
            hidden = [document.id for document in documents if gives_away(document, problem)]
            asked.append(Query(problem.id, problem.question, found, tuple(hidden)))
    return documents, asked
