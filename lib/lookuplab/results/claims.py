"""Checks the papers' claims (``data/paper/claims.yaml``) against the artifacts of one run. For each
claim there are two verdicts: on its direction, and on its size.

*Direction*: is the effect there, as claimed? Each claim is turned into comparisons. A comparison
asks whether one of our numbers, or the difference of two, is on the claimed side of a bound. The
verdicts on the direction are

- *holds*: the whole 95% interval is on the claimed side;
- *fails*: the whole interval is on the opposite side;
- *open*: the interval contains the bound, or a row of the artifact is missing;
- *not testable: floor*: all models are so weak that they could not show the effect (``Floor``);
- *not testable: margin*: the claim tolerates a loss, such as 5 points, but the number that may fall
  could itself be smaller than 5 (the lower end of its interval is at most 5). Then even a fall to 0
  would pass. A claim gets this verdict only if this is so in all its comparisons; otherwise, the
  remaining comparisons decide;
- *not testable: sizes*: no two models differ only in size;
- *not testable: instrument*: the rule that measures the effect did not agree well enough with known
  results on real answers (``Claim.instrument``);
- *not run*: the artifact is missing or has no rows.

Two numbers are compared through the interval of their difference. If the artifact has a row with
the paired difference, the interval of this row is used. For the metric ``valid_percent``, such a
row has the metric ``valid_change_points``; for a metric that is not a percentage, such as
``bleu4``, it has ``bleu4_change``. The condition of the row is ``dag/low`` for the change from the
base model (as in the subscripts of Table 3), and ``dag_plus_plus/low - dag/low`` for the change
between two conditions. The model of the row is ``mini-large - mini-small`` for the change between
two models under one condition. Without such a row, the two numbers count as independent estimates
(``scoring.rates.difference``), which gives a wider interval. A number without an interval (a count)
is exact.

A claim holds if all its comparisons hold, and it fails if one comparison fails. With k comparisons,
one of them fails by chance up to k times as often as a single comparison. The smallest of the k p
values is therefore multiplied by k (Holm's first step). The claim fails only if the product is
still below 2.5%.

*Size*: does our interval cover the number that the paper prints? The verdicts on the size are
*covers*, *smaller*, *larger*, *no printed value*, and *too imprecise to say*: the interval covers
the printed number, but the interval's half-width is at least as large as this number.

No fact is counted twice: a claim with the same numbers as an earlier claim, or a claim that follows
from other claims that hold, is shown but not counted. This module only judges; ``run.report``
renders the pages.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import chain, pairwise, product
from math import inf, nan
from operator import attrgetter
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import pandas as pd

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.paths import PUBLISHED
from lookuplab.results import paper
from lookuplab.results.artifact import ARTIFACT_COLUMNS, read_csv
from lookuplab.scoring.rates import TAIL_PROBABILITY, Rate, difference

FILE = paths.PAPER / "claims.yaml"
DIRECTIONS = HOLDS, FAILS, OPEN, UNTESTABLE, REFUSED, UNSIZED, UNCALIBRATED, NOT_RUN = (
    "holds",
    "fails",
    "open",
    "not testable: floor",
    "not testable: margin",
    "not testable: sizes",
    "not testable: instrument",
    "not run",
)
SIZES = COVERS, SMALLER, LARGER, IMPRECISE = "covers", "smaller", "larger", "too imprecise to say"
UNPRINTED = "no printed value"
REACH = -NormalDist().inv_cdf(TAIL_PROBABILITY)  # half-width of a 95% interval in standard errors
ROUNDING = 1e-9  # a tolerance, so that an interval that ends exactly at a bound gives no verdict
ROLES = {"claim": "claims", "check": "checks of the benchmark", "hypothesis": "hypotheses of ours"}
SCOPES = ("all", "largest")  # values of ``Claim.models``
# Claims about the artifact DESIGNS are also judged on the models in the artifact SHARES. These
# models differ in the share of training calls that had documentation above them.
DESIGNS, SHARES = "fig6_augmentation_designs", "documented/documented_share"
# Claims about the artifacts in SCORINGS are also judged on further repositories, whose rows are in
# the artifact MORE. SCORINGS has the prefix of these rows' conditions: "own" stands for ``own/``.
MORE = "repositories/more_repositories"
SCORINGS = {
    "table2_package_scoring": "printed",
    "table2_similarity": "own",
    "table3_repository_metrics": "own",
}
# the types of the fields of claims.yaml that are not texts
TYPES: dict[str, Any] = {
    "below": int | float,
    "least": int | float,
    **dict.fromkeys(("also", "concerns", "conditions", "follows_from"), list),
    **dict.fromkeys(("design", "floor", "instrument", "published", "test"), dict),
}
SEED = re.compile(r" seed \d+")  # the end of a training's name, such as "mini-small seed 1"
UNITS, MODEL_SIZES = {"b": 1e9, "m": 1e6}, ["tiny", "small", "base", "medium", "large", "xl"]
# Matches the size in a model's name: a number with a unit, or a word. A family's name is a model's
# name without these matches. The context length at the end of the names of Granite's models (-2k to
# -8k) is matched, too, because it differs between models of one family.
_SIZE = re.compile(
    rf"(?<![\w.])(\d+(?:\.\d+)?)([bm])\b|\b({'|'.join(MODEL_SIZES)})\b|-\d+k\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Floor:
    """A paper's rule about which models are too weak for its claims. A model is too weak if, in the
    rows of ``artifact``, the interval of the model's ``metric`` begins below the number ``below``
    under each of the ``conditions``.

    The results of such models say nothing about the metrics in ``concerns``. Claims whose role is
    ``check`` are not affected.
    """

    artifact: str
    metric: str
    conditions: list[str]
    below: float
    concerns: list[str]


class Instrument(NamedTuple):
    """The row that says how well the rule that measures a claim agrees with known results, and the
    value ``least`` that its number must reach (see ``Claim``).
    """

    artifact: str
    condition: str
    metric: str
    least: float


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, and its test on the rows of
    ``figures/<profile>/<paper>/<artifact>.csv``. ``claims.yaml`` has these fields:

    - ``place`` is the section, table or figure in which the paper makes the ``statement``. ``also``
      lists other places in which the paper says the same about the same number.
    - ``why`` explains where the numbers of the test come from.
    - ``role`` is "claim", "check" (true by construction) or "hypothesis" (ours, not the paper's).
      In the profile named by ``check_in``, the role is "check".
    - ``models`` says for which models the claim must hold: all, or the largest of every family.
    - ``design`` names the rows of data/mini/DESIGN.md that speak ``for`` and ``against`` the claim
      in the mini world.
    - ``follows_from`` lists claims that together imply this claim.
    - ``published`` has other values of ``artifact``, ``test`` and ``why``, with which the claim is
      judged in the profile ``published``: on answers of real models that others published. Without
      it, the claim is not judged in that profile.
    - ``instrument`` says how well the rule that measures the effect agrees with known results. It
      names a row of figures/published (``artifact``, ``condition``, ``metric``), and the value
      ``least`` that the number in this row must reach.
    - ``floor`` belongs to the paper. In the file it is a separate entry before the paper's claims.
    - ``test`` has a ``metric``, and optionally ``printed``, a number that the paper prints outside
      its tables and figures. The test itself is one of these:

      - ``descending``: a list of conditions. The number under each condition must be greater than
        the number under the next one plus ``by`` (0 by default; a negative ``by`` tolerates a
        loss). Instead of one condition, there may be a list of conditions; each of them must then
        pass.
      - ``sizes``: a condition. Under this condition, in each family, the numbers must increase (or
        decrease, as ``direction`` says) from the smallest to the largest model. With
        ``across_families: true``, all models with a size count as one family.
      - ``ranges``: {condition: [from, to]}. The number under each condition must be in its range.
        An open end is null. If the ends are equal, the number must equal them.
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
    check_in: str = ""
    design: Mapping[str, list[str]] = field(default_factory=dict)
    follows_from: Sequence[str] = ()
    published: Mapping[str, Any] = field(default_factory=dict)
    instrument: Mapping[str, Any] = field(default_factory=dict)
    folder: str = ""  # the artifact's folder, if it is not the paper's

    @property
    def artifact_id(self) -> str:
        """Return the artifact's id, such as ``cloudapibench/table1_base_models``."""
        return f"{self.folder or self.paper}/{self.artifact}"

    @cached_property
    def is_calibrated(self) -> bool:
        """Return whether the claim's instrument agrees well enough with known results. The result
        is also True if the claim has no instrument, or if the calibration has not been run.
        """
        if not self.instrument:
            return True
        needed = Instrument(**self.instrument)
        file = paths.FIGURES / PUBLISHED / PUBLISHED / f"{needed.artifact}.csv"
        if not file.exists():
            return True
        rows = read_csv(file)
        found = rows[(rows.condition == needed.condition) & (rows.metric == needed.metric)]
        return found.empty or bool(found.value.min() >= needed.least)


