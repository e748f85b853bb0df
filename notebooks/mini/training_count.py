"""Makes the rows of dose_response.ipynb: validity as a function of how often a model saw an API in
training. Two logistic curves against log(1 + count) are fitted: without documentation, and with the
correct documentation.

The curves show the effect of the count only if the counts were assigned at random, as for the mini
models.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas
from sklearn import config_context
from sklearn.linear_model import LogisticRegression

from lookuplab.scoring.rates import Rate, Rows, jackknife, of_number, of_share, row

SHOWN_COUNTS = (0, 1, 3, 10, 30, 100, 300, 600)  # counts at which the curves are reported
# scikit-learn's C. The penalty is so weak that it matters only where the slope would otherwise be
# infinite. That happens if every valid call has a higher count than every invalid call, or if every
# valid call has a lower one.
PENALTY = 100.0


def fit(log_count: np.ndarray, valid: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Return (intercept, slope) of the logistic curve of validity against log(1 + count).

    The arguments have the shape (tasks,): ``log_count`` has the values of log(1 + count), ``valid``
    has booleans, and ``weights`` has the weights of the tasks. If all calls are valid or all are
    invalid, the slope is 0.
    """
    share = np.average(valid, weights=weights)
    size = weights.sum()
    if share in (0, 1):
        # No slope can be estimated. Half a valid and half an invalid call are added to the tasks,
        # so that the odds are finite.
        return float(np.log((share * size + 0.5) / ((1 - share) * size + 0.5))), 0.0
    model = LogisticRegression(C=PENALTY).fit(log_count[:, None], valid, sample_weight=weights)
    return float(model.intercept_[0]), float(model.coef_[0, 0])


def half(curve: tuple[float, float]) -> float:
    """Return the value of log(1 + count) at which a rising curve (intercept, slope) crosses 50%.

    For a curve that does not rise, return minus infinity if it is at 50% or above at count 0, and
    otherwise infinity.
    """
    intercept, slope = curve
    return -intercept / slope if slope > 0 else -np.inf if intercept >= 0 else np.inf


def meeting(alone: tuple[float, float], documented: tuple[float, float]) -> float:
    """Return the value of log(1 + count) from which documentation no longer helps. There, the curve
    with documentation meets the curve without documentation.

    Return infinity if documentation helps at every count. If documentation does not help at count
    0, return 0 or less, even if documentation would help at higher counts.
    """
    # the curves meet where their difference is 0, and ``half`` finds where a line crosses 0
    return half((alone[0] - documented[0], alone[1] - documented[1]))


def training_count_rows(
    frame: pandas.DataFrame, counts: Sequence[int], valid: Mapping[str, np.ndarray]
) -> Rows:
    """Return the rows of one model. ``frame`` has one row per task, with the columns ``model`` and
    ``cluster`` (the task's API). ``counts``, (tasks,), are the training counts of these APIs.
    ``valid`` maps the ways "alone" and "documented" to (tasks,) booleans.

    The rows are:

    - ``valid_percent`` of ``count_<x>/<way>``: the value of the curve at each of SHOWN_COUNTS.
    - ``half_at`` of ``<way>``: the count at which the curve crosses 50%.
    - ``meet_at`` of ``documented - alone``: the count from which documentation no longer helps.

    ``half_at`` and ``meet_at`` are limited to counts from 0 to 600. ``half_at`` is 0 if the curve
    is at 50% or above already at count 0, and 600 if it stays below 50%. ``meet_at`` is 0 if
    documentation does not help even at count 0, and 600 if it helps at all counts. Intervals come
    from the jackknife over APIs. The intervals of ``half_at`` and ``meet_at`` are computed on the
    scale log(1 + count).
    """
    log_count = np.log1p(np.asarray(counts, dtype=float))
    grid = np.log1p(SHOWN_COUNTS)

    ways = [np.asarray(one, dtype=bool) for one in valid.values()]
    fitted = {}
    alike = [np.unique([log_count, way], axis=1, return_inverse=True)[1] for way in ways]

    def curve(at: int, weights: np.ndarray) -> tuple[float, float]:
        # Many APIs have the same count and the same outcomes. Leaving out any one of these APIs
        # leaves the same sample, whose curve need not be fitted again.
        key = at, np.bincount(alike[at], weights).tobytes()
        if key not in fitted:
            fitted[key] = fit(log_count, ways[at], weights)
        return fitted[key]

    def statistic(weights: np.ndarray) -> np.ndarray:
        found = []
        for of_sample in weights:
            curves = [curve(at, of_sample) for at in range(len(ways))]
            shares = [1 / (1 + np.exp(-intercept - slope * grid)) for intercept, slope in curves]
            crossings = [*map(half, curves), meeting(*curves)]
            # clipped, because the jackknife would leave out infinite crossings
            found.append([*np.concatenate(shares), *np.clip(crossings, -50, 50)])
        return np.array(found)

    levels = [(f"count_{count}/{way}", "valid_percent") for way in valid for count in SHOWN_COUNTS]
    levels += [(way, "half_at") for way in valid] + [("documented - alone", "meet_at")]
    kinds = [of_share if metric == "valid_percent" else of_number for _, metric in levels]
    with np.errstate(all="ignore"), config_context(skip_parameter_validation=True):
        numbers = jackknife(statistic, frame.cluster, kinds)
    shown = {of_share: Rate.percent, of_number: as_counts}
    return [
        row(frame.model.iloc[0], *level, shown[kind](number))
        for level, kind, number in zip(levels, kinds, numbers, strict=True)
    ]


def as_counts(number: Rate) -> Rate:
    """Convert a number and its interval from log(1 + count) to counts from 0 to 600. An unknown
    interval becomes the whole range.
    """
    ends = np.expm1([number.value, np.fmax(number.low, -50), np.fmin(number.high, 50)])
    value, low, high = np.clip(ends, 0, SHOWN_COUNTS[-1]).tolist()
    return Rate(value, low, high, number.n, number.clusters)
