"""Held-out functions and what became of them: which ones are generated, and one row for each that was."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

import pandas as pd

from lookuplab.errors import UserError
from lookuplab.models.load import load_tokenizer
from lookuplab.toolgen.functions import Filters, Function, Repository, extract
from lookuplab.toolgen.metrics.insertion import locate, read_source
from lookuplab.toolgen.metrics.judging import Judged, Store, Task, judge, kind_counts, row

NUMBERS = ("edit_similarity", "dependencies", "covered", "next_identifier", "identifier_sequence", "prefix")
Name = TypeVar("Name")
LEAST = 5  # functions of each repository: fewer say nothing about it


def test_functions(repositories: Sequence[Repository], filters: Filters = Filters(), limit: int | None = None,
                   seed: int = 0, count_tokens: Callable[[str], int] | None = None) -> list[Function]:
    """The usable functions of held-out repositories, in the order of repositories, files and lines.

    ``limit`` of them, spread over the repositories in proportion to their functions, but at least LEAST of each (all
    where it has fewer); within a repository by a seeded hash of the ids, so that a larger limit only adds functions.
    ``count_tokens`` as in ``functions.extract``. Raises UserError where no function is left.
    """
    seen: set[tuple[str, str]] = set()
    found = {repository.name: extract(repository, filters, seen, count_tokens).functions for repository in repositories}
    return sample(found, limit, seed)


def sample(found: Mapping[str, Sequence[Function]], limit: int | None = None, seed: int = 0) -> list[Function]:
    """What ``test_functions`` takes of the functions that were ``found``, by the repositories' names."""
    if not any(found.values()):
        raise UserError(f"no usable function with a docstring in {', '.join(found) or 'no repository'}; give others, or "
                        "wider limits")
    if limit is not None and limit < 1:
        raise UserError(f"limit is {limit}; it must be 1 or more functions")
    shares = _shares({name: len(functions) for name, functions in found.items()}, limit)

    def chosen(name: str) -> set[str]:
        ids = sorted((one.id for one in found[name]), key=lambda id: hashlib.sha256(f"{seed}/{id}".encode()).digest())
        return set(ids[:shares[name]])

    return [one for name, functions in found.items() for wanted in [chosen(name)] for one in functions
            if one.id in wanted]


test_functions.__test__ = False  # for pytest, which collects by name


def most_tokens(models: Sequence[str]) -> Callable[[str], int]:
    """How many tokens a text has at most, over the vocabularies of these local models, named as for ``models.load``.

    The test functions are then short enough for each of them. A function's code has no marks, so of models that differ
    behind their last hyphen only (``gpt-base``, ``gpt-toolgen``) the first one counts.
    """
    tokenizers = [load_tokenizer(name) for name in {name.rpartition("-")[0]: name for name in reversed(models)}.values()]
    return lambda text: max(len(each(text, add_special_tokens=False)["input_ids"]) for each in tokenizers)


def _shares(sizes: Mapping[str, int], limit: int | None) -> dict[str, int]:
    """How many functions of each repository: one after the other to whoever has the smallest share so far."""
    if limit is None or limit >= sum(sizes.values()):
        return dict(sizes)
    least = min(LEAST, limit // max(1, len(sizes)))
    shares = {name: min(size, least) for name, size in sizes.items()}
    while sum(shares.values()) < limit:
        open_ones = [name for name in sizes if shares[name] < sizes[name]]
        shares[min(open_ones, key=lambda name: (Fraction(shares[name] + 1, sizes[name]), name))] += 1
    return shares


def judged(functions: Sequence[Function], predictions: Mapping[str, str], variant: str = "paper", store: Store = None,
           workers: int | None = None, progress: bool = True) -> pd.DataFrame:
    """One row for each function, in their order; ``predictions``: id -> whole ``def`` or body, without marks.

    Columns: ``id``, ``repository``; ``predicted`` and ``wanted``, the texts that similarity is of; ``exact_match``;
    ``edit_similarity``, ``next_identifier``, ``identifier_sequence`` and ``prefix``, 0 to 1 or NaN where the reference
    has no identifier; ``dependencies`` and ``covered``, counts, and the same a kind (``covered_method``); ``passed``,
    True or False, ``failures``, the ids of pylint's messages joined by blanks. ``variant``, ``store`` and ``workers`` as
    in ``metrics.judging.judge``. Raises UserError for a function without a prediction, for a file that changed since
    the functions were read, and where an analyser gave no answer.
    """
    return judged_all(functions, {"": predictions}, variant, store, workers, progress)[""]


def judged_all(functions: Sequence[Function], predictions: Mapping[Name, Mapping[str, str]], variant: str = "paper",
               store: Store = None, workers: int | None = None, progress: bool = True) -> dict[Name, pd.DataFrame]:
    """``judged`` for several models at once: what the analysers read for one serves the others.

    ``predictions``: name -> predictions; with (model, condition) for names, the result is what ``tables`` takes.
    """
    for texts in predictions.values():
        if missing := [one.id for one in functions if one.id not in texts]:
            raise UserError(f"{len(missing)} functions have no prediction, first {missing[0]}; generate or drop them")
    places = []
    for one in functions:
        text = read_source(one.root / one.file)
        places.append((text, locate(text, one.line)))
    tasks = [Task(one.id, one.root, one.file, *place, texts[one.id])
             for texts in predictions.values() for one, place in zip(functions, places, strict=True)]
    found = judge(tasks, variant, store, workers, progress, strict=True)
    size = len(functions)
    return {name: _frame(functions, found[number * size:(number + 1) * size])
            for number, name in enumerate(predictions)}


def _frame(functions: Sequence[Function], found: Sequence[Judged]) -> pd.DataFrame:
    rows = []
    for one, judgement in zip(functions, found, strict=True):
        values = row(judgement)
        messages = dict.fromkeys(name for name, *_ in values.pop("messages"))
        rows.append({"id": one.id, "repository": one.repository, "predicted": judgement.predicted,
                     "wanted": judgement.wanted, **values, **kind_counts(judgement), "failures": " ".join(messages)})
    return pd.DataFrame(rows).astype({"passed": object, **dict.fromkeys(NUMBERS, float)}) if rows else pd.DataFrame()
