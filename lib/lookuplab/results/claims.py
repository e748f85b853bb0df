"""The papers' claims (``data/paper/claims.yaml``), checked against one run's artifacts. Two
separate questions:

*Direction*: is the effect there, as claimed? Each claim becomes comparisons: is one of our numbers,
or the difference of two, on the claimed side of a bound?

- *holds*: the whole 95% interval is on the claimed side; *fails*: the whole interval is on the
  opposite side;
- *not decided*: the interval contains the bound, or the artifact or one of its rows is missing;
- *not testable: floor*: the models are so weak at everything that they cannot show the effect
  (``Floor``);
- two numbers are compared through the interval of their difference: the paired one if the artifact
  has it (metric ``valid_change_points``, or ``bleu4_change`` where the metric is not a percentage;
  condition ``dag/low`` for the change from the base model, as in the subscripts of Table 3, or
  ``dag_plus_plus/low - dag/low``; model
  ``mini-large - mini-small`` for the same condition of two models), otherwise that of two
  independent
  estimates (``scoring.rates.difference``), which is wider;
- a number without an interval (a count) is exact;
- a claim holds if all its comparisons hold. One failing comparison is enough for it to fail, but
  among k comparisons one below 2.5% occurs by chance k times as often, so the smallest p value is
  multiplied by k (Holm's first step). A claim about *any* is the mirror image.

*Size*: does our interval cover the number that the paper prints? *covers*, *smaller*, *larger*, *no
printed value*.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from math import inf, nan
from operator import attrgetter
from pathlib import Path

import pandas as pd
import yaml
from scipy.stats import norm

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.results import paper
from lookuplab.results.artifact import COLUMNS, read_csv
from lookuplab.scoring.rates import Rate, difference

FILE = paths.PAPER / "claims.yaml"
HOLDS, FAILS, UNDECIDED, UNTESTABLE = "holds", "fails", "not decided", "not testable: floor"
VERDICTS = HOLDS, FAILS, UNDECIDED, UNTESTABLE
SIZE_VERDICTS = COVERS, SMALLER, LARGER = "covers", "smaller", "larger"
UNPRINTED = "no printed value"
SIDE = 0.025  # the probability that the true value lies beyond a given end of a 95% interval
NEAR = 1e-9  # an interval that ends exactly at the bound decides nothing
ROLES = {"claim": "claims", "check": "checks of the benchmark", "finding": "findings of ours"}
MODELS = ("all", "any", "largest")
SIZES = ["tiny", "small", "base", "medium", "large", "xl"]


@dataclass(frozen=True)
class Floor:
    """Which models of a paper are too weak for some of its claims: in the rows of ``artifact``,
    ``metric`` is ``below`` a bound at all of the ``conditions``. They say nothing about a test that
    names a condition which this ``concerns``.
    """

    artifact: str
    metric: str
    conditions: list[str]
    below: float
    concerns: list[str]


@dataclass(frozen=True)
class Claim:
    """What a paper says, and its test on the rows of ``figures/<profile>/<paper>/<artifact>.csv``.

    ``place`` is the section, table or figure; ``also`` lists other places that say the same about
    the same number;
    ``why`` explains where the numbers of the test come from. ``role`` is a claim, a ``check`` (true
    by construction) or a ``finding`` (ours, not the paper's). ``models`` says for which models it
    must hold: all, the largest of every family, or any, which means any comparison. ``test`` has a
    ``metric``, optionally the number that the paper
    ``printed`` outside its tables and figures, and a ``kind``:

    - greater: every condition ``left`` > every condition ``right`` + ``by`` (default 0; negative: a
      tolerated deficit);
    - within: ``ranges`` {condition: [from, to]}, null for an open end; equal ends mean exactly this
      number;
    - monotone: ``direction`` (increasing, decreasing) ``over`` a list of conditions, over several
      such lists, or over the sizes of a family at one condition ({size: condition};
      ``across_families: true`` also compares models of different families).

    ``floor`` is the paper's, an entry of its own above the claims.
    """

    id: str
    paper: str
    place: str
    statement: str
    artifact: str
    test: dict
    models: str = "all"
    why: str = ""
    also: tuple[str, ...] = ()
    role: str = "claim"
    floor: Floor | None = None


@dataclass(frozen=True)
class Comparison:
    """One of our numbers, or the difference of two (``quantity``: ``high - low > 0``), compared
    with its bound.

    ``model`` is the model, or the family of sizes, concerned; ``n`` reads ``205 (124 clusters) +
    267 (151 clusters)`` for two independent estimates and ``205 pairs (124 clusters)`` for a paired
    change. ``for_chance`` is the p value under the hypothesis that the claim is false,
    ``against_chance`` that under the hypothesis that it is true: one-sided, from the interval's
    half-width on that side.
    """

    model: str
    quantity: str
    value: float = nan
    low: float = nan
    high: float = nan
    n: str = ""
    paper_value: float = nan
    for_chance: float = 1.0
    against_chance: float = 1.0

    @property
    def verdict(self) -> str:
        """The verdict of this comparison alone."""
        return _verdict(self.for_chance, self.against_chance)

    @property
    def size(self) -> str:
        """Whether the interval covers the paper's value, or lies below or above it."""
        if math.isnan(self.value) or math.isnan(self.paper_value):
            return UNPRINTED
        if self.high < self.paper_value:
            return SMALLER
        return LARGER if self.low > self.paper_value else COVERS

    def __str__(self) -> str:
        """``mini-small high - low > 0: 86.31 [78.66, 92.88], n 205 + 267, paper 72.78``"""
        text = f"{self.model} {self.quantity}: {number(self.value)}".strip()
        if self.low < self.high:
            text += f" [{number(self.low)}, {number(self.high)}]"
        if self.n:
            text += f", n {self.n}"
        return text + f", paper {number(self.paper_value)}" * (not math.isnan(self.paper_value))


@dataclass(frozen=True)
class Judgement:
    """A claim's comparisons on our numbers.

    ``note``: what is missing. ``floor``: the models asked know too few APIs for a claim about
    frequent ones.
    """

    claim: Claim
    comparisons: tuple[Comparison, ...] = ()
    note: str = ""
    floor: bool = False

    @cached_property
    def reported(self) -> tuple[Comparison, ...]:
        """The same test on the paper's own numbers, where it prints them."""
        paper_name, artifact = self.claim.paper, self.claim.artifact
        if not (paths.PAPER / paper_name / f"{artifact}.csv").exists():
            return ()
        found = _comparisons(self.claim, paper.values(paper_name, artifact))
        return tuple(one for one in found if not math.isnan(one.value))

    @property
    def marked(self) -> str:
        """The verdict in Markdown, with the role if it is not a claim."""
        role = self.claim.role
        return f"**{self.verdict}**" + f" ({role})" * (role != "claim")

    @property
    def verdict(self) -> str:
        """The verdict on the direction, from all comparisons together."""
        if not self.comparisons:
            return UNDECIDED
        if self.floor:
            return UNTESTABLE
        for_it = [one.for_chance for one in self.comparisons]
        against = [one.against_chance for one in self.comparisons]
        if self.claim.models == "any":
            return _verdict(len(for_it) * min(for_it), max(against))
        return _verdict(max(for_it), len(against) * min(against))

    @property
    def size(self) -> str:
        """``covers``, say; if the comparisons differ, the count of each verdict: ``covers 1,
        smaller 2``.
        """
        found = Counter(one.size for one in self.comparisons if one.size != UNPRINTED)
        if len(found) < 2:
            return next(iter(found), UNPRINTED)
        return _counted(found, SIZE_VERDICTS, " ")

    @property
    def ours(self) -> str:
        """The comparison that decides, and the verdicts of all (``shared``); without comparisons,
        what is missing.
        """
        if not self.comparisons:
            return self.note
        chance = attrgetter("against_chance" if self.verdict == FAILS else "for_chance")
        one_is_enough = (self.verdict == FAILS) != (self.claim.models == "any")
        decides = (min if one_is_enough else max)(self.comparisons, key=chance)
        return f"{decides}" + f"; {self.verdict}{self.shared}" * bool(self.shared)

    @property
    def shared(self) -> str:
        """If there are several comparisons, how many have which verdict, each judged by itself;
        otherwise "".
        """
        n, found = len(self.comparisons), Counter(one.verdict for one in self.comparisons)
        if n < 2 or self.floor:
            return ""
        if found[self.verdict] == n:
            return f" in {n} of {n} comparisons"
        enough = ", one is enough" * (self.claim.models == "any")
        return f" ({n} comparisons: {_counted(found, VERDICTS, ' ')}{enough})"

    @property
    def theirs(self) -> str:
        """The range of the paper's own numbers for the same comparisons, and whether they support
        the claim.
        """
        if not self.reported:
            return "no printed numbers"
        found = sorted(one.value for one in self.reported)
        spread = " to ".join(dict.fromkeys(map(number, (found[0], found[-1]))))
        if printed := self.claim.test.get("printed"):
            spread = f"{number(printed)} in the text, {spread}"
        against = sum(one.verdict != HOLDS for one in self.reported)
        contrary = f", {against} of them against the claim" if against else ""
        return f"{spread} in {len(found)} comparison{'s'[: len(found) > 1]}{contrary}"


def _verdict(for_chance: float, against_chance: float) -> str:
    least = SIDE - NEAR
    return HOLDS if for_chance < least else FAILS if against_chance < least else UNDECIDED


def load(file: Path = FILE) -> list[Claim]:
    """The claims in a YAML file; UserError with the file, the claim's position and its entry if one
    is malformed.
    """
    try:
        entries = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {file}: {' '.join(str(error).split())}") from error
    claims, floors = {}, {}
    for position, entry in enumerate(entries, 1):
        try:
            if "floor" in entry:
                floors[entry["paper"]] = Floor(**entry["floor"])
                continue
            claim = Claim(**entry, floor=floors.get(entry["paper"]))
            list(questions(claim, ["any"]))  # has all fields of its kind
            if claim.id in claims or claim.models not in MODELS or claim.role not in ROLES:
                raise ValueError("its id is another claim's, or its models or role are unknown")
            claims[claim.id] = claim
        except (TypeError, ValueError, KeyError) as error:
            raise UserError(
                f"{file}, claim {position} ({entry}): {type(error).__name__} {error}"
            ) from error
    return list(claims.values())


def judge_run(claims: list[Claim], folder: Path) -> list[Judgement]:
    """Judge every claim on ``folder/<paper>/<artifact>.csv`` (in ``figures/mini``, say); undecided
    without the file.
    """
    judgements = []
    for claim in claims:
        file = folder / claim.paper / f"{claim.artifact}.csv"
        if file.exists():
            judgements.append(judge(claim, read_csv(file), at_floor(claim, folder)))
        else:
            note = f"no {file}: run {claim.artifact} in this profile"
            judgements.append(Judgement(claim, note=note))
    return judgements


def at_floor(claim: Claim, folder: Path) -> set[str]:
    """The models in ``folder`` that are too weak for this claim."""
    floor, named = claim.floor, re.findall(r"\w+", str(claim.test))
    if floor is None or not {*floor.concerns} & {*named}:
        return set()
    if not (file := folder / claim.paper / f"{floor.artifact}.csv").exists():
        return set()
    frame = read_csv(file)
    rows = frame[(frame.metric == floor.metric) & frame.condition.isin(floor.conditions)]
    best = rows.groupby("model").value.max()
    return set(best.index[best < floor.below])


def judge(claim: Claim, frame: pd.DataFrame, weak: Iterable[str] = ()) -> Judgement:
    """Judge one claim on its artifact's rows (tidy columns; the paper's own values, without
    intervals, also work).

    ``weak`` models do not count: only the others decide, if there are any.
    """
    low = frame.model.isin(weak)
    is_untestable = False
    if low.any():
        is_untestable = not frame.model[~low].any()
        frame = frame if is_untestable else frame[~low]
    comparisons = _comparisons(claim, frame)
    note = "" if comparisons else f"no {claim.test['metric']} to compare"
    return Judgement(claim, comparisons, note, is_untestable)


def _counted(found: Counter, names: Iterable[str], between: str) -> str:
    return ", ".join(f"{name}{between}{found[name]}" for name in names if found[name])


def text(judgements: list[Judgement], details: bool = False) -> str:
    """Every claim with its verdict, the deciding number and the paper's; with ``details``, every
    comparison.
    """
    lines = []
    for one in judgements:
        claim = one.claim
        lines.append(f"{one.verdict.upper():<12} {claim.id} ({claim.place}; {claim.artifact})")
        said = [claim.statement, *claim.also, f"ours: {one.ours}"]
        said.append(f"paper: {one.theirs}; size: {one.size}")
        if details:
            said.append(f"metric {claim.test['metric']}, models: {claim.models}. {claim.why}")
            said += [f"- {each}: {each.verdict}, {each.size}" for each in one.comparisons]
        lines += [" " * 13 + each for each in said]
    return "\n".join([*lines, *summary(judgements)])


def markdown(judgements: list[Judgement], seconds: Mapping[str, float]) -> str:
    """A page with one table per paper: every claim with the paper's numbers, ours, both verdicts,
    and a command.

    The command makes the artifact again; ``seconds`` maps artifacts (paper/name) to the time it
    took.
    """
    lines = ["- " + line for line in summary(judgements)]
    for folder, title in paper.titles().items():
        rows = []
        for one in judgements:
            claim = one.claim
            if claim.paper == folder:
                said = f"{claim.statement} ({claim.place}; `{claim.id}`)"
                command = f"`lookuplab run {claim.artifact}`"
                if took := seconds.get(f"{folder}/{claim.artifact}"):
                    command += f" ({took:.0f} s)"
                said = " Also: ".join([said, *claim.also])
                ours = f"`{claim.test['metric']}` {one.ours}"
                rows.append([said, one.theirs, ours, one.marked, one.size, command])
        if rows:
            heads = ["claim", "paper", "ours", "direction", "size", "command"], ["---"] * 6
            lines += ["", f"## {title}", ""]
            for row in (*heads, *rows):
                lines.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |")
    return "\n".join(lines)


def by_role(judgements: list[Judgement]) -> Iterator[str]:
    """``72 claims: holds: 40, fails: 6, not decided: 26``, and the same of the checks and the
    findings.
    """
    for role, name in ROLES.items():
        if asked := [one for one in judgements if one.claim.role == role]:
            found = Counter(one.verdict for one in asked)
            yield f"{len(asked)} {name if len(asked) > 1 else role}: {_counted(found, VERDICTS, ': ')}"


def summary(judgements: list[Judgement]) -> Iterator[str]:
    """One line for each role, the sizes, and what chance alone would give."""
    yield from by_role(judgements)
    judged = [one for one in judgements if one.claim.role != "check" and one.comparisons]
    sizes = Counter(each.size for one in judged for each in one.comparisons)
    printed = ", ".join(f"{name} {sizes[name]}" for name in SIZE_VERDICTS)
    yield f"sizes of the comparisons with a printed value: {printed}"
    yield (
        f"if every true effect lay exactly on its bound, chance would decide at most {2 * SIDE * len(judged):.0f} of the "
        f"{len(judged)} claims and findings, half of them as holding"
    )


def number(value: float) -> str:
    """Two decimals, none for whole numbers; one digit of numbers below 0.005."""
    if math.isnan(value):
        return "not measured"
    return f"{value:.1g}" if 0 < abs(value) < 0.005 else f"{value + 0:.2f}".removesuffix(".00")


def questions(claim: Claim, models: list[str]) -> Iterator[tuple]:
    """The comparisons of the claim's test, as (subject, first, second or None, from, to).

    First and second are (model, condition). Bounds of a difference are open, those of a single
    number closed. The order is by model, or along the sizes if sizes are compared.
    """
    test, asked = claim.test, models
    if claim.models == "largest":
        asked = [members[-1][1] for members in by_family(models).values()]
    match test["kind"]:
        case "monotone":
            is_rising = {"increasing": True, "decreasing": False}[test["direction"]]
            for subject, before, after in _steps(test["over"], models, asked):
                ends = (after, before) if is_rising else (before, after)
                yield subject, *ends, 0, inf
        case "greater":
            sides = (
                [side] if isinstance(side, str) else side for side in (test["left"], test["right"])
            )
            for model, left, right in product(asked, *sides):
                yield model, (model, left), (model, right), float(test.get("by", 0)), inf
        case "within":
            for model, (condition, ends) in product(asked, test["ranges"].items()):
                low, high = ends
                low, high = -inf if low is None else low, inf if high is None else high
                yield model, (model, condition), None, low, high
        case kind:
            raise ValueError(f"kind is {kind}, not greater, within or monotone")


def _steps(over: list | dict, models: list[str], asked: list[str]) -> Iterator[tuple]:
    """(subject, (model, condition) before a step, and after it): over conditions, or sizes in or
    across families.
    """
    if isinstance(over, list):
        ladders = [over] if isinstance(over[0], str) else over
        for model, ladder in product(asked, ladders):
            for before, after in pairwise(ladder):
                yield model, (model, before), (model, after)
        return
    families = by_family(models)
    if over.get("across_families"):
        families = {
            "all sizes": sorted(one for group in families.values() for one in group if one[0])
        }
    for family, members in families.items():
        for (smaller, before), (larger, after) in pairwise(members):
            if smaller < larger:
                yield family, (before, over["size"]), (after, over["size"])


def by_family(models: Iterable[str]) -> dict[str, list[tuple[float, str]]]:
    """Family name -> (size, model), small to large, of models that differ only in a size (``-3B``,
    ``-small``).

    A model without a size is its own family.
    """
    families: dict[str, list[tuple[float, str]]] = {}
    for model in models:
        family, size = _family_and_size(model)
        families.setdefault(family, []).append((size, model))
    return {family: sorted(members) for family, members in families.items()}


def _family_and_size(model: str) -> tuple[str, float]:
    """The size is 0 for a model without one; otherwise the number of weights or 1 + the index in
    SIZES.
    """
    low = model.lower()
    if digits := re.search(r"(?<![\w.])(\d+(?:\.\d+)?)([bm])\b", low):
        size = float(digits[1]) * {"b": 1e9, "m": 1e6}[digits[2]]
    elif digits := re.search(rf"\b({'|'.join(SIZES)})\b", low):
        size = 1 + SIZES.index(digits[1])
    else:
        return model, 0
    rest = model[: digits.start()] + model[digits.end() :]
    # Granite's names end in the context length, -2k to -8k
    return re.sub(r"-\d+k\b", "", rest).strip("-_ "), size


def _comparisons(claim: Claim, frame: pd.DataFrame) -> tuple[Comparison, ...]:
    """The claim's questions, answered from the rows of its metric.

    Models that have none of the claim's conditions (a control, say) are skipped.
    """
    metric = claim.test["metric"]
    names = metric, f"{metric.removesuffix('_percent')}_change_points", f"{metric}_change"
    frame = frame.reindex(columns=list(COLUMNS)).fillna({"model": "", "condition": ""})
    known, points, change = (
        {(row["model"], row["condition"]): row for row in rows.to_dict("records")}
        for rows in (frame[frame.metric == name] for name in names)
    )
    models, changes = list(dict.fromkeys(model for model, _ in known)), points | change
    asked = {place[1] for _, *places, _, _ in questions(claim, models) for place in places if place}
    # also a model that lacks the metric, unless it is one of pairs of models: not measured must not
    # decide the claim
    there = set(zip(frame.model, frame.condition, strict=True))
    if any(" - " not in one for one in models):
        every = dict.fromkeys([*models, *(one for one in frame.model if " - " not in one)])
        models = [one for one in every if any((one, each) in there for each in asked)] or models
    printed = claim.test.get("printed", nan)
    return tuple(_compare(*asked, known, changes, printed) for asked in questions(claim, models))


def _compare(
    subject: str,
    first: tuple,
    second: tuple | None,
    low: float,
    high: float,
    known: dict,
    changes: dict,
    printed: float,
) -> Comparison:
    quantity, asked = f"{first[1]} in {low:g} to {high:g}", [first]
    if second:
        what = int(first[0] == second[0])  # show the conditions of one model, or the two models
        quantity, asked = f"{first[what]} - {second[what]} > {low:g}", [first, second]
    elif low == high:
        quantity = f"{first[1]} == {low:g}"
    elif low == -inf:
        quantity = f"{first[1]} <= {high:g}"
    elif high == inf:
        quantity = f"{first[1]} >= {low:g}"
    if any(place not in known or math.isnan(known[place]["value"]) for place in asked):
        return Comparison(subject, quantity)
    rows = [known[place] for place in asked]
    found, n, theirs = _rate(rows[0]), " + ".join(map(_count, rows)), rows[0]["paper_value"]
    if second:
        theirs -= rows[1]["paper_value"]
        found, n = _paired(first, second, changes) or (difference(found, _rate(rows[1])), n)
    if found.low == found.high or low == high:  # exact
        is_true = low < found.value if second else low <= found.value <= high
        chances = (0.0, 1.0) if is_true else (1.0, 0.0)
    else:
        down, up = found.value - found.low, found.high - found.value
        chances = (
            max(_chance(found.value - low, down), _chance(high - found.value, up)),
            min(_chance(low - found.value, up), _chance(found.value - high, down)),
        )
    theirs = theirs if math.isnan(printed) else printed
    return Comparison(subject, quantity, found.value, found.low, found.high, n, theirs, *chances)


def _chance(distance: float, side: float) -> float:
    """The p value of a number this far beyond a bound if the true value is not beyond it.

    ``side`` is the half-width of its 95% interval towards the bound.
    """
    if side == 0 or math.isinf(distance):  # exact, or an open end
        return float(distance <= 0)
    return float(norm.sf(norm.isf(SIDE) * distance / side))


def _paired(first: tuple, second: tuple, changes: dict) -> tuple[Rate, str] | None:
    """The artifact's paired change between two conditions of one model, or two models under one
    condition.

    Its sign is reversed if the artifact has the opposite change.
    """
    for (model, new), (other, old), sign in ((first, second, 1), (second, first, -1)):
        names = model, f"{new} - {old}"
        if model != other:
            names = f"{model} - {other}", new if new == old else None
        change = changes.get(names)
        # a row that names only ``new`` is the change from the base
        if model == other and old == "/".join(["base", *new.split("/")[1:]]):
            change = change or changes.get((model, new))
        if change:
            found = _rate(change)
            turned = Rate(-found.value, -found.high, -found.low, 0)
            return (found if sign > 0 else turned), _count(change, " pairs")
    return None


def _rate(row: dict) -> Rate:
    ends = [row["ci_low"], row["ci_high"]]
    # a count is exact; an estimate without an interval could be anything
    if math.isnan(row["ci_low"]):
        ends = [row["value"]] * 2 if math.isnan(row["clusters"]) else [-inf, inf]
    return Rate(row["value"], *ends, 0)


def _count(row: dict, of: str = "") -> str:
    n, clusters = row["n"], row["clusters"]
    within = f" ({clusters:.0f} clusters)" * (clusters < n)
    return "" if math.isnan(n) else f"{n:.0f}{of}{within}"
