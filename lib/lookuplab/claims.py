"""The papers' claims (``data/paper/claims.yaml``), judged by the numbers of one run's artifacts.

Each claim becomes comparisons: is one of our numbers, or the difference of two, on the claimed side of a bound?

- *holds*: the whole 95% interval is on the claimed side; *fails*: the whole interval is on the other side;
- *not decided*: the interval contains the bound, or the artifact or one of its rows is missing;
- two numbers are compared through the interval of their difference: the paired one where the artifact states it
  (metric ``valid_change_points``, or ``bleu4_change`` where the metric is not a percentage; condition ``dag/low`` for
  the change from the base model, as in the subscripts of Table 3, or ``dag_plus_plus/low - dag/low``), else that of two
  independent estimates (``scoring.rates.difference``), which is wider;
- a number without an interval (a count) is exact;
- a claim about *all* models fails with one failing model, one about *any* holds with one holding model; undecided
  models leave the rest undecided.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from math import nan
from pathlib import Path

import pandas as pd
import yaml

from lookuplab import paper, paths
from lookuplab.artifact import COLUMNS, read_csv
from lookuplab.errors import UserError
from lookuplab.scoring.rates import Rate, difference

FILE = paths.PAPER / "claims.yaml"
HOLDS, FAILS, UNDECIDED = "holds", "fails", "not decided"
FIRST = (FAILS, UNDECIDED, HOLDS).index  # of several verdicts, the one that decides
SIZES = ["tiny", "small", "base", "medium", "large", "xl"]


@dataclass(frozen=True)
class Claim:
    """What a paper says, and the test of it on the rows of ``figures/<profile>/<paper>/<artifact>.csv``.

    ``place`` is the section, table or figure, ``why`` says where the numbers of the test come from. ``models`` for
    which it must hold: all, any, or the largest of every family. ``test`` has a ``metric`` and a ``kind``:

    - greater: every condition ``left`` > every condition ``right`` + ``by`` (0; negative: not lower by as much);
    - at_least, at_most: metric >= or <= ``bound`` at every one of the ``conditions``;
    - equal: ``expected`` {condition: number};
    - monotone: ``direction`` (increasing, decreasing) ``over`` a list of conditions, or over the sizes of a family at
      one condition ({size: condition}; ``across_families: true`` compares models of different families, too).
    """

    id: str
    paper: str
    place: str
    statement: str
    artifact: str
    test: dict
    models: str = "all"
    why: str = ""


@dataclass(frozen=True)
class Comparison:
    """One number of ours, or the difference of two (``quantity``: ``high - low > 0``), against its bound.

    ``model`` is the model, or the family of sizes, that it is about; ``n`` reads ``205+267`` for two independent
    estimates and ``205 pairs`` for a paired change.
    """

    model: str
    quantity: str
    value: float = nan
    low: float = nan
    high: float = nan
    n: str = ""
    paper_value: float = nan
    verdict: str = UNDECIDED

    def __str__(self) -> str:
        """``mini-small high - low > 55: 86.31 [78.66, 92.88], n 205+267``"""
        text = f"{self.model} {self.quantity}: {number(self.value)}".strip()
        if self.low < self.high:
            text += f" [{number(self.low)}, {number(self.high)}]"
        text += f", n {self.n}" if self.n else ""
        return text + (
            f", paper {number(self.paper_value)}" if self.paper_value == self.paper_value else ""
        )


@dataclass(frozen=True)
class Judgement:
    """``reported``: the same test on the paper's printed numbers, empty where there are none. ``note``: what is missing."""

    claim: Claim
    verdict: str
    comparisons: tuple[Comparison, ...] = ()
    reported: tuple[Comparison, ...] = ()
    note: str = ""

    @property
    def ours(self) -> str:
        """The first comparison with the claim's own verdict, and how many have it; else what is missing."""
        same = [one for one in self.comparisons if one.verdict == self.verdict]
        n = len(self.comparisons)
        share = f"; {self.verdict} in {len(same)} of {n} comparisons" if n > 1 else ""
        return f"{(same or self.comparisons)[0]}{share}" if n else self.note

    @property
    def theirs(self) -> str:
        """The paper's own numbers for the same comparisons, least to greatest, and whether they support the claim."""
        if not self.reported:
            return "no printed numbers"
        found = sorted(one.value for one in self.reported)
        spread = " to ".join(dict.fromkeys(map(number, (found[0], found[-1]))))
        against = sum(one.verdict != HOLDS for one in self.reported)
        contrary = f", {against} of them against the claim" if against else ""
        return f"{spread} in {len(found)} comparison{'s'[: len(found) > 1]}{contrary}"


