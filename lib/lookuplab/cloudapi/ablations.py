"""The ablations of Section 3.2: what is shown (Figure 6), how precisely (7a) and how many documents (7b).

Rows are dictionaries of the tidy schema, as in ``cloudapi.results``; intervals are clustered by API. The frames are
those of ``dag.ask``: one row a task, in the same order.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from lookuplab.cloudapi.augmentation import DESIGNS
from lookuplab.cloudapi.benchmark import Task
from lookuplab.cloudapi.dag import Passes, ask, documented, passes
from lookuplab.cloudapi.policies import PRECISION, by_class, change_rows, outcome, sampled_hits, valid_rows
from lookuplab.cloudapi.retrieval import oracle
from lookuplab.cloudapi.specs import ApiIndex, load_index
from lookuplab.models.types import Model
from lookuplab.retrieval import check_k
from lookuplab.retrieval.precision import expected
from lookuplab.scoring.paired import paired_difference
from lookuplab.scoring.rates import Rate, average, estimate, estimates, rate, resampled_weights
from lookuplab.scoring.rows import row


def ask_designs(model: Model, tasks: Sequence[Task], designs: Sequence[str] = DESIGNS, *,
                index: ApiIndex | None = None, **options) -> dict[str, pd.DataFrame]:
    """{"base" and each design: frame} with the oracle's one document, which is always the right one (Figure 6).

    ``options`` as in ``dag.ask``. The frames have ``added_tokens``: what the documentation added to each prompt, in
    tokens of the model's own tokenizer. UserError for an unknown design, before anything is generated.
    """
    options |= {"index": index or load_index()}
    shown = oracle(tasks, options["index"])
    for design in designs:
        documented(tasks[:1], shown, design, options["index"])
    first = ask(model, tasks, **options)
    frames = {"base": first} | {design: ask(model, tasks, shown, design, **options) for design in designs}
    return {name: frame.assign(added_tokens=added_tokens(first, frame)) for name, frame in frames.items()}


def added_tokens(first: pd.DataFrame, documented: pd.DataFrame) -> np.ndarray:
    """(tasks,) tokens that documentation added to the prompts, those that did not fit into the context included."""
    return (_whole(documented) - _whole(first)).to_numpy()


def _whole(frame: pd.DataFrame) -> pd.Series:
    return frame.prompt_tokens + frame.prompt_dropped


def design_rows(frames: Mapping[str, pd.DataFrame]) -> list[dict]:
    """Per design, as in Figure 6 (left), from the frames of ``ask_designs``.

    ``valid_percent`` and its paired change from the base model of all tasks and by class; ``average_tokens``;
    ``truncated_percent``, how many prompts lost their beginning. ``<design> - <other>`` is the change between two.
    """
    rows, base = [], frames["base"]
    model, api = base.model.iloc[0], base.api
    for design, frame in frames.items():
        for name, mask in by_class(frame).items():
            condition = design if name == "all" else f"{design}/{name}"
            rows.append(row(model, condition, "valid_percent", rate(frame.valid[mask], api[mask]).percent()))
            if design != "base":
                rows.append(_change(model, condition, base.valid[mask], frame.valid[mask], api[mask]))
        rows.append(row(model, design, "average_tokens", average(frame.added_tokens, api)))
        rows.append(row(model, design, "truncated_percent", rate(frame.prompt_dropped > 0, api).percent()))
    for before, after in combinations([design for design in frames if design != "base"], 2):
        rows.append(_change(model, f"{after} - {before}", frames[before].valid, frames[after].valid, api))
    return rows


def length_rows(frames: Mapping[str, pd.DataFrame], binned: Callable[[int], str], frequency: str = "low") -> list[dict]:
    """Per design and bin of ``added_tokens``, as in Figure 6 (right): ``share_percent`` of the design's tasks of one
    frequency class, and ``valid_percent`` of those. ``binned`` names the bin of a number of tokens."""
    rows = []
    for design, frame in frames.items():
        part = frame[frame.frequency == frequency]
        bins = part.added_tokens.map(binned)
        for name in sorted(set(bins), key=lambda name: part.added_tokens[bins == name].min()):
            inside, model = bins == name, part.model.iloc[0]
            share, valid = rate(inside, part.api), rate(part.valid[inside], part.api[inside])
            rows.append(row(model, f"{design}/{name}", "share_percent", share.percent()))
            rows.append(row(model, f"{design}/{name}", "valid_percent", valid.percent()))
    return rows


def precision_rows(passes: Passes, precisions: Sequence[float], seed: int = 0) -> list[dict]:
    """Rows ``precision_<x>/<class>`` at each precision in percent (Figure 7a).

    ``valid_percent`` is the exact expectation over which tasks are hits, ``sampled_valid_percent`` the paper's way: one
    draw of the hits; ``valid_change_points`` the paired change of the expectation from the base model. UserError for a
    precision outside 0 to 100.
    """
    first = passes.first
    model, always = first.model.iloc[0], np.ones(len(first), dtype=bool)
    exact = np.column_stack([outcome(passes, always, x) for x in precisions])
    drawn = np.column_stack([outcome(passes, always, sampled_hits(first, x, seed)) for x in precisions])
    rows = []
    for name, mask in by_class(first).items():
        for metric, values in (("valid_percent", exact), ("sampled_valid_percent", drawn)):
            numbers = estimates(values[mask], first.api[mask])
            rows += [row(model, f"precision_{x:g}/{name}", metric, number.percent())
                     for x, number in zip(precisions, numbers, strict=True)]
    for x, values in zip(precisions, exact.T, strict=True):
        rows += change_rows(first, (f"precision_{x:g}", values))
    return rows


def agreement(rows: pd.DataFrame) -> pd.DataFrame:
    """Per model and condition of ``precision_rows``: ``exact``, ``sampled`` with its interval ``low`` to ``high``, and
    whether the exact value lies ``inside`` of it."""
    keys = ["model", "condition"]
    exact = rows[rows.metric == "valid_percent"].set_index(keys).value.rename("exact")
    drawn = rows[rows.metric == "sampled_valid_percent"].set_index(keys)
    table = drawn[["value", "ci_low", "ci_high"]].set_axis(["sampled", "low", "high"], axis="columns").join(exact)
    inside = (table.low <= table.exact + 1e-9) & (table.exact <= table.high + 1e-9)  # a mixture of equals, in floats
    return table.assign(inside=inside)[["exact", "sampled", "low", "high", "inside"]].reset_index()


def seed_spread(passes: Passes, precisions: Sequence[float], seeds: Sequence[int]) -> pd.DataFrame:
    """Per precision the exact valid rate over all tasks (%), and the ``lowest``, ``mean`` and ``highest`` of the draws
    with other seeds."""
    always, rows = np.ones(len(passes.first), dtype=bool), []
    for x in precisions:
        drawn = [100 * outcome(passes, always, sampled_hits(passes.first, x, seed)).mean() for seed in seeds]
        rows.append({"precision": x, "exact": 100 * outcome(passes, always, x).mean(), "lowest": min(drawn),
                     "mean": float(np.mean(drawn)), "highest": max(drawn)})
    return pd.DataFrame(rows)


def break_even_rows(passes: Passes) -> list[dict]:
    """Rows ``break_even/<class>``: the precision (%) from which retrieval is at least as good as no retrieval.

    The expectation is a straight line from miss to hit, so one point is exact. A class has no row if the line does not
    rise or meets the base model nowhere from 0 to 100. The interval is a bootstrap over APIs; a resample without a
    crossing counts as 0 or 100, the end that it lies beyond.
    """
    first = passes.first
    valid = np.column_stack([frame.valid.to_numpy(dtype=float) for frame in (first, passes.miss, passes.hit)])
    rows = []
    for name, mask in by_class(first).items():
        base, miss, hit = valid[mask].mean(axis=0)
        if hit > miss and miss <= base <= hit:
            drawn = [_crossing(weights @ valid[mask]) for weights in resampled_weights(first.api[mask])]
            low, high = np.quantile(np.concatenate(drawn), [0.025, 0.975])
            number = Rate(100 * (base - miss) / (hit - miss), float(low), float(high), int(mask.sum()))
            rows.append(row(first.model.iloc[0], f"break_even/{name}", "precision_percent", number))
    return rows


def _crossing(totals: np.ndarray) -> np.ndarray:
    """(resamples,) precisions in percent from the resamples' totals, (resamples, 3), of base, miss and hit."""
    base, miss, hit = totals.T
    rise = hit - miss
    flat = np.where(base <= miss, 0.0, 100.0)
    return np.where(rise > 0, np.clip(100 * (base - miss) / np.where(rise > 0, rise, 1), 0, 100), flat)


