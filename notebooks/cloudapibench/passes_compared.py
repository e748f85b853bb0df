"""Numbers about passes, besides their validity, that several of these notebooks share: the tokens
that passes cost, the difference between two models, and whether there is a confidence.
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
    """Return whether a pass has log-probabilities. If not, print which numbers its model lacks."""
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
    query needs, plus those of the second pass if ``retrieve`` is true. Lookup and search cost no
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
    each model, {name: (tasks,) values}, condition ``name/class``; by default the column ``valid``,
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
    """Return ``valid_change_points`` for pairs (new, old) of ways to answer the same tasks,
    condition ``<new>/<class> - <old>/<class>``.

    ways: name -> (tasks,) outcomes; the change is paired.
    """
    rows = []
    for new, old in pairs:
        change = np.subtract(ways[new], ways[old], dtype=float)
        rows += class_rows(first, f"{new} - {old}", {"valid_change_points": change})
    return rows
