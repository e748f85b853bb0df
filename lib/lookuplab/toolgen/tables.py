"""Rows of Tables II and III from the frames of ``evaluation.judged_all``: values, intervals, and ToolGen against base.

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
from functools import partial

import numpy as np
import pandas as pd

from lookuplab.errors import UserError
from lookuplab.scoring.rates import Rate, bare_row, mcnemar, resampled_weights, row, wilson
from lookuplab.toolgen import similarity
from lookuplab.toolgen.dependencies import KINDS
from lookuplab.toolgen.success import CHECKS

Frames = Mapping[tuple[str, str], pd.DataFrame]
# Name -> counts of each function (n, k), and the function of their sums (..., k) with values 0 to 1; None is the ratio
# of two columns, and the second one counts n.
Metrics = dict[str, tuple[np.ndarray, Callable[[np.ndarray], np.ndarray] | None]]
BASE = "base"


def similarity_rows(
    frames: Frames,
    tokenize: Mapping[str, Callable[[str], Sequence]] | None = None,
    variant: str = "paper",
) -> list[dict]:
    """Table II: BLEU-4, CodeBLEU with its components, edit similarity, exact match, and their changes from ``base``.

    ``tokenize``: model -> its tokens of a text, which the paper's BLEU-4 counts; words between blanks for a model that
    is not in it. ``variant`` is CodeBLEU's (see ``similarity``); the texts' is that of ``evaluation.judge``.
    """

    def metrics(model: str, frame: pd.DataFrame) -> Metrics:
        split = (tokenize or {}).get(model, str.split)
        pairs = list(zip(frame.predicted, frame.wanted, strict=True))
        words = [similarity.bleu_counts(*(list(split(text)) for text in pair)) for pair in pairs]
        code = np.array([similarity.code_bleu_counts(*pair) for pair in pairs], dtype=float)
        found: Metrics = {
            "bleu4": (np.array(words, dtype=float), similarity.bleu),
            "codebleu": (code, partial(similarity.code_bleu, variant=variant)),
        }
        for place, name in enumerate(similarity.COMPONENTS):
            found[f"codebleu_{name}"] = (
                code,
                lambda sums, at=place: similarity.components(sums)[..., at],
            )
        found["codebleu_dataflow_mean"] = code[:, -2:], None
        found["editsim_percent"] = _mean(frame.edit_similarity)
        return found | {"exact_match_percent": _mean(frame.exact_match)}

    return _rows(frames, metrics, changes=("bleu4", "codebleu", "editsim_percent"))


def repository_rows(frames: Frames) -> list[dict]:
    """Table III: dependency coverage (pooled, a function, a kind), success rate, identifiers; changes from ``base``.

    And per condition ``failed_<message id>_functions``, ``lost_functions`` (without a verdict) and
    ``without_dependency_functions``; per comparison ``succrate_gained_functions``, ``succrate_lost_functions`` and
    the ``succrate_p`` of McNemar's exact test on the functions with both verdicts.
    """

    def metrics(model: str, frame: pd.DataFrame) -> Metrics:
        def pooled(end: str = "") -> tuple[np.ndarray, None]:
            return frame[[f"covered{end}", f"dependencies{end}"]].fillna(0).to_numpy(float), None

        found = {"depcov_percent": pooled()}
        found["depcov_per_function_percent"] = _mean(
            frame.covered / frame.dependencies.where(frame.dependencies > 0)
        )
        found |= {f"depcov_{kind}_percent": pooled(f"_{kind}") for kind in KINDS}
        found["succrate_percent"] = _mean(frame.passed)
        names = "next_identifier", "identifier_sequence", "prefix"
        return found | {f"{name}_percent": _mean(frame[name]) for name in names}

    rows = _rows(frames, metrics, changes=("depcov_percent", "succrate_percent"))
    for (model, condition), frame in frames.items():
        failed = frame.failures.str.split()
        numbers = {
            f"failed_{name}": failed.map(lambda ids, name=name: name in ids)
            for name in sorted(CHECKS)
        }
        numbers |= {"lost": frame.lost != "", "without_dependency": frame.dependencies == 0}
        for name, flags in numbers.items():
            rows.append(bare_row(model, condition, f"{name}_functions", flags.sum(), len(frame)))
    for model, condition in _compared(frames):
        passed = pd.DataFrame([frames[model, each].passed for each in (BASE, condition)]).T.dropna()
        test = mcnemar(*passed.T.to_numpy(bool))
        numbers = {
            "gained_functions": test.only_second,
            "lost_functions": test.only_first,
            "p": test.p,
        }
        for name, value in numbers.items():
            rows.append(
                bare_row(model, f"{condition} - {BASE}", f"succrate_{name}", value, len(passed))
            )
    return rows


def _mean(values: pd.Series) -> tuple[np.ndarray, None]:
    """Of the functions that have a value."""
    numbers = values.astype(float).to_numpy()
    return np.stack([np.nan_to_num(numbers), np.isfinite(numbers)], axis=1), None


def _compared(frames: Frames) -> Iterator[tuple[str, str]]:
    """(model, condition) of every condition that has a base to be compared with."""
    for model, condition in frames:
        if condition != BASE and (model, BASE) in frames:
            if list(frames[model, BASE].id) != list(frames[model, condition].id):
                raise UserError(f"{model}: {condition} and {BASE} are not over the same functions")
            yield model, condition


def _rows(
    frames: Frames, metrics: Callable[[str, pd.DataFrame], Metrics], changes: Sequence[str]
) -> list[dict]:
    """All metrics of all frames, and the comparisons of each model; ``changes`` are printed as relative ones, too."""
    rows, values, resampled = [], {}, {}
    for (model, condition), frame in frames.items():
        found, repositories = metrics(model, frame), frame.repository.nunique()
        table = np.hstack([counts for counts, _ in found.values()])
        drawn = np.concatenate([weights @ table for weights in resampled_weights(frame.repository)])
        start = 0
        for name, (counts, of) in found.items():
            columns = slice(start, start := start + counts.shape[1])
            total, again = counts.sum(axis=0), (of or _ratio)(drawn[:, columns])
            value, (low, high) = float((of or _ratio)(total)), _interval(again)
            if high - low < 1e-12:
                low, high = wilson(value * repositories, repositories)
            rate = Rate(value, low, high, len(frame) if of else int(total[1]))
            rows.append(row(model, condition, name, _scaled(name, rate)))
            values[model, condition, name], resampled[model, condition, name] = value, again
    for model, condition in _compared(frames):
        for name in found:
            before, after = (values[model, each, name] for each in (BASE, condition))
            first, second = (resampled[model, each, name] for each in (BASE, condition))
            n, short = len(frames[model, BASE]), name.removesuffix("_percent")
            unit = f"{short}_change" + "_points" * (short != name)
            change = Rate(after - before, *_interval(second - first), n)
            rows.append(row(model, f"{condition} - {BASE}", unit, _scaled(name, change)))
            if name in changes and before:
                change = Rate(
                    after / before - 1, *_interval(_ratio(np.stack([second, first], -1)) - 1), n
                )
                rows.append(
                    row(model, condition, f"{short}_relative_change_percent", change.percent())
                )
    return [
        row for row in rows if not np.isnan(row["value"])
    ]  # a kind of dependency that no reference has


def _ratio(sums: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return sums[..., 0] / sums[..., 1]


def _scaled(name: str, rate: Rate) -> Rate:
    return rate.percent() if name.endswith("_percent") else rate


def _interval(drawn: np.ndarray) -> tuple[float, float]:
    """The 95% percentile interval; resamples in which the metric has no value are left out."""
    drawn = drawn[np.isfinite(drawn)]
    low, high = np.quantile(drawn, (0.025, 0.975)) if len(drawn) else (np.nan, np.nan)
    return float(low), float(high)
