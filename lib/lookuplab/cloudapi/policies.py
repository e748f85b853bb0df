"""When to retrieve, and with what effect: policies, precisions, thresholds and designs as
selections and rows (paper, Sections 3 and 4).

A policy is a mask over the tasks (retrieve or not), and a retriever is a probability per task (that
the documents contain the target). Both select among existing completions (``dag.Passes``). Nothing
here runs a model, so a curve over a hundred thresholds or precisions needs no generation. Rows are
dictionaries as ``scoring.rates.row`` makes them. Intervals are clustered by API, since up to three
tasks ask for the same one.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from operator import attrgetter, itemgetter

import numpy as np
from pandas import DataFrame, Series

from lookuplab.cloudapi.dag import AGGREGATES, Passes, check_some
from lookuplab.cloudapi.tasks import COMPOSITION, stable_order
from lookuplab.errors import UserError, check_choice
from lookuplab.models import Completion
from lookuplab.models.store import hashed
from lookuplab.scoring.calibration import aurc_interval, auroc_interval, ece_interval
from lookuplab.scoring.rates import (
    Rate,
    averages,
    bare_row,
    of_change,
    of_number,
    of_share,
    rate,
    row,
    shares,
)

CLASSES = tuple(COMPOSITION)  # high, medium, low
POLICIES = ("base", "dag", "dag_index_lookup", "dag_confidence", "dag_plus_plus")
THRESHOLD = 0.8  # Section 4.3
BINS = 5, 10, 15, 20  # numbers of bins for the calibration error
NEAR = 1.0  # points: a threshold that is at most this far below the best is as good
KINDS = {"percent": of_share, "points": of_change}  # of intervals, by the suffix of a metric's name
# A retriever: its precision in percent (the paper's is 50), for the exact expectation over all
# choices of hits; or (tasks,) booleans that say for which tasks the target was found
# (``Passes.retrieved``, ``sampled_hits``).
Hits = float | np.ndarray
Rows = list[dict]
Numbers = Mapping[str, np.ndarray]  # name -> (tasks,) numbers


def triggered(
    first: DataFrame,
    policy: str,
    threshold: float | Sequence[float] = THRESHOLD,
    exists: str = "exists_anywhere",
) -> np.ndarray:
    """(tasks,) booleans: does the policy retrieve, given the first pass (a frame of ``dag.ask``)?

    *base* never does, *dag* always; *dag_index_lookup* does if the invoked "API name" is not "in
    the API index" (Section 4.1); *dag_confidence* if its confidence is below the threshold (4.2),
    with shape (tasks, m) for m thresholds; *dag_plus_plus* if either holds (4.3). ``exists`` is the
    column that says whether the name is known:
    ``exists_anywhere`` in the index, as in the paper, or ``exists`` among the methods of the
    prompt's client, which is stricter. Raises UserError for a threshold outside 0 to 1, and if
    there is no confidence.
    """
    check_choice("policy", policy, POLICIES)
    check_choice("exists", exists, ("exists", "exists_anywhere"))
    if not np.size(threshold):
        raise UserError("there is no threshold: give at least one, from 0 to 1")
    if not np.array_equal(np.clip(threshold, 0, 1), threshold):
        raise UserError(f"threshold {threshold}: give a confidence, from 0 to 1")
    if policy in ("dag_confidence", "dag_plus_plus") and first.minimum.isna().any():
        raise UserError(
            f"{first.model.iloc[0]} gives no log-probabilities, so there is no confidence to compare"
        )
    absent = ~first[exists].to_numpy(dtype=bool)
    unsure = np.less.outer(first.minimum.to_numpy(), threshold)
    chosen = absent & False, absent | True, absent, unsure, (absent | unsure.T).T
    return chosen[POLICIES.index(policy)]


def expected(hit, miss, precision: float) -> np.ndarray:
    """(n,) the expected outcome of each task if ``precision`` percent of the draws are hits: x hit
    + (1 - x) miss.

    hit, miss: (n,) booleans or numbers, the outcomes with documents that do and do not contain the
    target. Raises UserError for a precision outside 0 to 100.
    """
    if not 0 <= precision <= 100:
        raise UserError(f"a retriever precision of {precision}%: give a number from 0 to 100")
    # exact where both are equal, unlike the formula as written
    return miss + precision / 100 * np.subtract(hit, miss, dtype=float)


def sampled_hits(tasks: DataFrame, precision: float, seed: int = 0) -> np.ndarray:
    """(tasks,) booleans: one random draw of the tasks for which the retriever finds the target, as
    the paper must have made.

    ``tasks`` has the columns ``task`` and ``frequency``. Exactly ``precision`` percent of every
    class are drawn, with halves rounded up. A seeded hash of the task orders each class, so the
    sets are nested as the precision grows and do not depend on the order of the tasks.
    """
    order = tasks.task.map(lambda task: stable_order(task, seed)).rank()
    classes = order.groupby(tasks.frequency)
    # the small term allows for rounding errors: in floating point, 0.57 x 100 is less than 57
    found = 100 * classes.rank() - 50 <= precision * classes.transform("size") + 1e-6
    return found.to_numpy()


def outcome(
    passes: Passes,
    retrieve,
    hits: Hits,
    of: Callable[[DataFrame], Series] = itemgetter("valid"),
) -> np.ndarray:
    """(tasks,) the expected value of what ``of`` reads from a pass, by default the probability of a
    valid invocation.

    ``retrieve`` is a mask from ``triggered``; several masks, (tasks, m), give (tasks, m) outcomes;
    True means always.
    """
    frames = passes.first, passes.hit, passes.miss
    first, hit, miss = (of(frame).to_numpy(dtype=float) for frame in frames)
    documented = np.where(hits, hit, miss) if np.ndim(hits) else expected(hit, miss, hits)
    return np.where(np.transpose(retrieve), documented, first).T


def spent(passes: Passes, retrieve, column: str, hits: Hits) -> np.ndarray:
    """(tasks,) expected tokens of a ``column``: always those of the first pass, which the query
    needs, and those of the second pass where ``retrieve`` is true. Lookup and search cost no
    tokens.
    """
    second = outcome(passes, True, hits, itemgetter(column))
    return passes.first[column].to_numpy(dtype=float) + retrieve * second


def rows_of(first: DataFrame, numbers: Mapping[tuple[str, str], Rate]) -> Rows:
    """Rows of the model that made the first pass: (condition, metric) -> number."""
    return [row(first.model.iloc[0], *place, number) for place, number in numbers.items()]


def by_class(first: DataFrame) -> Numbers:
    """Class -> (tasks,) mask, for the classes that occur and for "all"."""
    check_some(first)
    frequency = first.frequency.to_numpy()
    masks = {name: frequency == name for name in CLASSES if name in frequency}
    return masks | {"all": np.full(len(first), True)}


def class_rows(
    first: DataFrame,
    name: str | Sequence[str],
    numbers: Numbers,
    classes: Mapping | None = None,
) -> Rows:
    """Rows ``name/class`` for each class of the tasks and "all", and for each metric of
    ``numbers``.

    numbers: metric -> (tasks,) values, or (tasks, m) for m names. Tasks whose value is NaN are
    skipped; a class without a value has no row. The metric's suffix gives the unit: ``_percent`` is
    a share of values from 0 to 1, ``_points`` a paired difference of such values, anything else a
    mean of numbers. The name "new - old" becomes ``new/class - old/class``. ``classes`` replaces
    ``by_class``, for instance by {"all": True}.
    """
    found, names = {}, [name] if isinstance(name, str) else name
    if not len(names):
        return []
    for label, mask in (classes or by_class(first)).items():
        conditions = [
            " - ".join(f"{side}/{label}".strip("/") for side in name.split(" - ")) for name in names
        ]
        for metric, values in numbers.items():
            values = np.asarray(values, dtype=float).reshape(len(first), -1)
            counted = mask & ~np.isnan(values[:, 0])
            if counted.any():
                kind = KINDS.get(metric.rpartition("_")[2], of_number)
                means = averages(values[counted], first.api[counted], kind=kind)
                for condition, mean in zip(conditions, means, strict=True):
                    found[condition, metric] = mean if kind is of_number else mean.percent()
    return rows_of(first, found)


def valid_rates(table: DataFrame) -> Rows:
    """Table 1: valid API invocations (%) by model and frequency class and over all tasks, open and
    closed binding.
    """
    rows = []
    for _, part in table.groupby("model", sort=False):
        numbers = {"valid_percent": part.valid, "valid_closed_percent": part.valid_closed}
        rows += class_rows(part, "", numbers)
    return rows


def perplexity_rows(
    first: DataFrame, scored: Mapping[str, Sequence[Completion]], precision: float
) -> Rows:
    """Figure 1 (right): the ``perplexity`` of the correct names, conditions ``way/<class>``.

    It is exp of the mean negative log-probability of the names' tokens; ``n`` counts the names.
    scored: *base*, *hit* and *miss* -> each task's name as ``models.score`` gives it, in the order
    of ``first``. *dag* is added: the mean is linear in the precision, so the mixture of hit and
    miss is exact. ``log_perplexity_change`` is how much higher the logarithm is than the base
    model's on the same names.
    """
    surprise = {
        name: -np.array([math.fsum(one.token_logprobs) for one in of])
        for name, of in scored.items()
    }
    surprise["dag"] = expected(surprise["hit"], surprise["miss"], precision)
    numbers = {("perplexity", name): values for name, values in surprise.items()}
    for name in ("hit", "miss", "dag"):
        numbers["log_perplexity_change", name] = surprise[name] - surprise["base"]
    tokens, found = np.array([[len(one.tokens)] for one in scored["base"]]), {}
    for label, mask in by_class(first).items():
        for (metric, name), values in numbers.items():
            (mean,) = averages(values[mask, None], first.api[mask], tokens[mask])
            ends = mean.value, mean.low, mean.high
            ends = map(math.exp, ends) if metric == "perplexity" else ends
            found[f"{name}/{label}", metric] = Rate(*ends, int(mask.sum()), mean.clusters)
    return rows_of(first, found)


def between_models(ways: Sequence[tuple[DataFrame, Numbers]], metric: str) -> Rows:
    """The paired difference of each pair of models on the same tasks, as rows of the model ``<new>
    - <old>``.

    ways: for each model, its first pass and {name: (tasks,) values}.
    """
    rows = []
    for (first, before), (second, after) in combinations(ways, 2):
        both = second.assign(model=f"{second.model.iloc[0]} - {first.model.iloc[0]}")
        for name, values in after.items():
            rows += class_rows(both, name, {metric: np.subtract(values, before[name], dtype=float)})
    return rows


def policy_rows(passes: Passes, name: str, retrieve, precision: float, seed: int = 0) -> Rows:
    """One policy at one precision, as in Tables 2 and 3.

    ``valid_percent`` is the exact expectation, ``sampled_valid_percent`` one draw (the paper's
    way),
    ``valid_change_points`` the expectation's paired difference from the base model,
    ``triggered_percent`` how often documentation was retrieved.
    """
    valid = outcome(passes, retrieve, precision)
    numbers = {
        "valid_percent": valid,
        "sampled_valid_percent": outcome(
            passes, retrieve, sampled_hits(passes.first, precision, seed)
        ),
        "valid_change_points": valid - passes.first.valid,
        "triggered_percent": retrieve,
    }
    return class_rows(passes.first, name, numbers)


def compared_rows(first: DataFrame, ways: Numbers, pairs: Iterable[tuple[str, str]]) -> Rows:
    """``valid_change_points`` of pairs (new, old) of ways to answer the same tasks, ``<new>/<class>
    - <old>/<class>``.

    ways: name -> (tasks,) outcomes; the change is paired.
    """
    rows = []
    for new, old in pairs:
        rows += class_rows(first, f"{new} - {old}", {"valid_change_points": ways[new] - ways[old]})
    return rows


def added_tokens(first: DataFrame, documented: DataFrame) -> np.ndarray:
    """(tasks,) tokens that documentation added to the prompts, including those that did not fit
    into the context.
    """
    before, after = (frame.prompt_tokens + frame.prompt_dropped for frame in (first, documented))
    return (after - before).to_numpy()


def precision_rows(passes: Passes, precisions, seed: int = 0) -> Rows:
    """Figure 7a: ``policy_rows`` if documentation is always retrieved, ``precision_<x>/<class>`` at
    each precision in percent, and the paired change from the first precision to the last.
    """
    always, ways, rows = np.full(len(passes.first), True), {}, []
    for x in precisions:
        name = f"precision_{x:g}"
        ways[name] = outcome(passes, always, x)
        rows += policy_rows(passes, name, always, x, seed)
    rows += compared_rows(passes.first, ways, [(last, [*ways][0]) for last in [*ways][-1:]])
    return [line for line in rows if line["metric"] != "triggered_percent"]


def break_even_rows(passes: Passes) -> Rows:
    """Rows ``break_even/<class>``: the precision (%) from which retrieval is at least as good as no
    retrieval.

    The expectation is a straight line from miss to hit, so its intersection with the base model is
    exact, even outside
    0 to 100: above 100 no retriever is good enough, below 0 any is. Values are cut at -100 and 300.
    If the line does not rise, the value is -100 if hits are as good as the base model, and 300 if
    they are not. The interval contains the precisions at which the interval of the paired change
    from the base model contains 0.
    """
    first, rows, grid = passes.first, {}, np.arange(-100, 301)
    base, miss, hit = (1.0 * one.valid.to_numpy() for one in (first, passes.miss, passes.hit))
    lost, rise = base - miss, hit - miss
    changes = np.outer(rise, grid) / 100 - lost[:, None]
    for name, mask in by_class(first).items():
        needed, gained = 100 * lost[mask].sum(), rise[mask].sum()
        at = needed / gained if gained > 0 else 300 if needed > 100 * gained else -100
        at = min(max(at, -100), 300)
        found = averages(changes[mask], first.api[mask], kind=of_change)
        low = min([300, *grid[[one.high >= 0 for one in found]]])
        high = min([300, *grid[[one.low >= 0 for one in found]]])
        number = replace(found[0], value=at, low=min(at, low), high=max(at, high))
        rows[f"break_even/{name}", "precision_percent"] = number
    return rows_of(first, rows)


# API invocation confidence as a measure and as a trigger (Figure 9), and the value of such a
# trigger (Section 4.2). A trigger is an order of the tasks, beginning with the one that needs
# documentation most, and a point at which to stop. Orders by confidence or API frequency can be
# compared with a random order and with the best one without choosing a threshold; ``held_out_rows``
# measures the value of a threshold that was chosen on other APIs.


def calibration_rows(first: DataFrame, counts) -> Rows:
    """How well the confidence of the first pass separates valid from invalid invocations (Figure 9a
    in numbers).

    For each class and *all*: ``auroc``, ``auroc_rests_on_tasks`` (how many tasks are of the rarer
    kind, valid or invalid), ``mean_confidence`` and, for *all* only, ``brier`` and ``ece`` (10
    equal-mass bins). Further conditions: *bins_5* and so on: ``ece`` with so many bins; *minimum,
    mean, product, last*: ``auroc`` of each aggregate; *minimum
    - mean* and so on: ``auroc_change_points``, their paired difference (0 to 1, like an AUROC);
    *frequency*: ``auroc`` of how often the API was seen, (tasks,) ``counts``.
    """
    valid, sure, apis = first.valid.to_numpy(dtype=bool), first["minimum"], first.api
    rests, found = {}, {}
    for name, mask in by_class(first).items():
        rarer = np.bincount(valid[mask], minlength=2).min()
        rests[name, "auroc_rests_on_tasks"] = Rate(float(rarer), math.nan, math.nan, mask.sum())
        found[name, "auroc"] = auroc_interval(valid[mask], sure[mask], apis[mask])
        found[name, "mean_confidence"] = rate(sure[mask], apis[mask])
    found["all", "brier"] = rate((sure - valid) ** 2, apis)
    found["all", "ece"] = ece_interval(valid, sure, apis)
    found |= {(f"bins_{n}", "ece"): ece_interval(valid, sure, apis, n) for n in BINS}
    found |= {(name, "auroc"): auroc_interval(valid, first[name], apis) for name in AGGREGATES}
    for name in list(AGGREGATES)[1:]:
        change = auroc_interval(valid, sure, apis, less=first[name])
        found[f"minimum - {name}", "auroc_change_points"] = change
    found["frequency", "auroc"] = auroc_interval(valid, counts, apis)
    known = {place: number for place, number in found.items() if not math.isnan(number.value)}
    return rows_of(first, rests | known)


def label(threshold: float) -> str:
    """``threshold_0.80``: how conditions name a threshold."""
    return f"threshold_{threshold:.2f}"


def curve(passes: Passes, thresholds, hits: Hits) -> np.ndarray:
    """(tasks, thresholds) probabilities of a valid invocation if documentation is retrieved below
    each threshold.
    """
    return outcome(passes, triggered(passes.first, "dag_confidence", thresholds), hits)


def best(means) -> np.ndarray:
    """The index of the best of the ascending thresholds (the last axis of ``means``); ties go to
    the fewest lookups.
    """
    return (means >= means.max(axis=-1, keepdims=True) - 1e-12).argmax(axis=-1)


def _range_around(at: int, near) -> list[int]:
    """The first and the last index of the run of True around ``at``, which itself counts as True."""
    far = np.flatnonzero(~near)
    return [max(far[far < at], default=-1) + 1, min(far[far > at], default=len(near)) - 1]


def threshold_rows(passes: Passes, thresholds, hits: Hits) -> Rows:
    """The best threshold over all tasks, and how much is lost by a higher one.

    *optimal* (metric ``threshold``) is the smallest of the best thresholds; its interval contains
    every threshold that is not significantly worse in the paired comparison. *optimal_range_low*,
    *optimal_range_high*: the ends of the range of thresholds around it that lose at most one point.
    Each end has an interval: its inner bound is the end of the range in which even the upper bound
    of the loss is at most one point, its outer bound the end of the range in which the lower bound
    of the loss is. (In samples drawn from the APIs of the mini tasks with replacement, these
    intervals covered 94 to 99% of the ends; percentiles of a bootstrap covered as few as 85%.)
    ``largest_fall_points`` of each class: the largest fall in validity from a threshold to any
    higher one, 0 if it never falls; ``ci_high`` bounds the falls from the best threshold so far to
    every later one.
    """
    first, values = passes.first, curve(passes, thresholds, hits)
    at = best(values.mean(axis=0))
    behind = averages(values[:, [at]] - values, first.api, kind=of_change)
    good = thresholds[[one.low <= 0 for one in behind]]
    optimal = replace(behind[0], value=thresholds[at], low=good.min(), high=good.max())
    found = {("optimal", "threshold"): optimal}
    lost = np.array([(one.value, one.low, one.high) for one in behind])
    ranges = [thresholds[_range_around(at, near)] for near in (lost <= NEAR / 100 + 1e-12).T]
    for end, (value, *ends) in zip(("low", "high"), zip(*ranges, strict=True), strict=True):
        number = replace(optimal, value=value, low=min(ends), high=max(ends))
        found[f"optimal_range_{end}", "threshold"] = number
    for name, mask in by_class(first).items():
        means = values[mask].mean(axis=0)
        peaks = [means[: at + 1].argmax() for at in range(len(means))]
        falls = averages((values[:, peaks] - values)[mask], first.api[mask], kind=of_change)
        worst, highest = max(falls, key=attrgetter("value")), max(one.high for one in falls)
        number = replace(worst, low=max(0.0, worst.low), high=highest)
        found[name, "largest_fall_points"] = number.percent()
    return rows_of(first, found)


def lowest(score, shares) -> np.ndarray:
    """(n, shares) probability that each task is among the lowest share of ``score``, (n,), if ties
    are broken at random.

    A constant score gives a random order: every task has the probability ``share``. Columns sum to
    n times the share.
    """
    _, member, size = np.unique(score, return_inverse=True, return_counts=True)
    before, places = (np.cumsum(size) - size)[member], np.asarray(shares, dtype=float) * len(member)
    return np.clip((places - before[:, None]) / size[member][:, None], 0, 1)


def share_rows(
    passes: Passes,
    counts,
    shares,
    hits: Hits,
    metric: str = "valid_percent",
) -> Rows:
    """Validity against the share of tasks with documentation: ``share_25/order`` (percent), for
    ``plots.curves``.

    The orders are *confidence* of the first pass; *frequency*, how often the API was seen
    (``counts``, which only a controlled world knows exactly); *random*; and *oracle*, by the gain
    from this retriever. For each order, ``<metric without _percent>_above_random_points`` is its
    mean lead over random across all shares, paired.
    """
    first, rows = passes.first, []
    base = first.valid.to_numpy(dtype=float)
    gain = outcome(passes, True, hits) - base
    orders = {
        "confidence": first["minimum"],
        "frequency": counts,
        "random": 0 * base,
        "oracle": -gain,
    }
    valid = {
        name: base[:, None] + lowest(order, shares) * gain[:, None]
        for name, order in orders.items()
    }
    for name, values in valid.items():
        names = [f"share_{100 * share:g}/{name}" for share in shares]
        rows += class_rows(first, names, {metric: values.clip(0, 1)}, {"": True})
    lead = metric.replace("percent", "above_random_points")
    for name in ("confidence", "frequency", "oracle"):
        above = (valid[name] - valid["random"]).mean(axis=1)
        rows += class_rows(first, name, {lead: above}, {"": True})
    return rows


def folds(clusters: Sequence[str], strata: Sequence[str], count: int, seed: int) -> np.ndarray:
    """(n,) fold numbers from 0: whole clusters, dealt out in the order of a seeded hash within each
    stratum.

    The result depends on the labels alone, not on their order. Each stratum continues where the one
    before stopped, so that the folds have equally many clusters.
    """

    def order(pair: tuple[str, str]) -> tuple[str, str]:
        return pair[0], hashed(f"{seed}/{pair[1]}")

    dealt = sorted(set(zip(strata, clusters, strict=True)), key=order)
    fold = {cluster: number % count for number, (_, cluster) in enumerate(dealt)}
    return np.array([fold[cluster] for cluster in clusters])


def held_out_rows(
    passes: Passes,
    thresholds,
    fixed: float,
    count: int,
    hits: Hits,
    seed: int,
) -> Rows:
    """Three ways to choose a threshold, judged on the same tasks.

    ``valid_percent`` of ``fixed/class``; of ``held_out/class``, with thresholds chosen on the other
    ``count - 1`` parts of the APIs; and of ``best_in_sample/class``, with the threshold chosen on
    the very tasks that it is judged on. Also the ``threshold`` of each (``held_out/fold_1`` ...)
    and paired ``valid_change_points``: best in sample - held out is the optimism, never below 0
    over all tasks; held out - fixed is the gain from choosing.
    """
    first, values = passes.first, curve(passes, thresholds, hits)
    fold, at = folds(first.api, first.frequency, count, seed), best(values.mean(axis=0))
    chosen = np.array([best(values[fold != number].mean(axis=0)) for number in range(count)])
    ways = {
        "fixed": curve(passes, fixed, hits),
        "best_in_sample": values[:, at],
        "held_out": values[np.arange(len(values)), chosen[fold]],
    }
    used = {"fixed": fixed, "best_in_sample": thresholds[at]}
    used |= {f"held_out/fold_{n}": value for n, value in enumerate(thresholds[chosen], 1)}
    model = first.model.iloc[0]
    rows = [bare_row(model, name, "threshold", cut, len(first)) for name, cut in used.items()]
    for name, valid in ways.items():
        rows += class_rows(first, name, {"valid_percent": valid})
    pairs = ("best_in_sample", "held_out"), ("held_out", "fixed")
    return [*rows, *compared_rows(first, ways, pairs)]


def risk_rows(first: DataFrame, counts, coverages) -> Rows:
    """How often the answers given without documentation are wrong: ``risk_percent`` at
    ``coverage_50/order``.

    The most confident ``coverage`` of the tasks is answered; the rest would be looked up. Orders
    are as in
    ``share_rows``, but *ideal*, in place of *oracle*, puts all correct answers first. For
    confidence and frequency also
    ``aurc``, the area under the curve.
    """
    check_some(first)
    found, valid = {}, first.valid.to_numpy(dtype=bool)
    orders = {
        "confidence": first["minimum"],
        "frequency": counts,
        "random": 0 * valid,
        "ideal": valid,
    }
    for name, order in orders.items():
        answered = 1 - lowest(order, 1 - np.asarray(coverages))
        risks = shares(~valid[:, None] * answered, first.api, answered)
        for coverage, risk in zip(coverages, risks, strict=True):
            found[f"coverage_{100 * coverage:g}/{name}", "risk_percent"] = risk.percent()
    for name in ("confidence", "frequency"):
        found[name, "aurc"] = aurc_interval(valid, orders[name], first.api)
    return rows_of(first, found)
