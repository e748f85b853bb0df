"""What two choices cost that no page names: the rank of a forced hit, and BM25's constants and
words.

Rows are dictionaries as ``scoring.rates.row`` makes them.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from pandas import DataFrame

from lookuplab.benchmark import evaluate
from lookuplab.cloudapi.bench import CloudApiBench
from lookuplab.cloudapi.dag import key_terms, passes, retrieved_documents
from lookuplab.cloudapi.policies import Rows, class_rows, outcome
from lookuplab.cloudapi.tasks import stable_order
from lookuplab.models import Model
from lookuplab.retrieval.rankers import Bm25

Terms = Callable[..., list[str]]
BM25 = {  # setting -> what is not the default
    "k1_0.9": {"k1": 0.9},
    "k1_1.2": {"k1": 1.2},
    "k1_2": {"k1": 2.0},
    "b_0": {"b": 0.0},
    "b_1": {"b": 1.0},
    "epsilon_0": {"epsilon": 0.0},
}


def forced_rows(
    model: Model, bench: CloudApiBench, k: int, precision: float, seed: int = 0
) -> Rows:
    """Return valid calls with k documents if a forced hit (an API asked for that BM25 has not among
    its first k) takes the ``last`` rank, the ``first``, or a ``random`` one of each task.

    ``forced_percent``: of the tasks; changes are paired with the last rank. Unforced hits and all
    misses are the same.
    """
    last = passes(model, bench, k)
    shown = retrieved_documents(bench.tasks, last.first, k, index=bench.index)
    valid = outcome(last, True, precision)
    numbers = {"valid_percent": valid, "forced_percent": ~shown.found}
    rows = class_rows(last.first, f"last_{k}", numbers)
    for rank in ("first", "random"):
        documents = dict(shown.hit)
        for task, found in zip(bench.tasks, shown.found, strict=True):
            if not found:
                *others, target = shown.hit[task.id]
                at = 0 if rank == "first" else int(stable_order(task.id, seed), 16) % k
                documents[task.id] = (*others[:at], target, *others[at:])
        hit = evaluate(model, replace(bench, documents=documents))
        other = outcome(replace(last, hit=hit), True, precision)
        rows += class_rows(last.first, f"{rank}_{k}", {"valid_percent": other})
        change = {"valid_change_points": other - valid}
        rows += class_rows(last.first, f"{rank}_{k} - last_{k}", change)
    return rows


def whole_names(place, name: str | None) -> list[str]:
    """Return service, client and name, none of them split into words."""
    return [place.service.lower(), place.client.lower(), str(name).lower()]


def bm25_rows(model: Model, bench: CloudApiBench) -> Rows:
    """Return for how many tasks BM25's first document is of an API asked for, ``found_percent``, by
    each setting of BM25, and with names that are not split; changes are paired with the kit's.
    """
    first = evaluate(model, bench)
    ours = _found(bench, first, key_terms, {})
    rows = class_rows(first, "ours", {"found_percent": ours})
    others = {name: _found(bench, first, key_terms, setting) for name, setting in BM25.items()}
    others["whole_names"] = _found(bench, first, whole_names, {})
    for name, found in others.items():
        rows += class_rows(first, name, {"found_percent": found})
        change = {"found_change_points": found - 1.0 * ours}
        rows += class_rows(first, f"{name} - ours", change)
    return rows


def _found(
    bench: CloudApiBench, first: DataFrame, terms: Terms, setting: dict[str, float]
) -> np.ndarray:
    keys = {spec.id: terms(spec, spec.name) for spec in bench.index.operations}
    ranker = Bm25(keys, words=str.split, **setting)
    places: Sequence = bench.tasks
    queries = {
        task.id: " ".join(terms(task, name)) for task, name in zip(places, first.name, strict=True)
    }
    ranked = ranker.rank(queries, 1)
    return np.array([ranked[task.id][0] in task.targets for task in places])
