"""The papers' claims (``data/paper/claims.yaml``), judged by the numbers of one run's artifacts.

Each claim becomes questions: is one of our numbers, or the difference of two, on the claimed side of a bound?

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

import itertools
import json
import math
import re
import shutil
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import fastjsonschema  # jsonschema takes a second to import
import pandas as pd
import yaml

from lookuplab import paper, paths
from lookuplab.artifact import read_csv
from lookuplab.errors import UserError
from lookuplab.scoring.rates import Rate, difference

FILE = paths.PAPER / "claims.yaml"
HOLDS, FAILS, UNDECIDED = "holds", "fails", "not decided"
PLURALS = {HOLDS: "hold", FAILS: "fail", UNDECIDED: "not decided"}
_NAN = float("nan")
_SIZES = ["tiny", "small", "base", "medium", "large", "xl"]
_MARGIN = " " * 13  # as wide as the longest verdict and two blanks


@dataclass(frozen=True)
class Claim:
    """``test`` has a ``kind`` and its fields (``data/paper/claims.schema.json``); ``models`` is all, any or largest."""

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

    Both are (model, condition); ``subject`` is the model, or the family of sizes, that the question is about.
    """

    subject: str
    first: tuple[str, str]
    second: tuple[str, str] | None
    sense: str
    bound: float

    def __str__(self) -> str:
        """``low >= 50``, ``high - low > 0``, or ``mini-large - mini-small > 0`` where the models differ."""
        (model, left), second = self.first, self.second
        if second is not None:
            left = f"{left} - {second[1]}" if second[0] == model else f"{model} - {second[0]}"
        return f"{left} {self.sense} {self.bound:g}"


@dataclass(frozen=True)
class Comparison:
    """One number of ours, or the difference of two, against its bound.

    ``n`` reads ``205+267`` for two independent estimates and ``205 pairs`` for a paired change.
    """

    model: str
    quantity: str
    value: float = _NAN
    low: float = _NAN
    high: float = _NAN
    n: str = ""
    paper_value: float = _NAN
    verdict: str = UNDECIDED

    @property
    def is_exact(self) -> bool:
        return self.low == self.high or math.isnan(self.low)

    def __str__(self) -> str:
        """``mini-small high - low > 55: 86.31 [78.66, 92.88], n 205+267``"""
        interval = "" if self.is_exact else f" [{number(self.low)}, {number(self.high)}]"
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
    def shown(self) -> Comparison:
        """The first comparison with the claim's own verdict."""
        same = [one for one in self.comparisons if one.verdict == self.verdict]
        return (same or [*self.comparisons, Comparison("", "")])[0]

    @property
    def share(self) -> str:
        """``holds in 2 of 3 comparisons``; empty for a single one."""
        same, n = sum(one.verdict == self.verdict for one in self.comparisons), len(self.comparisons)
        return f"{self.verdict} in {same} of {n} comparisons" if n > 1 else ""

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
    """The claims of a YAML file; UserError with the file and the claim's id if one does not follow the schema."""
    try:
        entries = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{file} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(entries, list) or not entries:
        raise UserError(f"{file}: expected a list of claims")
    claims: dict[str, Claim] = {}
    for position, entry in enumerate(entries, 1):
        name = entry.get("id") if isinstance(entry, dict) else None
        where = f"{file}, claim {name!r}" if name else f"{file}, claim number {position}"
        try:
            _validator()(entry)
        except fastjsonschema.JsonSchemaValueException as error:
            raise UserError(f"{where}: {error.message.removeprefix('data').lstrip('. ')}") from error
        if name in claims:
            raise UserError(f"{where}: this id is taken by an earlier claim")
        claims[name] = Claim(**entry)
    return list(claims.values())


@lru_cache(maxsize=1)
def _validator() -> Callable[[object], object]:
    schema = (paths.PAPER / "claims.schema.json").read_text(encoding="utf-8")
    return fastjsonschema.compile(json.loads(schema), use_default=False)


def judge_run(claims: list[Claim], folder: Path) -> list[Judgement]:
    """Every claim on ``folder/<paper>/<artifact>.csv`` (``figures/mini``, say); a missing file leaves it undecided."""
    judgements, frames = [], {}  # several claims are about one artifact
    for claim in claims:
        file = folder / claim.paper / f"{claim.artifact}.csv"
        if file.exists():
            if file not in frames:
                frames[file] = read_csv(file)
            judgements.append(judge(claim, frames[file]))
        else:
            note = f"no {file}: make it with lookuplab run {claim.artifact}"
            judgements.append(Judgement(claim, UNDECIDED, reported=_reported(claim), note=note))
    return judgements


