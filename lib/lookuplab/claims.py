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
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby, pairwise, product
from pathlib import Path

import pandas as pd
import yaml

from lookuplab import paper, paths
from lookuplab.artifact import read_csv
from lookuplab.errors import UserError
from lookuplab.scoring.rates import Rate, difference

FILE = paths.PAPER / "claims.yaml"
HOLDS, FAILS, UNDECIDED = "holds", "fails", "not decided"
_NAN = float("nan")
_SIZES = ["tiny", "small", "base", "medium", "large", "xl"]


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
    value: float = _NAN
    low: float = _NAN
    high: float = _NAN
    n: str = ""
    paper_value: float = _NAN
    verdict: str = UNDECIDED

    def __str__(self) -> str:
        """``mini-small high - low > 55: 86.31 [78.66, 92.88], n 205+267``"""
        exact = self.low == self.high or math.isnan(self.low)
        interval = "" if exact else f" [{number(self.low)}, {number(self.high)}]"
        size = f", n {self.n}" if self.n else ""
        theirs = "" if math.isnan(self.paper_value) else f", paper {number(self.paper_value)}"
        return f"{self.model} {self.quantity}: {number(self.value)}{interval}{size}{theirs}".strip()


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
            if claims.setdefault(claim.id, claim) is not claim or claim.models not in (
                "all",
                "any",
                "largest",
            ):
                raise ValueError(
                    "the id is taken by an earlier claim, or models is not all, any or largest"
                )
        except (TypeError, ValueError, KeyError) as error:
            name = (
                entry.get("id", f"number {position}")
                if isinstance(entry, dict)
                else f"number {position}"
            )
            raise UserError(f"{file}, claim {name}: {type(error).__name__} {error}") from error
    return list(claims.values())


def judge_run(claims: list[Claim], folder: Path) -> list[Judgement]:
    """Every claim on ``folder/<paper>/<artifact>.csv`` (``figures/mini``, say); a missing file leaves it undecided."""
    judgements, frames = [], {}  # several claims are about one artifact
    for claim in claims:
        file = folder / claim.paper / f"{claim.artifact}.csv"
        if not file.exists():
            note = f"no {file}: make it with lookuplab run {claim.artifact}"
            judgements.append(Judgement(claim, UNDECIDED, reported=_reported(claim), note=note))
            continue
        if file not in frames:
            frames[file] = read_csv(file)
        judgements.append(judge(claim, frames[file]))
    return judgements


def judge(claim: Claim, frame: pd.DataFrame) -> Judgement:
    """One claim on its artifact's rows (the tidy columns; the paper's own values, without intervals, will do)."""
    comparisons, by_subject = _comparisons(claim, frame), {}
    for one in comparisons:
        by_subject.setdefault(one.model, []).append(one.verdict)
    each = {_first((FAILS, UNDECIDED, HOLDS), verdicts) for verdicts in by_subject.values()}
    order = (HOLDS, UNDECIDED, FAILS) if claim.models == "any" else (FAILS, UNDECIDED, HOLDS)
    note = "" if comparisons else f"no {claim.test['metric']} to compare"
    return Judgement(
        claim, _first(order, each) if each else UNDECIDED, comparisons, _reported(claim), note
    )


def table(judgements: list[Judgement]) -> pd.DataFrame:
    """One row per comparison, with the claim's own verdict beside it; a claim without comparisons has one row."""
    rows = []
    for judgement in judgements:
        claim = vars(judgement.claim)
        head = {name: claim[name] for name in ("id", "paper", "place", "statement", "artifact")}
        for one in judgement.comparisons or (Comparison("", ""),):
            body = vars(one) | {
                "verdict": judgement.verdict,
                "comparison": one.verdict,
                "note": judgement.note,
            }
            rows.append(head | body)
    return pd.DataFrame(rows)


def count(judgements: Iterable[Judgement]) -> str:
    """``3 hold, 1 fails, 2 not decided``"""
    found = Counter(judgement.verdict for judgement in judgements)
    several = {HOLDS: "hold", FAILS: "fail"}
    names = [
        (n, name if n == 1 else several.get(name, name))
        for name in (HOLDS, FAILS, UNDECIDED)
        if (n := found[name])
    ]
    return ", ".join(f"{n} {name}" for n, name in names)


