"""Verdicts: a claim's questions, answered by the numbers of one artifact's tidy CSV.

Each question sets a number with its 95% interval against a bound:

- *holds*: the whole interval is on the claimed side; *fails*: the whole interval is on the other side;
- *not decided*: the interval contains the bound, or the artifact or a row of it is missing;
- two of our numbers are compared through the interval of their difference: the paired one where the artifact states it
  (metric ``valid_change_points``, or ``bleu4_change`` for a metric that is no percentage: condition ``dag/low`` for the
  change from the base model, as the subscripts of Table 3, or ``dag_plus_plus/low - dag/low``), else that of two
  independent estimates (``scoring.rates.difference``), which is wider;
- a number without interval (a count) is taken as exact;
- *all* fails with one failing model, *any* holds with one holding model, and undecided models leave the rest undecided.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from lookuplab import paper, paths
from lookuplab.artifact import read_csv
from lookuplab.claims.file import Claim
from lookuplab.claims.questions import Question, questions
from lookuplab.scoring.rates import Rate, difference

_NAN = float("nan")
HOLDS, FAILS, UNDECIDED = "holds", "fails", "not decided"


@dataclass(frozen=True)
class Comparison:
    """One number of ours, or the difference of two, against its bound.

    ``n`` reads ``205+267`` for two independent estimates and ``205 pairs`` for a paired change.
    """

    model: str
    quantity: str
    value: float
    low: float
    high: float
    n: str
    paper_value: float
    verdict: str


@dataclass(frozen=True)
class Judgement:
    """``reported``: the same test on the paper's own numbers, empty where it prints none. ``note``: what is missing."""

    claim: Claim
    verdict: str
    comparisons: tuple[Comparison, ...] = ()
    reported: tuple[Comparison, ...] = ()
    note: str = ""


def judge_run(claims: list[Claim], folder: Path) -> list[Judgement]:
    """Every claim on ``folder/<paper>/<artifact>.csv`` (``figures/mini``, say); a missing file leaves it undecided."""
    judgements = []
    for claim in claims:
        file = folder / claim.paper / f"{claim.artifact}.csv"
        if file.exists():
            judgements.append(judge(claim, read_csv(file)))
        else:
            note = f"no {file}: make it with lookuplab run {claim.artifact}"
            judgements.append(Judgement(claim, UNDECIDED, reported=_reported(claim), note=note))
    return judgements


def judge(claim: Claim, frame: pd.DataFrame) -> Judgement:
    """One claim on its artifact's rows (the tidy columns; those of the paper, without intervals, do as well)."""
    comparisons = _comparisons(claim, frame)
    if not comparisons:
        return Judgement(claim, UNDECIDED, reported=_reported(claim), note=f"no {claim.test['metric']} to compare")
    subjects = dict.fromkeys(comparison.model for comparison in comparisons)
    each = [_all(c.verdict for c in comparisons if c.model == subject) for subject in subjects]
    return Judgement(claim, _any(each) if claim.models == "any" else _all(each), comparisons, _reported(claim))


def table(judgements: list[Judgement]) -> pd.DataFrame:
    """One row per comparison, with the claim's own verdict beside it; a claim without comparisons has one row."""
    rows = []
    for judgement in judgements:
        claim = judgement.claim
        head = {name: getattr(claim, name) for name in ("id", "paper", "place", "statement", "artifact")}
        for comparison in judgement.comparisons or (_missing("", ""),):
            body = {("comparison" if name == "verdict" else name): value for name, value in vars(comparison).items()}
            rows.append(head | {"verdict": judgement.verdict} | body | {"note": judgement.note})
    return pd.DataFrame(rows)


def _comparisons(claim: Claim, frame: pd.DataFrame) -> tuple[Comparison, ...]:
    metric = claim.test["metric"]
    known = _by_key(frame, metric)
    changes = {key: row for name in (f"{metric.removesuffix('_percent')}_change_points", f"{metric}_change")
               for key, row in _by_key(frame, name).items()}
    models = list(dict.fromkeys(model for model, _ in known))
    return tuple(_compare(question, known, changes) for question in questions(claim, models))


