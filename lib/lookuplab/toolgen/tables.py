"""Tables II and III from the frames of ``evaluation.judged_all``: their rows (values, intervals,
ToolGen against base), and how they are shown.

Every metric is a function of sums over functions. Intervals come from leaving out one repository
after the other (``rates.jackknife``), on both sides of a comparison at once; with few repositories
(the mini profile has 6) they are wide, as they should be. ``n`` is the number of units that a
number is a mean over: functions, dependencies, tokens; for a change, that of the side with fewer.

Frames are given as {(model, condition): frame}, where all frames of one model have the same
functions; conditions are
``base``, ``toolgen`` and any other, such as ``monitor``. Rows are dictionaries as
``scoring.rates.row`` makes them. The paper's relative changes are found under their condition
(``toolgen``), the differences under ``toolgen - base``: in percentage points for percentages,
otherwise in the metric's own unit (``bleu4_change``). A metric without a
value (coverage if there was nothing to cover) has no row.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from lookuplab.scoring.rates import (
    Rate,
    bare_row,
    jackknife,
    mcnemar,
    of_change,
    of_number,
    of_share,
    row,
)
from lookuplab.toolgen import similarity
from lookuplab.toolgen.rules import PAPER_RULES, Rules
from lookuplab.toolgen.success import CHECKS, CRASHES

Frames = Mapping[tuple[str, str], pd.DataFrame]
# A metric: the counts of each function, (n, k), and a function of their sums, (..., k) -> (...). If
# k is 2, the second count is the number that the metric is a mean over.
Metric = tuple[np.ndarray, Callable]


def similarity_rows(
    frames: Frames,
    tokenize: Mapping[str, Callable] | None = None,
    rules: Rules = PAPER_RULES,
    base: str = "base",
) -> list[dict]:
    """Table II: BLEU-4 with its parts, CodeBLEU with its components, edit similarity, exact match,
    and their changes from ``base``.

    ``tokenize``: model -> a function from a text to the model's tokens, which the paper's BLEU-4
    counts; for other models, the words between blanks are counted. ``rules`` are CodeBLEU's; those
    of the texts are chosen in
    ``evaluation.judge``.
    """

    def metrics(model, frame):
        split = (tokenize or {}).get(model, str.split)
        pairs = list(zip(frame.predicted, frame.wanted, strict=True))
        words = np.array([similarity.bleu_counts(*map(split, pair)) for pair in pairs])
        code = np.array([similarity.code_bleu_counts(*pair, rules) for pair in pairs])
        parts = {
            f"codebleu_{name}": (code, lambda sums, at=at: similarity.components(sums)[..., at])
            for at, name in enumerate(similarity.COMPONENTS)
        }
        return {
            "bleu4": (words, similarity.bleu),
            "bleu4_precision": (words, similarity.precision),
            "bleu4_brevity_penalty": (words, similarity.brevity_penalty),
            "bleu4_length_ratio": (words[:, -2:], _ratio),
            "codebleu": (code, partial(similarity.code_bleu, rules=rules)),
            **parts,
            "editsim_percent": _mean(frame.edit_similarity),
            "exact_match_percent": _mean(frame.exact_match),
        }

    return _rows(frames, metrics, ("bleu4", "codebleu", "editsim_percent"), base)


def repository_rows(frames: Frames, base: str = "base") -> list[dict]:
    """Table III: dependency coverage (pooled, and per function), success rate, identifiers; changes
    from ``base``.

    Also per condition ``failed_<message id>_functions``, ``crashed_functions`` (pylint itself had
    an error, which counts as a failure), ``pylint_lost_functions`` (no verdict),
    ``jedi_lost_functions`` (dependencies unknown) and
    ``without_dependency_functions``; and per comparison ``succrate_gained_functions``,
    ``succrate_lost_functions`` and the ``succrate_p`` of McNemar's exact test on the functions with
    both verdicts.
    """

    def metrics(model, frame):
        covered = frame[["covered", "dependencies"]].to_numpy(float)
        names = "next_identifier", "identifier_sequence", "prefix"
        return {
            "depcov_percent": (np.nan_to_num(covered), _ratio),
            "depcov_per_function_percent": _mean(_ratio(covered)),
            "succrate_percent": _mean(frame.passed),
            **{f"{name}_percent": _mean(frame[name]) for name in names},
        }

    rows = _rows(frames, metrics, ("depcov_percent", "succrate_percent"), base)
    for (model, condition), frame in frames.items():
        counts = {f"failed_{name}": frame.failures.str.contains(name) for name in sorted(CHECKS)}
        counts |= {
            "crashed": frame.failures.str.contains("|".join(CRASHES)),
            "pylint_lost": frame.lost != "",
            "jedi_lost": frame.dependencies.isna(),
            "without_dependency": frame.dependencies == 0,
        }
        rows += [
            bare_row(model, condition, f"{name}_functions", found.sum(), len(frame))
            for name, found in counts.items()
        ]
    for model, condition in _compared(frames, base):
        verdicts = [frames[model, one].passed for one in (base, condition)]
        both = pd.concat(verdicts, axis="columns").dropna()
        lost, gained, p = mcnemar(*both.to_numpy(bool).T)
        for name, value in ("gained_functions", gained), ("lost_functions", lost), ("p", p):
            change = f"{condition} - {base}"
            rows.append(bare_row(model, change, f"succrate_{name}", value, len(both)))
    return rows


def _mean(values) -> Metric:
    """The mean of ``values``, (n,), over the functions that have a value."""
    numbers = np.asarray(values, dtype=float)
    return np.stack([np.nan_to_num(numbers), np.isfinite(numbers)], axis=1), _ratio


def _ratio(sums):
    """First over second of (..., 2); NaN if the second is 0."""
    part, whole = np.moveaxis(sums, -1, 0)
    return part / np.where(whole > 0, whole, np.nan)


def _compared(frames: Frames, base: str) -> list[tuple[str, str]]:
    """(model, condition) of every condition that has a base to be compared with."""
    return [key for key in frames if key[1] != base and (key[0], base) in frames]


def _rows(frames: Frames, metrics: Callable, changes: Sequence[str], base: str) -> list[dict]:
    """All metrics of all frames, and each model's comparisons; those in ``changes`` also as
    relative changes.

    A metric without a value has no row.
    """
    tables = {key: metrics(key[0], frame) for key, frame in frames.items()}
    numbers = [
        (*key, name, _number(name, *metric, frames[key].repository))
        for key, table in tables.items()
        for name, metric in table.items()
    ]
    for model, condition in _compared(frames, base):
        clusters = frames[model, base].repository
        for name, (before, of) in tables[model, base].items():
            counts = np.stack([before, tables[model, condition][name][0]], axis=1)  # (n, 2, k)
            short = name.removesuffix("_percent")
            unit = f"{short}_change" + "_points" * (short != name)
            change = _number(unit, counts, partial(_change, of), clusters)
            numbers.append((model, f"{condition} - {base}", unit, change))
            if name in changes:
                unit = f"{short}_relative_change_percent"
                change = _number(unit, counts, partial(_relative_change, of), clusters)
                numbers.append((model, condition, unit, change))
    return [row(*named, number) for *named, number in numbers if not np.isnan(number.value)]


def _change(of: Callable, sums):
    """From the first to the second of (..., 2, k)."""
    return np.diff(of(sums))[..., 0]


def _relative_change(of: Callable, sums):
    return _ratio(of(sums)[..., ::-1]) - 1


def _number(name: str, counts: np.ndarray, of: Callable, clusters: pd.Series) -> Rate:
    """A metric with its interval. The n of a change is that of the smaller side."""
    kind = of_change if "_change" in name else of_share
    if "_relative_" in name or "_ratio" in name:
        kind = of_number
    whole = counts[..., 1] if counts.shape[-1] == 2 else np.ones(counts.shape[:-1])
    (number,) = jackknife(
        lambda weights: of(np.tensordot(weights, counts, 1)),
        clusters,
        kind,
        whole.reshape(len(counts), -1).min(axis=1, keepdims=True),
    )
    return number.percent() if name.endswith(("_percent", "_points")) else number


def as_printed(table: pd.DataFrame, metrics: Mapping[str, str], digits: int = 1) -> pd.DataFrame:
    """One line per model and condition: our values next to the paper's, with the change relative to
    the base in brackets.

    ``table`` has ``paper_value`` (``paper.attach``); ``metrics`` is {metric: heading}. A missing
    number leaves its cell blank.
    """
    alone, cells = table[~table.condition.str.contains(" - ", regex=False)], {}
    for metric, heading in metrics.items():
        changed = f"{metric.removesuffix('_percent')}_relative_change_percent"
        for head, column in (("ours", "value"), ("paper", "paper_value")):
            wide = alone.set_index(["model", "condition", "metric"])[column].unstack(sort=False)
            numbers = wide.reindex(columns=[metric, changed]).astype(float)
            texts = numbers[metric].map(f"{{:.{digits}f}}".format, na_action="ignore")
            changes = numbers[changed].map(" ({:+.1f}%)".format, na_action="ignore")
            cells[heading, head] = texts.fillna("") + changes.fillna("")
    return pd.DataFrame(cells)
