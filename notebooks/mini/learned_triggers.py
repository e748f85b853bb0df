"""Makes the rows of the notebook learned_lookup, which compares lookups that a model has learned to
ask for with lookups that a rule triggers (data/mini/ASKING.md).

All models of one size answer the same tasks in the same three passes. One of them is the base
model. The others are the base model after further training, each on its own corpus. Such a corpus
is called an *arm*. In most arms, a mark stands before some APIs' names, and the model learns to
write the mark where it needs documentation. Rows have the base model's name, and conditions name
the arm. For example, ``share_25/errors asked`` means: the model was trained on the arm *errors*,
and there is documentation for the quarter of the tasks in which the mark is most probable.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from pandas import DataFrame, Series, cut

from lookuplab.benchmark import evaluate
from lookuplab.cloudapi.bench import CloudApiBench
from lookuplab.cloudapi.dag import Passes, passes, retrieved_documents
from lookuplab.cloudapi.policies import (
    UNDIVIDED,
    Retriever,
    Rows,
    by_class,
    class_rows,
    outcome,
    rows_of,
    triggered,
)
from lookuplab.errors import UserError
from lookuplab.models import Model, complete, score
from lookuplab.models.names import mini_models
from lookuplab.scoring.calibration import aurc_interval, auroc_interval, ece_interval
from lookuplab.toolgen.pairs import MARK
from lookuplab_notebooks.cloudapibench.triggers import (
    best_on_others,
    curve,
    folds,
    looked_up,
    lowest,
)

# how often an API was in the training texts: label -> highest count
BANDS = {"0": 0, "1-3": 3, "4-10": 10, "11-30": 30, "31-100": 100, "101-300": 300, "301-600": 600}
RULES = {"dag_index_lookup": 0.8, "dag_plus_plus": 0.8, "asked": 0.5}  # policy -> threshold
# pairs (new, old) of "<arm> <order>"; errors-seed1 is the arm *errors*, trained with another seed
COMPARED = (
    ("errors asked", "errors confidence"),
    ("errors asked", "base confidence"),
    ("errors asked", "frequency asked"),
    ("errors asked", "errors random"),
    ("errors confidence", "base confidence"),
    ("unmarked confidence", "base confidence"),
    ("errors-seed1 asked", "base confidence"),
    ("errors-seed1 asked", "frequency asked"),
    ("errors-seed1 asked", "errors-seed1 confidence"),
)


@dataclass(frozen=True)
class Answered:
    """The answers of one model. ``passes`` are its answers without documentation, with the right
    document and with a wrong document.

    ``queries`` has further passes, whose prompts have the document that BM25 ranks first. The keys
    of ``queries`` say what BM25's query is: "comment" (the words of the task's comment) or "both"
    (the API of the first answer, and the words of the comment).

    The column ``copied`` of the pass with wrong documents says whether the answer calls the API of
    the document. The first pass of a model that learned the mark has two more columns. ``asked`` is
    the probability that the answer begins with the mark, and ``asks`` says whether the greedy
    answer begins with the mark.
    """

    passes: Passes
    queries: Mapping[str, Passes]

    @property
    def first(self) -> DataFrame:
        return self.passes.first


def taught(models: Sequence[str], arms: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return {model: {arm: name of the model that was trained on this arm}}. The arm "base" is the
    model itself. An arm on which a model was not trained is left out. Raises UserError for an arm
    on which none of the models was trained.
    """
    there = [name for name in mini_models() if name.startswith(tuple(f"{one}-" for one in models))]
    found = {
        model: {arm: name for arm in arms if (name := f"{model}-{arm}") in there}
        for model in models
    }
    for arm in arms:
        if not any(arm in known for known in found.values()):
            raise UserError(f"arms: no model has the arm {arm!r}; there are: {', '.join(there)}")
    return {model: {"base": model, **known} for model, known in found.items()}


