"""Does a confidence say how often the answer is right? (CloudAPIBench, Section 4.2 and Figure 9a)

Throughout: ``correct`` is (n,) booleans, ``confidence`` is (n,) numbers from 0 to 1, in the same order.
"""

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.metrics import brier_score_loss, roc_auc_score


def auroc(correct, confidence) -> float:
    """Chance that a correct answer has a higher confidence than a wrong one (ties half); NaN without both kinds."""
    correct = np.asarray(correct, dtype=bool)
    if correct.all() or not correct.any():
        return float("nan")
    return float(roc_auc_score(correct, confidence))


def brier(correct, confidence) -> float:
    """Mean squared distance of the confidence from 0 or 1; 0 is perfect, 0.25 is always saying one half."""
    return float(brier_score_loss(np.asarray(correct, dtype=bool), confidence, pos_label=True))


def reliability(correct, confidence, bins: int = 10) -> pd.DataFrame:
    """One row per non-empty bin: ``low, high`` (confidences in it), ``confidence`` (mean), ``correct`` (share), ``n``.

    Bins hold equal mass. Equal confidences always share a bin (their average rank decides), so the table does not
    depend on the order of the answers; with many ties the bins are therefore less equal, or fewer.
    """
    confidence = np.asarray(confidence, dtype=float)
    if not len(confidence):
        raise ValueError("no answers to bin")
    member = np.ceil(rankdata(confidence) * bins / len(confidence)).astype(int)
    frame = pd.DataFrame({"bin": member, "confidence": confidence, "correct": np.asarray(correct, dtype=float)})
    groups = frame.groupby("bin")
    table = groups.agg(low=("confidence", "min"), high=("confidence", "max"), n=("confidence", "size"))
    table[["confidence", "correct"]] = groups[["confidence", "correct"]].mean()
    return table.reset_index(drop=True)[["low", "high", "confidence", "correct", "n"]]


def ece(correct, confidence, bins: int = 10) -> float:
    """Expected calibration error: distance of share correct and mean confidence in equal-mass bins, by their size."""
    table = reliability(correct, confidence, bins)
    return float((table.n * (table.correct - table.confidence).abs()).sum() / table.n.sum())
