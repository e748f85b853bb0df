"""Computes numbers about passes (``cloudapi.dag``) that several notebooks of this folder need: the
tokens that a pass costs, the differences between two models or two policies, and whether a pass has
log-probabilities.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from operator import itemgetter

import numpy as np
from numpy.typing import ArrayLike
from pandas import DataFrame

from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.policies import Numbers, Retriever, Rows, class_rows, outcome


def has_confidence(first: DataFrame) -> bool:
    """Return whether a pass has log-probabilities. If it has none, print which numbers are left out
    for its model.
    """
    found = bool(first.minimum.notna().all())
    if not found:
        print(
            f"{first.model.iloc[0]} gives no log-probabilities, so the policies that need them "
            "are left out (dag_confidence, dag_plus_plus); if its server gives them now, remove "
            "logprobs=false from its name, or add a new revision=LABEL to generate new answers"
        )
    return found


def spent(passes: Passes, retrieve: ArrayLike, column: str, retriever: Retriever) -> np.ndarray:
    """Return each task's expected number of tokens, (tasks,). ``column`` says which tokens are
    counted, for example "new_tokens".

    The tokens of the first pass always count, because the query is made from the first answer. The
    tokens of the second pass are added where ``retrieve`` is true. Lookup and search cost no
    tokens.
    """
    second = outcome(passes, True, retriever, itemgetter(column))
    first = passes.first[column].to_numpy(dtype=float)
    return first + np.where(retrieve, second, 0)


def added_tokens(first: DataFrame, documented: DataFrame) -> np.ndarray:
    """Return the number of tokens that documentation added to each prompt, (tasks,). Tokens that
    did not fit into the context are included.
    """
    before, after = (frame.prompt_tokens + frame.prompt_dropped for frame in (first, documented))
    return np.asarray(after - before)


def between_models(
    frames: Sequence[DataFrame],
    metric: str = "valid_change_points",
    ways: Sequence[Numbers] | None = None,
) -> Rows:
    """Return the paired difference between every two models, the later one in ``frames`` minus the
    earlier one. The ``model`` of these rows is ``<later> - <earlier>``.

    ``frames`` are the models' frames of ``evaluate``, over the same tasks in the same order. By
    default, the column ``valid`` is compared, and the condition of a row is ``<class>``. With
    ``ways``, other values are compared: ``ways`` has for each model a dictionary {name: (tasks,)
    values}, and the condition of a row is ``<name>/<class>``.
    """
    rows = []
    named = ways or [{"": frame.valid} for frame in frames]
    for (first, before), (second, after) in combinations(zip(frames, named, strict=True), 2):
        both = second.assign(model=f"{second.model.iloc[0]} - {first.model.iloc[0]}")
        for name, values in after.items():
            rows += class_rows(both, name, {metric: np.subtract(values, before[name], dtype=float)})
    return rows


def compared_rows(first: DataFrame, ways: Numbers, pairs: Iterable[tuple[str, str]]) -> Rows:
    """Return rows of ``valid_change_points``, the paired change between two ways to answer the same
    tasks. The condition of a row is ``<new>/<class> - <old>/<class>``.

    ``ways`` maps a name to (tasks,) outcomes, and ``pairs`` are pairs (new, old) of these names.
    """
    rows = []
    for new, old in pairs:
        change = np.subtract(ways[new], ways[old], dtype=float)
        rows += class_rows(first, f"{new} - {old}", {"valid_change_points": change})
    return rows