def _by_key(frame: pd.DataFrame, metric: str) -> dict[tuple[str, str], dict]:
    """(model, condition) -> row, for one metric."""
    rows = frame[frame["metric"] == metric]
    keys = zip(rows["model"].fillna(""), rows["condition"].fillna(""), strict=True)
    return dict(zip(keys, rows.to_dict("records"), strict=True))


def _compare(question: Question, known: dict, changes: dict) -> Comparison:
    first, second = known.get(question.first), known.get(question.second) if question.second else None
    if first is None or (question.second and second is None):
        return _missing(question.subject, str(question))
    ours, n, reported = _rate(first), _count(first), first.get("paper_value", _NAN)
    if second is not None:
        reported = reported - second.get("paper_value", _NAN)
        ours, n = _paired(question, changes) or (difference(ours, _rate(second)), f"{n}+{_count(second)}")
    verdict = _decide(ours, question.sense, question.bound)
    return Comparison(question.subject, str(question), ours.value, ours.low, ours.high, n, reported, verdict)


def _paired(question: Question, changes: dict) -> tuple[Rate, str] | None:
    """The stated change between two conditions of a model, turned round where it is stated the other way."""
    (model, left), (other, right) = question.first, question.second
    if model != other:
        return None
    if change := _change(model, left, right, changes):
        return _rate(change), f"{_count(change)} pairs"
    if change := _change(model, right, left, changes):
        back = _rate(change)
        return replace(back, value=-back.value, low=-back.high, high=-back.low), f"{_count(change)} pairs"
    return None


def _change(model: str, new: str, old: str, changes: dict) -> dict | None:
    """The row of ``new - old``; a row that names ``new`` alone is its change from the base model."""
    alone = changes.get((model, new)) if old == _base_of(new) else None
    return changes.get((model, f"{new} - {old}"), alone)


def _base_of(condition: str) -> str:
    """``base/low`` of ``dag/low``, ``base`` of ``name``."""
    return "/".join(["base", *condition.split("/")[1:]])


def _decide(ours: Rate, sense: str, bound: float) -> str:
    """The verdict for one number; a difference of exactly the bound is not greater."""
    outcomes = {
        ">": (ours.low > bound, ours.high <= bound),
        ">=": (ours.low >= bound, ours.high < bound),
        "<=": (ours.high <= bound, ours.low > bound),
        "==": (ours.low <= bound <= ours.high, True),
    }
    holds, fails = outcomes[sense]
    return UNDECIDED if math.isnan(ours.value) else HOLDS if holds else FAILS if fails else UNDECIDED


def _rate(row: dict) -> Rate:
    low, high = row.get("ci_low", _NAN), row.get("ci_high", _NAN)
    exact = pd.isna(low) or pd.isna(high)
    return Rate(row["value"], row["value"] if exact else low, row["value"] if exact else high, 0)


def _count(row: dict) -> str:
    return "" if pd.isna(row["n"]) else f"{row['n']:.0f}"


def _missing(subject: str, quantity: str) -> Comparison:
    return Comparison(subject, quantity, _NAN, _NAN, _NAN, "", _NAN, UNDECIDED)


def _reported(claim: Claim) -> tuple[Comparison, ...]:
    """The claim on the paper's own numbers, where it prints them."""
    if not (paths.PAPER / claim.paper / f"{claim.artifact}.csv").exists():
        return ()
    return tuple(c for c in _comparisons(claim, paper.values(claim.paper, claim.artifact)) if not math.isnan(c.value))


def _all(verdicts: Iterable[str]) -> str:
    verdicts = set(verdicts)
    return FAILS if FAILS in verdicts else UNDECIDED if UNDECIDED in verdicts else HOLDS


def _any(verdicts: Iterable[str]) -> str:
    verdicts = set(verdicts)
    return HOLDS if HOLDS in verdicts else UNDECIDED if UNDECIDED in verdicts else FAILS