def ask(model: Model, bench: CloudApiBench, marked: bool, queries: bool) -> Answered:
    """Let a model answer all tasks three times: without documentation, with the right document, and
    with a wrong document. Return the answers of all three passes.

    If ``marked``, the model has learned the mark, and the mark's probability is computed. If
    ``queries``, the model also answers with BM25's first document for each of two queries.
    """
    p = passes(model, bench)
    documents = retrieved_documents(bench.tasks, p.first)
    shown = [bench.index.by_id[documents.miss[task.id][0]].name for task in bench.tasks]
    p = replace(p, miss=p.miss.assign(copied=p.miss.name == shown))
    if marked:
        prompts = [bench.prompt(task) for task in bench.tasks]
        marks = score(model, [(prompt, MARK) for prompt in prompts])
        greedy = complete(model, prompts, bench.decoding)
        asks = [
            one.token_ids[:1] == mark.token_ids for one, mark in zip(greedy, marks, strict=True)
        ]
        asked = np.exp([sum(mark.token_logprobs) for mark in marks])
        p = replace(p, first=p.first.assign(asked=asked, asks=asks))
    found = {}
    if queries:
        comments = Series([task.comment for task in bench.tasks])
        both = p.first.name.fillna("") + " " + comments
        for name, words in {"comment": comments, "both": both}.items():
            top = retrieved_documents(bench.tasks, p.first.assign(name=words))
            first = {
                task.id: (top.hit if is_found else top.miss)[task.id]
                for task, is_found in zip(bench.tasks, top.found, strict=True)
            }
            documented = evaluate(model, replace(bench, documents=first))
            found[name] = replace(p, hit=documented, miss=documented, retrieved=top.found)
    return Answered(p, found)


def share_rows(
    arms: Mapping[str, Answered],
    counts: Sequence[int],
    shares: Sequence[float],
    precisions: Mapping[str, float | None],
    compared: Sequence[float],
) -> Rows:
    """Return rows with the percentage of valid calls for each share of tasks with documentation.
    The condition is ``share_<percent>/<arm> <order>``, such as ``share_25/errors asked``. The order
    (see ``triggers.looked_up``) says which tasks get documentation first.

    There are rows for several retrievers, each with its own metric. ``precisions`` maps the name of
    the metric to the retriever's precision in percent, or to None for BM25's own results. For each
    share in ``compared``, there are also the paired differences between the pairs in the constant
    COMPARED, over all tasks and by class. In the names of their metrics, ``percent`` becomes
    ``change_points``.
    """
    rows = []
    first = next(iter(arms.values())).first
    classes = by_class(first)
    classes = {"": classes.pop("all"), **classes}
    for metric, precision in precisions.items():
        values: dict[str, np.ndarray] = {}
        for arm, answered in arms.items():
            p = answered.passes
            retriever = p.retrieved if precision is None else precision
            ways = looked_up(p, counts, shares, retriever)
            values |= {f"{arm} {name}": valid.clip(0, 1) for name, valid in ways.items()}
        for way, valid in values.items():
            names = [f"share_{100 * share:g}/{way}" for share in shares]
            rows += class_rows(first, names, {metric: valid}, UNDIVIDED)
        metric = metric.replace("percent", "change_points")
        for new, old in compared_ways(values):
            for share in compared:
                head = f"share_{100 * share:g}"
                change = (values[new] - values[old])[:, list(shares).index(share)]
                rows += class_rows(first, f"{head}/{new} - {head}/{old}", {metric: change}, classes)
    return rows


def compared_ways(values: Mapping[str, np.ndarray]) -> list[tuple[str, str]]:
    """Return the pairs of COMPARED whose two ways both have values."""
    return [pair for pair in COMPARED if values.keys() >= {*pair}]


def rule_rows(arms: Mapping[str, Answered], shares: Sequence[float]) -> Rows:
    """Return rows that compare rules for when to retrieve: valid calls, the share of lookups, and
    the tokens that are read and written per task. The retriever's precision is 50%.

    Some rules decide for each task separately (``RULES``). For example, *asked* retrieves if the
    mark has a probability above 50%. The other rules retrieve for a fixed share of the tasks: those
    with the most probable mark or the lowest confidence.
    """
    rows = []
    base = arms["base"].first
    for arm, answered in arms.items():
        p = answered.passes
        first = answered.first
        masks = {
            f"{rule}/{arm}": triggered(first, rule, at)
            for rule, at in RULES.items()
            if rule != "asked" or "asked" in first
        }
        orders = {"confidence": first["minimum"]}
        if "asked" in first:
            orders["asked"] = -first.asked
        for name, order in orders.items():
            for share, mask in zip(shares, lowest(order, shares).T, strict=True):
                masks[f"at_{100 * share:g}/{arm} {name}"] = mask
        gain = outcome(p, True, 50) - first.valid
        tokens, second = (
            outcome(p, shown, 50, lambda frame: frame.prompt_tokens + frame.new_tokens)
            for shown in (False, True)
        )
        for name, mask in masks.items():
            numbers = {
                "valid_percent": (first.valid + mask * gain).clip(0, 1),
                "triggered_percent": mask,
                "tokens_per_task": tokens + mask * second,
            }
            rows += class_rows(base, name, numbers, UNDIVIDED)
    return rows