def text(judgements: list[Judgement], details: bool = False, width: int = 100) -> str:
    """Every claim with its verdict, the number that decides it and the paper's; ``details``: every comparison."""
    lines = []
    for artifact, group in groupby(judgements, key=lambda judgement: judgement.claim.artifact):
        group = list(group)
        lines += [f"{artifact}: {count(group)}", "-" * width]
        for one in group:
            claim = one.claim
            lines.append(f"{one.verdict.upper():<13}{claim.id} ({claim.place})")
            said = [claim.statement, f"ours: {one.ours}", f"paper: {one.theirs}"]
            if details:
                said.append(f"metric {claim.test['metric']}, models: {claim.models}. {claim.why}")
                said += [f"- {each}: {each.verdict}" for each in one.comparisons]
            lines += [
                textwrap.fill(each, width, initial_indent=" " * 13, subsequent_indent=" " * 13)
                for each in said
            ]
        lines.append("")
    return "\n".join([*lines, f"{len(judgements)} claims: {count(judgements)}"])


def number(value: float) -> str:
    """Two decimals, none for whole numbers."""
    return "not measured" if math.isnan(value) else f"{value:.2f}".removesuffix(".00")


def by_family(models: Iterable[str]) -> dict[str, list[str]]:
    """Models that differ only in a size (``-3B``, ``-small``), small to large; one without a size is its own family."""
    families: dict[str, list[tuple[float, str]]] = {}
    for model in models:
        family, size = _family_and_size(model)
        families.setdefault(family, []).append((size or 0, model))
    return {family: [model for _, model in sorted(members)] for family, members in families.items()}


def questions(claim: Claim, models: list[str]) -> Iterator[tuple]:
    """What the claim's test asks: (subject, first, second or None, sense, bound); first and second are (model, condition).

    Model by model, or along the sizes where sizes are compared.
    """
    test = claim.test
    asked = (
        [members[-1] for members in by_family(models).values()]
        if claim.models == "largest"
        else models
    )
    match test["kind"]:
        case "monotone":
            for subject, ladder in _ladders(test["over"], models, asked):
                for before, after in pairwise(ladder):
                    rising = {"increasing": (after, before), "decreasing": (before, after)}
                    yield subject, *rising[test["direction"]], ">", 0
        case "greater":
            sides = (
                [side] if isinstance(side, str) else side for side in (test["left"], test["right"])
            )
            for model, left, right in product(asked, *sides):
                yield model, (model, left), (model, right), ">", test.get("by", 0)
        case "equal":
            for model, (condition, expected) in product(asked, test["expected"].items()):
                yield model, (model, condition), None, "==", expected
        case kind:
            sense = {"at_least": ">=", "at_most": "<="}[kind]
            for model, condition in product(asked, test["conditions"]):
                yield model, (model, condition), None, sense, float(test["bound"])


def _ladders(over: list | dict, models: list[str], asked: list[str]) -> Iterator[tuple[str, list]]:
    """(subject, [(model, condition)] to climb): conditions; sizes of a family; or pairs of sizes across families."""
    if isinstance(over, list):
        yield from ((model, [(model, condition) for condition in over]) for model in asked)
    elif not over.get("across_families"):
        for family, members in by_family(models).items():
            yield family, [(model, over["size"]) for model in members]
    else:
        sized = sorted(
            (size, model) for model in models if (size := _family_and_size(model)[1]) is not None
        )
        for (size, model), (larger, after) in pairwise(sized):
            if size < larger:
                yield "all sizes", [(model, over["size"]), (after, over["size"])]