def ask_numbers(model: Model, tasks: Sequence[Task], retrievals: Sequence[int], **options) -> dict[int, Passes]:
    """{k: the passes with k documents} (Figure 7b); ``options`` as in ``dag.passes``.

    UserError for a number below 1, before anything is generated.
    """
    for k in retrievals:
        check_k(k)
    return {k: passes(model, tasks, k, **options) for k in retrievals}


def retrieval_rows(every: Mapping[int, Passes], precision: float = PRECISION) -> list[dict]:
    """Rows for each number of documents k at one precision in percent, from the passes of ``ask_numbers`` (Figure 7b).

    ``retrievals_<k>/<class>`` is the expectation of ``valid_percent`` with its paired change from the base model and,
    as ``retrievals_<k>/<class> - retrievals_<first k>/<class>``, from the first number; ``hit_<k>/<class>`` and
    ``miss_<k>/<class>`` are its two parts. ``retrievals_<k>`` has ``average_tokens``, what the k documents add to a
    prompt, and ``truncated_percent``, how often the prompt loses its beginning.
    """
    rows, values = [], {}
    for k, of_k in every.items():
        first, always = of_k.first, np.ones(len(of_k.first), dtype=bool)
        values[k] = outcome(of_k, always, precision)
        rows += valid_rows(of_k, f"retrievals_{k}", values[k])
        rows += change_rows(first, (f"retrievals_{k}", values[k]))
        rows += valid_rows(of_k, f"hit_{k}", of_k.hit.valid.to_numpy(dtype=float))
        rows += valid_rows(of_k, f"miss_{k}", of_k.miss.valid.to_numpy(dtype=float))
        rows += _added_rows(of_k, precision)
    start, *others = every
    for k in others:
        rows += change_rows(every[k].first, *((f"retrievals_{n}", values[n]) for n in (k, start)))
    return rows


def _added_rows(passes: Passes, precision: float) -> list[dict]:
    first, hit, miss = passes.first, passes.hit, passes.miss
    tokens = expected(added_tokens(first, hit), added_tokens(first, miss), precision)
    lost = estimate(expected(hit.prompt_dropped > 0, miss.prompt_dropped > 0, precision), first.api)
    model, condition = first.model.iloc[0], f"retrievals_{passes.k}"
    return [row(model, condition, "average_tokens", average(tokens, first.api)),
            row(model, condition, "truncated_percent", lost.percent())]


def _change(model: str, condition: str, before, after, apis) -> dict:
    return row(model, condition, "valid_change_points", paired_difference(before, after, apis).percent())
