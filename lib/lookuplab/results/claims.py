"""Checks the papers' claims (``data/paper/claims.yaml``) against the artifacts of one run. There
are two separate questions.

*Direction*: is the effect there, as claimed? Each claim is turned into comparisons. A comparison
asks whether one of our numbers, or the difference of two, is on the claimed side of a bound. The
verdicts are

- *holds*: the whole 95% interval is on the claimed side;
- *fails*: the whole interval is on the opposite side;
- *open*: the interval contains the bound, or one of the artifact's rows is missing;
- *not testable: floor*: the models are so weak at everything that they cannot show the effect
  (``Floor``);
- *not testable: margin*: the claim tolerates a loss, and the number that may be lost may itself be
  as small as this loss (by the lower end of its interval), so that even a loss of everything could
  pass. Such comparisons count only if the claim has no other comparisons;
- *not testable: sizes*: no two models differ only in size;
- *not testable: instrument*: the rule that measures the effect did not agree well enough with the
  known results on real answers (``Claim.instrument``);
- *not run*: the artifact is missing.

Two numbers are compared through the interval of their difference. If the artifact has a row with
the paired difference, that row's interval is used. The metric of such a row is
``valid_change_points``, or ``bleu4_change`` if the compared metric is not a percentage. Its
condition is ``dag/low`` for the change from the base model (as in the subscripts of Table 3), or
``dag_plus_plus/low - dag/low`` for the change between two conditions. For two models under the same
condition, its model is ``mini-large - mini-small``. Without such a row, the two numbers are taken
as independent estimates (``scoring.rates.difference``), which gives a wider interval. A number
without an interval (a count) is exact.

A claim holds if all its comparisons hold. It fails if one comparison fails. Among k comparisons, a
p value below 2.5% occurs by chance up to k times as often as in one comparison, so the smallest p
value is multiplied by k (Holm's first step).

*Size*: does our interval cover the number that the paper prints? The verdicts are *covers*,
*smaller*, *larger*, *no printed value*, and *too imprecise to say*. The last verdict is given if
the interval covers the printed number, but its half-width is at least as large as this number.

No fact is counted twice: a claim with the same numbers as an earlier claim, or a claim that follows
from other claims that hold, is shown but not counted. This module only judges; ``run.report``
renders the pages.
"""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property, lru_cache, partial
from itertools import pairwise, product
from math import inf, nan
from operator import attrgetter
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import pandas as pd
import yaml

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.paths import PUBLISHED
from lookuplab.results import paper
from lookuplab.results.artifact import read_csv
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
ROUNDING = 1e-9  # tolerance, so that an interval that ends exactly at the bound decides nothing
ROLES = {"claim": "claims", "check": "checks of the benchmark", "finding": "findings of ours"}
SCOPES = ("all", "largest")
# claims about the artifact DESIGNS are also judged on the models in the artifact SHARES, which were
# trained with different shares of documented calls
DESIGNS, SHARES = "fig6_augmentation_designs", "documented/documented_share"
# {artifact: scoring}: claims about this artifact are also judged on the rows with this scoring in
# the artifact MORE
MORE = "repositories/more_repositories"
SCORINGS = {"table2_package_scoring": "printed"} | dict.fromkeys(
    ("table2_similarity", "table3_repository_metrics"), "own"
)
SEED = re.compile(r" seed \d+")  # ends the name of one training of a model
UNITS, MODEL_SIZES = {"b": 1e9, "m": 1e6}, ["tiny", "small", "base", "medium", "large", "xl"]
# finds the size in a model's name, and the context length that ends Granite's names (-2k to -8k)
_SIZE = re.compile(
    rf"(?<![\w.])(\d+(?:\.\d+)?)([bm])\b|\b({'|'.join(MODEL_SIZES)})\b|-\d+k\b", re.IGNORECASE
)


