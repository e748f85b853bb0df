"""The papers' claims (``data/paper/claims.yaml``), checked against one run's artifacts. Two
separate questions:

*Direction*: is the effect there, as claimed? Each claim becomes comparisons: is one of our numbers,
or the difference of two, on the claimed side of a bound?

- *holds*: the whole 95% interval is on the claimed side; *fails*: the whole interval is on the
  opposite side;
- *not decided*: the interval contains the bound, or one of the artifact's rows is missing;
- *not testable: floor*: the models are so weak at everything that they cannot show the effect
  (``Floor``);
- *not run*: the artifact is missing;
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

Nothing is rendered here: ``run.report`` has the pages.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from math import inf, nan
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml
from scipy.stats import norm

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.results import paper
from lookuplab.results.artifact import read_csv
from lookuplab.scoring.rates import TAIL_PROBABILITY, Rate, difference

FILE = paths.PAPER / "claims.yaml"
DIRECTIONS = HOLDS, FAILS, UNDECIDED, UNTESTABLE, NOT_RUN = (
    "holds",
    "fails",
    "not decided",
    "not testable: floor",
    "not run",
)
COVERS, SMALLER, LARGER, UNPRINTED = "covers", "smaller", "larger", "no printed value"
ROUNDING = 1e-9  # an interval that ends exactly at the bound decides nothing
ROLES = {"claim": "claims", "check": "checks of the benchmark", "finding": "findings of ours"}
SCOPES = ("all", "any", "largest")
MODEL_SIZES = ["tiny", "small", "base", "medium", "large", "xl"]


@dataclass(frozen=True)
class Floor:
    """Which models of a paper are too weak for its claims about validity: in the rows of
    ``artifact``, ``metric`` is ``below`` a bound at all of the ``conditions``. They say nothing
    about the metrics that this ``concerns``; a check is no claim.
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
    test: dict[str, Any]
    models: str = "all"
    why: str = ""
    also: tuple[str, ...] = ()
    role: str = "claim"
    floor: Floor | None = None

    @property
    def artifact_id(self) -> str:
        """``paper/name``"""
        return f"{self.paper}/{self.artifact}"


class Cell(NamedTuple):
    """Where a number of a metric stands in an artifact."""

    model: str
    condition: str


class CellNumbers(NamedTuple):
    """A row of an artifact at a cell; NaN where the artifact has no number."""

    value: float
    ci_low: float
    ci_high: float
    n: float
    clusters: float
    paper_value: float


@dataclass(frozen=True)
class Comparison:
    """Does the number of ``first``, or its difference from that of ``second``, lie between
    ``least`` and ``most``? And the answer: NaN while it is open, or where a row is missing.

    Bounds of a difference are open, those of a single number closed. ``subject`` is the model, or
    the family of sizes, concerned. ``n`` reads ``205 (124 clusters) + 267 (151 clusters)`` for two
    independent estimates and ``205 pairs (124 clusters)`` for a paired change. ``p_if_false`` is
    the p value under the hypothesis that the claim is false, ``p_if_true`` that under the
    hypothesis that it is true: one-sided, from the interval's half-width on that side.
    """

    subject: str
    first: Cell
    second: Cell | None
    least: float
    most: float
    value: float = nan
    low: float = nan
    high: float = nan
    n: str = ""
    paper_value: float = nan
    p_if_false: float = 1.0
    p_if_true: float = 1.0

    @property
    def cells(self) -> list[Cell]:
        return [self.first, self.second] if self.second else [self.first]

    @property
    def quantity(self) -> str:
        """``high - low > 0``, ``all >= 50``"""
        if self.second:
            same_model = self.first.model == self.second.model
            names = [cell.condition if same_model else cell.model for cell in self.cells]
            return f"{' - '.join(names)} > {self.least:g}"
        if self.least == self.most:
            bounds = f"== {self.least:g}"
        elif self.least == -inf:
            bounds = f"<= {self.most:g}"
        elif self.most == inf:
            bounds = f">= {self.least:g}"
        else:
            bounds = f"in {self.least:g} to {self.most:g}"
        return f"{self.first.condition} {bounds}"

    @property
    def direction(self) -> str:
        """The verdict on the direction of this comparison alone."""
        return _direction(self.p_if_false, self.p_if_true)

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
        text = f"{self.subject} {self.quantity}: {number(self.value)}".strip()
        if self.low < self.high:
            text += f" [{number(self.low)}, {number(self.high)}]"
        if self.n:
            text += f", n {self.n}"
        return text if math.isnan(self.paper_value) else f"{text}, paper {number(self.paper_value)}"