def load(file: Path = FILE) -> list[Claim]:
    """The claims of a YAML file; UserError with the file and the claim's id if one is malformed."""
    try:
        entries, claims = yaml.safe_load(file.read_text(encoding="utf-8")), {}
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {file}: {' '.join(str(error).split())}") from error
    for position, entry in enumerate(entries, 1):
        try:
            claim = Claim(**entry)
            list(questions(claim, ["any"]))  # has all fields of its kind
            if claim.id in claims or claim.models not in ("all", "any", "largest"):
                raise ValueError("a second claim of this id, or models is not all, any or largest")
            claims[claim.id] = claim
        except (TypeError, ValueError, KeyError) as error:
            raise UserError(
                f"{file}, claim {position} ({entry}): {type(error).__name__} {error}"
            ) from error
    return list(claims.values())


def judge_run(claims: list[Claim], folder: Path) -> list[Judgement]:
    """Every claim on ``folder/<paper>/<artifact>.csv`` (``figures/mini``, say); a missing file leaves it undecided."""
    judgements = []
    for claim in claims:
        file = folder / claim.paper / f"{claim.artifact}.csv"
        if file.exists():
            judgements.append(judge(claim, read_csv(file)))
        else:
            note = f"no {file}: make it with lookuplab run {claim.artifact}"
            judgements.append(Judgement(claim, UNDECIDED, (), _reported(claim), note))
    return judgements


def judge(claim: Claim, frame: pd.DataFrame) -> Judgement:
    """One claim on its artifact's rows (the tidy columns; the paper's own values, without intervals, will do)."""
    comparisons, verdicts = _comparisons(claim, frame), {}
    for one in comparisons:
        verdicts[one.model] = min(verdicts.get(one.model, HOLDS), one.verdict, key=FIRST)
    decide = max if claim.models == "any" else min
    verdict = decide(verdicts.values(), key=FIRST, default=UNDECIDED)
    note = "" if comparisons else f"no {claim.test['metric']} to compare"
    return Judgement(claim, verdict, comparisons, _reported(claim), note)


def table(judgements: list[Judgement]) -> pd.DataFrame:
    """One row per comparison, with the claim's own verdict beside it; a claim without comparisons has one row."""
    rows = [
        vars(one.claim)
        | vars(each)
        | {"verdict": one.verdict, "comparison": each.verdict, "note": one.note}
        for one in judgements
        for each in one.comparisons or [Comparison("", "")]
    ]
    return pd.DataFrame(rows).drop(columns=["test", "models", "why"])


def count(judgements: Iterable[Judgement]) -> str:
    """``holds: 3, fails: 1, not decided: 2``"""
    found = Counter(judgement.verdict for judgement in judgements)
    return ", ".join(f"{name}: {found[name]}" for name in (HOLDS, FAILS, UNDECIDED) if found[name])


def text(judgements: list[Judgement], details: bool = False) -> str:
    """Every claim with its verdict, the number that decides it and the paper's; ``details``: every comparison."""
    lines = []
    for one in judgements:
        claim = one.claim
        said = [claim.statement, f"ours: {one.ours}", f"paper: {one.theirs}"]
        if details:
            said.append(f"metric {claim.test['metric']}, models: {claim.models}. {claim.why}")
            said += [f"- {each}: {each.verdict}" for each in one.comparisons]
        lines.append(f"{one.verdict.upper():<13}{claim.id} ({claim.place}; {claim.artifact})")
        lines += [" " * 13 + each for each in said]
    return "\n".join([*lines, f"{len(judgements)} claims: {count(judgements)}"])


def number(value: float) -> str:
    """Two decimals, none for whole numbers."""
    return "not measured" if math.isnan(value) else f"{value:.2f}".removesuffix(".00")


def questions(claim: Claim, models: list[str]) -> Iterator[tuple]:
    """What the claim's test asks: (subject, first, second or None, sense, bound); first and second are (model, condition).

    Model by model, or along the sizes where sizes are compared.
    """
    test, asked = claim.test, models
    if claim.models == "largest":
        asked = [members[-1] for members in by_family(models).values()]
    match test["kind"]:
        case "monotone":
            falling = {"increasing": 1, "decreasing": -1}[test["direction"]] < 0
            for subject, *ladder in _steps(test["over"], models, asked):
                second, first = reversed(ladder) if falling else ladder
                yield subject, first, second, ">", 0
        case "greater":
            sides = (
                [side] if isinstance(side, str) else side for side in (test["left"], test["right"])
            )
            for model, left, right in product(asked, *sides):
                yield model, (model, left), (model, right), ">", test.get("by", 0)
        case kind:
            sense = {"equal": "==", "at_least": ">=", "at_most": "<="}[kind]
            bounds = test.get("expected") or dict.fromkeys(test["conditions"], float(test["bound"]))
            for model, (condition, bound) in product(asked, bounds.items()):
                yield model, (model, condition), None, sense, bound


