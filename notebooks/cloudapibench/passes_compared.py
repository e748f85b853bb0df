"""What several of these notebooks say of passes beside their validity: the tokens that they cost,
the difference between two models, and whether there is a confidence.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from operator import itemgetter

import numpy as np
from numpy.typing import ArrayLike
from pandas import DataFrame

from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.policies import Hits, Numbers, Rows, class_rows, outcome


def has_confidence(first: DataFrame) -> bool:
    """Return whether a pass has log-probabilities; if not, a line says what its model loses."""
    found = bool(first.minimum.notna().all())
    if not found:
        print(
            f"{first.model.iloc[0]} gives no log-probabilities, so what needs its confidence is "
            "left out (dag_confidence, dag_plus_plus); if its server gives them by now, remove "
            "logprobs=false from its name, or add a new revision=LABEL: it is then asked anew"
        )
    return found


def spent(passes: Passes, retrieve: ArrayLike, column: str, hits: Hits) -> np.ndarray:
    """Return (tasks,) expected tokens of a ``column``: always those of the first pass, which the
    query needs, and those of the second pass where ``retrieve`` is true. Lookup and search cost no
    tokens.
    """
    second = outcome(passes, True, hits, itemgetter(column))
    first = passes.first[column].to_numpy(dtype=float)
    return np.asarray(first + np.where(retrieve, second, 0))


def added_tokens(first: DataFrame, documented: DataFrame) -> np.ndarray:
    """Return (tasks,) tokens that documentation added to the prompts, including those that did not
    fit into the context.
    """
    before, after = (frame.prompt_tokens + frame.prompt_dropped for frame in (first, documented))
    return np.asarray(after - before)


def between_models(
    frames: Sequence[DataFrame],
    metric: str = "valid_change_points",
    ways: Sequence[Numbers] | None = None,
) -> Rows:
    """Return the paired difference of each pair of models, as rows of the model ``<new> - <old>``.

    frames: each model's frame of ``evaluate``, over the same tasks in the same order. ways: for
    each model, {name: (tasks,) values}, condition ``name/class``; by default what is ``valid``,
    condition ``class``.
    """
    rows = []
    named = ways or [{"": frame.valid} for frame in frames]
    for (first, before), (second, after) in combinations(zip(frames, named, strict=True), 2):
        if list(first.id) != list(second.id):
            raise ValueError("the models were asked other tasks, or in another order")
        both = second.assign(model=f"{second.model.iloc[0]} - {first.model.iloc[0]}")
        for name, values in after.items():
            rows += class_rows(both, name, {metric: np.subtract(values, before[name], dtype=float)})
    return rows


def compared_rows(first: DataFrame, ways: Numbers, pairs: Iterable[tuple[str, str]]) -> Rows:
    """``valid_change_points`` of pairs (new, old) of ways to answer the same tasks, ``<new>/<class>
    - <old>/<class>``.

    ways: name -> (tasks,) outcomes; the change is paired.
    """
    rows = []
    for new, old in pairs:
        change = np.subtract(ways[new], ways[old], dtype=float)
        rows += class_rows(first, f"{new} - {old}", {"valid_change_points": change})
    return rows
