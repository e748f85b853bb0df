"""Makes the rows of Tables II and III from the frames of ``evaluation.judged_all``. METRICS lists
the numbers: how each is computed, which kind of interval it has, and where a notebook shows it.

Intervals come from leaving out one repository after the other (``rates.jackknife``). In a
comparison, the repository is left out on both sides. With few repositories (the mini profile has 6)
intervals are wide, as they should be. ``n`` is the number of units over which a number is a mean:
functions, dependencies or tokens. The ``n`` of a change counts the units of the side with fewer.

Frames are given as {(model, condition): frame}, where all frames of one model have the same
functions. Conditions are ``base``, ``toolgen`` and any other, such as ``monitor``. Rows are
dictionaries like those of ``scoring.rates.row``.

The paper prints relative changes; a row with such a change has the condition ``toolgen``. A row
with a difference has the condition ``toolgen - base``. A difference of percentages is in percentage
points, and any other difference is in the metric's own unit (``bleu4_change``). A metric without a
value (coverage if there was nothing to cover) has no row.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd

from lookuplab.scoring.rates import (
    Array,
    IntervalKind,
    Rows,
    bare_row,
    jackknife,
    mcnemar,
    of_change,
    of_number,
    of_score_change,
    of_share,
    row,
)
from lookuplab.toolgen import similarity
from lookuplab.toolgen.evaluation import failure_rows
from lookuplab.toolgen.rules import PAPER_RULES, Rules

Frames = Mapping[tuple[str, str], pd.DataFrame]
Split = Callable[[str], Sequence[str]]


def _means(values: Any) -> Array:
    """Return (n, 2) counts for the mean of ``values``, (n,): each function's value, and 1 if it has
    one. A function without a value counts 0 and 0.
    """
    numbers = np.asarray(values, dtype=float)
    return np.stack([np.nan_to_num(numbers), np.isfinite(numbers)], axis=1)


@dataclass
class Corpus:
    """Holds the counts from which metrics are computed, for one model's judged functions (a frame
    of ``evaluation.judged_all``). ``split`` cuts a text into tokens for BLEU-4, and ``rules`` say
    how CodeBLEU is computed.

    Each property is an array of counts, (n functions, k). A metric is computed from the sums of
    these counts over the functions. A frame without texts, like data/repositories/rows.csv.gz, has
    the counts for BLEU-4 and CodeBLEU in columns instead (``words_0``, ``code_0`` and so on).
    """

    frame: pd.DataFrame
    split: Split = str.split
    rules: Rules = PAPER_RULES

    @cached_property
    def words(self) -> Array:
        """Return the counts from which BLEU-4 is computed (``similarity.bleu_counts``)."""
        if "words_0" in self.frame:
            return self.frame.filter(regex=r"^words_\d+$").to_numpy(float)
        predicted, wanted = (self.frame[name].map(self.split) for name in ("predicted", "wanted"))
        return np.array(list(map(similarity.bleu_counts, predicted, wanted)))

    @cached_property
    def code(self) -> Array:
        """Return the counts from which CodeBLEU is computed (``similarity.code_bleu_counts``)."""
        if "code_0" in self.frame:
            return self.frame.filter(regex=r"^code_\d+$").to_numpy(float)
        counts = partial(similarity.code_bleu_counts, rules=self.rules)
        return np.array(list(map(counts, self.frame.predicted, self.frame.wanted)))

    @property
    def coverage(self) -> Array:
        """Return the counts for dependency coverage, pooled over all functions' dependencies."""
        return np.nan_to_num(self.frame[["covered", "dependencies"]].to_numpy(float))

    @property
    def coverages(self) -> Array:
        """Return the counts for the mean of the functions' own coverages."""
        return _means(ratio(self.frame[["covered", "dependencies"]].to_numpy(float)))

    @property
    def using(self) -> Array:
        """Return the counts for the success rate among bodies that use at least one of the
        original's dependencies.
        """
        return _means(self.frame.passed.where(self.frame.covered.astype(float) > 0))

    @property
    def errors(self) -> Array:
        """Return the counts for undefined names and members per 100 identifiers. Functions with a
        syntax error are left out, because a syntax error hides these errors.
        """
        errors = self.frame.errors.to_numpy(float)
        names = self.frame.identifiers.where(np.isfinite(errors), 0)
        return np.stack([np.nan_to_num(100 * errors), names], axis=1)


def ratio(sums: Array) -> Array:
    """Return the second-to-last entry of ``sums``, (..., k), divided by the last entry, or NaN
    where the last entry is 0.
    """
    part, whole = sums[..., -2], sums[..., -1]
    return part / np.where(whole > 0, whole, np.nan)