@dataclass(frozen=True)
class JudgedClaim:
    """A claim's comparisons on our numbers.

    ``at_floor``: all models are too weak for the claim. ``is_run``: the artifact exists.
    """

    claim: Claim
    comparisons: tuple[Comparison, ...] = ()
    at_floor: bool = False
    is_run: bool = True

    @cached_property
    def reported(self) -> tuple[Comparison, ...]:
        """The same test on the paper's own numbers, where it prints them."""
        if not (paths.PAPER / f"{self.claim.artifact_id}.csv").exists():
            return ()
        rows = paper.values(self.claim.paper, self.claim.artifact)
        comparisons = _comparisons(self.claim, rows)
        return tuple(each for each in comparisons if not math.isnan(each.value))

    @property
    def direction(self) -> str:
        """The verdict on the direction, from all comparisons together."""
        if not self.is_run:
            return NOT_RUN
        if self.at_floor:
            return UNTESTABLE
        if not self.comparisons:
            return UNDECIDED
        n = len(self.comparisons)
        if_false = [each.p_if_false for each in self.comparisons]
        if_true = [each.p_if_true for each in self.comparisons]
        if self.claim.models == "any":
            return _direction(n * min(if_false), max(if_true))
        return _direction(max(if_false), n * min(if_true))

    @property
    def directions(self) -> Counter[str]:
        """How many comparisons have which verdict, each judged by itself."""
        return Counter(each.direction for each in self.comparisons)

    @property
    def sizes(self) -> Counter[str]:
        """How many comparisons with a printed value have which size."""
        return Counter(each.size for each in self.comparisons if each.size != UNPRINTED)

    @property
    def deciding(self) -> Comparison:
        """The comparison that decides the direction."""
        fails = self.direction == FAILS
        one_is_enough = fails != (self.claim.models == "any")

        def p_value(comparison: Comparison) -> float:
            return comparison.p_if_true if fails else comparison.p_if_false

        return (min if one_is_enough else max)(self.comparisons, key=p_value)


def _direction(p_if_false: float, p_if_true: float) -> str:
    least = TAIL_PROBABILITY - ROUNDING
    return HOLDS if p_if_false < least else FAILS if p_if_true < least else UNDECIDED


def load(file: Path = FILE) -> list[Claim]:
    """The claims in a YAML file; UserError with the file, the claim's position and its entry if one
    is malformed.
    """
    try:
        entries = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {file}: {' '.join(str(error).split())}") from error
    claims: dict[str, Claim] = {}
    floors: dict[str, Floor] = {}
    for position, entry in enumerate(entries, 1):
        try:
            if "floor" in entry:
                floors[entry["paper"]] = Floor(**entry["floor"])
                continue
            claim = Claim(**entry, floor=floors.get(entry["paper"]))
            list(inequalities(claim, ["any"]))  # has all fields of its kind
            if claim.id in claims or claim.models not in SCOPES or claim.role not in ROLES:
                raise ValueError("its id is another claim's, or its models or role are unknown")
            claims[claim.id] = claim
        except (TypeError, ValueError, KeyError) as error:
            raise UserError(
                f"{file}, claim {position} ({entry}): {type(error).__name__} {error}"
            ) from error
    return list(claims.values())


def judge_run(claims: list[Claim], folder: Path) -> list[JudgedClaim]:
    """Judge every claim on ``folder/<paper>/<artifact>.csv`` (in ``figures/mini``, say)."""
    judged = []
    for claim in claims:
        file = folder / f"{claim.artifact_id}.csv"
        if file.exists():
            judged.append(judge(claim, read_csv(file), weak_models(claim, folder)))
        else:
            judged.append(JudgedClaim(claim, is_run=False))
    return judged


def weak_models(claim: Claim, folder: Path) -> set[str]:
    """The models in ``folder`` that are too weak for this claim: at its floor."""
    floor = claim.floor
    if floor is None or claim.role == "check" or claim.test["metric"] not in floor.concerns:
        return set()
    if not (file := folder / claim.paper / f"{floor.artifact}.csv").exists():
        return set()
    frame = read_csv(file)
    rows = frame[(frame.metric == floor.metric) & frame.condition.isin(floor.conditions)]
    best = rows.groupby("model").value.max()
    return set(best.index[best < floor.below])