class _Row(NamedTuple):
    """A row of an artifact. If the row has no interval, the number's interval is set: for an exact
    number, both ends are this number; for an estimate, the ends are -inf and inf.
    """

    model: str
    condition: str
    metric: str
    number: Rate
    paper_value: float


class Cell(NamedTuple):
    """The model and the condition that identify one of a claim's numbers. All numbers of a claim
    have the same metric.
    """

    model: str
    condition: str


@dataclass(frozen=True)
class Comparison:
    """One comparison of a claim's test. It asks whether a value is between ``least`` and ``most``.
    The value is the number in the cell ``first`` or, if there is a cell ``second``, the number in
    ``first`` minus the number in ``second``. A single number may equal a bound; a difference may
    not. The fields from ``value`` on are set when the numbers are compared; ``value`` stays NaN if
    a row is missing.

    ``subject`` is the compared model or family of models. ``n`` is a text: ``205 (124 clusters) +
    267 (151 clusters)`` for two independent estimates, ``205 pairs (124 clusters)`` for a paired
    change. ``paper_value`` is the paper's number for the same quantity. ``p_if_false`` is the p
    value of the hypothesis that the claim is false, and ``p_if_true`` is the p value of the
    hypothesis that it is true. Both are one-sided. They are computed from the value's distance to
    the bound; the half of the interval on the bound's side gives the standard error. ``is_refused``
    is True if even a fall to 0 would be within the loss that the claim tolerates (*not testable:
    margin*).
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
    is_refused: bool = False

    @property
    def cells(self) -> list[Cell]:
        return [self.first, self.second] if self.second else [self.first]

    @property
    def quantity(self) -> str:
        """Return the comparison as text, such as ``high - low > 0`` or ``all >= 50``."""
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
        """Return the verdict on the direction, from this comparison alone."""
        return REFUSED if self.is_refused else _direction(self.p_if_false, self.p_if_true)

    @property
    def size(self) -> str:
        """Return the verdict on the size of our value: whether its interval covers the paper's
        value, is below or above it, or is too wide to say.
        """
        if math.isnan(self.value) or math.isnan(self.paper_value):
            return UNPRINTED
        if self.high < self.paper_value:
            return SMALLER
        if self.low > self.paper_value:
            return LARGER
        half = (self.high - self.low) / 2
        return COVERS if half < abs(self.paper_value) or not half else IMPRECISE


@dataclass(frozen=True)
class JudgedClaim:
    """A claim, and the comparisons of its test, made on our numbers.

    - ``at_floor``: all models are too weak for the claim.
    - ``is_run``: the artifact exists and has rows.
    - ``counted_as``: if the claim is not counted, the id of the claim with the same numbers, or the
      ids of the claims that imply this claim.
    - ``arms``: {name: verdict of the same test on other rows}. Claims about Figure 6 are tested on
      the models in SHARES, and claims about ToolGen's Tables II and III on the repositories in
      MORE. All other claims are tested on the models in ``mini/arms.csv``, which were trained with
      and without wrong documentation. ``arms`` is empty if none of these rows can test the claim.
    - ``trainings``: {name: verdict of the same test on one training of a mini model, such as
      ``mini-small seed 1``}, or {} if the mini models were trained with only one seed for this
      artifact.
    """

    claim: Claim
    comparisons: tuple[Comparison, ...] = ()
    at_floor: bool = False
    is_run: bool = True
    counted_as: str = ""
    arms: Mapping[str, "JudgedClaim"] = field(default_factory=dict)
    trainings: Mapping[str, "JudgedClaim"] = field(default_factory=dict)

    @cached_property
    def reported(self) -> tuple[Comparison, ...]:
        """Return the comparisons of this claim's test on the paper's own numbers. A comparison for
        which the paper lacks a number is left out.
        """
        if not (paths.PAPER / f"{self.claim.artifact_id}.csv").exists():
            return ()
        comparisons = _comparisons(self.claim, _paper_rows(self.claim.paper, self.claim.artifact))
        return tuple(each for each in comparisons if not math.isnan(each.value))

    @property
    def extremes(self) -> tuple[Comparison, Comparison]:
        """Return two comparisons: the one that is furthest from holding, which decides whether the
        claim holds, and the one that is closest to failing, which decides whether it fails.
        Refused comparisons (``is_refused``) are left out, unless all comparisons are refused.
        """
        among = [each for each in self.comparisons if not each.is_refused] or self.comparisons
        return (
            max(among, key=attrgetter("p_if_false")),
            min(among, key=attrgetter("p_if_true")),
        )

    @property
    def direction(self) -> str:
        """Return the verdict on the direction (see this module), from all comparisons together."""
        if not self.is_run:
            return NOT_RUN
        if not self.claim.is_calibrated:
            return UNCALIBRATED
        if self.at_floor:
            return UNTESTABLE
        if not self.comparisons:
            return UNSIZED if "sizes" in self.claim.test else OPEN
        to_hold, to_fail = self.extremes
        if to_hold.is_refused:
            return REFUSED
        return _direction(to_hold.p_if_false, to_fail.p_if_true * len(self.comparisons))

    @property
    def deciding(self) -> Comparison:
        """Return the comparison that decides the direction."""
        to_hold, to_fail = self.extremes
        return to_fail if self.direction == FAILS else to_hold

    @property
    def seeds(self) -> str:
        """Return how the verdict depends on the seed of the training: "for all seeds" if every
        training has the verdict of this claim; otherwise "seeds agree" if, for each model, all
        trainings have the same verdict; otherwise "seeds differ". Return "" if there are no other
        trainings.
        """
        found = {(SEED.sub("", name), one.direction) for name, one in self.trainings.items()}
        models = {model for model, _ in found}
        if {direction for _, direction in found} == {self.direction}:
            return "for all seeds"
        agreed = "seeds agree" if len(found) == len(models) else "seeds differ"
        return agreed if found else ""

    @property
    def numbers(self) -> frozenset[Any]:
        """Return the numbers on which the verdict rests: (subject, value, low end, high end) for
        each comparison. Two claims with equal sets state the same fact. The set is empty if the
        claim is a check, or if a number is missing or exact.
        """
        estimated = self.claim.role != "check" and all(c.low < c.high for c in self.comparisons)
        return frozenset((c.subject, c.value, c.low, c.high) for c in self.comparisons if estimated)


def _direction(p_if_false: float, p_if_true: float) -> str:
    """Return HOLDS, FAILS or OPEN, according to the p values of a comparison."""
    least = TAIL_PROBABILITY - ROUNDING
    return HOLDS if p_if_false < least else FAILS if p_if_true < least else OPEN


@cache  # a page with several runs calls this once for each run
def load(file: Path = FILE) -> list[Claim]:
    """Return the claims in a YAML file. Raises UserError for a malformed entry; the message states
    the file and the entry's position, and quotes the entry.
    """
    entries = paper.read_yaml(file)
    claims: dict[str, Claim] = {}
    floors: dict[str, Floor] = {}
    for position, entry in enumerate(entries if isinstance(entries, list) else [entries], 1):
        try:
            parts = entry, *(entry.get(name, {}) for name in ("floor", "instrument", "published"))
            for name, value in chain.from_iterable(part.items() for part in parts):
                if not isinstance(value, TYPES.get(name, str)):
                    raise TypeError(f"{name} cannot be {value!r}")
            if "floor" in entry:
                floors[entry["paper"]] = Floor(**entry["floor"])
                continue
            claim = Claim(**entry, floor=floors.get(entry["paper"]))
            for each in filter(None, (claim, published_claim(claim))):
                list(inequalities(each, ["any"]))  # raises an error if a field is missing
                math.isnan(each.test.get("printed", nan))  # raises TypeError for a text
                if each.instrument:
                    Instrument(**each.instrument)
            is_known = claim.models in SCOPES and claim.role in ROLES
            if claim.id in claims or not is_known or {*claim.follows_from} - claims.keys():
                raise ValueError("its id is not unique, or its models, role or source are unknown")
            claims[claim.id] = claim
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise UserError(
                f"{file}, claim {position} ({entry}): {type(error).__name__} {error}"
            ) from error
    return list(claims.values())


def published_claim(claim: Claim) -> Claim | None:
    """Return a copy of the claim whose test is the one for published answers (``published``).
    Return None if the claim has no such test.
    """
    return replace(claim, folder=PUBLISHED, **claim.published) if claim.published else None


def rows_in(folder: Path) -> Callable[[str], list[_Row]]:
    """Return a function that returns the rows of an artifact (``paper/name``) in a folder, or [] if
    the artifact does not exist. Each file is read once.
    """

    @cache
    def rows(artifact: str) -> list[_Row]:
        file = folder / f"{artifact}.csv"
        return _rows(read_csv(file)) if file.exists() else []

    return rows


def judge_run(claims: list[Claim], folder: Path) -> list[JudgedClaim]:
    """Return the verdicts on all claims, from ``folder/<paper>/<artifact>.csv``. ``folder`` is the
    folder of a profile, such as ``figures/mini``. In the profile ``published``, the artifact is the
    one that ``Claim.published`` names.
    """

    rows = rows_in(folder)
    trained_arms = {
        name: [row for row in rows("mini/arms") if row.model == name]
        for name in sorted(_models(rows("mini/arms")))
    }
    scored = _by_prefix(rows(MORE), "(printed|own)/")
    models = ", ".join(filter(None, _models(rows(MORE))))
    more = {
        name: {f"further repositories ({models})": scored[of]}
        for name, of in SCORINGS.items()
        if of in scored
    }
    others_of = more | {DESIGNS: _by_share(rows(SHARES))}
    found: dict[str, JudgedClaim] = {}
    same: dict[Any, str] = {}  # numbers -> the first claim with these numbers
    for claim in claims:
        if claim.check_in == folder.name:
            claim = replace(claim, role="check")
        tested = published_claim(claim) if folder.name == PUBLISHED else claim
        if tested is None or not rows(tested.artifact_id):
            found[claim.id] = JudgedClaim(claim, is_run=False)
            continue
        judged = _judge_rows(tested, rows(tested.artifact_id), weak_models(tested, rows))
        # if the claim follows from no other, is_implied is True, but the joined text is empty
        is_implied = all(found[id].direction == HOLDS for id in claim.follows_from)
        counted_as = " and ".join(claim.follows_from) if is_implied else ""
        if judged.numbers and (twin := same.setdefault(judged.numbers, claim.id)) != claim.id:
            counted_as = twin
        others = others_of.get(claim.artifact, trained_arms)
        again = folder / "seeds" / f"{claim.artifact}_seeds.csv"
        found[claim.id] = replace(
            judged,
            counted_as=counted_as,
            arms=_verdicts_by_name(tested, others),
            trainings=judge_trainings(tested, read_csv(again)) if again.exists() else {},
        )
    return list(found.values())


def judge_trainings(claim: Claim, frame: pd.DataFrame) -> dict[str, JudgedClaim]:
    """Return {name of a training: verdict on the claim} for each training of the mini models, such
    as ``mini-small seed 1``. A claim about sizes is instead judged on each pair of trainings of two
    sizes, such as ``mini-medium seed 1 - mini-small seed 0``. The column ``model`` of ``frame`` has
    the names of the trainings and pairs.
    """
    rows = _rows(frame)
    in_pairs = "sizes" in claim.test
    names = [name for name in _models(rows) if SEED.search(name) and (" - " in name) == in_pairs]
    some = {
        name: [
            row._replace(model=SEED.sub("", row.model))
            for row in rows
            if row.model in (name, *name.split(" - "))
        ]
        for name in names
    }
    return _verdicts_by_name(claim, some)


def _verdicts_by_name(claim: Claim, rows: Mapping[str, list[_Row]]) -> dict[str, JudgedClaim]:
    """Return {name: verdict of the claim's test on the rows of this name}. A name whose rows lack a
    number for the test is left out.
    """
    every = {name: _judge_rows(claim, some) for name, some in rows.items()}
    return {name: judged for name, judged in every.items() if judged.numbers}


def _by_share(rows: list[_Row]) -> dict[str, list[_Row]]:
    """Return the rows of SHARES, grouped by the share of documented calls: {``documented share
    1/2``: rows}. Conditions are named as in Figure 6. A model that was not trained with the share
    1/2 is left out, because it was trained with only a few shares.
    """
    whole = {row.model for row in rows if row.condition.startswith("share_0.5/")}
    found = _by_prefix([row for row in rows if row.model in whole], r"share_([\d.]+)/")
    return {f"documented share {Fraction(share)}": part for share, part in found.items()}


def _by_prefix(rows: list[_Row], prefix: str) -> dict[str, list[_Row]]:
    """Return {key: rows} for the rows whose condition begins with ``prefix``, a pattern with a
    group. The key is the text that the group matches, such as "own" for the prefix ``own/``. The
    prefix is removed from the rows' conditions. Rows with two different prefixes (such as the
    change between two shares) are left out.
    """
    found: dict[str, list[_Row]] = {}
    for row in rows:
        names = {*re.findall(rf"(?:^| - ){prefix}", row.condition)}
        if len(names) == 1:
            (name,) = names
            plain = row._replace(condition=re.sub(rf"(^| - ){prefix}", r"\1", row.condition))
            found.setdefault(name, []).append(plain)
    return found


def weak_models(claim: Claim, rows: Callable[[str], list[_Row]]) -> set[str]:
    """Return the models that are too weak for this claim (see ``Floor``). ``rows`` returns the rows
    of an artifact (``rows_in``).
    """
    floor = claim.floor
    if floor is None or claim.role == "check" or claim.test["metric"] not in floor.concerns:
        return set()
    best: dict[str, float] = {}
    for row in rows(f"{claim.paper}/{floor.artifact}"):
        if row.metric == floor.metric and row.condition in floor.conditions:
            best[row.model] = max(row.number.low, best.get(row.model, -inf))
    return {model for model, low in best.items() if low < floor.below}


def judge(claim: Claim, frame: pd.DataFrame, weak: Collection[str] = ()) -> JudgedClaim:
    """Return the verdict on a claim from the rows of its artifact, or from the paper's own values,
    which have no intervals.

    Rows of ``weak`` models, and of pairs of weak models, are left out, unless there are no other
    models.
    """
    return _judge_rows(claim, _rows(frame), weak)


def _judge_rows(claim: Claim, rows: list[_Row], weak: Collection[str] = ()) -> JudgedClaim:
    strong = [row for row in rows if not {*weak}.issuperset(row.model.split(" - "))]
    at_floor = len(strong) < len(rows) and not any(row.model for row in strong)
    return JudgedClaim(claim, _comparisons(claim, rows if at_floor else strong), at_floor)


def number(value: float) -> str:
    """Return a number as text: with two decimals, without decimals if it is whole, and with one
    significant digit if it is below 0.005. NaN becomes "not measured".
    """
    if math.isnan(value):
        return "not measured"
    return f"{value:.1g}" if 0 < abs(value) < 0.005 else f"{value + 0:.2f}".removesuffix(".00")


def inequalities(claim: Claim, models: list[str]) -> Iterator[Comparison]:
    """Yield the comparisons of the claim's test, before their numbers are set. A test of ``sizes``
    has one comparison for each pair of neighbouring sizes in a family. Any other test has the same
    comparisons for each of the ``models``. Raises ValueError if the test has no known form.
    """
    families = by_family(models)
    subjects = models
    if claim.models == "largest":
        subjects = [members[-1].model for members in families.values()]
    match claim.test:
        case {"metric": str(), "descending": [_, _, *_] as conditions, **options} if (
            options.keys() <= {"by", "printed"}
        ):
            by = float(options.get("by", 0))
            groups = [[one] if isinstance(one, str) else one for one in conditions]
            for model, (more, less) in product(subjects, pairwise(groups)):
                for pair in product(more, less):
                    first, second = (Cell(model, condition) for condition in pair)
                    yield Comparison(model, first, second, by, inf)
        case {
            "metric": str(),
            "sizes": str(condition),
            "direction": "increasing" | "decreasing" as direction,
            **options,
        } if options.keys() <= {"across_families", "printed"}:
            if options.get("across_families"):
                sized = (each for members in families.values() for each in members if each.size)
                families = {"all sizes": sorted(sized)}
            for family, members in families.items():
                for smaller, larger in pairwise(members):
                    if smaller.size < larger.size:
                        # a comparison claims that its first cell has the greater number
                        cells = [Cell(each.model, condition) for each in (smaller, larger)]
                        first, second = cells if direction == "decreasing" else cells[::-1]
                        yield Comparison(family, first, second, 0, inf)
        case {"metric": str(), "ranges": dict(ranges), **options} if options.keys() <= {"printed"}:
            for model, (condition, (low, high)) in product(subjects, ranges.items()):
                low = -inf if low is None else float(low)
                high = inf if high is None else float(high)
                if low > high:
                    raise ValueError(f"no number is in the range of {condition!r}")
                yield Comparison(model, Cell(model, condition), None, low, high)
        case _:
            raise ValueError(
                "its test needs a metric, and either descending, sizes with a direction, or "
                "ranges; apart from these, only by, across_families and printed are known"
            )


class SizedModel(NamedTuple):
    """A model and its ``size``. The size is the number of weights if the model's name states one
    (``-3B``), 1 + the word's index if the name has a word of MODEL_SIZES, and otherwise 0.
    """

    size: float
    model: str


def by_family(models: Iterable[str]) -> dict[str, list[SizedModel]]:
    """Return {family: models from small to large}. The names of a family's models differ only in
    size (``-3B``, ``-small``). A model whose name has no size is a family of its own.
    """
    families: dict[str, list[SizedModel]] = {}
    for model in models:
        family = model
        size = 0.0
        if found := [match for match in _SIZE.finditer(model.lower()) if match[1] or match[3]]:
            count, unit, word = found[0].groups()
            size = float(count) * UNITS[unit] if count else 1 + MODEL_SIZES.index(word)
            family = _SIZE.sub("", model).strip("-_ ")
        families.setdefault(family, []).append(SizedModel(size, model))
    return {family: sorted(members) for family, members in families.items()}


def _rows(frame: pd.DataFrame) -> list[_Row]:
    """Return a frame's rows as tuples, because each row is read many times, and pandas reads single
    rows slowly.
    """
    frame = frame.reindex(columns=[*ARTIFACT_COLUMNS[2:]])  # without paper and artifact
    # A number without clusters is a count, which is exact. A number with clusters is an estimate;
    # if it has no interval, the true value could be any number.
    is_exact = frame.clusters.isna()
    ends = {
        "ci_low": frame.value.where(is_exact, -inf),
        "ci_high": frame.value.where(is_exact, inf),
    }
    frame = frame.fillna({"model": "", "condition": "", **ends})
    return [
        _Row(model, condition, metric, Rate(*number), printed)
        for model, condition, metric, *number, printed in frame.itertuples(index=False, name=None)
    ]


@cache
def _paper_rows(paper_: str, artifact: str) -> list[_Row]:
    """Return the rows with the paper's own numbers."""
    return _rows(paper.values(paper_, artifact))