def held_out_rows(
    arms: Mapping[str, Answered],
    thresholds: np.ndarray,
    retriever: Retriever,
    seed: int,
) -> Rows:
    """Return rows with the shares of valid calls and of lookups. Each arm has rows for the triggers
    *confidence* and *asked*, with the condition ``held_out/<arm> <trigger>``. Further rows have the
    paired differences of ``COMPARED``.

    The APIs are divided into five parts. For the tasks of one part, the trigger has the threshold
    that is best on the other four parts.
    """
    rows = []
    ways = {}
    base = arms["base"].first
    for arm, answered in arms.items():
        p = answered.passes
        fold = folds(p.first.cluster, p.first.frequency, 5, seed)
        for name, policy in {"confidence": "dag_confidence", "asked": "asked"}.items():
            if name == "asked" and "asked" not in p.first:
                continue
            values = curve(p, thresholds, retriever, policy)
            masks = triggered(p.first, policy, thresholds)
            at = np.arange(len(values)), best_on_others(values, fold)[fold]
            ways[f"{arm} {name}"] = values[at]
            numbers = {"valid_percent": values[at], "triggered_percent": masks[at]}
            rows += class_rows(base, f"held_out/{arm} {name}", numbers, UNDIVIDED)
    for new, old in compared_ways(ways):
        change = {"valid_change_points": ways[new] - ways[old]}
        rows += class_rows(base, f"held_out/{new} - held_out/{old}", change, UNDIVIDED)
    return rows


def teaching_rows(arms: Mapping[str, Answered], counts: Sequence[int]) -> Rows:
    """Return rows with the costs and effects of teaching the mark, by arm and frequency class.

    The rows say:

    - how many calls are valid without lookup
    - by how much a right document and a wrong document change validity, and how often an answer
      calls the API of the wrong document
    - how often the model writes the mark, by class and by how often the training texts had the API
    - how well the mark and the confidence predict which calls are invalid
    """
    base = arms["base"]
    rows = []
    bands = cut(counts, [-1, *BANDS.values()], labels=[*BANDS])
    for arm, answered in arms.items():
        p = answered.passes
        first = answered.first
        harm = 1.0 * p.miss.valid - first.valid  # 1.0: booleans cannot be subtracted
        numbers = {
            "valid_percent": first.valid,
            "wrong_document_change_points": harm,
            "wrong_document_copied_percent": p.miss.copied,
            "right_document_change_points": 1.0 * p.hit.valid - first.valid,
        }
        rows += class_rows(base.first, arm, numbers)
        if arm != "base":
            lost = 1.0 * first.valid - base.first.valid
            more = harm - (1.0 * base.passes.miss.valid - base.first.valid)
            change = {"valid_change_points": lost, "wrong_document_difference_points": more}
            rows += class_rows(base.first, f"{arm} - base", change)
        if "asks" in first:
            asks = first.asks.to_numpy(dtype=bool)
            asked = {"asked_percent": asks, "mark_percent": first.asked}
            rows += class_rows(base.first, arm, asked)
            for band in BANDS:
                rows += class_rows(base.first, f"count_{band}/{arm}", asked, {"": bands == band})
            shown = {name: numbers[name] for name in numbers if name.startswith("wrong")}
            for said, inside in {"asking": asks, "not_asking": ~asks}.items():
                rows += class_rows(base.first, f"{said}/{arm}", shown, {"": inside})
        rows += _prediction_rows(base.first, first, arm)
    return rows


def _prediction_rows(base: DataFrame, first: DataFrame, arm: str) -> Rows:
    """Return rows that say how well a model's mark and confidence predict which of the model's
    calls are valid, and how well its mark predicts which of the base model's calls are valid.
    """
    apis = first.cluster
    numbers = {}
    scores = {"confidence": first["minimum"]}
    if "asked" in first:
        scores["asked"] = 1 - first.asked
        numbers[f"{arm} asked/base", "auroc"] = auroc_interval(base.valid, scores["asked"], apis)
        change = auroc_interval(first.valid, scores["asked"], apis, less=scores["confidence"])
        numbers[f"{arm} asked - {arm} confidence", "auroc_change_points"] = change
    for name, sure in scores.items():
        numbers[f"{arm} {name}", "auroc"] = auroc_interval(first.valid, sure, apis)
        numbers[f"{arm} {name}", "ece"] = ece_interval(first.valid, sure, apis)
        numbers[f"{arm} {name}", "aurc"] = aurc_interval(first.valid, sure, apis)
    known = {name: number for name, number in numbers.items() if number.value == number.value}
    return rows_of(base, known)
