"""Measures the effect of documents on Gorilla's published answers to APIBench (Patil et al., arXiv
2305.15334), whose verdicts are committed. Answers are paired by question.

All intervals are clustered by the call that a question asks for. Gorilla has two models. Only FT,
which was trained without documents, can be compared with and without a document. RT was trained
with the right document in every prompt, and its answers without a document are not usable.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd

from lookuplab import paths
from lookuplab.scoring.rates import (
    Array,
    Rows,
    bare_row,
    jackknife,
    mcnemar,
    of_number,
    paired_difference,
    rate,
    row,
)

VERDICTS = paths.DATA / "published/apibench/verdicts.csv.gz"
OFFICIAL = VERDICTS.with_name("official_counts.csv")
NAMES = {"FT": "gorilla-7b-ft", "RT": "gorilla-7b-rt"}
KINDS = ("right", "wrong_same_domain", "wrong_other_domain", "wrong")
# Columns of the verdicts. ``reference``: the answer has the call that the question asks for.
# ``domain``: it has a call of the question's domain. ``official_correct``: it is correct by the
# authors' rule.
MEASURES = ("reference", "domain", "official_correct")


def load() -> pd.DataFrame:
    """Return the committed verdicts, a row for each published answer."""
    return typed(pd.read_csv(VERDICTS))


def typed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the verdicts with nullable boolean columns."""
    columns = [*MEASURES, "official_hallucinated", "invented", "no_call"]
    return frame.astype(dict.fromkeys(columns, "boolean"))


def counts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with one row for each published file of answers: the number of answers, and
    how many of them are correct and how many hallucinated by the authors' rule. The index is (hub,
    model, arm). An arm is a way to make the prompts, such as ``0_shot`` (without a document).
    """
    sums = frame.groupby(["hub", "model", "arm"]).agg(
        answers=("question", "size"),
        correct=("official_correct", "sum"),
        hallucinated=("official_hallucinated", "sum"),
    )
    return sums.astype(int)


def official_counts() -> pd.DataFrame:
    """Return the counts that the authors' own scripts gave, in the form of ``counts``."""
    return pd.read_csv(OFFICIAL).set_index(["hub", "model", "arm"])


def usable(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the answers that can show an effect of documents. RT's answers without a document are
    left out, and so are answers to questions whose reference call cannot be compared.
    """
    is_odd = (frame.model == "RT") & (frame.arm == "0_shot")
    return frame[~is_odd & frame.reference.notna() & (frame.document != "unknown")]


def of_kind(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return the answers to prompts with a document of one kind, such as "right". The kind "wrong"
    includes "wrong_same_domain" and "wrong_other_domain".
    """
    return frame[frame.document.str.startswith(kind)]


def parts(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield (name, answers) for each hub and for all of them together."""
    yield from frame.groupby("hub", sort=False)
    yield "all", frame


def paired(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return FT's answers to prompts with a document of one kind. Columns that end in ``_none``
    have the verdicts on FT's answers to the same questions without a document.
    """
    ours = frame[frame.model == "FT"]
    alone = of_kind(ours, "none").set_index(["hub", "question"])[[*MEASURES]]
    return of_kind(ours, kind).join(
        alone, on=["hub", "question"], suffixes=("", "_none"), how="inner"
    )


def change_rows(frame: pd.DataFrame) -> Rows:
    """Return how much a document changes the verdicts on FT's answers, paired by question, with
    conditions such as ``right/all - none/all``. There are rows for the change in points, for the
    numbers of answers that are ``lost`` and ``gained``, and for the p value of McNemar's exact test
    on these numbers.
    """
    rows = []
    for (hub, part), kind, name in product(parts(frame), KINDS, MEASURES):
        both = paired(part, kind)
        if both.empty:
            continue
        before, after = both[f"{name}_none"].astype(float), both[name].astype(float)
        at = NAMES["FT"], f"{kind}/{hub} - none/{hub}"
        number = paired_difference(before, after, both.cluster).percent()
        rows.append(row(*at, f"{name}_change_points", number))
        for metric, value in zip(("lost", "gained", "p"), mcnemar(before, after), strict=True):
            rows.append(bare_row(*at, f"{name}_{metric}", value, len(both)))
    return rows


def loss_rows(frame: pd.DataFrame) -> Rows:
    """Return the percentage of questions that FT answers wrong with a document, of those that it
    answers right without one. FT was trained without documents.
    """
    rows = []
    for (hub, part), kind, name in product(parts(frame), KINDS, MEASURES):
        both = paired(part, kind)
        right = both[both[f"{name}_none"].fillna(False).astype(bool)]
        if len(right):
            number = rate(1 - right[name].astype(float), right.cluster).percent()
            rows.append(row(NAMES["FT"], f"{kind}/{hub}", f"{name}_lost_percent", number))
    return rows


def break_even_rows(frame: pd.DataFrame) -> Rows:
    """Return the precision of a retriever at which documents neither help nor hurt, in percent.

    At a precision p, documents change the rate by p * right + (1 - p) * wrong, where right and
    wrong are the paired changes of ``change_rows``. A result above 100 means that no retriever is
    precise enough. If wrong documents do no harm, every retriever is precise enough.
    """
    rows = []
    for (hub, part), name in product(parts(frame), MEASURES):
        both = pd.concat([paired(part, "right"), paired(part, "wrong")])
        is_right = both.document.eq("right").to_numpy()
        change = (both[name].astype(float) - both[f"{name}_none"].astype(float)).to_numpy()

        def precision(weights: Array, change: Array = change, is_right: Array = is_right) -> Array:
            with np.errstate(divide="ignore", invalid="ignore"):
                right, wrong = (
                    weights @ (change * some) / (weights @ some) for some in (is_right, ~is_right)
                )
                return 100 * -wrong / (right - wrong)

        [number] = jackknife(precision, both.cluster, of_number)
        rows.append(row(NAMES["FT"], hub, f"{name}_break_even_percent", number))
    return rows