def _models(rows: Iterable[_Row]) -> list[str]:
    return [*dict.fromkeys(row.model for row in rows)]


def _comparisons(claim: Claim, table: list[_Row]) -> tuple[Comparison, ...]:
    """Return the comparisons of the claim's test, with the numbers in ``table``, the rows of an
    artifact. Models without any of the claim's conditions, such as a control model, are skipped.
    """
    metric = claim.test["metric"]
    rows = [row for row in table if row.metric == metric]
    models = _models(rows)
    # A model that has no number for the metric, but other numbers under the claim's conditions, is
    # compared, too. The comparison stays open, so the claim cannot hold while the model's number is
    # missing. If all numbers of the metric are about pairs of models, no single model is added.
    if any(" - " not in model for model in models):
        single = [model for model in _models(table) if " - " not in model]
        conditions = {cell.condition for each in inequalities(claim, models) for cell in each.cells}
        has_one = {row.model for row in table if row.condition in conditions}
        models = [m for m in dict.fromkeys([*models, *single]) if m in has_one] or models
    numbers = {Cell(row.model, row.condition): row for row in rows}
    change = f"{metric.removesuffix('_percent')}_change_points", f"{metric}_change"
    changes = _changes(row for row in table if row.metric in change)
    printed = claim.test.get("printed")
    return tuple(_compare(each, numbers, changes, printed) for each in inequalities(claim, models))


