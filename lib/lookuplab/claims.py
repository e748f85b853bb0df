"""The papers' claims, judged by a program on the artifacts of any run (``data/paper/claims.yaml``).

A claim is a small test on one artifact's tidy CSV, for all models, at least one, or the largest of every family. It
comes down to comparisons, each a number with its 95% interval against a bound:

- *holds*: the whole interval is on the claimed side; *fails*: the whole interval is on the other side;
- *not decided*: the interval contains the bound, or the artifact or a row of it is missing;
- two of our numbers are compared through the interval of their difference (``scoring.rates.difference``);
- a number without interval (a count) is taken as exact;
- *all* fails with one failing model, *any* holds with one holding model, and undecided models leave the rest undecided.
"""

import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import fastjsonschema  # jsonschema would add a second to every call: it parses an URL grammar on import
import pandas as pd
import yaml

from lookuplab import paper, paths
from lookuplab.artifact import read_csv
from lookuplab.errors import UserError
from lookuplab.scoring.rates import Rate, difference

_NAN = float("nan")
_SIZES = ["tiny", "small", "base", "medium", "large", "xl"]
FILE = paths.PAPER / "claims.yaml"
HOLDS, FAILS, UNDECIDED = "holds", "fails", "not decided"


@dataclass(frozen=True)
class Claim:
    """``test`` has a ``kind`` and its fields as in ``claims.schema.json``; ``models`` is all, any or largest."""

    id: str
    paper: str
    place: str
    statement: str
    artifact: str
    test: dict
    models: str = "all"
    why: str = ""


@dataclass(frozen=True)
class Question:
    """Is ``first`` (minus ``second``) > >= <= or == ``bound``?

    Both are (model, condition); ``subject`` is the model, or the family of sizes, that is asked about.
    """

    subject: str
    first: tuple[str, str]
    second: tuple[str, str] | None
    sense: str
    bound: float


@dataclass(frozen=True)
class Comparison:
    """One number of ours, or the difference of two (``n`` then reads 205+267), against its bound."""

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


def load(file: Path = FILE) -> list[Claim]:
    """The claims of a YAML file; UserError with the file and the claim's id if one does not follow the schema."""
    try:
        entries = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{file} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(entries, list) or not entries:
        raise UserError(f"{file}: expected a list of claims")
    claims, seen = [], set()
    for number, entry in enumerate(entries, 1):
        name = entry.get("id") if isinstance(entry, dict) else None
        where = f"{file}, claim {name!r}" if name else f"{file}, claim number {number}"
        try:
            _validator()(entry)
        except fastjsonschema.JsonSchemaValueException as error:
            raise UserError(f"{where}: {error.message.removeprefix('data').lstrip('. ')}") from error
        if name in seen:
            raise UserError(f"{where}: this id is taken by an earlier claim")
        seen.add(name)
        claims.append(Claim(**entry))
    return claims


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
        for comparison in judgement.comparisons or (_missing(""),):
            body = {("comparison" if name == "verdict" else name): value for name, value in vars(comparison).items()}
            rows.append(head | {"verdict": judgement.verdict} | body | {"note": judgement.note})
    return pd.DataFrame(rows)


def by_family(models: Iterable[str]) -> dict[str, list[str]]:
    """Models that differ only in a size (``-3B``, ``-small``), small to large; without a size, a family of one."""
    families: dict[str, list[tuple[float, str]]] = {}
    for model in models:
        family, size = _family_and_size(model)
        families.setdefault(family, []).append((size, model))
    return {family: [model for _, model in sorted(members)] for family, members in families.items()}


def _family_and_size(model: str) -> tuple[str, float]:
    number = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)([bm])\b", model.lower())
    word = re.search(rf"\b({'|'.join(_SIZES)})\b", model.lower())
    if not (found := number or word):
        return model, 0.0
    size = float(number[1]) * (1e9 if number[2] == "b" else 1e6) if number else float(_SIZES.index(word[1]))
    rest = model[: found.start()] + model[found.end() :]
    return re.sub(r"-\d+k\b", "", rest).strip("-_ "), size  # the Granite models end in their context, -2k to -8k


def _questions(claim: Claim, models: list[str]) -> Iterator[Question]:
    """What the claim's test asks, model by model, or family by family where sizes are compared."""
    test, families = claim.test, by_family(models)
    asked = [members[-1] for members in families.values()] if claim.models == "largest" else models
    match test["kind"]:
        case "monotone" if isinstance(test["over"], dict):
            ladders = {name: [(model, test["over"]["size"]) for model in members] for name, members in families.items()}
            yield from _steps(ladders, test["direction"])
        case "monotone":
            ladders = {model: [(model, condition) for condition in test["over"]] for model in asked}
            yield from _steps(ladders, test["direction"])
        case "greater":
            for model in asked:
                yield Question(model, (model, test["left"]), (model, test["right"]), ">", test.get("by", 0))
        case "equal":
            for model in asked:
                for condition, expected in test["expected"].items():
                    yield Question(model, (model, condition), None, "==", expected)
        case kind:
            for model in asked:
                for condition in test["conditions"]:
                    yield Question(
                        model, (model, condition), None, {"at_least": ">=", "at_most": "<="}[kind], test["bound"]
                    )


def _steps(ladders: dict[str, list[tuple[str, str]]], direction: str) -> Iterator[Question]:
    for subject, ladder in ladders.items():
        for before, after in itertools.pairwise(ladder):
            larger, smaller = (after, before) if direction == "increasing" else (before, after)
            yield Question(subject, larger, smaller, ">", 0)


def _comparisons(claim: Claim, frame: pd.DataFrame) -> tuple[Comparison, ...]:
    rows = frame[frame["metric"] == claim.test["metric"]]
    keys = zip(rows["model"].fillna(""), rows["condition"].fillna(""), strict=True)
    known = dict(zip(keys, rows.to_dict("records"), strict=True))
    models = list(dict.fromkeys(model for model, _ in known))
    return tuple(_compare(question, known) for question in _questions(claim, models))


def _compare(question: Question, known: dict) -> Comparison:
    first, second = known.get(question.first), known.get(question.second) if question.second else None
    quantity = _name(question)
    if first is None or (question.second and second is None):
        return _missing(question.subject, quantity)
    ours, n, reported = _rate(first), _count(first), first.get("paper_value", _NAN)
    if second is not None:
        ours, n = difference(ours, _rate(second)), f"{n}+{_count(second)}"
        reported = reported - second.get("paper_value", _NAN)
    verdict = _decide(ours, question.sense, question.bound)
    return Comparison(question.subject, quantity, ours.value, ours.low, ours.high, n, reported, verdict)


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


def _name(question: Question) -> str:
    """``low >= 50``, ``high - low > 0``, or ``mini-large - mini-small > 0`` where the models differ."""
    (model, condition), second = question.first, question.second
    if second is None:
        left = condition
    elif second[0] == model:
        left = f"{condition} - {second[1]}"
    else:
        left = f"{model} - {second[0]}"
    return f"{left} {question.sense} {question.bound:g}"


def _missing(subject: str, quantity: str = "") -> Comparison:
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


@lru_cache(maxsize=1)
def _validator() -> Callable[[object], object]:
    schema = json.loads((paths.PAPER / "claims.schema.json").read_text(encoding="utf-8"))
    return fastjsonschema.compile(schema, use_default=False)
