"""Rows of Tables II and III from the frames of ``evaluation.judged``: values, intervals, and ToolGen against base.

Every metric is a function of sums over functions, so one resampling of whole repositories serves all of them, and both
conditions of a comparison: the same functions on both sides. **What such an interval is worth:** with few repositories
(the mini profile has 6) the percentile bootstrap knows few different resamples and is too narrow; it says how much the
number hangs on single repositories, not what other repositories would give. Where all repositories agree exactly, it
is Wilson's for as many trials as there are repositories.

Frames are given as {(model, condition): frame}, all of one model over the same functions; conditions are ``base``,
``toolgen`` and any other, such as ``monitor``. Rows are dictionaries of the tidy schema: model, condition, metric,
value, ci_low, ci_high, n. The paper's relative changes stand under their condition (``toolgen``), the differences under
``toolgen - base``: in points of 100 for percentages, else in the metric's own unit (``bleu4_change``).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lookuplab.errors import UserError
from lookuplab.scoring.paired import mcnemar
from lookuplab.scoring.rates import Rate, resampled_weights, wilson
from lookuplab.scoring.rows import bare_row, row
from lookuplab.toolgen.metrics import code_bleu
from lookuplab.toolgen.metrics.dependencies import KINDS
from lookuplab.toolgen.metrics.similarity import bleu_counts, bleu_from_counts

Frames = Mapping[tuple[str, str], pd.DataFrame]
BASE = "base"


@dataclass(frozen=True)
class Metric:
    """``name`` as in the artifacts; ``of`` maps sums (..., k) to values 0 to 1; ``count``, the sums (k,) to n.

    ``columns`` are the k columns of ``counts`` whose sums it needs.
    """

    name: str
    columns: tuple[str, ...]
    of: Callable[[np.ndarray], np.ndarray]
    count: Callable[[np.ndarray], float] | None = None  # None: the number of functions

    @property
    def scale(self) -> float:
        return 100.0 if self.name.endswith("_percent") else 1.0


def _ratio(sums: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return sums[..., 0] / sums[..., 1]


def _share(name: str, field: str) -> Metric:
    """The mean of a field over the functions that have a value of it."""
    return Metric(name, (field, f"{field}?"), _ratio, lambda sums: sums[1])


def _coverage(kind: str = "") -> Metric:
    """Pooled dependency coverage, of all kinds or of one."""
    end = f"_{kind}" if kind else ""
    return Metric(f"depcov{end}_percent", (f"covered{end}", f"dependencies{end}"), _ratio, lambda sums: sums[1])


_BLEU = tuple(f"bleu_{number}" for number in range(10))
_CODE = tuple(f"code_{number}" for number in range(code_bleu.COLUMNS))
SIMILARITY = (
    Metric("bleu4", _BLEU, bleu_from_counts),
    Metric("codebleu", _CODE, code_bleu.score),
    *(Metric(f"codebleu_{name}", _CODE, lambda sums, place=place: code_bleu.components(sums)[..., place])
      for place, name in enumerate(code_bleu.COMPONENTS)),
    Metric("codebleu_dataflow_mean", _CODE[-2:], _ratio, lambda sums: sums[1]),
    _share("editsim_percent", "edit_similarity"), _share("exact_match_percent", "exact_match"))
REPOSITORY = (
    _coverage(), _share("depcov_per_function_percent", "coverage"), *map(_coverage, KINDS),
    _share("succrate_percent", "passed"), _share("next_identifier_percent", "next_identifier"),
    _share("identifier_sequence_percent", "identifier_sequence"), _share("prefix_percent", "prefix"))


def similarity_rows(frames: Frames, tokenize: Mapping[str, Callable[[str], Sequence]] | None = None,
                    variant: str = "paper") -> list[dict]:
    """Table II: BLEU-4, CodeBLEU with its components, edit similarity, exact match, and their changes from ``base``.

    ``tokenize``: model -> its tokens of a text, which the paper's BLEU-4 counts; words between blanks for a model that
    is not in it. ``variant`` is CodeBLEU's (see ``metrics.code_bleu``); the texts' is that of ``evaluation.judged``.
    """
    def counts(model: str, frame: pd.DataFrame) -> pd.DataFrame:
        split = (tokenize or {}).get(model, str.split)
        bleu = [bleu_counts(list(split(found)), list(split(wanted)))
                for found, wanted in zip(frame.predicted, frame.wanted, strict=True)]
        return pd.concat([pd.DataFrame(bleu, columns=list(_BLEU)), pd.DataFrame(
            code_bleu.pair_counts(frame.predicted, frame.wanted), columns=list(_CODE)), _values(
            frame, ("edit_similarity", "exact_match"))], axis="columns")

    metrics = [replace(each, of=lambda sums: code_bleu.score(sums, variant)) if each.name == "codebleu" else each
               for each in SIMILARITY]
    return _rows(frames, metrics, counts, changes=("bleu4", "codebleu", "editsim_percent"))


def repository_rows(frames: Frames) -> list[dict]:
    """Table III: dependency coverage (pooled, a function, a kind), success rate, identifiers; changes from ``base``.

    And per condition ``failed_<message id>_functions``, ``lost_functions`` (without a verdict) and
    ``without_dependency_functions``; per comparison ``succrate_gained_functions``, ``succrate_lost_functions`` and
    the ``succrate_p`` of McNemar's exact test on the functions with both verdicts.
    """
    def counts(model: str, frame: pd.DataFrame) -> pd.DataFrame:
        share = frame.covered / frame.dependencies.where(frame.dependencies > 0)
        pooled = frame[["covered", "dependencies", *(f"{field}_{kind}" for kind in KINDS
                                                     for field in ("covered", "dependencies"))]].fillna(0)
        fields = ("coverage", "passed", "next_identifier", "identifier_sequence", "prefix")
        return pd.concat([pooled.reset_index(drop=True), _values(frame.assign(coverage=share), fields)], axis="columns")

    rows = _rows(frames, REPOSITORY, counts, changes=("depcov_percent", "succrate_percent"))
    for (model, condition), frame in frames.items():
        for name in ("E0001", "E0602", "E1101"):
            number = frame.failures.str.split().map(lambda ids, name=name: name in ids).sum()
            rows.append(bare_row(model, condition, f"failed_{name}_functions", number, len(frame)))
        for metric, flags in (("lost", frame.lost != ""), ("without_dependency", frame.dependencies == 0)):
            rows.append(bare_row(model, condition, f"{metric}_functions", flags.sum(), len(frame)))
    for model, condition, base, other in _pairs(frames):
        known = (base.passed.notna() & other.passed.notna()).to_numpy()
        test = mcnemar(base.passed[known], other.passed[known])
        numbers = {"gained_functions": test.only_second, "lost_functions": test.only_first, "p": test.p}
        rows += [bare_row(model, f"{condition} - {BASE}", f"succrate_{metric}", value, int(known.sum()))
                 for metric, value in numbers.items()]
    return rows


class _Sums:
    """A frame's counts, summed over its functions and over every resample of its repositories."""

    def __init__(self, table: pd.DataFrame, repositories: pd.Series):
        self.place = {name: number for number, name in enumerate(table.columns)}
        self.total, self.functions, self.clusters = table.to_numpy().sum(axis=0), len(table), repositories.nunique()
        self.drawn = np.concatenate([weights @ table.to_numpy() for weights in resampled_weights(repositories)])

    def value(self, metric: Metric) -> tuple[float, np.ndarray]:
        """The metric, and its values in the resamples, (repetitions,)."""
        columns = [self.place[name] for name in metric.columns]
        return float(metric.of(self.total[columns])), metric.of(self.drawn[:, columns])

    def rate(self, metric: Metric) -> Rate:
        value, drawn = self.value(metric)
        low, high = _interval(drawn)
        if high - low < 1e-12:
            low, high = wilson(value * self.clusters, self.clusters)
        n = metric.count(self.total[[self.place[name] for name in metric.columns]]) if metric.count else self.functions
        return Rate(*(metric.scale * number for number in (value, low, high)), int(n))