def _family_and_size(model: str) -> tuple[str, float | None]:
    digits = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)([bm])\b", model.lower())
    word = re.search(rf"\b({'|'.join(_SIZES)})\b", model.lower())
    if not (found := digits or word):
        return model, None
    size = (
        float(digits[1]) * (1e9 if digits[2] == "b" else 1e6)
        if digits
        else float(_SIZES.index(word[1]))
    )
    rest = model[: found.start()] + model[found.end() :]
    return re.sub(r"-\d+k\b", "", rest).strip(
        "-_ "
    ), size  # Granite's names end in the context, -2k to -8k


def _comparisons(claim: Claim, frame: pd.DataFrame) -> tuple[Comparison, ...]:
    """The claim's questions, answered by the rows of its metric."""
    metric = claim.test["metric"]
    changes = f"{metric.removesuffix('_percent')}_change_points", f"{metric}_change"
    known, paired = {}, {}  # (model, condition) -> row
    for row in frame.fillna({"model": "", "condition": ""}).to_dict("records"):
        if row["metric"] == metric:
            known[row["model"], row["condition"]] = row
        elif row["metric"] in changes:
            paired[row["model"], row["condition"]] = row
    models = list(dict.fromkeys(model for model, _ in known))
    return tuple(_compare(*question, known, paired) for question in questions(claim, models))


def _compare(
    subject: str,
    first: tuple,
    second: tuple | None,
    sense: str,
    bound: float,
    known: dict,
    paired: dict,
) -> Comparison:
    (model, left), (other, right) = first, second or (None, None)
    if second:
        left = f"{left} - {right}" if other == model else f"{model} - {other}"
    comparison = Comparison(subject, f"{left} {sense} {bound:g}")
    if first not in known or (second and second not in known):
        return comparison
    found, n, reported = (
        _rate(known[first]),
        _count(known[first]),
        known[first].get("paper_value", _NAN),
    )
    if second:
        reported -= known[second].get("paper_value", _NAN)
        independent = difference(found, _rate(known[second])), f"{n}+{_count(known[second])}"
        found, n = _paired(first, second, paired) or independent
    holds, fails = {  # a difference of exactly the bound is not greater
        ">": (found.low > bound, found.high <= bound),
        ">=": (found.low >= bound, found.high < bound),
        "<=": (found.high <= bound, found.low > bound),
        "==": (found.low <= bound <= found.high, not math.isnan(found.value)),
    }[sense]
    verdict = HOLDS if holds else FAILS if fails else UNDECIDED
    return replace(
        comparison,
        value=found.value,
        low=found.low,
        high=found.high,
        n=n,
        paper_value=reported,
        verdict=verdict,
    )


def _paired(first: tuple, second: tuple, paired: dict) -> tuple[Rate, str] | None:
    """The stated change between two conditions of one model, with its sign turned where it is stated the other way."""
    (model, left), (other, right) = first, second
    if model != other:
        return None
    for new, old, sign in ((left, right, 1), (right, left, -1)):
        from_base = old == "/".join(
            ["base", *new.split("/")[1:]]
        )  # a row that names ``new`` alone changes from the base
        change = paired.get(
            (model, f"{new} - {old}"), paired.get((model, new)) if from_base else None
        )
        if change:
            found, n = _rate(change), f"{_count(change)} pairs"
            return (found if sign > 0 else Rate(-found.value, -found.high, -found.low, 0)), n
    return None


def _rate(row: dict) -> Rate:
    low, high = row.get("ci_low", _NAN), row.get("ci_high", _NAN)
    exact = pd.isna(low) or pd.isna(high)
    return Rate(row["value"], *((row["value"],) * 2 if exact else (low, high)), 0)


def _count(row: dict) -> str:
    return "" if pd.isna(row["n"]) else f"{row['n']:.0f}"


def _reported(claim: Claim) -> tuple[Comparison, ...]:
    """The claim on the paper's own numbers, where it prints them."""
    if not (paths.PAPER / claim.paper / f"{claim.artifact}.csv").exists():
        return ()
    found = _comparisons(claim, paper.values(claim.paper, claim.artifact))
    return tuple(one for one in found if not math.isnan(one.value))


def _first(order: Iterable[str], verdicts: Iterable[str]) -> str:
    """The first verdict in ``order`` that occurs."""
    return next(verdict for verdict in order if verdict in verdicts)