@dataclass(frozen=True)
class Metric:
    """One number of a table. To add a number whose column exists, add an entry to METRICS.

    ``name`` ends in ``_percent`` if the number is in percent. ``group`` collects the metrics that a
    notebook shows together (``names``). The groups in SIMILARITY belong to Table II, the others to
    Table III.

    A metric is either the mean of a column, or is computed from counts:

    - ``column`` names a column of the judged frame (``evaluation.ToolGen.judge_all``). The column
      has a number from 0 to 1, or None, for each function. By default it is named like the metric.
    - ``counts`` names the property of ``Corpus`` with the counts of each function, (n, k).
      ``value`` maps the sums of the counts over all functions, (..., k), to the metric, (...). If
      ``value`` is ``ratio``, the last count is the number of units over which the metric is a mean.

    ``kind`` is the kind of interval for the metric, ``change`` the kind of interval for the
    metric's change from the base. ``relative`` means that the relative change is reported, too.
    """

    name: str
    group: str
    column: str = ""
    counts: str = ""
    value: Callable[[Array], Array] = ratio
    kind: IntervalKind = of_share
    change: IntervalKind = of_change
    relative: bool = False

    @property
    def short(self) -> str:
        return self.name.removesuffix("_percent")

    def counted(self, corpus: Corpus) -> Array:
        """Return the counts of each function, (n, k)."""
        if self.counts:
            return getattr(corpus, self.counts)
        return _means(corpus.frame[self.column or self.short])


def _component(at: int) -> Callable[[Array], Array]:
    return lambda sums: similarity.components(sums)[..., at]


Score = partial(Metric, change=of_score_change)  # a score rather than a share (see ``rates``)
METRICS = {
    metric.name: metric
    for metric in (
        Score("bleu4", "scores", counts="words", value=similarity.bleu, relative=True),
        Score("bleu4_precision", "bleu4", counts="words", value=similarity.precision),
        Score("bleu4_brevity_penalty", "bleu4", counts="words", value=similarity.brevity_penalty),
        Metric("bleu4_length_ratio", "bleu4", counts="words", kind=of_number, change=of_number),
        Score("codebleu", "scores", counts="code", value=similarity.code_bleu, relative=True),
        *(
            Score(f"codebleu_{name}", "codebleu", counts="code", value=_component(at))
            for at, name in enumerate(similarity.COMPONENTS)
        ),
        Score("editsim_percent", "texts", "edit_similarity", relative=True),
        Metric("exact_match_percent", "texts"),
        Metric("depcov_percent", "repository", counts="coverage", relative=True),
        Metric("depcov_per_function_percent", "repository", counts="coverages"),
        Metric("succrate_percent", "repository", column="passed", relative=True),
        Metric("succrate_using_percent", "length", counts="using"),
        Metric(
            "errors_per_100_identifiers",
            "length",
            counts="errors",
            kind=of_number,
            change=of_number,
        ),
        Metric("degenerate_percent", "length", column="empty"),
        Metric("next_identifier_percent", "identifiers"),
        Score("identifier_sequence_percent", "identifiers"),
        Score("prefix_percent", "identifiers"),
    )
}
SIMILARITY = ("scores", "bleu4", "codebleu", "texts")  # the groups of Table II


def names(*groups: str, changes: bool = False) -> list[str]:
    """Return the names of these groups' metrics, or of their changes from the base, in the order of
    METRICS.
    """
    chosen = [metric for metric in METRICS.values() if metric.group in groups]
    return [_change_name(metric) if changes else metric.name for metric in chosen]


def similarity_rows(
    frames: Frames,
    tokenize: Mapping[str, Split] | None = None,
    rules: Rules = PAPER_RULES,
    base: str = "base",
) -> Rows:
    """Return Table II: BLEU-4 with its parts, CodeBLEU with its components, edit similarity, exact
    match, and their changes from ``base``.

    ``tokenize`` maps a model to a function that cuts a text into the model's tokens. BLEU-4 counts
    these tokens, as in the paper. For a model that is not in ``tokenize``, BLEU-4 counts words
    between blanks. ``rules`` say how CodeBLEU is computed.
    """
    metrics = [metric for metric in METRICS.values() if metric.group in SIMILARITY]
    return metric_rows(frames, metrics, base, tokenize, rules)


def repository_rows(frames: Frames, base: str = "base") -> Rows:
    """Return Table III: dependency coverage (pooled, and per function), success rate, identifiers,
    and their changes from ``base``.

    The group ``length`` shows how far length explains the success rate: success among bodies that
    use a dependency, errors per 100 identifiers, and bodies that do nothing.

    Each condition also has the counts of ``evaluation.failure_rows``. Each comparison has
    ``succrate_gained_functions``, ``succrate_lost_functions`` and the ``succrate_p`` of McNemar's
    exact test, on the functions that have both verdicts.
    """
    metrics = [metric for metric in METRICS.values() if metric.group not in SIMILARITY]
    rows = metric_rows(frames, metrics, base)
    for (model, condition), frame in frames.items():
        rows += failure_rows(model, condition, frame)
    rows += matched_rows(frames, base)
    for model, condition in _compared(frames, base):
        verdicts = [frames[model, name].passed for name in (base, condition)]
        both = pd.concat(verdicts, axis="columns").dropna()
        lost, gained, p = mcnemar(*both.to_numpy(bool).T)
        change = f"{condition} - {base}"
        for name, value in ("gained_functions", gained), ("lost_functions", lost), ("p", p):
            rows.append(bare_row(model, change, f"succrate_{name}", value, len(both)))
    return rows


