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
from lookuplab.toolgen.dependencies import KINDS
from lookuplab.toolgen.similarity import (
    BLEU_COLUMNS,
    CODE_COLUMNS,
    COMPONENTS,
    bleu,
    bleu_counts,
    code_bleu,
    code_bleu_components,
    code_bleu_counts,
)
from lookuplab.toolgen.success import CHECKS

Frames = Mapping[tuple[str, str], pd.DataFrame]
# Of a metric: the columns of counts whose sums (..., k) it needs, and the function of these sums with values 0 to 1.
# None is the ratio of two columns; the second one counts n.
Metric = tuple[Sequence[str], Callable[[np.ndarray], np.ndarray] | None]
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
    words = [f"bleu_{number}" for number in range(BLEU_COLUMNS)]
    code = [f"code_{number}" for number in range(CODE_COLUMNS)]
    metrics: dict[str, Metric] = {
        "bleu4": (words, bleu),
        "codebleu": (code, partial(code_bleu, variant=variant)),
    }
    for place, name in enumerate(COMPONENTS):
        metrics[f"codebleu_{name}"] = (
            code,
            lambda sums, place=place: code_bleu_components(sums)[..., place],
        )
    metrics["codebleu_dataflow_mean"] = code[-2:], None
    metrics["editsim_percent"] = ("edit_similarity", "edit_similarity?"), None
    metrics["exact_match_percent"] = ("exact_match", "exact_match?"), None

    def counts(model: str, frame: pd.DataFrame) -> list[pd.DataFrame]:
        split = (tokenize or {}).get(model, str.split)
        pairs = list(zip(frame.predicted, frame.wanted, strict=True))
        grams = [bleu_counts(list(split(found)), list(split(wanted))) for found, wanted in pairs]
        codes = [code_bleu_counts(*pair) for pair in pairs]
        return [
            pd.DataFrame(grams, columns=words, dtype=float),
            pd.DataFrame(codes, columns=code, dtype=float),
            _known(frame, ("edit_similarity", "exact_match")),
        ]

    return _rows(frames, metrics, counts, changes=("bleu4", "codebleu", "editsim_percent"))


def repository_rows(frames: Frames) -> list[dict]:
    """Table III: dependency coverage (pooled, a function, a kind), success rate, identifiers; changes from ``base``.

    And per condition ``failed_<message id>_functions``, ``lost_functions`` (without a verdict) and
    ``without_dependency_functions``; per comparison ``succrate_gained_functions``, ``succrate_lost_functions`` and
    the ``succrate_p`` of McNemar's exact test on the functions with both verdicts.
    """
    pooled = ["covered", "dependencies"]
    pooled += [f"{field}_{kind}" for kind in KINDS for field in ("covered", "dependencies")]
    means = {
        "succrate_percent": "passed",
        "next_identifier_percent": "next_identifier",
        "identifier_sequence_percent": "identifier_sequence",
        "prefix_percent": "prefix",
    }
    metrics: dict[str, Metric] = {
        "depcov_percent": (pooled[:2], None),
        "depcov_per_function_percent": (("coverage", "coverage?"), None),
    }
    metrics |= {
        f"depcov_{kind}_percent": ((f"covered_{kind}", f"dependencies_{kind}"), None)
        for kind in KINDS
    }
    metrics |= {name: ((field, f"{field}?"), None) for name, field in means.items()}

    def counts(model: str, frame: pd.DataFrame) -> list[pd.DataFrame]:
        share = frame.covered / frame.dependencies.where(frame.dependencies > 0)
        values = _known(frame.assign(coverage=share), ("coverage", *means.values()))
        return [frame[pooled].fillna(0).reset_index(drop=True), values]

    rows = _rows(frames, metrics, counts, changes=("depcov_percent", "succrate_percent"))
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
        passed = frames[model, BASE].passed, frames[model, condition].passed
        known = (passed[0].notna() & passed[1].notna()).to_numpy()
        test = mcnemar(*(each[known] for each in passed))
        numbers = {
            "gained_functions": test.only_second,
            "lost_functions": test.only_first,
            "p": test.p,
        }
        for name, value in numbers.items():
            where = model, f"{condition} - {BASE}", f"succrate_{name}"
            rows.append(bare_row(*where, value, int(known.sum())))
    return rows


def _known(frame: pd.DataFrame, fields: Sequence[str]) -> pd.DataFrame:
    """Each field as a number, 0 where it has no value, and beside it (``field?``) whether it has one."""
    columns = {}
    for field in fields:
        values = frame[field].astype(float).reset_index(drop=True)
        columns |= {field: values.fillna(0), f"{field}?": values.notna().astype(float)}
    return pd.DataFrame(columns)


def _compared(frames: Frames) -> Iterator[tuple[str, str]]:
    """(model, condition) of every condition that has a base to be compared with."""
    for model, condition in frames:
        if condition != BASE and (model, BASE) in frames:
            if list(frames[model, BASE].id) != list(frames[model, condition].id):
                raise UserError(
                    f"{model}: {condition} and {BASE} are not over the same functions in the same order"
                )
            yield model, condition


def _rows(
    frames: Frames,
    metrics: Mapping[str, Metric],
    counts: Callable[[str, pd.DataFrame], list[pd.DataFrame]],
    changes: Sequence[str],
) -> list[dict]:
    """All metrics of all frames, and the comparisons of each model; ``changes`` are printed as relative ones, too."""
    rows, values, resampled = [], {}, {}
    for (model, condition), frame in frames.items():
        table = pd.concat(counts(model, frame), axis="columns")
        each, repositories = table.to_numpy(), frame.repository.nunique()
        total = each.sum(axis=0)
        drawn = np.concatenate([weights @ each for weights in resampled_weights(frame.repository)])
        for name, (columns, of) in metrics.items():
            places = [table.columns.get_loc(column) for column in columns]
            value = float((of or _ratio)(total[places]))
            again = (of or _ratio)(drawn[:, places])
            low, high = _interval(again)
            if high - low < 1e-12:
                low, high = wilson(value * repositories, repositories)
            n = len(frame) if of else int(total[places[1]])
            rows.append(row(model, condition, name, _scaled(name, Rate(value, low, high, n))))
            values[model, condition, name], resampled[model, condition, name] = value, again
    for model, condition in _compared(frames):
        for name in metrics:
            before, after = values[model, BASE, name], values[model, condition, name]
            first, second = resampled[model, BASE, name], resampled[model, condition, name]
            n = len(frames[model, BASE])
            unit = name.replace("_percent", "_change_points")
            unit = f"{name}_change" if unit == name else unit
            change = Rate(after - before, *_interval(second - first), n)
            rows.append(row(model, f"{condition} - {BASE}", unit, _scaled(name, change)))
            if name in changes and before:
                with np.errstate(divide="ignore", invalid="ignore"):
                    change = Rate(after / before - 1, *_interval(second / first - 1), n).percent()
                unit = f"{name.removesuffix('_percent')}_relative_change_percent"
                rows.append(row(model, condition, unit, change))
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
    if not len(drawn):
        return float("nan"), float("nan")
    low, high = np.quantile(drawn, (0.025, 0.975))
    return float(low), float(high)