def judge(claim: Claim, frame: pd.DataFrame, weak: Collection[str] = ()) -> JudgedClaim:
    """Judge one claim on its artifact's rows (tidy columns; the paper's own values, without
    intervals, also work).

    ``weak`` models, and pairs of them, do not count: only the others decide, if there are any.
    """
    strong = frame[[not {*weak}.issuperset(str(name).split(" - ")) for name in frame.model]]
    at_floor = len(strong) < len(frame) and not strong.model.any()
    return JudgedClaim(claim, _comparisons(claim, frame if at_floor else strong), at_floor)


def number(value: float) -> str:
    """Two decimals, none for whole numbers; one digit of numbers below 0.005."""
    if math.isnan(value):
        return "not measured"
    return f"{value:.1g}" if 0 < abs(value) < 0.005 else f"{value + 0:.2f}".removesuffix(".00")


def inequalities(claim: Claim, models: list[str]) -> Iterator[Comparison]:
    """The comparisons of the claim's test, by model, or along the sizes if sizes are compared."""
    test, subjects = claim.test, models
    if claim.models == "largest":
        subjects = [members[-1].model for members in by_family(models).values()]
    match test["kind"]:
        case "monotone":
            is_rising = {"increasing": True, "decreasing": False}[test["direction"]]
            for subject, before, after in _steps(test["over"], models, subjects):
                first, second = (after, before) if is_rising else (before, after)
                yield Comparison(subject, first, second, 0, inf)
        case "greater":
            left, right = (
                [side] if isinstance(side, str) else side for side in (test["left"], test["right"])
            )
            by = float(test.get("by", 0))
            for model, more, less in product(subjects, left, right):
                yield Comparison(model, Cell(model, more), Cell(model, less), by, inf)
        case "within":
            for model, (condition, (low, high)) in product(subjects, test["ranges"].items()):
                low, high = -inf if low is None else low, inf if high is None else high
                yield Comparison(model, Cell(model, condition), None, low, high)
        case kind:
            raise ValueError(f"kind is {kind}, not greater, within or monotone")


def _steps(
    over: list[Any] | dict[str, Any], models: list[str], subjects: list[str]
) -> Iterator[tuple[str, Cell, Cell]]:
    """(subject, before a step, after it): over conditions, or sizes in or across families."""
    if isinstance(over, list):
        ladders = [over] if isinstance(over[0], str) else over
        for model, ladder in product(subjects, ladders):
            for before, after in pairwise(ladder):
                yield model, Cell(model, before), Cell(model, after)
        return
    families = by_family(models)
    if over.get("across_families"):
        sized = [each for members in families.values() for each in members if each.size]
        families = {"all sizes": sorted(sized)}
    for family, members in families.items():
        for smaller, larger in pairwise(members):
            if smaller.size < larger.size:
                cells = Cell(smaller.model, over["size"]), Cell(larger.model, over["size"])
                yield family, *cells


class SizedModel(NamedTuple):
    """``size`` is the number of weights, or 1 + the index in MODEL_SIZES; 0 for a model without
    one.
    """

    size: float
    model: str


def by_family(models: Iterable[str]) -> dict[str, list[SizedModel]]:
    """Family name -> its models, small to large, which differ only in a size (``-3B``, ``-small``).

    A model without a size is its own family.
    """
    families: dict[str, list[SizedModel]] = {}
    for model in models:
        family, size = _family_and_size(model)
        families.setdefault(family, []).append(SizedModel(size, model))
    return {family: sorted(members) for family, members in families.items()}


def _family_and_size(model: str) -> tuple[str, float]:
    lower = model.lower()
    if match := re.search(r"(?<![\w.])(\d+(?:\.\d+)?)([bm])\b", lower):
        size = float(match[1]) * {"b": 1e9, "m": 1e6}[match[2]]
    elif match := re.search(rf"\b({'|'.join(MODEL_SIZES)})\b", lower):
        size = 1 + MODEL_SIZES.index(match[1])
    else:
        return model, 0
    rest = model[: match.start()] + model[match.end() :]
    # Granite's names end in the context length, -2k to -8k
    return re.sub(r"-\d+k\b", "", rest).strip("-_ "), size


