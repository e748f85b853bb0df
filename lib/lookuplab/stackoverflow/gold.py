"""A benchmark's questions with the documents that answer them: what retrieval should find.

The paper had no such ground truth and judged 60 queries by eye (Section 4.4). Of DS-1000 it is the documentation as
CodeRAG-Bench annotated it (Wang and others 2024), a file of lines ``{problem_id, docs: [{title, text, ...}]}``. Nothing
of that is part of the kit: DS-1000's authors ask that it stays out of training corpora. Of the mini benchmark it is the
snippets of the object that a problem asks for.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.stackoverflow import ds1000
from lookuplab.stackoverflow.asking import question_of
from lookuplab.stackoverflow.corpus import Query, Snippet, records


def questions(problems_file: Path | str, gold_file: Path | str, snippets: Sequence[Snippet]
              ) -> tuple[list[Snippet], list[Query]]:
    """The documents to search and the problems' questions, in the file's order, without those that have no document.

    ``gold_file``: CodeRAG-Bench's pages, which have a description and no code; "" for ``snippets`` and the objects that
    the problems' metadata name (none in DS-1000's own file). Raises UserError as ``ds1000.load`` and ``gold_pages``.
    """
    problems = ds1000.load(problems_file)
    if gold_file:
        pages, relevant = gold_pages(gold_file)
        documents = [Snippet(title, text, "", str(gold_file), "") for title, text in pages.items()]
    else:
        documents, relevant = list(snippets), _of_objects(problems_file, snippets)
    return documents, [Query(one.id, question_of(one), relevant[one.id]) for one in problems if one.id in relevant]


def _of_objects(problems_file: Path | str, snippets: Sequence[Snippet]) -> dict[str, tuple[str, ...]]:
    """Problem id -> ids of its object's snippets, which are OBJECT#NUMBER."""
    known = defaultdict(list)
    for snippet in snippets:
        known[snippet.id.rpartition("#")[0]].append(snippet.id)
    metadata = [record["metadata"] for _, record in records(paths.located(problems_file))]
    return {str(one["problem_id"]): tuple(known[one["object"]]) for one in metadata if one.get("object") in known}


def gold_pages(path: Path | str) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """(title -> text of every page, problem id -> titles of its pages) of a JSON Lines file (.jsonl, .jsonl.gz).

    Problems without a page are left out. Raises UserError for a line that is none, and for a file without a page.
    """
    pages: dict[str, str] = {}
    relevant: dict[str, tuple[str, ...]] = {}
    for number, record in records(paths.located(path)):
        try:
            found = {page["title"]: page["text"] for page in record["docs"]}
            problem = str(record["problem_id"])
        except (KeyError, TypeError):
            raise UserError(f"{path}: line {number} is no problem with its pages; it needs `problem_id` and `docs`, "
                            "each with `title` and `text`") from None
        pages.update(found)
        if found:
            relevant[problem] = tuple(found)
    if not pages:
        raise UserError(f"{path}: no page of documentation")
    return pages, relevant
