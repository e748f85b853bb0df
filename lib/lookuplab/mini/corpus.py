"""The mini models' training corpus: package source (a), usage documents of real APIs (b), invented APIs (c)."""

from collections.abc import Iterator

from tqdm import tqdm

from lookuplab.cloudapi.benchmark import TASKS, load_tasks
from lookuplab.cloudapi.specs import load_documentation, load_index
from lookuplab.mini.counts import assign
from lookuplab.mini.documents import usage_documents
from lookuplab.mini.invented import invented_documents
from lookuplab.mini.packages import package_documents
from lookuplab.mini.reserved import Reserved

N_INVENTED = 29_000  # about 40 % of the tokens
PACKAGE_CHARACTERS = 7_000_000  # about 15 % of the tokens


def unlearned(part: str, text: str) -> int:
    """How much of a document's head is read but not learned: the documentation of an invented API is random words."""
    return text.find('"""', 3) + 4 if part == "c" and text.startswith('"""') else 0


def documents(seed: int = 0, n_invented: int = N_INVENTED, progress: bool = True) -> Iterator[tuple[str, str, str]]:
    """(part, document id, text) of the whole corpus, in a fixed order: a, then b, then c.

    No text holds the wording of a benchmark comment. The benchmark has to exist: it says which wordings those are.
    """
    index = load_index()
    reserved = Reserved(task.comment for task in load_tasks(TASKS))
    sources = {
        "a": (pair for pair in package_documents(PACKAGE_CHARACTERS) if not reserved.found_in(pair[1])),
        "b": usage_documents(index, assign(index, seed), load_documentation(), reserved, seed),
        "c": invented_documents(index, n_invented, reserved, seed),
    }
    for part, pairs in sources.items():
        shown = tqdm(pairs, desc=f"corpus part {part}", unit=" documents", disable=not progress, mininterval=1)
        for source, text in shown:
            yield part, source, text
