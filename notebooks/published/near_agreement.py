"""Measures how well two readers (language models) and several rules agree on which failed answers
are near misses, and what percentage of the failed answers each of them calls a near miss.

The readers' labels and the rules' verdicts are read from committed files.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import cohen_kappa_score

from lookuplab import paths
from lookuplab.scoring.rates import (
    Array,
    Rate,
    Rows,
    averages,
    bare_row,
    jackknife,
    of_number,
    of_share,
    row,
)

PLACE = paths.DATA / "published" / "near_misses"
MODELS = "six models"  # the model's name in rows about all of them
BOTH = ["reader1", "reader2"]
# count -> (whether the rule calls the answer a near miss, whether the readers do)
CONFUSION = {
    "both_near": (True, True),
    "only_rule_near": (True, False),
    "only_readers_near": (False, True),
    "both_not": (False, False),
}


def labelled() -> pd.DataFrame:
    """Return the drawn answers with each reader's label (True for a near miss), the readers'
    ``consensus`` (None if they differ) and a column with the verdicts of each rule.

    The frame's ``attrs`` have two lists of names: ``rules``, and ``candidates``, the rules that
    call the example printed in the paper a near miss.
    """
    frame = pd.read_csv(PLACE / "rules.csv")  # the paper's example is a row, too
    for name in ("drawn", *BOTH):
        other = pd.read_csv(PLACE / f"{name}.csv").rename(columns={"label": name})
        other = other.drop(columns="confidence", errors="ignore")
        frame = frame.merge(other, "left", on=["model", "problem_id"], validate="1:1")
    for reader in BOTH:
        frame[reader] = frame[reader].eq("near")
    alike = frame.reader1.eq(frame.reader2)
    frame["consensus"] = frame.reader1.astype(object).where(alike, None)
    tree, run = frame.tree.eq(1), frame.run.gt(0)
    # 0.5 was chosen among 0.5, 0.6, 0.7, 0.8 and 0.9, on the half named "develop"
    similar = frame.similarity.ge(0.5)
    rules = {
        "today": frame.today.eq(1),  # the rule of stackoverflow/near_misses.py
        "tree": tree,
        "run": run,
        "tree_or_run": tree | run,
        "similar_0.5": similar,
        "run_or_similar_0.5": run | similar,
    }
    frame = frame.assign(**rules)
    (example,) = frame[frame.half.isna()].to_dict("records")
    frame = frame[frame.half.notna()].reset_index(drop=True)
    frame.attrs |= {"rules": [*rules], "candidates": [rule for rule in rules if example[rule]]}
    return frame


def kappa(first: pd.Series, second: pd.Series, clusters: pd.Series) -> Rate:
    """Return Cohen's kappa of two boolean series, with a jackknife interval over clusters."""
    a, b = (np.asarray(each, dtype=bool) for each in (first, second))

    def of(weights: Array) -> Array:
        # kappa is 0/0 if both series are constant and equal
        with np.errstate(invalid="ignore"):
            return np.array([cohen_kappa_score(a, b, sample_weight=each) for each in weights])

    return jackknife(of, clusters, of_number)[0]


def share(near: pd.Series, frame: pd.DataFrame) -> Rate:
    """Return the share of near misses in the population, estimated from the drawn answers
    (``near``, booleans). Each answer is weighted by the size of its stratum (model and library),
    divided by the number of answers drawn from that stratum.
    """
    drawn = frame.groupby(["model", "library"]).problem_id.transform("size")
    each = (frame.population / drawn).to_numpy()
    is_near = np.asarray(near, dtype=float)

    def of(weights: Array) -> Array:
        sizes = weights * each
        return (sizes * is_near).sum(axis=1) / sizes.sum(axis=1)

    return jackknife(of, frame.cluster, of_share)[0]


def part(found: pd.Series, wanted: pd.Series, clusters: pd.Series) -> Rate:
    """Return the share of the ``found`` answers that are also ``wanted``. If ``found`` has a rule's
    near misses and ``wanted`` the readers', the share is the rule's precision. With the arguments
    exchanged, it is the rule's recall.
    """
    weighed = np.asarray(found, dtype=bool)
    right = weighed & np.asarray(wanted, dtype=bool)
    return averages(right[:, None], clusters, weighed[:, None], of_share)[0]


def agreement_rows(frame: pd.DataFrame) -> Rows:
    """Return a row with the kappa of the two readers, and rows for each rule on each half of the
    answers. These rows have the rule's kappa with each reader and with the readers' consensus.
    Further rows take the consensus as the truth: they have the rule's precision, its recall and the
    four counts of its confusion matrix (CONFUSION).
    """
    rows = [row(MODELS, "readers", "kappa", kappa(frame.reader1, frame.reader2, frame.cluster))]
    for half, some in frame.groupby("half", sort=False):
        agreed = some[some.consensus.notna()]
        truth = agreed.consensus.astype(bool)
        for rule in frame.attrs["rules"]:
            key = MODELS, f"{rule}/{half}"
            rows.append(row(*key, "kappa", kappa(agreed[rule], truth, agreed.cluster)))
            for reader in BOTH:
                number = kappa(some[rule], some[reader], some.cluster)
                rows.append(row(*key, f"kappa_{reader}", number))
            found = {"precision": (agreed[rule], truth), "recall": (truth, agreed[rule])}
            for name, pair in found.items():
                number = part(*pair, agreed.cluster).percent()
                rows.append(row(*key, f"{name}_percent", number))
            for name, (by_rule, by_readers) in CONFUSION.items():
                count = (agreed[rule].eq(by_rule) & truth.eq(by_readers)).sum()
                rows.append(bare_row(*key, name, count, len(agreed)))
    return rows


def chosen(rows: pd.DataFrame, candidates: Sequence[str]) -> str:
    """Return the candidate whose kappa with the consensus is highest on the "develop" half of
    the answers. Of several such candidates, return the first.
    """
    named = rows.condition.isin([f"{rule}/develop" for rule in candidates])
    found = rows[rows.metric.eq("kappa") & named]
    return str(found.loc[found.value.idxmax(), "condition"]).removesuffix("/develop")


def weaker_link(rows: pd.DataFrame, rule: str) -> dict[str, Any]:
    """Return how reliable the claim's measurement is, as a row with the condition "instrument". The
    row has the lower of two kappas: the kappa of the two readers, and the kappa of the rule with
    the readers' consensus on the held-out half.
    """
    links = rows[rows.metric.eq("kappa") & rows.condition.isin(["readers", f"{rule}/held-out"])]
    return links.loc[links.value.idxmin()].to_dict() | {"condition": "instrument"}