def _steps(over: list | dict, models: list[str], asked: list[str]) -> Iterator[tuple]:
    """(subject, (model, condition) before, and after a step): of conditions, or of sizes in or across families."""
    if isinstance(over, list):
        for model, (before, after) in product(asked, pairwise(over)):
            yield model, (model, before), (model, after)
        return
    families = by_family(models)
    if over.get("across_families"):
        sized = sorted((_family_and_size(model)[1], model) for model in models)
        families = {"all sizes": [model for size, model in sized if size]}
    for family, members in families.items():
        for before, after in pairwise(members):
            if _family_and_size(before)[1] < _family_and_size(after)[1]:
                yield family, (before, over["size"]), (after, over["size"])


def by_family(models: Iterable[str]) -> dict[str, list[str]]:
    """Models that differ only in a size (``-3B``, ``-small``), small to large; one without a size is its own family."""
    families: dict[str, list[tuple[float, str]]] = {}
    for model in models:
        family, size = _family_and_size(model)
        families.setdefault(family, []).append((size, model))
    return {family: [model for _, model in sorted(members)] for family, members in families.items()}


def _family_and_size(model: str) -> tuple[str, float]:
    """The size is 0 for a model without one, else a number of weights or a place in SIZES."""
    low = model.lower()
    if digits := re.search(r"(?<![\w.])(\d+(?:\.\d+)?)([bm])\b", low):
        size = float(digits[1]) * {"b": 1e9, "m": 1e6}[digits[2]]
    elif digits := re.search(rf"\b({'|'.join(SIZES)})\b", low):
        size = 1 + SIZES.index(digits[1])
    else:
        return model, 0
    rest = model[: digits.start()] + model[digits.end() :]
    # Granite's names end in the context, -2k to -8k
    return re.sub(r"-\d+k\b", "", rest).strip("-_ "), size


def _comparisons(claim: Claim, frame: pd.DataFrame) -> tuple[Comparison, ...]:
    """The claim's questions, answered by the rows of its metric."""
    metric = claim.test["metric"]
    names = metric, f"{metric.removesuffix('_percent')}_change_points", f"{metric}_change"
    frame = frame.reindex(columns=list(COLUMNS)).fillna({"model": "", "condition": ""})
    known, points, change = (
        {(row["model"], row["condition"]): row for row in rows.to_dict("records")}
        for rows in (frame[frame.metric == name] for name in names)
    )
    models, changes = list(dict.fromkeys(model for model, _ in known)), points | change
    return tuple(_compare(*question, known, changes) for question in questions(claim, models))


def _compare(
    subject: str,
    first: tuple,
    second: tuple | None,
    sense: str,
    bound: float,
    known: dict,
    changes: dict,
) -> Comparison:
    quantity, asked = first[1], [first]
    if second:
        what = int(first[0] == second[0])  # conditions of one model, or models
        quantity, asked = f"{first[what]} - {second[what]}", [first, second]
    comparison = Comparison(subject, f"{quantity} {sense} {bound:g}")
    if any(place not in known for place in asked):
        return comparison
    rows = [known[place] for place in asked]
    found, n, theirs = _rate(rows[0]), "+".join(map(_count, rows)), rows[0]["paper_value"]
    if second:
        theirs -= rows[1]["paper_value"]
        found, n = _paired(first, second, changes) or (difference(found, _rate(rows[1])), n)
    holds, fails = {  # a difference of exactly the bound is not greater
        ">": (found.low > bound, found.high <= bound),
        ">=": (found.low >= bound, found.high < bound),
        "<=": (found.high <= bound, found.low > bound),
        "==": (found.low <= bound <= found.high, not math.isnan(found.value)),
    }[sense]
    verdict = HOLDS if holds else FAILS if fails else UNDECIDED
    about = comparison.model, comparison.quantity
    return Comparison(*about, found.value, found.low, found.high, n, theirs, verdict)


def _paired(first: tuple, second: tuple, changes: dict) -> tuple[Rate, str] | None:
    """The stated change between two conditions of one model, with its sign turned where it is stated the other way."""
    (model, left), (other, right) = first, second
    for new, old, sign in ((left, right, 1), (right, left, -1)):
        # a row that names ``new`` alone changes from the base
        from_base = old == "/".join(["base", *new.split("/")[1:]])
        change = changes.get((model, f"{new} - {old}")) or from_base and changes.get((model, new))
        if change and model == other:
            found = _rate(change)
            turned = Rate(-found.value, -found.high, -found.low, 0)
            return (found if sign > 0 else turned), f"{_count(change)} pairs"
    return None


def _rate(row: dict) -> Rate:
    exact = math.isnan(row["ci_low"])
    ends = [row["value"]] * 2 if exact else [row["ci_low"], row["ci_high"]]
    return Rate(row["value"], *ends, 0)


def _count(row: dict) -> str:
    return "" if math.isnan(row["n"]) else f"{row['n']:.0f}"


def _reported(claim: Claim) -> tuple[Comparison, ...]:
    """The claim on the paper's own numbers, where it prints them."""
    if not (paths.PAPER / claim.paper / f"{claim.artifact}.csv").exists():
        return ()
    found = _comparisons(claim, paper.values(claim.paper, claim.artifact))
    return tuple(one for one in found if not math.isnan(one.value))