def degenerate_rows(frames: Frames, base: str = "base") -> Rows:
    """Return the percentage of bodies that do nothing, and its changes from ``base``. Pylint never
    objects to such a body.
    """
    return metric_rows(frames, [METRICS["degenerate_percent"]], base)


def matched_rows(frames: Frames, base: str = "base") -> Rows:
    """Return the change of the success rate at equal length (data/mini/DESIGN.md, 2026-11-29).

    ``succrate_matched_change_points`` is the change over the matched functions: those whose two
    bodies both have identifiers, and whose numbers of identifiers differ by at most a fifth of the
    larger number. ``succrate_length_points`` is the part that length explains: the change over all
    functions minus the change over the matched functions.
    """
    rows = []
    for model, condition in _compared(frames, base):
        both = [frames[model, name] for name in (base, condition)]
        sizes = np.stack([frame.identifiers for frame in both], axis=1)
        passed = np.stack([_means(frame.passed) for frame in both], axis=1)  # (n, side, count)
        is_near = (sizes.min(1) > 0) & (np.ptp(sizes, axis=1) <= sizes.max(1) / 5)
        is_near &= passed[..., 1].all(1)
        parts = np.stack([passed, passed * is_near[:, None, None]], axis=1)  # all, matched
        clusters = both[0].cluster
        for name, value, counts, chosen in (
            ("matched_change", partial(_difference, ratio), passed[is_near], clusters[is_near]),
            ("length", _explained, parts, clusters),
        ):
            at = model, f"{condition} - {base}", f"succrate_{name}_points"
            if is_near.any():
                rows += _row(at, Metric(at[2], "length"), value, counts, chosen, of_change)
    return rows


def _explained(sums: Array) -> Array:
    """Return the change over all functions minus the change over the matched functions. ``sums``
    has the shape (..., all/matched, base/condition, numerator/denominator).
    """
    return -np.diff(_difference(ratio, sums))[..., 0]


def _compared(frames: Frames, base: str) -> list[tuple[str, str]]:
    """Return (model, condition) of every frame that can be compared with its model's base."""
    return [key for key in frames if key[1] != base and (key[0], base) in frames]


def metric_rows(
    frames: Frames,
    metrics: Sequence[Metric],
    base: str = "base",
    tokenize: Mapping[str, Split] | None = None,
    rules: Rules = PAPER_RULES,
) -> Rows:
    """Return all metrics of all frames, and their changes from each model's base."""
    corpora = {
        key: Corpus(frame, (tokenize or {}).get(key[0], str.split), rules)
        for key, frame in frames.items()
    }
    rows = []
    for key, corpus in corpora.items():
        clusters = corpus.frame.cluster
        for metric in metrics:
            counts = metric.counted(corpus)
            rows += _row((*key, metric.name), metric, metric.value, counts, clusters, metric.kind)
    for model, condition in _compared(frames, base):
        both = [corpora[model, name] for name in (base, condition)]
        clusters = both[0].frame.cluster
        for metric in metrics:
            pairs = np.stack(
                [metric.counted(corpus) for corpus in both], axis=1
            )  # (n, side, count)
            at = model, f"{condition} - {base}", _change_name(metric)
            rows += _row(
                at, metric, partial(_difference, metric.value), pairs, clusters, metric.change
            )
            if metric.relative:
                at = model, condition, f"{metric.short}_relative_change_percent"
                relative = partial(_relative_difference, metric.value)
                rows += _row(at, metric, relative, pairs, clusters, of_number)
    return rows


def _change_name(metric: Metric) -> str:
    points = "_points" if metric.name.endswith("_percent") else ""
    return f"{metric.short}_change{points}"


def _difference(value: Callable[[Array], Array], sums: Array) -> Array:
    """Return the change of a value from the first side to the second. ``sums`` has the shape (...,
    side, count).
    """
    return np.diff(value(sums))[..., 0]


def _relative_difference(value: Callable[[Array], Array], sums: Array) -> Array:
    return ratio(value(sums)[..., ::-1]) - 1


def _row(
    at: tuple[str, str, str],
    metric: Metric,
    value: Callable[[Array], Array],
    counts: Array,
    clusters: pd.Series,
    kind: IntervalKind,
) -> Rows:
    """Return a list with one row: a metric, or its change from one side (condition) to another,
    with an interval. ``at`` is (model, condition, the row's name). The list is empty if the number
    is unknown.

    ``n`` is the number of units that the metric counts, such as functions. For a change, it is the
    number on the side with fewer units.
    """
    whole = counts[..., -1] if metric.value is ratio else np.ones(counts.shape[:-1])
    (number,) = jackknife(
        lambda weights: value(np.tensordot(weights, counts, 1)),
        clusters,
        kind,
        whole.reshape(len(counts), -1).min(axis=1, keepdims=True),
    )
    if np.isnan(number.value):
        return []
    is_percent = at[2].endswith(("_percent", "_points"))
    return [row(*at, number.percent() if is_percent else number)]
