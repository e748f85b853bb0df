"""Applies the policies that decide for which tasks documentation is retrieved, and makes rows that
measure their effect (paper, Sections 3 and 4).

A policy is represented by a mask over the tasks (retrieve or not). A retriever is represented by
its precision, or by a mask of the tasks for which it finds the target. Policies and retrievers
select among existing completions (``dag.Passes``). No model runs here, so a curve over a hundred
thresholds or precisions needs no generation. Rows have the form that ``scoring.rates.row`` returns.
Intervals are clustered by API, because up to three tasks have the same target.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from pandas import DataFrame, Series

from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.tasks import COMPOSITION, stable_order
from lookuplab.errors import UserError, check_choice
from lookuplab.scoring.rates import Rate, Rows, averages, of_change, of_number, of_share, row

CLASS_ORDER = tuple(COMPOSITION)  # high, medium, low
POLICIES = ("base", "dag", "dag_index_lookup", "dag_confidence", "dag_plus_plus")
THRESHOLD = 0.8  # DAG++ retrieves below this confidence (Section 4.3)
# suffix of a metric's name -> the kind of interval for the metric
INTERVALS = {"percent": of_share, "points": of_change}
# A retriever is either a number or an array. A number is the precision in percent (50 in the
# paper); outcomes are then exact expectations over all choices of hits. An array, (tasks,)
# booleans, says for which tasks the retriever finds the target (``Passes.retrieved``,
# ``sampled_hits``).
Retriever = float | np.ndarray
Numbers = Mapping[str, ArrayLike]  # name -> (tasks,) numbers
# the ``classes`` of ``class_rows`` for one row over all tasks, with no class in its condition
UNDIVIDED = {"": True}


def triggered(
    first: DataFrame,
    policy: str,
    threshold: ArrayLike = THRESHOLD,
) -> np.ndarray:
    """Return (tasks,) booleans that say for which tasks the policy retrieves documentation, given
    the first pass (``Passes.first``). For m thresholds, a policy that uses the threshold returns
    (tasks, m) booleans.

    *base* never retrieves, and *dag* always does. *dag_index_lookup* retrieves if the invoked "API
    name" is not "in the API index" (Section 4.1), *dag_confidence* if the model's confidence in the
    name is below the threshold (4.2), and *dag_plus_plus* if either holds (4.3). *asked*, not in
    the paper, is for models that have learned to write a mark where they need documentation
    (data/mini/ASKING.md): it retrieves if 1 minus the mark's probability (column ``asked``) is
    below the threshold.

    Raises UserError for a threshold outside 0 to 1, and for a policy that needs a confidence if the
    first pass has none.
    """
    check_choice("policy", policy, (*POLICIES, "asked"))
    if not np.size(threshold):
        raise UserError("no threshold is given: give at least one, from 0 to 1")
    if not np.array_equal(np.clip(threshold, 0, 1), threshold):
        raise UserError(f"threshold {threshold!r}: give a confidence, from 0 to 1")
    if policy in ("dag_confidence", "dag_plus_plus") and first.minimum.isna().any():
        raise UserError(
            f"{first.model.iloc[0]} gives no log-probabilities, so there is no confidence"
        )
    if policy in ("base", "dag"):
        return np.full(len(first), policy == "dag")
    absent: np.ndarray = ~first.exists_anywhere.to_numpy(dtype=bool)
    if policy == "dag_index_lookup":
        return absent
    sure = 1 - first.asked if policy == "asked" else first.minimum
    unsure: np.ndarray = np.less.outer(sure.to_numpy(), threshold)
    return (absent | unsure.T).T if policy == "dag_plus_plus" else unsure


def expected(hit: ArrayLike, miss: ArrayLike, precision: float) -> np.ndarray:
    """Return the expected outcome of each task, (n,) floats, if ``precision`` percent of the draws
    are hits. The expected outcome is x * hit + (1 - x) * miss, where x is ``precision`` / 100.

    ``hit`` are the outcomes with documents that contain the target, (n,) booleans or numbers, and
    ``miss`` the outcomes with documents that do not contain it. Raises UserError for a precision
    outside 0 to 100.
    """
    if not 0 <= precision <= 100:
        raise UserError(f"a retriever precision of {precision}%: give a number from 0 to 100")
    # this form has no rounding error where hit and miss are equal
    return np.asarray(miss) + precision / 100 * np.subtract(hit, miss, dtype=float)


def sampled_hits(tasks: DataFrame, precision: float, seed: int = 0) -> np.ndarray:
    """Return (tasks,) booleans that say for which tasks the retriever finds the target, in one
    random draw. The paper's retriever, which includes the target "x% of the time" (Section 3.1),
    needs such a draw.

    ``tasks`` has the columns ``id`` and ``frequency``. The tasks of every class are sorted by a
    seeded hash, and the first ``precision`` percent of them are drawn, with halves rounded up. A
    higher precision therefore adds tasks to the draw and removes none. The draw does not depend on
    the order of the tasks.
    """
    order = tasks.id.map(lambda id: stable_order(id, seed)).rank()
    classes = order.groupby(tasks.frequency)
    # A task is drawn if (its rank - 1/2) <= precision / 100 * size, which rounds halves up. The
    # small term allows for rounding errors: in floating point, 0.57 x 100 is less than 57.
    return np.asarray(100 * classes.rank() - 50 <= precision * classes.transform("size") + 1e-6)


def outcome(
    passes: Passes,
    retrieve: ArrayLike,
    retriever: Retriever,
    of: Callable[[DataFrame], Series] = itemgetter("valid"),
) -> np.ndarray:
    """Return each task's expected outcome, (tasks,), under a policy and a ``retriever``. ``of``
    takes the frame of one pass and returns the tasks' outcomes; by default an outcome is 1 for a
    valid call, else 0.

    ``retrieve`` is the policy's mask from ``triggered``, or True to retrieve for every task. Masks
    for m thresholds, (tasks, m), give (tasks, m) outcomes.
    """
    frames = passes.first, passes.hit, passes.miss
    first, hit, miss = (of(frame).to_numpy(dtype=float) for frame in frames)
    if isinstance(retriever, np.ndarray):
        documented = np.where(retriever, hit, miss)
    else:
        documented = expected(hit, miss, retriever)
    return np.asarray(np.where(np.transpose(retrieve), documented, first).T)


def rows_of(first: DataFrame, numbers: Mapping[tuple[str, str], Rate]) -> Rows:
    """Return one row for each item of ``numbers``, {(condition, metric): number}. The rows have the
    model's name from the first pass, ``first``.
    """
    return [row(first.model.iloc[0], *name, number) for name, number in numbers.items()]


def by_class(first: DataFrame, order: Sequence[str] = CLASS_ORDER) -> dict[str, np.ndarray]:
    """Return {frequency class: (tasks,) mask} for each class of ``order`` that occurs, and for
    "all" tasks.
    """
    frequency = first.frequency.to_numpy()
    masks = {name: frequency == name for name in order if name in frequency}
    return masks | {"all": np.full(len(first), True)}


def class_rows(
    first: DataFrame,
    name: str | Sequence[str],
    numbers: Numbers,
    classes: Mapping[str, Any] | None = None,
) -> Rows:
    """Return a row for each metric of ``numbers`` and each frequency class (and "all"), with the
    condition ``name/class``.

    ``numbers`` is {metric: (tasks,) values}. If ``name`` is a list of m names, the values are
    (tasks, m). Tasks whose value is NaN are skipped; a class without a value has no row. The name
    "new - old" gives the condition ``new/class - old/class``. If ``classes`` is given, such as
    UNDIVIDED, it replaces the result of ``by_class``.

    The suffix of the metric gives the unit. ``_percent`` stands for the mean of values from 0 to 1,
    as a percentage, and ``_points`` for the mean of differences of such values, in percentage
    points. Any other metric is a mean of numbers.
    """
    found: dict[tuple[str, str], Rate] = {}
    names = [name] if isinstance(name, str) else name
    if not len(names):
        return []
    for label, mask in (classes or by_class(first)).items():
        conditions = [
            " - ".join(f"{side}/{label}".strip("/") for side in name.split(" - ")) for name in names
        ]
        for metric, column in numbers.items():
            values = np.asarray(column, dtype=float).reshape(len(first), -1)
            counted = mask & ~np.isnan(values[:, 0])
            if counted.any():
                kind = INTERVALS.get(metric.rpartition("_")[2], of_number)
                means = averages(values[counted], first.cluster[counted], kind=kind)
                for condition, mean in zip(conditions, means, strict=True):
                    found[condition, metric] = mean if kind is of_number else mean.percent()
    return rows_of(first, found)


def policy_rows(
    passes: Passes, name: str, retrieve: ArrayLike, precision: float, seed: int = 0
) -> Rows:
    """Return the rows of one policy at one precision, as in Tables 2 and 3.

    ``valid_percent`` is the exact expectation, ``sampled_valid_percent`` the result of one draw, as
    in the paper. ``valid_change_points`` is the paired difference between the expectation and the
    first pass. ``triggered_percent`` is the percentage of tasks with retrieval.
    """
    valid = outcome(passes, retrieve, precision)
    drawn = sampled_hits(passes.first, precision, seed)
    numbers: Numbers = {
        "valid_percent": valid,
        "sampled_valid_percent": outcome(passes, retrieve, drawn),
        "valid_change_points": valid - passes.first.valid,
        "triggered_percent": retrieve,
    }
    return class_rows(passes.first, name, numbers)


def label(threshold: float) -> str:
    """Return a threshold's name in conditions, such as ``threshold_0.80``."""
    return f"threshold_{threshold:.2f}"