def _rows(frames: Frames, metrics: Sequence[Metric], counts: Callable[[str, pd.DataFrame], pd.DataFrame],
          changes: Sequence[str]) -> list[dict]:
    """All metrics of all frames, and the comparisons of each model; ``changes`` are printed as relative ones, too."""
    rows, sums = [], {}
    for (model, condition), frame in frames.items():
        if frame.empty:
            raise UserError(f"{model}, {condition}: no functions; check the parameters that choose them")
        sums[model, condition] = _Sums(counts(model, frame), frame.repository)
        rows += [row(model, condition, metric.name, sums[model, condition].rate(metric)) for metric in metrics]
    for model, condition, *_ in _pairs(frames):
        for metric in metrics:
            difference, relative = _compared(metric, sums[model, BASE], sums[model, condition])
            unit = metric.name.replace("_percent", "_change_points") if metric.scale > 1 else f"{metric.name}_change"
            rows.append(row(model, f"{condition} - {BASE}", unit, difference))
            if metric.name in changes:
                name = f"{metric.name.removesuffix('_percent')}_relative_change_percent"
                rows.append(row(model, condition, name, relative))
    return [row for row in rows if not np.isnan(row["value"])]  # a kind of dependency that no reference has


def _pairs(frames: Frames) -> Iterator[tuple[str, str, pd.DataFrame, pd.DataFrame]]:
    """(model, condition, its base frame, its frame) for every other condition of a model that has a base."""
    for (model, condition), frame in frames.items():
        base = frames.get((model, BASE))
        if condition != BASE and base is not None:
            if list(base.id) != list(frame.id):
                raise UserError(f"{model}: {condition} and {BASE} are not over the same functions in the same order")
            yield model, condition, base, frame


def _values(frame: pd.DataFrame, fields: Sequence[str]) -> pd.DataFrame:
    """Each field as a number, 0 where it has no value, and beside it (``field?``) whether it has one."""
    numbers = {field: frame[field].astype(float).reset_index(drop=True) for field in fields}
    return pd.DataFrame({name: column for field, values in numbers.items()
                         for name, column in ((field, values.fillna(0)), (f"{field}?", values.notna().astype(float)))})


def _compared(metric: Metric, base: _Sums, other: _Sums) -> tuple[Rate, Rate]:
    """``other - base`` in the metric's unit or in points, and the change relative to ``base`` in percent."""
    (before, first), (after, second) = base.value(metric), other.value(metric)
    difference = Rate(after - before, *_interval(second - first), base.functions)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio, drawn = np.divide(after, before), second / first
    relative = Rate(float(ratio) - 1 if before else float("nan"), *_interval(drawn - 1), base.functions).percent()
    return (difference.percent() if metric.scale > 1 else difference), relative


def _interval(drawn: np.ndarray) -> tuple[float, float]:
    """The 95% percentile interval; resamples in which the metric has no value are left out."""
    drawn = drawn[np.isfinite(drawn)]
    return tuple(map(float, np.quantile(drawn, (0.025, 0.975)))) if len(drawn) else (float("nan"), float("nan"))