def judge(claim: Claim, frame: pd.DataFrame) -> Judgement:
    """One claim on its artifact's rows (the tidy columns; the paper's own values, without intervals, will do)."""
    comparisons = _comparisons(claim, frame)
    if not comparisons:
        note = f"no {claim.test['metric']} to compare"
        return Judgement(claim, UNDECIDED, reported=_reported(claim), note=note)
    by_subject: dict[str, list[str]] = {}
    for one in comparisons:
        by_subject.setdefault(one.model, []).append(one.verdict)
    each = {_first_of((FAILS, UNDECIDED, HOLDS), verdicts) for verdicts in by_subject.values()}
    order = (HOLDS, UNDECIDED, FAILS) if claim.models == "any" else (FAILS, UNDECIDED, HOLDS)
    return Judgement(claim, _first_of(order, each), comparisons, _reported(claim))


def table(judgements: list[Judgement]) -> pd.DataFrame:
    """One row per comparison, with the claim's own verdict beside it; a claim without comparisons has one row."""
    rows = []
    for judgement in judgements:
        claim = judgement.claim
        head = {name: getattr(claim, name) for name in ("id", "paper", "place", "statement", "artifact")}
        for one in judgement.comparisons or (Comparison("", ""),):
            body = {("comparison" if name == "verdict" else name): value for name, value in vars(one).items()}
            rows.append(head | {"verdict": judgement.verdict} | body | {"note": judgement.note})
    return pd.DataFrame(rows)


def count(judgements: Iterable[Judgement]) -> str:
    """``3 hold, 1 fails, 2 not decided``"""
    return ", ".join(f"{n} {verdict if n == 1 else PLURALS[verdict]}" for verdict, n in counted(judgements))


def counted(judgements: Iterable[Judgement]) -> list[tuple[str, int]]:
    """(verdict, how many), in the order holds, fails, not decided; verdicts that do not occur are left out."""
    found = Counter(judgement.verdict for judgement in judgements)
    return [(verdict, found[verdict]) for verdict in PLURALS if found[verdict]]


def text(judgements: list[Judgement], details: bool = False, width: int | None = None) -> str:
    """Every claim with its verdict, the number that decides it and the paper's; ``details``: every comparison.

    ``width`` in columns; by default the terminal's, within 80 to 120.
    """
    width = width or min(max(shutil.get_terminal_size((100, 24)).columns, 80), 120)
    parts = []
    for artifact, group in itertools.groupby(judgements, key=lambda judgement: judgement.claim.artifact):
        group = list(group)
        lines = [f"{artifact}: {count(group)}", "-" * width]
        for note in dict.fromkeys(judgement.note for judgement in group if judgement.note):
            lines += textwrap.wrap(note, width, break_long_words=False, break_on_hyphens=False)
        for judgement in group:
            lines += _paragraphs(judgement, details, width)
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, f"{len(judgements)} claims: {count(judgements)}"])


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


def questions(claim: Claim, models: list[str]) -> Iterator[Question]:
    """What the claim's test asks, model by model, or along the sizes where sizes are compared."""
    test = claim.test
    asked = [members[-1] for members in by_family(models).values()] if claim.models == "largest" else models
    match test["kind"]:
        case "monotone" if isinstance(test["over"], dict):
            for subject, ladder in _ladders(test["over"], models):
                yield from _steps(subject, ladder, test["direction"])
        case "monotone":
            for model in asked:
                yield from _steps(model, [(model, condition) for condition in test["over"]], test["direction"])
        case "greater":
            sides = ([side] if isinstance(side, str) else side for side in (test["left"], test["right"]))
            for model, left, right in itertools.product(asked, *sides):
                yield Question(model, (model, left), (model, right), ">", test.get("by", 0))
        case "equal":
            for model, (condition, expected) in itertools.product(asked, test["expected"].items()):
                yield Question(model, (model, condition), None, "==", expected)
        case kind:
            sense = {"at_least": ">=", "at_most": "<="}[kind]
            for model, condition in itertools.product(asked, test["conditions"]):
                yield Question(model, (model, condition), None, sense, test["bound"])


