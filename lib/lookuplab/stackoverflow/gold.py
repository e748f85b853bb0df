"""DS-1000's problems with the documentation that answers them, as CodeRAG-Bench annotated it (Wang and others 2024).

The paper had no ground truth for retrieval on DS-1000 and judged 60 queries by eye (Section 4.4); this is one. A line
is ``{problem_id, docs: [{title, text, ...}]}``. Nothing of it is part of the kit: DS-1000's authors ask that it stays
out of training corpora.
"""

from pathlib import Path

from lookuplab.errors import UserError
from lookuplab.stackoverflow.corpus import records


def gold_pages(path: Path) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """(title -> text of every page, problem id -> titles of its pages) of a JSON Lines file (.jsonl, .jsonl.gz).

    Problems without a page are left out. Raises UserError for a line that is none, and for a file without a page.
    """
    pages: dict[str, str] = {}
    relevant: dict[str, tuple[str, ...]] = {}
    for number, record in records(path):
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