@dataclass(frozen=True, eq=False)  # compared by identity, which ``_weak`` needs
class Floor:
    """The rule that says which models are too weak for a paper's claims about validity. A model is
    too weak if, in the rows of ``artifact``, the interval of its ``metric`` begins below the number
    ``below`` under all of the ``conditions``.

    Results of such models say nothing about the metrics in ``concerns``. Claims whose role is
    ``check`` are not affected.
    """

    artifact: str
    metric: str
    conditions: list[str]
    below: float
    concerns: list[str]


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, and its test on the rows of
    ``figures/<profile>/<paper>/<artifact>.csv``.

    ``place`` is the section, table or figure; ``also`` lists other places that make the same
    statement about the same number. ``why`` explains where the numbers of the test come from.
    ``role`` is "claim", "check" (true by construction) or "finding" (ours, not the paper's); in the
    profile ``check_in``, the role is "check". ``models`` says for which models the claim must hold:
    all, or the largest of every family. ``design`` names the rows of data/mini/DESIGN.md that speak
    ``for`` and ``against`` the claim in the mini world. ``follows_from`` lists claims that together
    imply this claim. ``test`` has a ``metric``, optionally the number that the paper ``printed``
    outside its tables and figures, and one of:

    - ``descending``: a list of conditions. The number under each condition must be greater than the
      number under the next condition + ``by`` (default 0; a negative ``by`` tolerates a deficit). A
      list in the place of a condition means each of its members;
    - ``sizes``: a condition under which the numbers of each family's models have a ``direction``
      (increasing or decreasing) from the smallest to the largest; ``across_families: true`` also
      compares models of different families;
    - ``ranges``: {condition: [from, to]}, null for an open end; equal ends mean exactly this
      number.

    ``published`` replaces ``artifact``, ``test`` and ``why`` if the claim is also judged on answers
    of real models that others published: profile ``published``, with artifacts in the folder
    ``published``. Without it, no published answer says anything about the claim. ``instrument``
    names the calibration of the rule that measures: a row (``artifact``, ``condition``,
    ``metric``) of figures/published, and the value that it must reach, ``least``. ``floor`` belongs
    to the paper; in the YAML file it is a separate entry above the paper's claims.
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
        """Return whether the claim's instrument reaches the agreement that it needs. The result is
        also True if the claim has no instrument, or if the calibration has not been run.
        """
        asked = self.instrument
        file = paths.FIGURES / PUBLISHED / PUBLISHED / f"{asked.get('artifact')}.csv"
        if not file.exists():
            return True
        rows = read_csv(file)
        found = rows[(rows.condition == asked["condition"]) & (rows.metric == asked["metric"])]
        return found.empty or bool(found.value.min() >= asked["least"])


class _Row(NamedTuple):
    """A row of an artifact. If the interval is missing, both ends are the number itself (if it is
    exact) or infinite.
    """

    metric: str
    model: str
    condition: str
    value: float
    ci_low: float
    ci_high: float
    n: float
    clusters: float
    paper_value: float


class Cell(NamedTuple):
    """The place of a number in an artifact, for a given metric."""

    model: str
    condition: str


@dataclass(frozen=True)
class Comparison:
    """One comparison of a claim's test: whether the number in the cell ``first``, or its difference
    from the number in ``second``, is between ``least`` and ``most``. ``value`` is NaN before the
    comparison is made, and if a row is missing.

    A difference must not equal a bound; a single number may. ``subject`` is the compared model or
    family of sizes. ``n`` is ``205 (124 clusters) + 267 (151 clusters)`` for two
    independent estimates and ``205 pairs (124 clusters)`` for a paired change. ``p_if_false`` is
    the p value under the hypothesis that the claim is false, and ``p_if_true`` is the p value under
    the hypothesis that it is true. Both are one-sided and follow from the interval's half-width on
    that side.
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
        """Return the compared quantity in words, such as ``high - low > 0`` or ``all >= 50``."""
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
        """Return the verdict on the size: whether the interval covers the paper's value, or lies
        below or above it.
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
    """A claim with its comparisons on our numbers.

    ``at_floor``: all models are too weak for the claim. ``is_run``: the artifact exists.
    ``counted_as``: the id of the claim that has the same numbers, or the ids of claims that hold
    and imply this claim. ``arms``: the verdicts of the same test on other rows, where there are
    any: those of the models of ``mini/arms.csv``, trained with and without wrong documentation; for
    Figure 6, those of the models in ``SHARES``; for ToolGen, those of the repositories in ``MORE``.
    ``trainings``: the verdicts of the same test on each training of the mini models, if the
    artifact was made for several seeds.
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
        """Return the comparisons of this claim's test for which we have the paper's own numbers."""
        if not (paths.PAPER / f"{self.claim.artifact_id}.csv").exists():
            return ()
        comparisons = _comparisons(self.claim, _printed(self.claim.paper, self.claim.artifact))
        return tuple(each for each in comparisons if not math.isnan(each.value))

    @property
    def extremes(self) -> tuple[Comparison, Comparison]:
        """Return two comparisons: the first decides whether the claim holds, the second whether it
        fails. Comparisons with a refused margin are left out, unless all margins are refused.
        """
        among = [each for each in self.comparisons if not each.is_refused] or self.comparisons
        return (
            max(among, key=attrgetter("p_if_false")),
            min(among, key=attrgetter("p_if_true")),
        )

    @property
    def direction(self) -> str:
        """Return the verdict on the direction, from all comparisons together."""
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
        """Return what other trainings say of the verdict: "for all seeds" if every training has
        this verdict, "seeds agree" if all trainings of one model have the same verdict, else "seeds
        differ". The text is "" if there are no other trainings.
        """
        found = {(SEED.sub("", name), one.direction) for name, one in self.trainings.items()}
        models = {model for model, _ in found}
        if {direction for _, direction in found} == {self.direction}:
            return "for all seeds"
        agreed = "seeds agree" if len(found) == len(models) else "seeds differ"
        return agreed if found else ""

    @property
    def numbers(self) -> frozenset[Any]:
        """Return the numbers on which the verdict rests: subject, number and interval of each
        comparison. The set is empty for a check, and if a number is missing or exact.
        """
        estimated = self.claim.role != "check" and all(c.low < c.high for c in self.comparisons)
        return frozenset((c.subject, c.value, c.low, c.high) for c in self.comparisons if estimated)


def _direction(p_if_false: float, p_if_true: float) -> str:
    least = TAIL_PROBABILITY - ROUNDING
    return HOLDS if p_if_false < least else FAILS if p_if_true < least else OPEN


def load(file: Path = FILE) -> list[Claim]:
    """Return the claims in a YAML file. Raises UserError if an entry is malformed; the message
    names the file and the entry's position, and quotes the entry.
    """
    try:
        return [*_loaded(file, file.read_bytes())]
    except OSError as error:
        raise UserError(f"cannot read {file}: {error}") from error


@cache  # a page needs the claims again for each profile
def _loaded(file: Path, content: bytes) -> list[Claim]:
    try:
        # the loader in C takes a tenth of the time of safe_load
        entries = paths.parsed(partial(yaml.load, Loader=yaml.CSafeLoader), content)
    except ValueError as error:
        raise UserError(f"cannot read {file}: {error}") from error
    claims: dict[str, Claim] = {}
    floors: dict[str, Floor] = {}
    for position, entry in enumerate(entries if isinstance(entries, list) else [entries], 1):
        try:
            if "floor" in entry:
                floors[entry["paper"]] = Floor(**entry["floor"])
                continue
            claim = Claim(**entry, floor=floors.get(entry["paper"]))
            for each in filter(None, (claim, on_published(claim))):
                list(inequalities(each, ["any"]))  # raises if a field is missing
            is_known = claim.models in SCOPES and claim.role in ROLES
            if claim.id in claims or not is_known or {*claim.follows_from} - claims.keys():
                raise ValueError("its id is not unique, or its models, role or source are unknown")
            claims[claim.id] = claim
        except (TypeError, ValueError, KeyError) as error:
            raise UserError(
                f"{file}, claim {position} ({entry}): {type(error).__name__} {error}"
            ) from error
    return list(claims.values())


def on_published(claim: Claim) -> Claim | None:
    """Return the claim with its test on published answers, or None if it has no such test."""
    return replace(claim, folder=PUBLISHED, **claim.published) if claim.published else None


def judge_run(claims: list[Claim], folder: Path) -> list[JudgedClaim]:
    """Judge every claim on ``folder/<paper>/<artifact>.csv``. ``folder`` is the folder of a
    profile, such as ``figures/mini``. In the profile ``published``, the artifact is the one named
    in ``Claim.published``.
    """
    rows = cache(lambda file: _rows(read_csv(file)))
    asked_arms, asked_shares, asked_more = (
        rows(file) if (file := folder / f"{name}.csv").exists() else []
        for name in ("mini/arms", SHARES, MORE)
    )
    trained_arms = {
        name: [row for row in asked_arms if row.model == name]
        for name in sorted(_models(asked_arms))
    }
    scored = _by_prefix(asked_more, "(printed|own)/")
    models = ", ".join(filter(None, _models(asked_more)))
    more = {
        name: {f"further repositories ({models})": scored[of]}
        for name, of in SCORINGS.items()
        if of in scored
    }
    others_of = more | {DESIGNS: _by_share(asked_shares)}
    found: dict[str, JudgedClaim] = {}
    same: dict[Any, str] = {}
    for claim in claims:
        if claim.check_in == folder.name:
            claim = replace(claim, role="check")
        asked = on_published(claim) if folder.name == PUBLISHED else claim
        if asked is None or not (file := folder / f"{asked.artifact_id}.csv").exists():
            found[claim.id] = JudgedClaim(claim, is_run=False)
            continue
        judged = _judged(asked, rows(file), weak_models(asked, folder))
        is_implied = all(found[id].direction == HOLDS for id in claim.follows_from)
        counted_as = " and ".join(claim.follows_from) if is_implied else ""
        if judged.numbers and (twin := same.setdefault(judged.numbers, claim.id)) != claim.id:
            counted_as = twin
        others = others_of.get(claim.artifact, trained_arms)
        again = folder / "seeds" / f"{claim.artifact}_seeds.csv"
        found[claim.id] = replace(
            judged,
            counted_as=counted_as,
            arms=_judged_on(asked, others),
            trainings=judge_trainings(asked, read_csv(again)) if again.exists() else {},
        )
    return list(found.values())


def judge_trainings(claim: Claim, frame: pd.DataFrame) -> dict[str, JudgedClaim]:
    """Return {name of a training: verdict} for each training of the mini models, such as
    ``mini-small seed 1``. A claim about sizes is judged on each pair of trainings of two sizes
    instead, such as ``mini-medium seed 1 - mini-small seed 0``. ``frame`` has the claim's rows, in
    which the column ``model`` names the training.
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
    return _judged_on(claim, some)


def _judged_on(claim: Claim, rows: Mapping[str, list[_Row]]) -> dict[str, JudgedClaim]:
    """Return {name: verdict on the rows of this name}. Names whose rows lack a number of the claim
    are left out.
    """
    every = {name: _judged(claim, some) for name, some in rows.items()}
    return {name: judged for name, judged in every.items() if judged.numbers}


def _by_share(rows: list[_Row]) -> dict[str, list[_Row]]:
    """Return the rows of SHARES by share, as {``documented share 1/2``: rows}, with conditions
    named as in Figure 6. A model without the share of one half was trained at a few shares only,
    and is left out.
    """
    whole = {row.model for row in rows if row.condition.startswith("share_0.5/")}
    found = _by_prefix([row for row in rows if row.model in whole], r"share_([\d.]+)/")
    return {f"documented share {Fraction(share)}": part for share, part in found.items()}


def _by_prefix(rows: list[_Row], prefix: str) -> dict[str, list[_Row]]:
    """Return {text that the group in the pattern ``prefix`` matches: rows}, and remove the prefix
    from the rows' conditions. Rows with two different prefixes (such as a change between shares) or
    without a prefix are left out.
    """
    found: dict[str, list[_Row]] = {}
    for row in rows:
        names = {*re.findall(rf"(?:^| - ){prefix}", row.condition)}
        if len(names) == 1:
            (name,) = names
            plain = row._replace(condition=re.sub(rf"(^| - ){prefix}", r"\1", row.condition))
            found.setdefault(name, []).append(plain)
    return found


def weak_models(claim: Claim, folder: Path) -> set[str]:
    """Return the models in ``folder`` that are too weak for this claim (see ``Floor``)."""
    floor = claim.floor
    if floor is None or claim.role == "check" or claim.test["metric"] not in floor.concerns:
        return set()
    file = folder / claim.paper / f"{floor.artifact}.csv"
    return _weak(floor, file, file.stat().st_mtime_ns) if file.exists() else set()


@lru_cache  # many claims of a paper need it again
def _weak(floor: Floor, file: Path, _changed: int) -> set[str]:
    rows = read_csv(file)
    rows = rows[(rows.metric == floor.metric) & rows.condition.isin(floor.conditions)]
    best = rows.groupby("model").ci_low.max()
    return set(best.index[best < floor.below])


def judge(claim: Claim, frame: pd.DataFrame, weak: Collection[str] = ()) -> JudgedClaim:
    """Judge one claim on its artifact's rows, or on the paper's own values, which have no
    intervals.

    Rows of ``weak`` models, and of pairs of weak models, are left out if there are any other rows.
    """
    return _judged(claim, _rows(frame), weak)


def _judged(claim: Claim, rows: list[_Row], weak: Collection[str] = ()) -> JudgedClaim:
    strong = [row for row in rows if not {*weak}.issuperset(row.model.split(" - "))]
    at_floor = len(strong) < len(rows) and not any(row.model for row in strong)
    return JudgedClaim(claim, _comparisons(claim, rows if at_floor else strong), at_floor)


def number(value: float) -> str:
    """Return a number as text: two decimals, none for whole numbers, one significant digit below
    0.005.
    """
    if math.isnan(value):
        return "not measured"
    return f"{value:.1g}" if 0 < abs(value) < 0.005 else f"{value + 0:.2f}".removesuffix(".00")


def inequalities(claim: Claim, models: list[str]) -> Iterator[Comparison]:
    """Yield the comparisons of the claim's test: some for each model or, in a test of ``sizes``,
    one for each two neighbouring sizes of a family. Raises ValueError if the test has no known
    form.
    """
    families = by_family(models)
    subjects = models
    by = float(claim.test.get("by", 0))
    if claim.models == "largest":
        subjects = [members[-1].model for members in families.values()]
    match claim.test:
        case {"descending": [_, _, *_] as conditions}:
            groups = [[one] if isinstance(one, str) else one for one in conditions]
            for model, (more, less) in product(subjects, pairwise(groups)):
                for pair in product(more, less):
                    first, second = (Cell(model, condition) for condition in pair)
                    yield Comparison(model, first, second, by, inf)
        case {"sizes": condition, "direction": "increasing" | "decreasing" as direction}:
            if claim.test.get("across_families"):
                sized = [each for members in families.values() for each in members if each.size]
                families = {"all sizes": sorted(sized)}
            for family, members in families.items():
                for smaller, larger in pairwise(members):
                    if smaller.size < larger.size:
                        cells = [Cell(each.model, condition) for each in (smaller, larger)]
                        first, second = cells if direction == "decreasing" else cells[::-1]
                        yield Comparison(family, first, second, 0, inf)
        case {"ranges": ranges}:
            for model, (condition, (low, high)) in product(subjects, ranges.items()):
                low = -inf if low is None else low
                high = inf if high is None else high
                yield Comparison(model, Cell(model, condition), None, low, high)
        case _:
            raise ValueError("its test needs descending, sizes with a direction, or ranges")


class SizedModel(NamedTuple):
    """A model and its ``size``: the number of weights, or 1 + the index in MODEL_SIZES, or 0 if its
    name has no size.
    """

    size: float
    model: str


def by_family(models: Iterable[str]) -> dict[str, list[SizedModel]]:
    """Return {family: its models from small to large}. Models of a family differ only in size
    (``-3B``, ``-small``). A model without a size is its own family.
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
    """Return a frame's rows as tuples, because they are read many times, and pandas is slow row
    by row.
    """
    frame = frame.reindex(columns=list(_Row._fields))
    # A number without clusters is a count, which is exact. An estimate that has clusters but no
    # interval could have any value.
    is_exact = frame.clusters.isna()
    ends = {
        "ci_low": frame.value.where(is_exact, -inf),
        "ci_high": frame.value.where(is_exact, inf),
    }
    frame = frame.fillna({"model": "", "condition": "", **ends})
    return [*map(_Row._make, zip(*(frame[name].tolist() for name in frame), strict=True))]


@cache
def _printed(paper_: str, artifact: str) -> list[_Row]:
    return _rows(paper.values(paper_, artifact))


def _models(rows: Iterable[_Row]) -> list[str]:
    return [*dict.fromkeys(row.model for row in rows)]


def _comparisons(claim: Claim, table: list[_Row]) -> tuple[Comparison, ...]:
    """Return the comparisons of the claim, evaluated on the rows of its metric.

    Models that have none of the claim's conditions (such as a control) are skipped.
    """
    metric = claim.test["metric"]
    rows = [row for row in table if row.metric == metric]
    models = _models(rows)
    # Include models that lack the metric, so that a number that was not measured does not decide
    # the claim. A metric of pairs of models needs no such addition.
    if any(" - " not in model for model in models):
        single = [model for model in _models(table) if " - " not in model]
        conditions = {cell.condition for each in inequalities(claim, models) for cell in each.cells}
        has_one = {row.model for row in table if row.condition in conditions}
        models = [m for m in dict.fromkeys([*models, *single]) if m in has_one] or models
    numbers = {Cell(row.model, row.condition): _number(row) for row in rows}
    change = f"{metric.removesuffix('_percent')}_change_points", f"{metric}_change"
    changes = _changes(row for row in table if row.metric in change)
    printed = claim.test.get("printed")
    return tuple(_compare(each, numbers, changes, printed) for each in inequalities(claim, models))


def _changes(rows: Iterable[_Row]) -> dict[tuple[Cell, ...], tuple[Rate, str]]:
    """Return the paired changes of an artifact as {(new cell, old cell): change}, and reversed as
    {(old, new): -change}.

    A row names two conditions of one model, or two models under one condition. A row that names
    only one model and one condition is the change from the condition ``base``.
    """
    changes: dict[tuple[Cell, ...], tuple[Rate, str]] = {}
    for row in rows:
        models, conditions = row.model.split(" - "), row.condition.split(" - ")
        if len(models) == len(conditions) == 1:
            conditions.append("/".join(["base", *row.condition.split("/")[1:]]))
        new = Cell(models[0], conditions[0])
        old = Cell(models[-1], conditions[-1])
        change, n, _ = _number(row, " pairs")
        changes[new, old] = change, n
        changes[old, new] = Rate(-change.value, -change.high, -change.low, 0), n
    return changes


def _compare(
    asked: Comparison,
    numbers: Mapping[Cell, tuple[Rate, str, float]],
    changes: Mapping[tuple[Cell, ...], tuple[Rate, str]],
    printed: float | None,
) -> Comparison:
    found = [numbers[cell] for cell in asked.cells if cell in numbers]
    if len(found) < len(asked.cells) or any(math.isnan(rate.value) for rate, *_ in found):
        return asked
    ours, n, theirs = found[0]
    for other, other_n, printed_there in found[1:]:
        theirs -= printed_there
        independent = difference(ours, other), f"{n} + {other_n}"
        ours, n = changes.get(tuple(asked.cells), independent)
        # refuse a margin that allows the loss of everything, because it tests nothing
        asked = replace(asked, is_refused=other.low <= -asked.least > 0)
    least = asked.least
    most = asked.most
    value = ours.value
    if ours.low == ours.high or least == most:  # an exact number
        is_true = least < value if asked.second else least <= value <= most
        if_false = float(not is_true)
        if_true = float(is_true)
    else:
        down = value - ours.low
        up = ours.high - value
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
    """Return the one-sided p value of a number that is ``distance`` beyond a bound, under the
    hypothesis that the true value is not beyond the bound.

    ``side`` is the half-width of the number's 95% interval towards the bound.
    """
    if side == 0 or math.isinf(distance):  # an exact number, or an open end
        return float(distance <= 0)
    return math.erfc(REACH * distance / side / math.sqrt(2)) / 2


def _number(row: _Row, of: str = "") -> tuple[Rate, str, float]:
    """Return our number, its n in words, and the paper's number."""
    within = f" ({row.clusters:.0f} clusters)" if row.clusters < row.n else ""
    n = "" if math.isnan(row.n) else f"{row.n:.0f}{of}{within}"
    return Rate(row.value, row.ci_low, row.ci_high, 0), n, row.paper_value