def _changes(rows: Iterable[_Row]) -> dict[tuple[Cell, ...], Rate]:
    """Return the paired changes in an artifact's rows: {(new cell, old cell): change}. Each change
    also occurs with the opposite sign, under (old cell, new cell).

    A row names two conditions of one model, or two models under one condition. A row that names
    only one model and one condition is the change from the condition ``base``.
    """
    changes: dict[tuple[Cell, ...], Rate] = {}
    for row in rows:
        models, conditions = row.model.split(" - "), row.condition.split(" - ")
        if len(models) == len(conditions) == 1:
            conditions.append("/".join(["base", *row.condition.split("/")[1:]]))
        new = Cell(models[0], conditions[0])
        old = Cell(models[-1], conditions[-1])
        up = row.number
        changes[new, old] = up
        changes[old, new] = replace(up, value=-up.value, low=-up.high, high=-up.low)
    return changes


def _compare(
    planned: Comparison,
    numbers: Mapping[Cell, _Row],
    changes: Mapping[tuple[Cell, ...], Rate],
    printed: float | None,
) -> Comparison:
    """Return the ``planned`` comparison with its numbers, or unchanged if a number is missing.

    ``numbers`` has the rows of the claim's metric, and ``changes`` is the result of ``_changes``.
    ``printed`` is the paper's number if the claim states one.
    """
    found = [numbers[cell] for cell in planned.cells if cell in numbers]
    if len(found) < len(planned.cells) or any(math.isnan(row.number.value) for row in found):
        return planned
    n = " + ".join(_size_in_words(row.number) for row in found)
    ours, theirs = found[0].number, found[0].paper_value
    for other in found[1:]:
        theirs -= other.paper_value
        if change := changes.get(tuple(planned.cells)):
            ours, n = change, _size_in_words(change, " pairs")
        else:
            ours = difference(ours, other.number)
        # refuse the comparison if it would hold even after a fall to 0
        planned = replace(planned, is_refused=other.number.low <= -planned.least > 0)
    least = planned.least
    most = planned.most
    value = ours.value
    if ours.low == ours.high or least == most:  # an exact number
        is_true = least < value if planned.second else least <= value <= most
        if_false = float(not is_true)
        if_true = float(is_true)
    else:
        # The comparison holds if the value is far enough inside both bounds, so the larger p value
        # counts. It fails if the value is far enough outside one bound, so the smaller one counts.
        down = value - ours.low
        up = ours.high - value
        if_false = max(_p_value(value - least, down), _p_value(most - value, up))
        if_true = min(_p_value(least - value, up), _p_value(value - most, down))
    return replace(
        planned,
        value=value,
        low=ours.low,
        high=ours.high,
        n=n,
        paper_value=theirs if printed is None else printed,
        p_if_false=if_false,
        p_if_true=if_true,
    )


def _p_value(distance: float, side: float) -> float:
    """Return the one-sided p value of a number that is ``distance`` beyond a bound, under the
    hypothesis that the true value is not beyond the bound.

    ``side`` is the distance from the number to the end of its 95% interval on the bound's side.
    """
    if side == 0 or math.isinf(distance):  # an exact number, or an open end
        return float(distance <= 0)
    # ``side`` is REACH standard errors, so distance / side * REACH is a z score
    return math.erfc(REACH * distance / side / math.sqrt(2)) / 2


def _size_in_words(number: Rate, of: str = "") -> str:
    """Return a number's n, such as ``205 (124 clusters)``. ``of`` is inserted after n: " pairs"
    gives ``205 pairs (124 clusters)``.
    """
    within = f" ({number.clusters:.0f} clusters)" if number.clusters < number.n else ""
    return "" if math.isnan(number.n) else f"{number.n:.0f}{of}{within}"