def _ladders(over: dict, models: list[str]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Sizes to climb: each family; or pairs across families, of models that have a size, and different ones."""
    if not over.get("across_families"):
        for family, members in by_family(models).items():
            yield family, [(model, over["size"]) for model in members]
        return
    sized = sorted((size, model) for model in models if (size := _family_and_size(model)[1]) is not None)
    for (size, model), (larger, next_model) in itertools.pairwise(sized):
        if size < larger:
            yield "all sizes", [(model, over["size"]), (next_model, over["size"])]


def _steps(subject: str, ladder: list[tuple[str, str]], direction: str) -> Iterator[Question]:
    for before, after in itertools.pairwise(ladder):
        larger, smaller = (after, before) if direction == "increasing" else (before, after)
        yield Question(subject, larger, smaller, ">", 0)


def _family_and_size(model: str) -> tuple[str, float | None]:
    digits = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)([bm])\b", model.lower())
    word = re.search(rf"\b({'|'.join(_SIZES)})\b", model.lower())
    if not (found := digits or word):
        return model, None
    size = float(digits[1]) * (1e9 if digits[2] == "b" else 1e6) if digits else float(_SIZES.index(word[1]))
    rest = model[: found.start()] + model[found.end() :]
    return re.sub(r"-\d+k\b", "", rest).strip("-_ "), size  # Granite's names end in the context, -2k to -8k


def _comparisons(claim: Claim, frame: pd.DataFrame) -> tuple[Comparison, ...]:
    metric = claim.test["metric"]
    known = _by_key(frame, metric)
    changes = _by_key(frame, f"{metric.removesuffix('_percent')}_change_points") | _by_key(frame, f"{metric}_change")
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
        return Comparison(question.subject, str(question))
    ours, n, reported = _rate(first), _count(first), first.get("paper_value", _NAN)
    if second is not None:
        reported = reported - second.get("paper_value", _NAN)
        ours, n = _paired(question, changes) or (difference(ours, _rate(second)), f"{n}+{_count(second)}")
    verdict, bound = UNDECIDED, question.bound
    if not math.isnan(ours.value):
        holds, fails = {  # a difference of exactly the bound is not greater
            ">": (ours.low > bound, ours.high <= bound),
            ">=": (ours.low >= bound, ours.high < bound),
            "<=": (ours.high <= bound, ours.low > bound),
            "==": (ours.low <= bound <= ours.high, True),
        }[question.sense]
        verdict = HOLDS if holds else FAILS if fails else UNDECIDED
    return Comparison(question.subject, str(question), ours.value, ours.low, ours.high, n, reported, verdict)


def _paired(question: Question, changes: dict) -> tuple[Rate, str] | None:
    """The stated change between two conditions of one model, with its sign turned where it is stated the other way."""
    (model, left), (other, right) = question.first, question.second
    if model != other:
        return None
    for new, old, sign in ((left, right, 1), (right, left, -1)):
        from_base = old == "/".join(["base", *new.split("/")[1:]])  # a row that names ``new`` alone changes from the base
        change = changes.get((model, f"{new} - {old}"), changes.get((model, new)) if from_base else None)
        if change:
            rate, n = _rate(change), f"{_count(change)} pairs"
            return (rate if sign > 0 else replace(rate, value=-rate.value, low=-rate.high, high=-rate.low)), n
    return None


def _rate(row: dict) -> Rate:
    low, high = row.get("ci_low", _NAN), row.get("ci_high", _NAN)
    if pd.isna(low) or pd.isna(high):
        low = high = row["value"]
    return Rate(row["value"], low, high, 0)


def _count(row: dict) -> str:
    return "" if pd.isna(row["n"]) else f"{row['n']:.0f}"


def _reported(claim: Claim) -> tuple[Comparison, ...]:
    """The claim on the paper's own numbers, where it prints them."""
    if not (paths.PAPER / claim.paper / f"{claim.artifact}.csv").exists():
        return ()
    found = _comparisons(claim, paper.values(claim.paper, claim.artifact))
    return tuple(one for one in found if not math.isnan(one.value))


def _first_of(order: Iterable[str], verdicts: Iterable[str]) -> str:
    """The first verdict in ``order`` that occurs; the last one for no verdicts at all."""
    verdicts, order = set(verdicts), list(order)
    return next((verdict for verdict in order if verdict in verdicts), order[-1])


def _paragraphs(judgement: Judgement, details: bool, width: int) -> Iterator[str]:
    def wrapped(words: str, first: str = _MARGIN, hanging: str = "") -> list[str]:
        indents = {"initial_indent": first, "subsequent_indent": _MARGIN + hanging}
        return textwrap.wrap(words, width, break_long_words=False, break_on_hyphens=False, **indents)

    claim = judgement.claim
    yield from wrapped(f"{claim.id} ({claim.place})", first=f"{judgement.verdict.upper():<{len(_MARGIN)}}")
    yield from wrapped(claim.statement)
    if judgement.comparisons and not details:
        yield from wrapped("; ".join(filter(None, [f"ours: {judgement.shown}", judgement.share])))
    yield from wrapped(f"paper: {judgement.theirs}")
    if details:
        yield from wrapped(f"metric {claim.test['metric']}, models: {claim.models}. {claim.why}")
        for one in judgement.comparisons:
            yield from wrapped(f"- {one}: {one.verdict}", hanging="  ")
