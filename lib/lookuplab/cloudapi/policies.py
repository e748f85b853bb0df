"""When to retrieve, and what comes of it: DAG, index lookup, confidence, DAG++ (paper, Section 4).

A policy is a mask over the tasks (retrieve or not) and a retriever is a chance per task (the documents contain the
target or not). Both choose among completions that exist (``dag.Passes``), so a curve over a hundred thresholds or
precisions generates nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import pandas as pd

from lookuplab.cloudapi.confidence import AGGREGATES
from lookuplab.cloudapi.dag import Passes
from lookuplab.cloudapi.results import CLASSES
from lookuplab.errors import UserError
from lookuplab.retrieval.precision import expected, hit_tasks
from lookuplab.scoring.paired import holm, mcnemar, paired_difference
from lookuplab.scoring.rates import Rate, estimate, rate
from lookuplab.scoring.rows import bare_row, row

POLICIES = ("base", "dag", "dag_index_lookup", "dag_confidence", "dag_plus_plus")
THRESHOLD = 0.8  # Section 4.3
PRECISION = 50.0  # percent; Sections 4.1 to 4.3
TOKENS = ("prompt_tokens", "new_tokens")
LOOKUPS = {"client": "exists", "anywhere": "exists_anywhere"}


def triggered(first: pd.DataFrame, policy: str, threshold: float = THRESHOLD, aggregate: str = "minimum",
              lookup: str = "client") -> np.ndarray:
    """(tasks,) booleans: does the policy retrieve, given the first pass (a frame of ``dag.ask``)?

    *base* never, *dag* always; *dag_index_lookup* where the invoked API is not in the index (Section 4.1);
    *dag_confidence* where its confidence is below the threshold (4.2); *dag_plus_plus* where either holds (4.3).
    ``lookup``: a name exists if the prompt's ``client`` has it, or if the provider has it ``anywhere``.
    UserError for another name, a threshold outside 0 to 1, and where confidence is needed and the model gives none.
    """
    if policy not in POLICIES:
        raise UserError(f"no policy {policy!r}; choose one of {', '.join(POLICIES)}")
    if not 0 <= threshold <= 1:
        raise UserError(f"threshold is {threshold}; a confidence threshold lies between 0 and 1")
    if aggregate not in AGGREGATES or lookup not in LOOKUPS:
        raise UserError(f"aggregate {aggregate!r} and lookup {lookup!r}: choose one of {', '.join(AGGREGATES)} and one "
                        f"of {', '.join(LOOKUPS)}")
    if policy in ("base", "dag"):
        return np.full(len(first), policy == "dag")
    absent = ~first[LOOKUPS[lookup]].to_numpy(dtype=bool)
    if policy == "dag_index_lookup":
        return absent
    unsure = below(first, threshold, aggregate)
    return unsure if policy == "dag_confidence" else absent | unsure


def below(first: pd.DataFrame, threshold: float, aggregate: str = "minimum") -> np.ndarray:
    """(tasks,) booleans: is the API invocation confidence below the threshold? UserError where there is none."""
    if first[aggregate].isna().any():
        raise UserError(f"{first.model.iloc[0]} gives no log-probabilities, so there is no confidence to compare; use "
                        "a local model or an endpoint that gives them (vLLM does)")
    return first[aggregate].to_numpy() < threshold


def outcome(passes: Passes, retrieve: np.ndarray, hits: float | np.ndarray = PRECISION,
            of: Callable[[pd.DataFrame], pd.Series] = itemgetter("valid")) -> np.ndarray:
    """(tasks,) the expectation of what ``of`` reads from a pass, by default the chance of a valid invocation.

    ``retrieve`` is a mask of ``triggered``. ``hits`` is the retriever: a precision in percent, exact over which tasks
    are hits, or (tasks,) booleans saying where the target was found (``Passes.retrieved``, ``sampled_hits``).
    """
    first, hit, miss = (of(frame).to_numpy(dtype=float) for frame in (passes.first, passes.hit, passes.miss))
    with_documents = np.where(hits, hit, miss) if isinstance(hits, np.ndarray) else expected(hit, miss, hits)
    return np.where(retrieve, with_documents, first)


def spent(passes: Passes, retrieve: np.ndarray, hits: float | np.ndarray = PRECISION,
          columns: Sequence[str] = TOKENS) -> np.ndarray:
    """(tasks,) expected tokens of the ``columns`` together: the first pass always, since the query needs it, the second
    where ``retrieve`` says so. Looking up and searching cost none. ``hits`` as in ``outcome``.
    """
    second = sum(outcome(passes, np.ones(len(retrieve), dtype=bool), hits, itemgetter(column)) for column in columns)
    return passes.first[list(columns)].sum(axis=1).to_numpy(dtype=float) + retrieve * second


def sampled_hits(first: pd.DataFrame, precision: float = PRECISION, seed: int = 0) -> np.ndarray:
    """(tasks,) booleans: one draw of the tasks for which the retriever finds the target, as the paper must have made.

    Exactly the share ``precision`` (percent) of every frequency class; the sets nest as it grows.
    """
    chosen = hit_tasks(dict(zip(first.task, first.frequency)), precision, seed)
    return first.task.isin(chosen).to_numpy()


def by_class(first: pd.DataFrame) -> Mapping[str, np.ndarray]:
    """Class (and "all") -> (tasks,) mask, the classes that occur."""
    masks = {name: (first.frequency == name).to_numpy() for name in CLASSES}
    return {name: mask for name, mask in masks.items() if mask.any()} | {"all": np.ones(len(first), dtype=bool)}


def policy_rows(passes: Passes, name: str, retrieve: np.ndarray, precision: float = PRECISION,
                seed: int = 0) -> list[dict]:
    """Rows ``name/class`` of one policy at one precision, as in Tables 2 and 3.

    ``valid_percent`` is the exact expectation, ``sampled_valid_percent`` one draw (the paper's way),
    ``valid_change_points`` the paired difference of the expectation to the base model, ``triggered_percent`` how often
    documentation was retrieved.
    """
    first, valid = passes.first, outcome(passes, retrieve, precision)
    drawn = outcome(passes, retrieve, sampled_hits(first, precision, seed))
    base, model = first.valid.to_numpy(dtype=float), first.model.iloc[0]
    rows = []
    for condition, mask in by_class(first).items():
        apis = first.api[mask]
        numbers: dict[str, Rate] = {
            "valid_percent": estimate(valid[mask], apis),
            "sampled_valid_percent": rate(drawn[mask], apis),
            "valid_change_points": paired_difference(base[mask], valid[mask], apis),
            "triggered_percent": rate(retrieve[mask], apis),
        }
        rows += [row(model, f"{name}/{condition}", metric, number.percent()) for metric, number in numbers.items()]
    return rows


def valid_rows(passes: Passes, name: str, valid: np.ndarray, metric: str = "valid_percent") -> list[dict]:
    """Rows ``name/class`` of any (tasks,) outcome, for instance of real retrieval."""
    model = passes.first.model.iloc[0]
    return [row(model, f"{name}/{condition}", metric, estimate(valid[mask], passes.first.api[mask]).percent())
            for condition, mask in by_class(passes.first).items()]


def change_rows(first: pd.DataFrame, new: tuple[str, np.ndarray],
                old: tuple[str, np.ndarray] | None = None) -> list[dict]:
    """Paired differences new - old of two (name, (tasks,) outcome), in points, conditions ``new/class - old/class``.

    Without ``old`` from the base model, conditions ``new/class``. The claims are judged on these: the same tasks were
    asked twice, so two separate intervals would be too wide.
    """
    before = first.valid.to_numpy(dtype=float) if old is None else old[1]
    return [row(first.model.iloc[0], f"{new[0]}/{name}" + ("" if old is None else f" - {old[0]}/{name}"),
                "valid_change_points", paired_difference(before[mask], new[1][mask], first.api[mask]).percent())
            for name, mask in by_class(first).items()]


@dataclass(frozen=True)
class Way:
    """A way to answer: the passes it selects from, and for which tasks, (tasks,) booleans, it reads documentation."""

    passes: Passes
    retrieve: np.ndarray


def once(frame: pd.DataFrame) -> Way:
    """The way of a single pass, which reads no more documentation than its prompts have."""
    nothing = np.zeros(len(frame), dtype=bool)
    return Way(Passes(0, frame, frame, frame, nothing), nothing)


def compared_rows(ways: Mapping[str, Way], pairs: Iterable[tuple[str, str]], precision: float = PRECISION,
                  seed: int = 0) -> list[dict]:
    """Pairs (new, old) of ways to answer the same tasks, conditions ``<new>/<class> - <old>/<class>``.

    ``valid_change_points`` is the paired change of the expectation. On one draw of hits: ``gained_tasks`` (valid in the
    new way only), ``lost_tasks`` (in the old only) and the ``p`` of McNemar's exact test (``adjusted`` makes Holm's).
    """
    rows = []
    for new, old in pairs:
        first = ways[old].passes.first
        both, drawn = (ways[new], ways[old]), sampled_hits(first, precision, seed)
        after, before = (outcome(way.passes, way.retrieve, precision) for way in both)
        sure_after, sure_before = (outcome(way.passes, way.retrieve, drawn) for way in both)
        rows += change_rows(first, (new, after), (old, before))
        for name, mask in by_class(first).items():
            test = mcnemar(sure_before[mask], sure_after[mask])
            counts = {"gained_tasks": test.only_second, "lost_tasks": test.only_first, "p": test.p}
            rows += [bare_row(first.model.iloc[0], f"{new}/{name} - {old}/{name}", metric, value, int(mask.sum()))
                     for metric, value in counts.items()]
    return rows


def adjusted(rows: Iterable[dict]) -> list[dict]:
    """The rows with every ``p`` replaced by ``p_holm``, adjusted over all of them: the comparisons of one figure."""
    rows = list(rows)
    adjusted_p = iter(holm([number["value"] for number in rows if number["metric"] == "p"]))
    return [number | {"metric": "p_holm", "value": float(next(adjusted_p))} if number["metric"] == "p" else number
            for number in rows]