def _comparisons(claim: Claim, frame: pd.DataFrame) -> tuple[Comparison, ...]:
    """The claim's inequalities, compared on the rows of its metric.

    Models that have none of the claim's conditions (a control, say) are skipped.
    """
    metric = claim.test["metric"]
    points, change = f"{metric.removesuffix('_percent')}_change_points", f"{metric}_change"
    frame = frame.reindex(columns=["metric", *Cell._fields, *CellNumbers._fields])
    frame = frame.fillna({"model": "", "condition": ""})

    def numbers_of(*metrics: str) -> dict[Cell, CellNumbers]:
        rows = frame[frame.metric.isin(metrics)].itertuples(index=False, name=None)
        return {Cell(model, where): CellNumbers(*row) for _, model, where, *row in rows}

    numbers, changes = numbers_of(metric), numbers_of(points, change)
    models = list(dict.fromkeys(cell.model for cell in numbers))
    # also a model that lacks the metric, unless it is one of pairs of models: not measured must not
    # decide the claim
    if any(" - " not in model for model in models):
        single = [model for model in frame.model if " - " not in model]
        conditions = {cell.condition for each in inequalities(claim, models) for cell in each.cells}
        has_one = set(frame.model[frame.condition.isin(conditions)])
        models = [m for m in dict.fromkeys([*models, *single]) if m in has_one] or models
    printed = claim.test.get("printed")
    return tuple(_compare(each, numbers, changes, printed) for each in inequalities(claim, models))


def _compare(
    asked: Comparison,
    numbers: dict[Cell, CellNumbers],
    changes: dict[Cell, CellNumbers],
    printed: float | None,
) -> Comparison:
    rows, second = [numbers[cell] for cell in asked.cells if cell in numbers], asked.second
    if len(rows) < len(asked.cells) or any(math.isnan(row.value) for row in rows):
        return asked
    ours, n, theirs = _rate(rows[0]), " + ".join(map(_count, rows)), rows[0].paper_value
    if second:
        theirs -= rows[1].paper_value
        independent = difference(ours, _rate(rows[1])), n
        ours, n = _paired(asked.first, second, changes) or independent
    least, most, value = asked.least, asked.most, ours.value
    if ours.low == ours.high or least == most:  # exact
        is_true = least < value if second else least <= value <= most
        if_false, if_true = float(not is_true), float(is_true)
    else:
        down, up = value - ours.low, ours.high - value
        if_false = max(_p_value(value - least, down), _p_value(most - value, up))
        if_true = min(_p_value(least - value, up), _p_value(value - most, down))
    return replace(
        asked,
        value=value,
        low=ours.low,
        high=ours.high,
        n=n,
        paper_value=theirs if printed is None else printed,
        p_if_false=if_false,
        p_if_true=if_true,
    )


def _p_value(distance: float, side: float) -> float:
    """The p value of a number this far beyond a bound if the true value is not beyond it.

    ``side`` is the half-width of its 95% interval towards the bound.
    """
    if side == 0 or math.isinf(distance):  # exact, or an open end
        return float(distance <= 0)
    return float(norm.sf(norm.isf(TAIL_PROBABILITY) * distance / side))


def _paired(first: Cell, second: Cell, changes: dict[Cell, CellNumbers]) -> tuple[Rate, str] | None:
    """The artifact's paired change between two conditions of one model, or two models under one
    condition.

    Its sign is reversed if the artifact has the opposite change.
    """
    for new, old in ((first, second), (second, first)):
        cells = []
        if new.model == old.model:
            cells = [Cell(new.model, f"{new.condition} - {old.condition}")]
            # a row that names only ``new`` is the change from the base
            if old.condition == "/".join(["base", *new.condition.split("/")[1:]]):
                cells.append(new)
        elif new.condition == old.condition:
            cells = [Cell(f"{new.model} - {old.model}", new.condition)]
        for row in (changes[cell] for cell in cells if cell in changes):
            rate = _rate(row)
            reverse = Rate(-rate.value, -rate.high, -rate.low, 0)
            return (rate if new == first else reverse), _count(row, " pairs")
    return None


def _rate(row: CellNumbers) -> Rate:
    low, high = row.ci_low, row.ci_high
    # a count is exact; an estimate without an interval could be anything
    if math.isnan(low):
        low, high = (row.value, row.value) if math.isnan(row.clusters) else (-inf, inf)
    return Rate(row.value, low, high, 0)


def _count(row: CellNumbers, of: str = "") -> str:
    within = f" ({row.clusters:.0f} clusters)" if row.clusters < row.n else ""
    return "" if math.isnan(row.n) else f"{row.n:.0f}{of}{within}"
