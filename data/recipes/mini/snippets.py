"""Builds the mini corpus of snippets from the descriptions and examples in the docstrings of four
installed libraries.

The rules of held-out data are:

- An object is held out if any of its names is in the split "test" (``packages.example_split``). The
  mini models never saw the examples of a held-out object.
- The problems of the mini benchmark are made from examples of held-out objects. These examples are
  also in the corpus, just as Stack Overflow contains the answers to its questions. But no prompt
  shows a snippet that contains the problem's expression (``stackoverflow.asking``).
- The query for an object's snippets is a sentence of the object's docstring: the second sentence of
  the summary, or if there is none, a sentence from Returns or Notes. The first sentence is never
  the query, because it describes the snippets. A sentence that names the object as code is not used
  either.
- The objects in the split "development" give validation queries by the same rules.
"""

import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from importlib import metadata
from itertools import chain
from operator import attrgetter
from typing import Any

import click

from lookuplab.run.cli import command, run_module
from lookuplab.stackoverflow.corpus import CORPUS_FOLDER, Snippet
from lookuplab.work import watched
from recipes import write_rows
from recipes.mini import packages
from recipes.mini.docstrings import Documented, documented, sections, sessions
from recipes.mini.packages import EXAMPLE_PACKAGES, example_split
from recipes.prose import opening_sentence, prose_sentences

MAX_CODE = 1200  # characters; longer examples are whole sessions rather than snippets
MAX_OBJECTS = 3  # a sentence shared by more objects describes none of them in particular
BOILERPLATE = re.compile(  # matches sentences about the documentation instead of the object
    r"User Guide|deprecated|alias|version|docstring|Array API|rv_continuous|rv_discrete|sphx_glr|"
    r"compatib|^(Refer|See) ",
    re.I,
)


def split_of(item: Documented) -> str:
    """Return the split of an object: "test" if any of its names is in that split; otherwise
    "development" if any name is in that split; otherwise "training".
    """
    splits = [*map(example_split, item.names), "training"]
    return next(split for split in ("test", "development", "training") if split in splits)


def phrasings(item: Documented) -> list[str]:
    """Return sentences of a docstring that say what an object does. The first sentence of the
    docstring is left out. Sentences from the summary come first, then Returns, then Notes.

    Sentences that name the object as code or are about the documentation are left out.
    """
    parts = sections(item.text)
    # of Returns, only the descriptions are kept, not the lines ``name : type`` above them
    returned = re.sub(r"^\S.*\n", "", parts.get("returns", ""), flags=re.M)
    texts = parts[""], textwrap.dedent(returned), parts.get("notes", "")
    naming = {name.rpartition(".")[2] for name in item.names}
    in_code = "|".join(rf"\b{name}(?=\()|\.{name}\b" for name in naming)
    first = opening_sentence(parts[""]).rstrip(".")
    return [
        sentence
        for sentence in dict.fromkeys(chain(*map(prose_sentences, texts)))
        if sentence.rstrip(".") != first
        and not BOILERPLATE.search(sentence)
        and not re.search(in_code, sentence)
        and not any("_" in name and name in sentence for name in naming)
    ]


def build() -> dict[str, list[dict[str, Any]]]:
    """Return {name of a file: its records} for the snippets, the validation queries and the test
    queries. The same versions of the libraries give the same records.
    """
    made: dict[str, list[Snippet]] = defaultdict(list)
    requests = defaultdict(list)
    for name, package in EXAMPLE_PACKAGES.items():
        for item in watched(documented(package), name):
            snippets = [*_snippets(name, item)]
            others = phrasings(item)
            split = split_of(item)
            made[split] += snippets
            if snippets and others:
                requests[split].append((others[0], snippets))
    by_code: dict[str, Snippet] = {}
    for snippet in [
        *made["test"],
        *sorted(made["training"] + made["development"], key=attrgetter("id")),
    ]:
        # if several objects share a snippet, it gets the id of a held-out object, if there is one
        by_code.setdefault(_key(snippet.code), snippet)
    kept = {*by_code.values()}
    return {
        "snippets": [*map(vars, by_code.values())],
        "queries_valid": [*_queries(requests["development"], kept)],
        "queries_test": [*_queries(requests["test"], kept)],
    }


def _snippets(distribution: str, item: Documented) -> Iterator[Snippet]:
    """Yield the snippets of a docstring: each piece of example code, described by the docstring's
    first sentence and the sentence that introduces the code.
    """
    parts = sections(item.text)
    source = metadata.distribution(distribution)
    first = opening_sentence(parts[""])
    licence = packages.licence_of(source)
    origin = f"{distribution} {source.version}: {item.name}"
    found = sessions(parts.get("examples", "")) or sessions(item.text)
    for number, (lead, code) in enumerate(found if len(first.split()) > 1 else ()):
        if len(code) <= MAX_CODE and ("(" in code or "[" in code):
            description = f"{first.rstrip('.')}. {lead}" if lead else first
            yield Snippet(f"{item.name}#{number}", description, code, origin, licence)


def _key(code: str) -> str:
    """Return code without its imports and white space. Two snippets with the same key count as one,
    for example if they differ only in how they import a function.
    """
    return re.sub(r"(?m)^\s*(import|from)\s.*|\s", "", code)


def _queries(
    asked: list[tuple[str, list[Snippet]]], kept: set[Snippet]
) -> Iterator[dict[str, Any]]:
    """Yield ``{query, relevant_ids}`` for each sentence. A sentence is left out if none of its
    snippets is in the corpus, or if the docstrings of more than MAX_OBJECTS objects contain it.

    ``asked`` are pairs (a sentence of an object's docstring, the object's snippets), and ``kept``
    is the corpus.
    """
    by_text = defaultdict(list)
    for text, snippets in asked:
        by_text[text].append(snippets)
    for text, objects in by_text.items():
        ids = [snippet.id for snippet in chain(*objects) if snippet in kept]
        if ids and len(objects) <= MAX_OBJECTS:
            yield {"query": text, "relevant_ids": ids}


@command()
def main() -> None:
    """Build the mini corpus of snippets: descriptions, code and queries from the docstrings of
    numpy, pandas, scipy and scikit-learn.

    \b
    Example:
      python -m recipes.mini.snippets
    """
    for name, records in build().items():
        write_rows(CORPUS_FOLDER / f"{name}.jsonl.gz", records)
        click.echo(f"{len(records):,} {name} -> {CORPUS_FOLDER}")


if __name__ == "__main__":
    run_module(main)
