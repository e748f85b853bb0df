"""The mini profile's sentence encoder: a static embedding that learns which sentences describe the same object.

Heyman and Van Cutsem learn from titles of duplicate questions. Two sentences of one docstring stand in for those: both
say what an object does, in other words. Held-out objects and those of the validation queries are not learned from.

After three epochs the source's loss, binary cross-entropy on the cosine with five negatives, gave an MRR of .368 on the
264 validation queries (.360 at the rate below), the ranking loss .396 from a sixth of the rows: that one is shipped.
"""

import ast
import inspect
from collections.abc import Iterable, Iterator

from tqdm import tqdm

from lookuplab.mini.docstrings import Documented, documented, examples, sections
from lookuplab.mini.packages import EXAMPLE_PACKAGES, files_of, sources
from lookuplab.mini.snippets import phrasings, split_of, summary
from lookuplab.retrieval.encoder_training import Training
from lookuplab.stackoverflow.corpus import queries

VOCABULARY = 6000
DIMENSIONS = 160  # with the vocabulary 1.9 MB in half precision
TRAINING = Training("ranking", epochs=3, rate=0.03)
MAX_PHRASINGS = 4  # of one docstring: long notes would crowd out the others


def pairs(progress: bool = True) -> list[tuple[str, str]]:
    """Pairs of sentences about the same object, each once, from all listed packages; the same for the same versions.

    None has the text of a query: some sentences stand in many docstrings.
    """
    items = tqdm(_items(), "reading docstrings", unit=" objects", disable=not progress, mininterval=1)
    return without_queries(dict.fromkeys(pair for item in items for pair in pairs_of(item)))


def without_queries(found: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those pairs that hold no text of a mini query."""
    asked = {query.text for split in ("valid", "test") for query in queries("mini", split)}
    return [pair for pair in found if not asked & set(pair)]


def pairs_of(item: Documented) -> list[tuple[str, str]]:
    """The summary with each other sentence and each sentence that leads to an example; nothing of an object that is
    held out or asked about."""
    first = summary(item)
    if split_of(item) != "train" or len(first.split()) < 2:
        return []
    others = phrasings(item)[:MAX_PHRASINGS]
    leads = [one.lead for one in examples(sections(item.text).get("examples", "")) if one.lead][:MAX_PHRASINGS]
    longer = [(f"{first.rstrip('.')}. {lead}", others[0]) for lead in leads[:1] if others]  # as snippets are described
    return [*((first, other) for other in [*others, *leads]), *longer]


def _items() -> Iterator[Documented]:
    """Objects of the four libraries as imported, and whatever the other packages' files document."""
    for package in EXAMPLE_PACKAGES.values():
        yield from documented(package)
    for source in sources():
        if not source.excluded and source.name not in EXAMPLE_PACKAGES:
            for place, path in sorted(files_of(source.name, 0)):
                yield from _of_file(place, path)


def _of_file(place: str, path) -> Iterator[Documented]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return
    for node in ast.walk(tree):
        documentable = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if documentable and (text := ast.get_docstring(node)):
            yield Documented((f"{place}.{node.name}",), inspect.cleandoc(text))
